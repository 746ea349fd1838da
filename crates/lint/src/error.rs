//! Why a file cannot be judged.

use std::{io, path::PathBuf};

/// Named by the party that can help.
#[derive(Debug, thiserror::Error)]
pub enum LintError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The file is no text, or no text of its kind.
    #[error("{}: {why}", path.display())]
    NoText { path: PathBuf, why: String },
}
