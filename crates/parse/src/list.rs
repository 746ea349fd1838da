//! `cpulist` and `nodelist` files: `0-3,8`. The parsing itself is [`CpuSet`]'s, so that the
//! serialised form and the kernel's are one.

use model::CpuSet;

use crate::ParseError;

/// Parses a whole list file; an empty file is the empty set.
///
/// # Errors
/// When the text is no list, or names an id above [`model::cpuset::MAX_ID`].
pub fn parse(bytes: &[u8]) -> Result<CpuSet, ParseError> {
    std::str::from_utf8(bytes)
        .ok()
        .and_then(|s| s.parse().ok())
        .ok_or_else(|| ParseError::new(1, "a list such as 0-3,8", bytes))
}
