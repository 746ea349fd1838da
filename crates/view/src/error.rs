//! Why the view ended.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Named by what broke.
#[derive(Debug)]
pub enum ViewError {
    /// The terminal, or the recording's file.
    Io(PathBuf, io::Error),
    /// The recording is there already, and is not to be overwritten.
    Exists(PathBuf),
    /// A thread that the kernel did not start.
    Thread(io::Error),
    /// What is wrong with a recording that is read.
    Recording(String),
}

impl ViewError {
    pub(crate) fn io(path: &Path, e: io::Error) -> Self {
        Self::Io(path.to_owned(), e)
    }
}

/// What this crate's functions give.
pub type Result<T> = std::result::Result<T, ViewError>;
