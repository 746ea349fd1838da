//! One file per command; each shows the command's steps in order.

pub mod compare;
pub mod doctor;
pub mod doctor_fleet;
pub mod doctor_peer;
pub mod explain;
pub mod export;
pub mod fix;
pub mod help;
pub mod history;
pub mod inspect;
pub mod lab;
pub mod lint;
pub mod measure;
pub mod mesh;
pub mod place;
pub mod prove;
pub mod remote;
pub mod report;
pub mod schema;
pub mod serve;
pub mod snapshot;
pub mod tune;
pub mod watch;

use std::path::PathBuf;

use crate::failure::Failure;

/// The path of this program, to start it again.
///
/// # Errors
/// The path is not known.
pub fn ours() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|e| Failure::Environment(format!("cannot find the netwright executable: {e}")))
}
