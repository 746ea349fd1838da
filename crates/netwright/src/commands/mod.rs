//! One file per command; each is the story of what it does.

pub mod doctor;
pub mod explain;
pub mod fix;
pub mod inspect;
pub mod lab;
pub mod measure;
pub mod prove;
pub mod remote;
pub mod schema;
pub mod serve;
pub mod snapshot;
pub mod tune;
pub mod watch;

use std::path::PathBuf;

use crate::failure::Failure;

/// This program's own file, for what runs it once more.
///
/// # Errors
/// It is not found.
pub fn ours() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|e| Failure::Environment(format!("our own program is not found: {e}")))
}
