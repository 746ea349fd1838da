//! Who makes a lab: a lock that lasts as long as that process and the programs that it started.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use super::{LabState, Registry};
use crate::{LabError, tool};

/// How long a killed `up` and the last program that it started may take to end.
const ENDING: Duration = Duration::from_secs(10);

impl Registry {
    /// Whether the process that began a lab, or a program that it started to make something, still
    /// runs: both hold the lock on the lab's `owner` file, which the kernel releases with the last
    /// of them.
    pub fn is_owned(&self, name: &str) -> bool {
        let file = fs::File::open(self.folder_of(name).join("owner"));
        file.is_ok_and(|f| matches!(f.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
    }

    /// Waits until a lab has no owner.
    pub(super) fn wait_for_owner(&self, lab: &LabState) -> Result<(), LabError> {
        let began = Instant::now();
        while self.is_owned(&lab.name) {
            if began.elapsed() > ENDING {
                return Err(LabError::BeingMade { name: lab.name.clone(), pid: lab.owner_pid });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// Locks a lab's `owner` file for this process and the programs that it starts.
pub(super) fn own(folder: &Path) -> std::io::Result<fs::File> {
    let file = fs::File::create(folder.join("owner"))?;
    file.lock()?;
    tool::share_lock(file.try_clone()?);
    Ok(file)
}
