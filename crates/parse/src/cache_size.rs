//! `cpuN/cache/indexM/size`: `32K`. **Source**: `size_show` in the kernel's
//! `drivers/base/cacheinfo.c`, always KiB with a `K`; other trees also write `M`.

use model::Bytes;

use crate::ParseError;

/// Parses the size. The kernel's `0K` means that the firmware did not report it, so it is an error.
///
/// # Errors
/// The text is no such size, or zero.
pub fn parse(bytes: &[u8]) -> Result<Bytes, ParseError> {
    let bad = || ParseError::new(1, "a cache size such as 32K", bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| bad())?.trim();
    let (number, scale) = match text.strip_suffix('K') {
        Some(n) => (n, 1 << 10),
        None => (text.strip_suffix('M').ok_or_else(bad)?, 1u64 << 20),
    };
    let n: u64 = number.parse().map_err(|_| bad())?;
    n.checked_mul(scale).filter(|&n| n > 0).map(Bytes).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_in_kib_or_mib_and_never_zero() {
        assert_eq!(parse(b"32K\n"), Ok(Bytes(32_768)));
        assert_eq!(parse(b"65536K"), Ok(Bytes(64 << 20)));
        assert_eq!(parse(b"4M\n"), Ok(Bytes(4 << 20)));
        for bad in ["", "0K", "K", "32", "-1K", "1.5M", "18446744073709551615K"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?} was taken");
        }
    }
}
