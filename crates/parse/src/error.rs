//! Errors of parsers, with the place in the input.

/// What could not be understood, and where. The caller knows the path and adds it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}, found {found:?}")]
pub struct ParseError {
    /// Number of the line, from 1.
    pub line: u32,
    /// What should have stood there.
    pub expected: &'static str,
    /// What stood there, at most 60 characters.
    pub found: String,
}

impl ParseError {
    /// An error quoting at most 60 characters of what was found.
    pub fn new(line: usize, expected: &'static str, found: &[u8]) -> Self {
        Self {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            expected,
            found: String::from_utf8_lossy(found.get(..found.len().min(240)).unwrap_or(found))
                .chars()
                .take(60)
                .collect(),
        }
    }
}
