//! Errors of the view.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// Each variant names what failed.
#[derive(Debug)]
pub enum ViewError {
    /// The terminal, or the recording's file.
    Io(PathBuf, io::Error),
    /// The recording's file exists, and overwriting it was not requested.
    Exists(PathBuf),
    /// An address cannot be listened on.
    Listen(SocketAddr, io::Error),
    /// The kernel refused to start a thread.
    Thread(io::Error),
    /// The recording to be shown is invalid.
    Recording(String),
}

impl ViewError {
    pub(crate) fn io(path: &Path, e: io::Error) -> Self {
        Self::Io(path.to_owned(), e)
    }
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, ViewError>;
