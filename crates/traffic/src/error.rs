//! Errors of a measurement, each in one line.

use std::io;

/// Grouped by who can resolve it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request is invalid; the user can correct it.
    #[error("{0}")]
    Usage(String),
    /// Not permitted, here or by the server (a wrong secret).
    #[error("{0}")]
    Denied(String),
    /// The environment failed: nothing listens, a reset, another protocol, no memory.
    #[error("{0}")]
    Environment(String),
    /// The other end did not answer in time.
    #[error("{0}")]
    Silent(String),
}

/// Result type of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A failed system call, with the operation that made it.
    pub fn io(doing: impl std::fmt::Display, e: &io::Error) -> Self {
        let text = e.to_string();
        let why = text.split(" (os error").next().unwrap_or(&text);
        let line = format!("{doing}: {why}");
        match e.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Denied(line),
            _ => Self::Environment(line),
        }
    }
}

/// Adds the operation to an `io::Error`.
pub trait ErrorContext<T> {
    /// Converts the error by [`Error::io`]; `what` names the operation and runs only on an error.
    ///
    /// # Errors
    /// The error that there was, with its operation.
    fn doing<D: std::fmt::Display>(self, what: impl FnOnce() -> D) -> Result<T>;
}

impl<T> ErrorContext<T> for io::Result<T> {
    fn doing<D: std::fmt::Display>(self, what: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|e| Error::io(what(), &e))
    }
}
