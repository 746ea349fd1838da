//! Why a measurement could not begin or go on, in one line.

use std::io;

/// Named by who can do something about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request makes no sense; the one who typed.
    #[error("{0}")]
    Usage(String),
    /// Not permitted, here or by the server (a wrong secret).
    #[error("{0}")]
    Denied(String),
    /// The environment said no: nobody there, a reset, another protocol, no memory.
    #[error("{0}")]
    Environment(String),
    /// The other end said nothing in time.
    #[error("{0}")]
    Silent(String),
}

/// What this crate's functions give.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// What became of a system call, with what was being done.
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

/// Adds what was being done to an `io::Error`.
pub trait ErrorContext<T> {
    /// See [`Error::io`].
    fn doing<D: std::fmt::Display>(self, what: impl FnOnce() -> D) -> Result<T>;
}

impl<T> ErrorContext<T> for io::Result<T> {
    fn doing<D: std::fmt::Display>(self, what: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|e| Error::io(what(), &e))
    }
}
