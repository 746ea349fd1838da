//! Errors in a script, with their position.

use thiserror::Error;

/// An error in a script, shown as `line:column: what`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{line}:{column}: {what}")]
pub struct ScriptError {
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Text of the error.
    pub what: String,
}

/// The same with a byte offset, until the whole text is available.
#[derive(Debug)]
pub(super) struct Fault {
    at: usize,
    what: String,
}

impl Fault {
    pub fn at(at: usize, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }

    pub fn within(self, text: &str) -> ScriptError {
        let (line, column) = place(text, self.at);
        ScriptError { line, column, what: self.what }
    }
}

/// Line and column, from 1, of a byte offset.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let begin = before.rfind('\n').map_or(0, |n| n + 1);
    let line = 1 + before.bytes().filter(|b| *b == b'\n').count();
    (line, 1 + before.get(begin..).map_or(0, |l| l.chars().count()))
}
