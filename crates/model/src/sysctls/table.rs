//! The rows. Settings with facts have a default: one that changed names the version and the commit;
//! where a boundary could not be established the value is [`UNSURE`] rather than a guess. Values are
//! those of 64-bit kernels. Settings without facts are known by the kernel's documentation
//! (Documentation/networking/ip-sysctl.rst, Documentation/admin-guide/sysctl).
//!
//! Ranges: the tables of net/core/sysctl_net_core.c and net/ipv4/sysctl_net_ipv4.c (`extra1`, `extra2`,
//! the width of the handler's type), and the documentation for what the kernel takes and gives no
//! meaning. Where kernels differ, the widest.

use super::{
    Computed,
    KernelDefault::{By, Since, State},
    Scope::{Host, Inherited, Namespace},
    Setting, UNSURE, row, rules,
};

/// A default that has been the same since 4.18 at least.
macro_rules! always {
    ($value:literal) => {
        Since(&[((0, 0), $value)])
    };
}

/// The largest value of an `int`.
const INT: i128 = i32::MAX as i128;
/// Seconds that are kept in ticks: the most where a second has a thousand.
const TICKS: i128 = INT / 1000;

const CORE: &str = "net/core/dev.c";
const SOCK: &str = "net/core/sock.c";
const TCP: &str = "net/ipv4/tcp_ipv4.c tcp_sk_init";
const IPV4: &str = "net/ipv4/af_inet.c inet_init_net";
const CT: &str = "net/netfilter/nf_conntrack_core.c nf_conntrack_init_start";
const CT_TCP: &str = "net/netfilter/nf_conntrack_proto_tcp.c";
const SCHED: &str = "kernel/sched";

/// Every setting, ascending by key.
#[rustfmt::skip]
pub const TABLE: &[Setting] = &[
    row("fs.aio-max-nr", "requests").rules(rules::ROOM),
    row("fs.binfmt_misc.register", "").rules(rules::ACT),
    row("fs.binfmt_misc.status", "").rules(rules::ACT),
    row("fs.file-max", "files").facts(Host, By(Computed::FileMax), "fs/file_table.c files_maxfiles_init: a tenth of memory in KiB").rules(rules::ROOM),
    row("fs.inotify.max_user_instances", "instances").rules(rules::ROOM),
    row("fs.inotify.max_user_watches", "watches").rules(rules::ROOM),
    row("fs.nr_open", "files").facts(Host, always!("1048576"), "fs/file.c sysctl_nr_open").rules(rules::ROOM),
    row("fs.overflowgid", "").rules(rules::SECURITY),
    row("fs.overflowuid", "").rules(rules::SECURITY),
    row("fs.suid_dumpable", "").rules(rules::SECURITY),
    row("kernel.cad_pid", "").rules(rules::SECURITY),
    row("kernel.core_pattern", "").rules(rules::PROGRAM),
    row("kernel.ctrl-alt-del", "").rules(rules::SECURITY),
    row("kernel.dmesg_restrict", "").rules(rules::SECURITY),
    row("kernel.domainname", "").rules(rules::NAME),
    row("kernel.hostname", "").rules(rules::NAME),
    row("kernel.hotplug", "").rules(rules::PROGRAM),
    row("kernel.hung_task_warnings", "").rules(rules::COUNTS_DOWN),
    row("kernel.io_uring_disabled", "").rules(rules::SECURITY),
    row("kernel.io_uring_group", "").rules(rules::SECURITY),
    row("kernel.kexec_load_disabled", "").rules(rules::ONE_WAY),
    row("kernel.kexec_load_limit_panic", "").rules(rules::GOES_DOWN),
    row("kernel.kexec_load_limit_reboot", "").rules(rules::GOES_DOWN),
    row("kernel.kptr_restrict", "").rules(rules::SECURITY),
    row("kernel.max_rcu_stall_to_panic", "").rules(rules::ZERO_AT_BOOT),
    row("kernel.modprobe", "").rules(rules::PROGRAM),
    row("kernel.modules_disabled", "").rules(rules::ONE_WAY),
    row("kernel.msg_next_id", "").rules(rules::SET_BACK),
    row("kernel.msgmax", "bytes").rules(rules::ROOM),
    row("kernel.msgmnb", "bytes").rules(rules::ROOM),
    row("kernel.msgmni", "queues").rules(rules::ROOM),
    row("kernel.nmi_watchdog", "boolean"),
    row("kernel.ns_last_pid", "").rules(rules::MOVES),
    row("kernel.numa_balancing", "mode").facts(Host, By(Computed::NumaBalancing), "mm/mempolicy.c check_numabalancing_enable").range(0, 3),
    row("kernel.overflowgid", "").rules(rules::SECURITY),
    row("kernel.overflowuid", "").rules(rules::SECURITY),
    row("kernel.perf_event_paranoid", "").rules(rules::SECURITY),
    row("kernel.pid_max", "").rules(rules::TASKS),
    row("kernel.poweroff_cmd", "").rules(rules::PROGRAM),
    row("kernel.randomize_va_space", "").rules(rules::SECURITY),
    row("kernel.sched_autogroup_enabled", "boolean").facts(Host, always!("1"), "kernel/sched/autogroup.c"),
    row("kernel.sched_cfs_bandwidth_slice_us", "us").facts(Host, always!("5000"), "kernel/sched/fair.c"),
    row("kernel.sched_energy_aware", "boolean"),
    // Scaled by the number of CPUs at boot, and in debugfs since 5.13.
    row("kernel.sched_latency_ns", "ns").facts(Host, always!("?"), SCHED).gone((5, 13), "it is /sys/kernel/debug/sched now", "commit 8a99b6833c88"),
    row("kernel.sched_migration_cost_ns", "ns").facts(Host, always!("500000"), "kernel/sched/fair.c; in debugfs since 5.13").gone((5, 13), "it is /sys/kernel/debug/sched now", "commit 8a99b6833c88"),
    row("kernel.sched_min_granularity_ns", "ns").facts(Host, always!("?"), SCHED).gone((5, 13), "it is /sys/kernel/debug/sched now", "commit 8a99b6833c88"),
    row("kernel.sched_nr_migrate", "tasks").facts(Host, always!("?"), SCHED).gone((5, 13), "it is /sys/kernel/debug/sched now", "commit 8a99b6833c88"),
    row("kernel.sched_rt_period_us", "us").facts(Host, always!("1000000"), "kernel/sched/rt.c"),
    row("kernel.sched_rt_runtime_us", "us").facts(Host, always!("950000"), "kernel/sched/rt.c"),
    row("kernel.sched_schedstats", "boolean"),
    row("kernel.sched_wakeup_granularity_ns", "ns").facts(Host, always!("?"), SCHED).gone((5, 13), "it is /sys/kernel/debug/sched now", "commit 8a99b6833c88"),
    row("kernel.sem", "").rules(rules::ROOM),
    row("kernel.sem_next_id", "").rules(rules::SET_BACK),
    row("kernel.shm_next_id", "").rules(rules::SET_BACK),
    row("kernel.shmall", "pages").rules(rules::ROOM),
    row("kernel.shmmax", "bytes").rules(rules::ROOM),
    row("kernel.shmmni", "segments").rules(rules::ROOM),
    row("kernel.soft_watchdog", "").rules(rules::WATCHDOG),
    row("kernel.stack_erasing", "").rules(rules::SECURITY),
    row("kernel.sysrq", "").rules(rules::SECURITY),
    row("kernel.tainted", "").rules(rules::MARK),
    row("kernel.threads-max", "threads").rules(rules::TASKS),
    row("kernel.timer_migration", "boolean").facts(Host, always!("1"), "kernel/time/timer.c"),
    row("kernel.unprivileged_bpf_disabled", "").rules(rules::ONE_WAY_1),
    row("kernel.unprivileged_userns_clone", "").rules(rules::SECURITY),
    row("kernel.usermodehelper.bset", "").rules(rules::CAPABILITIES),
    row("kernel.usermodehelper.inheritable", "").rules(rules::CAPABILITIES),
    row("kernel.watchdog", "").rules(rules::WATCHDOG),
    row("kernel.yama.ptrace_scope", "").rules(rules::ONE_WAY_3),
    row("net.bridge.bridge-nf-call-ip6tables", "boolean").facts(Namespace, always!("1"), "net/bridge/br_netfilter_hooks.c"),
    row("net.bridge.bridge-nf-call-iptables", "boolean").facts(Namespace, always!("1"), "net/bridge/br_netfilter_hooks.c"),
    row("net.core.bpf_jit_enable", "mode"),
    row("net.core.bpf_jit_harden", "").rules(rules::SECURITY),
    row("net.core.bpf_jit_kallsyms", "").rules(rules::SECURITY),
    row("net.core.bpf_jit_limit", "bytes"),
    row("net.core.busy_poll", "us").facts(Host, always!("0"), "net/socket.c sysctl_net_busy_poll").range(0, INT),
    row("net.core.busy_read", "us").facts(Host, always!("0"), "net/socket.c sysctl_net_busy_read").range(0, INT),
    row("net.core.default_qdisc", "name").facts(Host, By(Computed::DefaultQdisc), "net/sched/Kconfig DEFAULT_NET_SCH"),
    row("net.core.dev_weight", "packets").facts(Host, always!("64"), CORE).range(1, INT),
    row("net.core.dev_weight_rx_bias", "factor").facts(Host, always!("1"), CORE).range(1, INT),
    row("net.core.dev_weight_tx_bias", "factor").facts(Host, always!("1"), CORE).range(1, INT),
    row("net.core.devconf_inherit_init_net", "mode").facts(Host, always!("0"), "net/core/sysctl_net_core.c").range(0, 3),
    row("net.core.fb_tunnels_only_for_init_net", "mode"),
    row("net.core.flow_limit_cpu_bitmap", "cpu mask").facts(Host, By(Computed::EmptyMask), "net/core/sysctl_net_core.c"),
    row("net.core.flow_limit_table_len", "entries").facts(Host, always!("4096"), CORE).range(1, INT).power_of_two(),
    row("net.core.gro_normal_batch", "packets").facts(Host, always!("8"), "net/core/dev.c; since 5.4").range(1, INT),
    row("net.core.high_order_alloc_disable", "boolean").facts(Host, always!("0"), SOCK).range(0, 1),
    row("net.core.mem_pcpu_rsv", "pages"),
    row("net.core.netdev_budget", "packets").facts(Host, always!("300"), CORE).range(1, INT).rules(rules::NETDEV_BUDGET),
    row("net.core.netdev_budget_usecs", "us").facts(Host, By(Computed::BudgetUsecs), "net/core/dev.c: two ticks since 5.7 (a4837980fd9f), before 2000").range(0, INT).rules(rules::ROOM),
    row("net.core.netdev_max_backlog", "packets").facts(Host, always!("1000"), CORE).range(0, INT).rules(rules::BACKLOG),
    row("net.core.netdev_tstamp_prequeue", "boolean").facts(Host, always!("1"), CORE).range(0, 1),
    row("net.core.netdev_unregister_timeout_secs", "s"),
    row("net.core.optmem_max", "bytes").facts(Namespace, Since(&[((0, 0), "20480"), ((6, 8), "131072")]), "net/core/sock.c; 128 KiB since 6.8 (4944566706b2)").range(0, INT).rules(rules::OPTMEM),
    row("net.core.rmem_default", "bytes").facts(Host, always!("212992"), SOCK).range(2304, INT).rules(rules::RMEM_DEFAULT),
    row("net.core.rmem_max", "bytes").facts(Host, Since(&[((0, 0), "212992"), ((6, 18), "4194304")]), "net/core/sock.c; 4 MiB since 6.18 (a6d4f25888b8)").range(2304, INT).rules(rules::ROOM),
    row("net.core.rps_sock_flow_entries", "entries").facts(Host, always!("0"), "net/core/sysctl_net_core.c").range(0, 1 << 29).power_of_two(),
    row("net.core.skb_defer_max", "packets").facts(Host, Since(&[((0, 0), "64"), ((6, 19), UNSURE)]), CORE).range(0, INT),
    row("net.core.somaxconn", "connections").facts(Namespace, Since(&[((0, 0), "128"), ((5, 4), "4096")]), "include/linux/socket.h SOMAXCONN; 4096 since 5.4 (19f92a030ca6)").range(0, INT).rules(rules::ROOM),
    row("net.core.tstamp_allow_data", "boolean"),
    row("net.core.txrehash", "boolean"),
    row("net.core.warnings", "").rules(rules::WARNINGS),
    row("net.core.wmem_default", "bytes").facts(Host, always!("212992"), SOCK).range(4608, INT).rules(rules::WMEM_DEFAULT),
    row("net.core.wmem_max", "bytes").facts(Host, Since(&[((0, 0), "212992"), ((6, 18), "4194304")]), "net/core/sock.c; 4 MiB since 6.18 (a6d4f25888b8)").range(4608, INT).rules(rules::ROOM),
    row("net.ipv4.fib_multipath_hash_fields", "bits"),
    row("net.ipv4.fib_multipath_hash_policy", "mode"),
    row("net.ipv4.fib_multipath_use_neigh", "boolean"),
    row("net.ipv4.fib_sync_mem", "bytes"),
    row("net.ipv4.fwmark_reflect", "boolean"),
    row("net.ipv4.icmp_msgs_burst", "messages"),
    row("net.ipv4.icmp_msgs_per_sec", "messages"),
    row("net.ipv4.icmp_ratelimit", "ms"),
    row("net.ipv4.inet_peer_maxttl", "s"),
    row("net.ipv4.inet_peer_minttl", "s"),
    row("net.ipv4.inet_peer_threshold", "bytes"),
    row("net.ipv4.ip_autobind_reuse", "boolean"),
    row("net.ipv4.ip_default_ttl", "hops"),
    row("net.ipv4.ip_dynaddr", "mode"),
    row("net.ipv4.ip_early_demux", "boolean").facts(Namespace, always!("1"), IPV4).range(0, 1),
    row("net.ipv4.ip_forward", "boolean").facts(Inherited, always!("0"), "net/ipv4/devinet.c"),
    row("net.ipv4.ip_forward_update_priority", "boolean"),
    row("net.ipv4.ip_forward_use_pmtu", "boolean"),
    row("net.ipv4.ip_local_port_range", "ports").facts(Namespace, always!("32768 60999"), IPV4).rules(rules::PORT_RANGE),
    row("net.ipv4.ip_local_reserved_ports", "ports").facts(Namespace, always!(""), IPV4),
    row("net.ipv4.ip_no_pmtu_disc", "mode").facts(Namespace, always!("0"), IPV4).range(0, 3),
    row("net.ipv4.ip_nonlocal_bind", "boolean"),
    row("net.ipv4.ip_unprivileged_port_start", "port").facts(Namespace, always!("1024"), IPV4).rules(rules::PRIVILEGED_PORTS),
    row("net.ipv4.ipfrag_high_thresh", "bytes").facts(Namespace, always!("4194304"), "net/ipv4/ip_fragment.c ipv4_frags_init_net").rules(rules::ROOM),
    row("net.ipv4.ipfrag_low_thresh", "bytes").facts(Namespace, always!("3145728"), "net/ipv4/ip_fragment.c ipv4_frags_init_net").rules(rules::IPFRAG_LOW),
    row("net.ipv4.ipfrag_max_dist", "fragments"),
    row("net.ipv4.ipfrag_time", "s").facts(Namespace, always!("30"), "net/ipv4/ip_fragment.c ipv4_frags_init_net"),
    row("net.ipv4.raw_l3mdev_accept", "boolean"),
    row("net.ipv4.route.flush", "").rules(rules::ACT),
    row("net.ipv4.route.max_size", "routes").rules(rules::ROUTE_MAX_SIZE),
    row("net.ipv4.tcp_abort_on_overflow", "boolean").facts(Namespace, always!("0"), TCP).range(0, 1).rules(rules::ABORT_ON_OVERFLOW),
    row("net.ipv4.tcp_adv_win_scale", "shift").facts(Namespace, always!("1"), TCP).range(-31, 31),
    row("net.ipv4.tcp_allowed_congestion_control", "names"),
    row("net.ipv4.tcp_app_win", "shift").facts(Namespace, always!("31"), TCP).range(0, 31),
    row("net.ipv4.tcp_autocorking", "boolean").facts(Namespace, always!("1"), TCP).range(0, 1),
    row("net.ipv4.tcp_available_congestion_control", "names").facts(Inherited, State, ""),
    row("net.ipv4.tcp_base_mss", "bytes").facts(Namespace, always!("1024"), TCP),
    row("net.ipv4.tcp_challenge_ack_limit", ""),
    row("net.ipv4.tcp_child_ehash_entries", "entries").facts(Namespace, always!("0"), "net/ipv4/sysctl_net_ipv4.c; since 6.1"),
    row("net.ipv4.tcp_comp_sack_delay_ns", "ns"),
    row("net.ipv4.tcp_comp_sack_nr", "acks"),
    row("net.ipv4.tcp_comp_sack_slack_ns", "ns"),
    row("net.ipv4.tcp_congestion_control", "name").facts(Inherited, By(Computed::CongestionControl), "net/ipv4/Kconfig DEFAULT_TCP_CONG"),
    row("net.ipv4.tcp_dsack", "boolean").facts(Namespace, always!("1"), TCP).range(0, 1).rules(rules::DSACK),
    row("net.ipv4.tcp_early_demux", "boolean").facts(Namespace, always!("1"), IPV4).range(0, 1),
    row("net.ipv4.tcp_early_retrans", "mode").facts(Namespace, always!("3"), TCP).range(0, 4),
    // 3 to 5 are AccECN, of newer kernels than 6.18.
    row("net.ipv4.tcp_ecn", "mode").facts(Namespace, always!("2"), TCP).range(0, 5),
    row("net.ipv4.tcp_ecn_fallback", "boolean").facts(Namespace, always!("1"), TCP).range(0, 1),
    row("net.ipv4.tcp_ehash_entries", "entries").facts(Host, State, ""),
    row("net.ipv4.tcp_fack", "boolean").rules(rules::FACK),
    row("net.ipv4.tcp_fastopen", "mode").facts(Namespace, always!("1"), TCP).range(0, 0x607),
    row("net.ipv4.tcp_fastopen_blackhole_timeout_sec", "s"),
    row("net.ipv4.tcp_fastopen_key", "").rules(rules::SECRET),
    row("net.ipv4.tcp_fin_timeout", "s").facts(Namespace, always!("60"), TCP).range(0, TICKS),
    row("net.ipv4.tcp_frto", "mode").facts(Namespace, always!("2"), TCP).range(0, 2).rules(rules::FRTO),
    row("net.ipv4.tcp_fwmark_accept", "boolean"),
    row("net.ipv4.tcp_invalid_ratelimit", "ms"),
    row("net.ipv4.tcp_keepalive_intvl", "s").facts(Namespace, always!("75"), TCP).range(1, TICKS),
    row("net.ipv4.tcp_keepalive_probes", "probes").facts(Namespace, always!("9"), TCP).range(0, 255),
    row("net.ipv4.tcp_keepalive_time", "s").facts(Namespace, always!("7200"), TCP).range(1, TICKS),
    row("net.ipv4.tcp_l3mdev_accept", "boolean"),
    row("net.ipv4.tcp_limit_output_bytes", "bytes").facts(Namespace, Since(&[((0, 0), "262144"), ((5, 0), "1048576"), ((6, 16), "4194304")]), "net/ipv4/tcp_ipv4.c; 1 MiB since 5.0 (c73e5807e4f6), 4 MiB since 6.16 (9ea3bfa61b09)").range(0, INT).rules(rules::ROOM),
    row("net.ipv4.tcp_low_latency", "boolean").facts(Host, always!("0"), "no effect since 4.14").rules(rules::LOW_LATENCY),
    row("net.ipv4.tcp_max_orphans", "sockets").facts(Host, By(Computed::MaxOrphans), "net/ipv4/tcp.c tcp_init: half the established hash").range(0, INT).rules(rules::NEVER_LESS),
    row("net.ipv4.tcp_max_reordering", "segments"),
    row("net.ipv4.tcp_max_syn_backlog", "connections").facts(Namespace, By(Computed::MaxSynBacklog), "net/ipv4/tcp_ipv4.c: established hash / 128, before 5.4 / 256 (623d0c2db020), at least 128").range(1, INT).rules(rules::ROOM),
    row("net.ipv4.tcp_max_tw_buckets", "sockets").facts(Namespace, By(Computed::MaxTwBuckets), "net/ipv4/tcp_ipv4.c: half the established hash").range(0, INT).rules(rules::NEVER_LESS),
    row("net.ipv4.tcp_mem", "pages").facts(Host, By(Computed::TcpMem), "net/ipv4/tcp.c tcp_init_mem: a sixteenth of memory, 3/4 and 3/2 of that").range(0, i64::MAX as i128 / 4096).rules(rules::TCP_MEM),
    row("net.ipv4.tcp_migrate_req", "boolean"),
    row("net.ipv4.tcp_min_rtt_wlen", "s"),
    row("net.ipv4.tcp_min_snd_mss", "bytes").facts(Namespace, always!("48"), TCP).range(48, 65_535),
    row("net.ipv4.tcp_min_tso_segs", "segments").facts(Namespace, always!("2"), TCP).range(1, 255),
    row("net.ipv4.tcp_moderate_rcvbuf", "boolean").facts(Namespace, always!("1"), TCP).range(0, 1).rules(rules::MODERATE_RCVBUF),
    row("net.ipv4.tcp_mtu_probe_floor", "bytes"),
    row("net.ipv4.tcp_mtu_probing", "mode").facts(Namespace, always!("0"), TCP).range(0, 2),
    row("net.ipv4.tcp_no_metrics_save", "boolean").facts(Namespace, always!("0"), TCP).range(0, 1),
    row("net.ipv4.tcp_no_ssthresh_metrics_save", "boolean"),
    row("net.ipv4.tcp_notsent_lowat", "bytes").facts(Namespace, always!("4294967295"), TCP).range(0, u32::MAX as i128),
    row("net.ipv4.tcp_orphan_retries", "retries").facts(Namespace, always!("0"), TCP).range(0, 255),
    row("net.ipv4.tcp_pacing_ca_ratio", "percent").facts(Namespace, always!("120"), TCP).range(0, 1000),
    row("net.ipv4.tcp_pacing_ss_ratio", "percent").facts(Namespace, always!("200"), TCP).range(0, 1000),
    row("net.ipv4.tcp_probe_interval", "s"),
    row("net.ipv4.tcp_probe_threshold", "bytes"),
    row("net.ipv4.tcp_recovery", "bits").facts(Namespace, always!("1"), TCP).range(0, 7),
    row("net.ipv4.tcp_reflect_tos", "boolean"),
    row("net.ipv4.tcp_reordering", "segments").facts(Namespace, always!("3"), TCP),
    row("net.ipv4.tcp_retrans_collapse", "boolean"),
    row("net.ipv4.tcp_retries1", "retries").facts(Namespace, always!("3"), TCP).range(0, 255).rules(rules::RETRIES1),
    row("net.ipv4.tcp_retries2", "retries").facts(Namespace, always!("15"), TCP).range(0, 255).rules(rules::RETRIES2),
    row("net.ipv4.tcp_rfc1337", "boolean").facts(Namespace, always!("0"), TCP).range(0, 1),
    row("net.ipv4.tcp_rmem", "bytes").facts(Inherited, By(Computed::TcpRmem), "net/ipv4/tcp.c tcp_init: maximum 6 MiB, 32 MiB since 6.16 (572be9bf9d0d), at most 1/128 of memory; default 87380, 131072 since 4.20 (a337531b942b)").range(1, INT).rules(rules::TCP_RMEM),
    row("net.ipv4.tcp_sack", "boolean").facts(Namespace, always!("1"), TCP).range(0, 1).rules(rules::SACK),
    row("net.ipv4.tcp_shrink_window", "boolean").facts(Namespace, always!("0"), TCP).range(0, 1),
    row("net.ipv4.tcp_slow_start_after_idle", "boolean").facts(Namespace, always!("1"), TCP).range(0, 1),
    row("net.ipv4.tcp_stdurg", "boolean").rules(rules::STDURG),
    row("net.ipv4.tcp_syn_retries", "retries").facts(Namespace, always!("6"), TCP).range(1, 127),
    row("net.ipv4.tcp_synack_retries", "retries").facts(Namespace, always!("5"), TCP).range(0, 255),
    row("net.ipv4.tcp_syncookies", "mode").facts(Namespace, always!("1"), TCP).range(0, 2).rules(rules::SYNCOOKIES),
    row("net.ipv4.tcp_thin_linear_timeouts", "boolean").facts(Namespace, always!("0"), TCP).range(0, 1),
    row("net.ipv4.tcp_timestamps", "mode").facts(Namespace, always!("1"), TCP).range(0, 2).rules(rules::TIMESTAMPS),
    row("net.ipv4.tcp_tso_rtt_log", ""),
    row("net.ipv4.tcp_tso_win_divisor", "divisor").facts(Namespace, always!("3"), TCP).range(0, 255),
    row("net.ipv4.tcp_tw_recycle", "boolean").rules(rules::TW_RECYCLE).gone((4, 12), "it broke connections behind NAT; tcp_tw_reuse is for connections of this host's own", rules::RECYCLE),
    row("net.ipv4.tcp_tw_reuse", "mode").facts(Namespace, Since(&[((0, 0), "0"), ((4, 18), "2")]), "net/ipv4/tcp_ipv4.c; loopback only since 4.18 (79e9fed46038)").range(0, 2),
    row("net.ipv4.tcp_window_scaling", "boolean").facts(Namespace, always!("1"), TCP).range(0, 1).rules(rules::WINDOW_SCALING),
    row("net.ipv4.tcp_wmem", "bytes").facts(Inherited, By(Computed::TcpWmem), "net/ipv4/tcp.c tcp_init: maximum 4 MiB, at most 1/128 of memory").range(1, INT).rules(rules::TCP_WMEM),
    row("net.ipv4.tcp_workaround_signed_windows", "boolean").facts(Namespace, always!("0"), TCP),
    row("net.ipv4.udp_early_demux", "boolean").facts(Namespace, always!("1"), IPV4).range(0, 1),
    row("net.ipv4.udp_l3mdev_accept", "boolean"),
    row("net.ipv4.udp_mem", "pages").facts(Host, By(Computed::UdpMem), "net/ipv4/udp.c udp_init: an eighth of memory, 3/4 and 3/2 of that").range(0, i64::MAX as i128 / 4096).rules(rules::ROOM),
    row("net.ipv4.udp_rmem_min", "bytes").facts(Namespace, By(Computed::Page), "net/ipv4/udp.c: a page since 6.0, before 4096").range(1, INT).rules(rules::ROOM),
    row("net.ipv4.udp_wmem_min", "bytes").facts(Namespace, By(Computed::Page), "net/ipv4/udp.c: a page since 6.0, before 4096").range(1, INT).rules(rules::UDP_WMEM_MIN),
    row("net.ipv6.conf.all.forwarding", "boolean").facts(Inherited, always!("0"), "net/ipv6/addrconf.c"),
    row("net.ipv6.route.flush", "").rules(rules::ACT),
    row("net.netfilter.nf_conntrack_acct", "boolean").facts(Namespace, always!("0"), "net/netfilter/nf_conntrack_acct.c"),
    row("net.netfilter.nf_conntrack_buckets", "entries").facts(Host, By(Computed::ConntrackBuckets), CT).rules(rules::ROOM),
    row("net.netfilter.nf_conntrack_checksum", "boolean").facts(Namespace, always!("1"), CT),
    row("net.netfilter.nf_conntrack_count", "connections").facts(Namespace, State, ""),
    row("net.netfilter.nf_conntrack_max", "connections").facts(Host, By(Computed::ConntrackMax), CT).rules(rules::ROOM),
    row("net.netfilter.nf_conntrack_tcp_be_liberal", "boolean").facts(Namespace, always!("0"), CT_TCP),
    row("net.netfilter.nf_conntrack_tcp_loose", "boolean").facts(Namespace, always!("1"), CT_TCP),
    row("net.netfilter.nf_conntrack_tcp_timeout_established", "s").facts(Namespace, always!("432000"), CT_TCP),
    row("net.netfilter.nf_conntrack_tcp_timeout_time_wait", "s").facts(Namespace, always!("120"), CT_TCP),
    row("net.netfilter.nf_hooks_lwtunnel", "").rules(rules::LWTUNNEL),
    row("net.unix.max_dgram_qlen", "datagrams").facts(Namespace, always!("10"), "net/unix/af_unix.c").range(0, INT),
    row("user.max_inotify_instances", "instances").rules(rules::ROOM),
    row("user.max_inotify_watches", "watches").rules(rules::ROOM),
    row("user.max_user_namespaces", "").rules(rules::SECURITY),
    row("vm.compact_memory", "").rules(rules::ACT),
    row("vm.dirty_background_bytes", "bytes").rules(rules::DIRTY),
    row("vm.dirty_background_ratio", "percent").rules(rules::DIRTY),
    row("vm.dirty_bytes", "bytes").rules(rules::DIRTY),
    row("vm.dirty_expire_centisecs", ""),
    row("vm.dirty_ratio", "percent").rules(rules::DIRTY),
    row("vm.dirty_writeback_centisecs", ""),
    row("vm.drop_caches", "").rules(rules::ACT),
    row("vm.hugetlb_shm_group", "").rules(rules::SECURITY),
    row("vm.max_map_count", "areas").rules(rules::ROOM),
    row("vm.min_free_kbytes", "KiB").facts(Host, always!("?"), "mm/page_alloc.c calculate_min_free_kbytes: four times the root of memory in KiB; mm/khugepaged.c raises it").rules(rules::MIN_FREE),
    row("vm.mmap_min_addr", "").rules(rules::SECURITY),
    row("vm.mmap_rnd_bits", "").rules(rules::SECURITY),
    row("vm.mmap_rnd_compat_bits", "").rules(rules::SECURITY),
    row("vm.nr_hugepages", "pages"),
    row("vm.nr_hugepages_mempolicy", "pages"),
    row("vm.nr_overcommit_hugepages", "pages"),
    row("vm.overcommit_kbytes", "KiB"),
    row("vm.overcommit_memory", "mode"),
    row("vm.overcommit_ratio", "percent"),
    row("vm.stat_interval", "s"),
    row("vm.stat_refresh", "").rules(rules::ACT),
    row("vm.swappiness", ""),
    row("vm.unprivileged_userfaultfd", "").rules(rules::SECURITY),
    row("vm.vfs_cache_pressure", "percent"),
    row("vm.watermark_boost_factor", ""),
    row("vm.watermark_scale_factor", ""),
    row("vm.zone_reclaim_mode", "bits"),
];

/// Families, matched in order where a setting has no row of its own.
#[rustfmt::skip]
pub const FAMILIES: &[Setting] = &[
    row("fs.binfmt_misc.*", "").rules(rules::PROGRAM),
    row("fs.protected_*", "").rules(rules::SECURITY),
    row("kernel.apparmor*", "").rules(rules::SECURITY),
    row("kernel.keys.*", "").rules(rules::SECURITY),
    row("kernel.seccomp.*", "").rules(rules::SECURITY),
    row("kernel.usermodehelper.*", "").rules(rules::PROGRAM),
    row("kernel.yama.*", "").rules(rules::SECURITY),
    row("dev.tty.*", "").rules(rules::SECURITY),
    row("net.ipv4.conf.*.stable_secret", "").rules(rules::SECRET),
    row("net.ipv6.conf.*.stable_secret", "").rules(rules::SECRET),
    row("net.ipv6.conf.*.disable_ipv6", "boolean").rules(rules::IPV6_OFF),
    row("net.ipv4.conf.*.*", ""),
    row("net.ipv6.conf.*.*", ""),
    row("net.ipv4.neigh.*.*", ""),
    row("net.ipv6.neigh.*.*", ""),
    row("net.ipv4.route.*", ""),
    row("net.ipv6.route.*", ""),
    row("net.bridge.*", ""),
    row("net.mptcp.*", ""),
    row("net.netfilter.nf_conntrack_*", ""),
    row("net.nf_conntrack_max", "connections"),
];

#[cfg(test)]
mod tests {
    use super::{super::find, *};

    #[test]
    fn keys_ascend_and_versions_do_too() {
        assert!(TABLE.is_sorted_by(|a, b| a.key < b.key));
        for e in TABLE {
            assert!(e.range.is_none_or(|(least, most)| least < most), "{}", e.key);
            assert!(find(e.key).is_some_and(|f| f.key == e.key), "{}", e.key);
            let Some(known) = e.known else { continue };
            if let Since(spans) = known.default {
                assert_eq!(spans[0].0, (0, 0), "{}", e.key);
                assert!(spans.is_sorted_by(|a, b| a.0 < b.0), "{}", e.key);
            }
            assert!(matches!(known.default, State) == known.source.is_empty(), "{}", e.key);
        }
    }

    #[test]
    fn a_family_is_known_part_by_part() {
        let family = |key| find(key).map(|f| f.key);
        assert_eq!(family("net.ipv4.conf.eth0/100.rp_filter"), Some("net.ipv4.conf.*.*"));
        assert_eq!(
            family("net.ipv6.conf.eth0.stable_secret"),
            Some("net.ipv6.conf.*.stable_secret")
        );
        assert_eq!(family("net.ipv6.conf.all.forwarding"), Some("net.ipv6.conf.all.forwarding"));
        assert_eq!(family("net.ipv4.conf.rp_filter"), None);
        assert_eq!(family("net.ipv4.tcp_unheard_of"), None);
    }
}
