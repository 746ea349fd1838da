//! The author of a change, for the journal.

use model::{Reading, tune::By};

use crate::{Host, TuneError};

/// This process and its login user.
///
/// # Errors
/// The start time of this process cannot be read.
pub fn this_process(host: &Host) -> Result<By, TuneError> {
    let words = ["SUDO_USER", "SSH_CONNECTION"].map(|v| std::env::var(v).ok());
    let login = words.into_iter().flatten().collect::<Vec<_>>().join(" from ");
    Ok(By {
        pid: std::process::id(),
        start_ticks: Host::live().start_ticks("self")?,
        uid: rustix::process::getuid().as_raw(),
        login: match login.as_str() {
            "" if host.is_live() => Reading::absent("neither SUDO_USER nor SSH_CONNECTION is set"),
            "" => Reading::absent("a folder"),
            _ => Reading::Known(login),
        },
        version: env!("CARGO_PKG_VERSION").into(),
    })
}
