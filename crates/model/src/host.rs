//! The kernel, the machine, and the virtualisation or container around them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, CpuSet, Nanos, Reading};

/// Major and minor version of a kernel's release, such as `6.1.0-18-amd64`; `None` for another text.
pub fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The host as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Host name. **Source**: `/proc/sys/kernel/hostname`.
    pub name: Reading<String>,
    /// Kernel release, such as `6.1.0-18-amd64`. **Source**: `/proc/sys/kernel/osrelease`.
    pub kernel: Reading<String>,
    /// Kernel build. **Source**: `/proc/sys/kernel/version`.
    pub kernel_version: Reading<String>,
    /// Machine architecture as `uname -m` names it (`x86_64`, `aarch64`). **Source**:
    /// `/proc/sys/kernel/arch` (since 6.1), `uname(2)`, or the shape of `/proc/cpuinfo`.
    pub arch: Reading<String>,
    /// Pretty name of the distribution. **Source**: `/etc/os-release`.
    pub distribution: Reading<String>,
    /// The hypervisor of this guest (`kvm`, `vmware`, `xen`, `microsoft`, `firecracker`,
    /// `amazon`…), `none` on bare metal. **Source**: `/sys/hypervisor`, DMI strings, the cpuinfo
    /// `hypervisor` flag, device tree.
    pub hypervisor: Reading<String>,
    /// Container engine that this process runs in, `none` if none. **Source**: `/proc/1/environ`,
    /// `/run/.containerenv`, `/.dockerenv`, `/proc/self/cgroup`.
    pub container: Reading<String>,
    /// Kernel lockdown mode: `none`, `integrity`, `confidentiality`. **Source**:
    /// `/sys/kernel/security/lockdown`.
    pub lockdown: Reading<String>,
    /// The kernel cmdline. **Source**: `/proc/cmdline`.
    pub cmdline: Reading<String>,
    /// Machine vendor and product. **Source**: `/sys/class/dmi/id`, device tree model.
    pub machine: Reading<String>,
    /// CPU model. **Source**: `/proc/cpuinfo`.
    pub cpu_model: Reading<String>,
    /// CPUs that could ever be present. **Source**: `/sys/devices/system/cpu/possible`.
    pub cpus_possible: Reading<CpuSet>,
    /// CPUs that are present. **Source**: `/sys/devices/system/cpu/present`.
    pub cpus_present: Reading<CpuSet>,
    /// CPUs that are online. **Source**: `/sys/devices/system/cpu/online`.
    pub cpus_online: Reading<CpuSet>,
    /// SMT control: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`. **Source**:
    /// `/sys/devices/system/cpu/smt/control`.
    pub smt: Reading<String>,
    /// The clock that the kernel reads: `tsc`, `kvm-clock`, `arch_sys_counter`, `hpet`. **Source**:
    /// `/sys/devices/system/clocksource/clocksource0/current_clocksource`.
    #[serde(default)]
    pub clocksource: Reading<String>,
    /// The clocks that the kernel would take. **Source**: `available_clocksource` beside it.
    #[serde(default)]
    pub clocksources_available: Reading<Vec<String>>,
    /// Time that one `clock_gettime(CLOCK_MONOTONIC)` takes: the fastest of several batches.
    #[serde(default)]
    pub clock_read_ns: Reading<Nanos>,
    /// The sched_ext scheduler that is loaded, `none` where there is none. **Source**:
    /// `/sys/kernel/sched_ext/state` and `root/ops`, since 6.12.
    #[serde(default)]
    pub sched_ext: Reading<String>,
    /// Build options of the kernel.
    pub build: KernelBuild,
    /// Memory page size. **Source**: `sysconf(_SC_PAGESIZE)`, in a snapshot as recorded.
    pub page_size_bytes: Reading<Bytes>,
    /// Ticks per second in `/proc/stat` and `/proc/PID/stat` (`USER_HZ`). **Source**:
    /// `sysconf(_SC_CLK_TCK)`.
    pub clock_ticks_per_s: Reading<u64>,
    /// Seconds since boot. **Source**: `/proc/uptime`.
    pub uptime_s: Reading<u64>,
    /// Whether the reader was root, and its effective capabilities. **Source**:
    /// `/proc/self/status`.
    pub reader: Reader,
}

/// Privileges of the process that read the facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reader {
    pub euid: Reading<u32>,
    /// Effective capabilities by name (`cap_net_admin`), ascending.
    pub capabilities: Reading<Vec<String>>,
}

/// Kernel build options that decide the meaning of figures. **Source**: `/proc/config.gz`,
/// `/boot/config-RELEASE`, `/lib/modules/RELEASE/config`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelBuild {
    /// Timer ticks per second, `CONFIG_HZ`.
    pub hz: Reading<u32>,
    /// How CPU time is accounted: `tick` (`CONFIG_TICK_CPU_ACCOUNTING`: sampled at the tick, so
    /// short softirqs are missed or charged to the running task), `virt_native`, `virt_gen` (active
    /// only with `nohz_full`).
    pub cpu_accounting: Reading<String>,
    /// Whether interrupts are timed on entry and exit, `CONFIG_IRQ_TIME_ACCOUNTING`.
    pub irq_time_accounting: Reading<bool>,
    /// Whether BTF is available for eBPF. **Source**: `/sys/kernel/btf/vmlinux`.
    pub btf: Reading<bool>,
    /// Preemption model: `none`, `voluntary`, `full`, `rt`, `lazy`, `dynamic`.
    pub preempt: Reading<String>,
}

/// Capability names by bit. **Source**: the kernel's `include/uapi/linux/capability.h`.
pub const CAPABILITIES: [&str; 41] = [
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
