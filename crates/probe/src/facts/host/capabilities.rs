//! Capabilities by name. **Source**: the kernel's `include/uapi/linux/capability.h`.

/// Capability names by bit.
const NAMES: [&str; 41] = [
    "cap_chown",
    "cap_dac_override",
    "cap_dac_read_search",
    "cap_fowner",
    "cap_fsetid",
    "cap_kill",
    "cap_setgid",
    "cap_setuid",
    "cap_setpcap",
    "cap_linux_immutable",
    "cap_net_bind_service",
    "cap_net_broadcast",
    "cap_net_admin",
    "cap_net_raw",
    "cap_ipc_lock",
    "cap_ipc_owner",
    "cap_sys_module",
    "cap_sys_rawio",
    "cap_sys_chroot",
    "cap_sys_ptrace",
    "cap_sys_pacct",
    "cap_sys_admin",
    "cap_sys_boot",
    "cap_sys_nice",
    "cap_sys_resource",
    "cap_sys_time",
    "cap_sys_tty_config",
    "cap_mknod",
    "cap_lease",
    "cap_audit_write",
    "cap_audit_control",
    "cap_setfcap",
    "cap_mac_override",
    "cap_mac_admin",
    "cap_syslog",
    "cap_wake_alarm",
    "cap_block_suspend",
    "cap_audit_read",
    "cap_perfmon",
    "cap_bpf",
    "cap_checkpoint_restore",
];

/// The names of a mask's capabilities, ascending; bits of a newer kernel are `cap_41` and so on.
pub(super) fn names(bits: u64) -> Vec<String> {
    let mut names: Vec<String> = (0..64)
        .filter(|bit| bits >> bit & 1 == 1)
        .map(|bit| NAMES.get(bit).map_or_else(|| format!("cap_{bit}"), |n| (*n).to_owned()))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_bit() {
        assert_eq!(names(0), [""; 0]);
        assert_eq!(names(0x3000), ["cap_net_admin", "cap_net_raw"]);
        assert_eq!(names(0x1ff_ffff_ffff).len(), 41);
        assert_eq!(names(1 << 63), ["cap_63"]);
        assert_eq!(names(0x180_0000_0000), ["cap_bpf", "cap_checkpoint_restore"]);
    }
}
