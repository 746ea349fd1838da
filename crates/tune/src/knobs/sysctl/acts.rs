//! Files of `/proc/sys` that are no settings: writing them does something, or they move by themselves,
//! so that what was there cannot be put back.

use crate::TuneError;

/// Beside what [`super::judge`] never writes.
const ACTS: &[(&str, &str)] = &[
    ("fs.binfmt_misc.register", "writing it is an act, not a setting"),
    ("fs.binfmt_misc.status", "writing it is an act, not a setting"),
    ("vm.stat_refresh", "writing it is an act, not a setting"),
    ("kernel.hung_task_warnings", "the kernel counts it down by itself"),
    ("kernel.msg_next_id", "the kernel sets it back when it is used"),
    ("kernel.ns_last_pid", "it moves with each new process"),
    ("kernel.sem_next_id", "the kernel sets it back when it is used"),
    ("kernel.shm_next_id", "the kernel sets it back when it is used"),
];

/// Why a key is never written.
pub fn never(key: &str) -> Option<&'static str> {
    ACTS.iter().find(|(k, _)| *k == key).map(|(_, why)| *why)
}

/// Refuses a file that cannot be read: the journal would have nothing to put back. **Source**: its
/// mode.
///
/// # Errors
/// It can only be written.
pub fn can_be_read(file: &str, mode: u32) -> Result<(), TuneError> {
    match mode & 0o444 {
        0 => Err(TuneError::Environment(format!(
            "{file}: can only be written, so it is an act, not a setting, and nothing to undo; \
             sysctl -w does it"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_put_back_is_no_setting() {
        assert!(never("vm.stat_refresh").is_some() && never("kernel.ns_last_pid").is_some());
        assert_eq!(never("vm.swappiness"), None);
        let why = can_be_read("/proc/sys/a/b", 0o100_200).unwrap_err();
        assert!(why.to_string().contains("/proc/sys/a/b: can only be written"), "{why}");
        assert!(can_be_read("/proc/sys/a/b", 0o100_600).is_ok());
    }

    /// What this kernel has of the kind is refused before anything is written.
    #[test]
    fn no_file_here_that_can_only_be_written_is_taken() {
        use std::os::unix::fs::PermissionsExt;

        use crate::{Host, knob::Knob};

        let knob = super::super::Sysctl;
        for file in ["vm/drop_caches", "vm/compact_memory", "net/ipv4/route/flush"] {
            let Ok(there) = std::fs::metadata(format!("/proc/sys/{file}")) else { continue };
            assert_eq!(there.permissions().mode() & 0o444, 0, "{file}");
            let name = format!("sysctl.{file}");
            assert!(knob.never(&name).is_some() && knob.settable(&Host::live(), &name).is_err());
        }
    }
}
