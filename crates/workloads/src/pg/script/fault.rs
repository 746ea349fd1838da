//! What is wrong with a script, and where.

use thiserror::Error;

/// What is wrong with a script: `line:column: what`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{line}:{column}: {what}")]
pub struct ScriptError {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// What is wrong there.
    pub what: String,
}

/// The same with an offset in bytes for the place, until the whole text is at hand.
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

/// The line and the character in it, from 1, of an offset in bytes.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let begin = before.rfind('\n').map_or(0, |n| n + 1);
    let line = 1 + before.bytes().filter(|b| *b == b'\n').count();
    (line, 1 + before.get(begin..).map_or(0, |l| l.chars().count()))
}
