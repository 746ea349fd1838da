//! `cpulist` and `nodelist` files: `0-3,8`. [`CpuSet`] parses them, so that the kernel's form and
//! the serialised form agree.

use model::CpuSet;

use crate::ParseError;

/// Parses a whole list file; an empty file is the empty set. Kernels 5.15-rc end these files
/// with a zero byte.
///
/// # Errors
/// When the text is no list, or names an id above [`model::cpuset::MAX_ID`].
pub fn parse(bytes: &[u8]) -> Result<CpuSet, ParseError> {
    std::str::from_utf8(bytes)
        .ok()
        .and_then(|s| s.trim_end_matches('\0').parse().ok())
        .ok_or_else(|| ParseError::new(1, "a list such as 0-3,8", bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_byte_at_the_end_is_no_part_of_the_list() {
        assert_eq!(parse(b"84-87\n\0").unwrap().to_string(), "84-87");
        assert_eq!(parse(b"\n\0").unwrap(), CpuSet::new());
        assert!(parse(b"84\087\n").is_err());
    }
}
