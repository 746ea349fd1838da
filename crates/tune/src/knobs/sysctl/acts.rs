//! Files of `/proc/sys` that are never written: writing them does something, or they move by themselves
//! or one way only, so that what was there cannot be put back, or they are a secret.

use crate::TuneError;

/// Each with the reason. **Source** of what goes one way: `nf_hooks_lwtunnel_sysctl_handler`,
/// `kexec_limit_handler`, `proc_cap_handler`, `proc_watchdog_common`.
const NEVER: &[(&str, &str)] = &[
    ("vm.drop_caches", "writing it is an act, not a setting"),
    ("vm.compact_memory", "writing it is an act, not a setting"),
    ("net.ipv4.route.flush", "writing it is an act, not a setting"),
    ("net.ipv6.route.flush", "writing it is an act, not a setting"),
    ("kernel.modules_disabled", "it cannot be undone before a reboot"),
    ("kernel.kexec_load_disabled", "it cannot be undone before a reboot"),
    ("kernel.unprivileged_bpf_disabled", "1 cannot be undone before a reboot"),
    ("kernel.yama.ptrace_scope", "3 cannot be undone before a reboot"),
    ("kernel.core_pattern", "it names a program for the kernel to run"),
    ("kernel.modprobe", "it names a program for the kernel to run"),
    ("kernel.hotplug", "it names a program for the kernel to run"),
    ("kernel.hostname", "it is who the host is"),
    ("kernel.domainname", "it is who the host is"),
    ("net.ipv4.tcp_fastopen_key", "it is a secret, and the journal can be read"),
    ("fs.binfmt_misc.register", "writing it is an act, not a setting"),
    ("fs.binfmt_misc.status", "writing it is an act, not a setting"),
    ("vm.stat_refresh", "writing it is an act, not a setting"),
    ("kernel.max_rcu_stall_to_panic", "0, as it is at boot, cannot be written"),
    ("kernel.soft_watchdog", "a kernel before 6.8 takes 1 back no more once it was read as 0"),
    ("kernel.watchdog", "a kernel before 6.8 takes 1 back no more once it was read as 0"),
    ("kernel.tainted", "a mark in it does not go away before a reboot"),
    ("kernel.hung_task_warnings", "the kernel counts it down by itself"),
    ("kernel.msg_next_id", "the kernel sets it back when it is used"),
    ("kernel.ns_last_pid", "it moves with each new process"),
    ("kernel.sem_next_id", "the kernel sets it back when it is used"),
    ("kernel.shm_next_id", "the kernel sets it back when it is used"),
    ("kernel.kexec_load_limit_panic", "it only goes down before a reboot"),
    ("kernel.kexec_load_limit_reboot", "it only goes down before a reboot"),
    ("kernel.usermodehelper.bset", "a capability that it loses does not come back before a reboot"),
    (
        "kernel.usermodehelper.inheritable",
        "a capability that it loses does not come back before a reboot",
    ),
    (
        "net.netfilter.nf_hooks_lwtunnel",
        "1 cannot be undone before a reboot, and it is the whole host's, also where a network \
         namespace lets it be written",
    ),
];

/// Why a key is never written.
pub fn never(key: &str) -> Option<&'static str> {
    if key.ends_with(".stable_secret") {
        return Some("it is a secret, and the journal can be read");
    }
    NEVER.iter().find(|(k, _)| *k == key).map(|(_, why)| *why)
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
        // The kernel answers EBUSY to 0, and shows it writable in every network namespace.
        let one_way = never("net.netfilter.nf_hooks_lwtunnel").unwrap();
        assert!(one_way.contains("cannot be undone"), "{one_way}");
        assert!(never("net.ipv6.conf.eth0.stable_secret").is_some());
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
