//! Excerpts of files with contents that must not be kept: an environment, a container's settings.

use serde::{Serialize, de::DeserializeOwned};

use crate::{ReadError, Root};

/// What `extract` takes from the host. A snapshot keeps the answer under `key` and never the
/// files; a plain directory tree is read as if it were the host.
///
/// # Errors
/// As `extract` says.
pub fn excerpt<T: Serialize + DeserializeOwned>(
    root: &Root,
    key: &str,
    extract: impl Fn(&Root) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    match root.ask(key, || extract(&Root::live())) {
        Err(ReadError::Absent { .. }) if !root.is_live() => extract(root),
        answer => answer,
    }
}
