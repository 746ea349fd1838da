//! The settings that Netwright knows: unit, who has its own copy, and the kernel's default.
//!
//! A default that changed names the version and the commit; where a boundary could not be
//! established the value is [`UNSURE`] rather than a guess. Values are those of 64-bit kernels.

use super::formula::{self, Formula};

/// Who has an own copy of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One value for the whole host.
    Host,
    /// Each network namespace has its own, and a new one starts with the kernel's default: a
    /// fresh namespace is evidence of it. Where an older kernel kept one value for the host, a
    /// fresh namespace does not show the setting, and the table answers.
    Namespace,
    /// Each network namespace has its own, copied from the initial one: a fresh namespace
    /// says nothing about the default.
    Inherited,
}

/// How the kernel's default is known without asking it.
#[derive(Clone, Copy)]
pub enum Default {
    /// By version, ascending: since which one, and the value.
    Since(&'static [((u32, u32), &'static str)]),
    /// Computed from memory, page size, tick rate or build options.
    By(Formula),
    /// No default: it is a state and no setting.
    State,
}

/// Stands for a value that is not established for a range of versions.
pub const UNSURE: &str = "?";

/// One setting.
pub struct Entry {
    /// Dotted name.
    pub key: &'static str,
    /// Unit of the value.
    pub unit: &'static str,
    /// Who has an own copy.
    pub scope: Scope,
    /// The kernel's default.
    pub default: Default,
    /// Where the default stands in the kernel's source.
    pub source: &'static str,
}

const fn entry(
    key: &'static str,
    unit: &'static str,
    scope: Scope,
    default: Default,
    source: &'static str,
) -> Entry {
    Entry { key, unit, scope, default, source }
}

/// A default that has been the same since 4.18 at least.
macro_rules! always {
    ($value:literal) => {
        Default::Since(&[((0, 0), $value)])
    };
}

use self::Default::{By, Since, State};
use self::Scope::{Host, Inherited, Namespace};

const CORE: &str = "net/core/dev.c";
const SOCK: &str = "net/core/sock.c";
const TCP: &str = "net/ipv4/tcp_ipv4.c tcp_sk_init";
const IPV4: &str = "net/ipv4/af_inet.c inet_init_net";
const CT: &str = "net/netfilter/nf_conntrack_core.c nf_conntrack_init_start";
const CT_TCP: &str = "net/netfilter/nf_conntrack_proto_tcp.c";
const SCHED: &str = "kernel/sched";

/// Every setting, ascending by key.
#[rustfmt::skip]
pub const TABLE: &[Entry] = &[
    entry("fs.file-max", "files", Host, By(formula::file_max), "fs/file_table.c files_maxfiles_init: a tenth of memory in KiB"),
    entry("fs.nr_open", "files", Host, always!("1048576"), "fs/file.c sysctl_nr_open"),
    entry("kernel.numa_balancing", "mode", Host, By(formula::numa_balancing), "mm/mempolicy.c check_numabalancing_enable"),
    entry("kernel.sched_autogroup_enabled", "boolean", Host, always!("1"), "kernel/sched/autogroup.c"),
    entry("kernel.sched_cfs_bandwidth_slice_us", "us", Host, always!("5000"), "kernel/sched/fair.c"),
    // Scaled by the number of CPUs at boot, and in debugfs since 5.13.
    entry("kernel.sched_latency_ns", "ns", Host, always!("?"), SCHED),
    entry("kernel.sched_migration_cost_ns", "ns", Host, always!("500000"), "kernel/sched/fair.c; in debugfs since 5.13"),
    entry("kernel.sched_min_granularity_ns", "ns", Host, always!("?"), SCHED),
    entry("kernel.sched_nr_migrate", "tasks", Host, always!("?"), SCHED),
    entry("kernel.sched_rt_period_us", "us", Host, always!("1000000"), "kernel/sched/rt.c"),
    entry("kernel.sched_rt_runtime_us", "us", Host, always!("950000"), "kernel/sched/rt.c"),
    entry("kernel.sched_wakeup_granularity_ns", "ns", Host, always!("?"), SCHED),
    entry("kernel.timer_migration", "boolean", Host, always!("1"), "kernel/time/timer.c"),
    entry("net.bridge.bridge-nf-call-ip6tables", "boolean", Namespace, always!("1"), "net/bridge/br_netfilter_hooks.c"),
    entry("net.bridge.bridge-nf-call-iptables", "boolean", Namespace, always!("1"), "net/bridge/br_netfilter_hooks.c"),
    entry("net.core.busy_poll", "us", Host, always!("0"), "net/socket.c sysctl_net_busy_poll"),
    entry("net.core.busy_read", "us", Host, always!("0"), "net/socket.c sysctl_net_busy_read"),
    entry("net.core.default_qdisc", "name", Host, By(formula::default_qdisc), "net/sched/Kconfig DEFAULT_NET_SCH"),
    entry("net.core.dev_weight", "packets", Host, always!("64"), CORE),
    entry("net.core.dev_weight_rx_bias", "factor", Host, always!("1"), CORE),
    entry("net.core.dev_weight_tx_bias", "factor", Host, always!("1"), CORE),
    entry("net.core.devconf_inherit_init_net", "mode", Host, always!("0"), "net/core/sysctl_net_core.c"),
    entry("net.core.flow_limit_cpu_bitmap", "cpu mask", Host, By(formula::empty_mask), "net/core/sysctl_net_core.c"),
    entry("net.core.flow_limit_table_len", "entries", Host, always!("4096"), CORE),
    entry("net.core.gro_normal_batch", "packets", Host, always!("8"), "net/core/dev.c; since 5.4"),
    entry("net.core.high_order_alloc_disable", "boolean", Host, always!("0"), SOCK),
    entry("net.core.netdev_budget", "packets", Host, always!("300"), CORE),
    entry("net.core.netdev_budget_usecs", "us", Host, By(formula::budget_usecs), "net/core/dev.c: two ticks since 5.7 (a4837980fd9f), before 2000"),
    entry("net.core.netdev_max_backlog", "packets", Host, always!("1000"), CORE),
    entry("net.core.netdev_tstamp_prequeue", "boolean", Host, always!("1"), CORE),
    entry("net.core.optmem_max", "bytes", Namespace, Since(&[((0, 0), "20480"), ((6, 8), "131072")]), "net/core/sock.c; 128 KiB since 6.8 (4944566706b2)"),
    entry("net.core.rmem_default", "bytes", Host, always!("212992"), SOCK),
    entry("net.core.rmem_max", "bytes", Host, Since(&[((0, 0), "212992"), ((6, 18), "4194304")]), "net/core/sock.c; 4 MiB since 6.18 (a6d4f25888b8)"),
    entry("net.core.rps_sock_flow_entries", "entries", Host, always!("0"), "net/core/sysctl_net_core.c"),
    entry("net.core.skb_defer_max", "packets", Host, Since(&[((0, 0), "64"), ((6, 19), UNSURE)]), CORE),
    entry("net.core.somaxconn", "connections", Namespace, Since(&[((0, 0), "128"), ((5, 4), "4096")]), "include/linux/socket.h SOMAXCONN; 4096 since 5.4 (19f92a030ca6)"),
    entry("net.core.wmem_default", "bytes", Host, always!("212992"), SOCK),
    entry("net.core.wmem_max", "bytes", Host, Since(&[((0, 0), "212992"), ((6, 18), "4194304")]), "net/core/sock.c; 4 MiB since 6.18 (a6d4f25888b8)"),
    entry("net.ipv4.ip_early_demux", "boolean", Namespace, always!("1"), IPV4),
    entry("net.ipv4.ip_forward", "boolean", Inherited, always!("0"), "net/ipv4/devinet.c"),
    entry("net.ipv4.ip_local_port_range", "ports", Namespace, always!("32768 60999"), IPV4),
    entry("net.ipv4.ip_local_reserved_ports", "ports", Namespace, always!(""), IPV4),
    entry("net.ipv4.ip_no_pmtu_disc", "mode", Namespace, always!("0"), IPV4),
    entry("net.ipv4.ip_unprivileged_port_start", "port", Namespace, always!("1024"), IPV4),
    entry("net.ipv4.ipfrag_high_thresh", "bytes", Namespace, always!("4194304"), "net/ipv4/ip_fragment.c ipv4_frags_init_net"),
    entry("net.ipv4.ipfrag_low_thresh", "bytes", Namespace, always!("3145728"), "net/ipv4/ip_fragment.c ipv4_frags_init_net"),
    entry("net.ipv4.ipfrag_time", "s", Namespace, always!("30"), "net/ipv4/ip_fragment.c ipv4_frags_init_net"),
    entry("net.ipv4.tcp_abort_on_overflow", "boolean", Namespace, always!("0"), TCP),
    entry("net.ipv4.tcp_adv_win_scale", "shift", Namespace, always!("1"), TCP),
    entry("net.ipv4.tcp_app_win", "shift", Namespace, always!("31"), TCP),
    entry("net.ipv4.tcp_autocorking", "boolean", Namespace, always!("1"), TCP),
    entry("net.ipv4.tcp_available_congestion_control", "names", Inherited, State, ""),
    entry("net.ipv4.tcp_base_mss", "bytes", Namespace, always!("1024"), TCP),
    entry("net.ipv4.tcp_child_ehash_entries", "entries", Namespace, always!("0"), "net/ipv4/sysctl_net_ipv4.c; since 6.1"),
    entry("net.ipv4.tcp_congestion_control", "name", Inherited, By(formula::congestion_control), "net/ipv4/Kconfig DEFAULT_TCP_CONG"),
    entry("net.ipv4.tcp_dsack", "boolean", Namespace, always!("1"), TCP),
    entry("net.ipv4.tcp_early_demux", "boolean", Namespace, always!("1"), IPV4),
    entry("net.ipv4.tcp_early_retrans", "mode", Namespace, always!("3"), TCP),
    entry("net.ipv4.tcp_ecn", "mode", Namespace, always!("2"), TCP),
    entry("net.ipv4.tcp_ecn_fallback", "boolean", Namespace, always!("1"), TCP),
    entry("net.ipv4.tcp_ehash_entries", "entries", Host, State, ""),
    entry("net.ipv4.tcp_fastopen", "mode", Namespace, always!("1"), TCP),
    entry("net.ipv4.tcp_fin_timeout", "s", Namespace, always!("60"), TCP),
    entry("net.ipv4.tcp_frto", "mode", Namespace, always!("2"), TCP),
    entry("net.ipv4.tcp_keepalive_intvl", "s", Namespace, always!("75"), TCP),
    entry("net.ipv4.tcp_keepalive_probes", "probes", Namespace, always!("9"), TCP),
    entry("net.ipv4.tcp_keepalive_time", "s", Namespace, always!("7200"), TCP),
    entry("net.ipv4.tcp_limit_output_bytes", "bytes", Namespace, Since(&[((0, 0), "262144"), ((5, 0), "1048576"), ((6, 16), "4194304")]), "net/ipv4/tcp_ipv4.c; 1 MiB since 5.0 (c73e5807e4f6), 4 MiB since 6.16 (9ea3bfa61b09)"),
    entry("net.ipv4.tcp_low_latency", "boolean", Host, always!("0"), "no effect since 4.14"),
    entry("net.ipv4.tcp_max_orphans", "sockets", Host, By(formula::max_orphans), "net/ipv4/tcp.c tcp_init: half the established hash"),
    entry("net.ipv4.tcp_max_syn_backlog", "connections", Namespace, By(formula::max_syn_backlog), "net/ipv4/tcp_ipv4.c: established hash / 128, before 5.4 / 256 (623d0c2db020), at least 128"),
    entry("net.ipv4.tcp_max_tw_buckets", "sockets", Namespace, By(formula::max_tw_buckets), "net/ipv4/tcp_ipv4.c: half the established hash"),
    entry("net.ipv4.tcp_mem", "pages", Host, By(formula::tcp_mem), "net/ipv4/tcp.c tcp_init_mem: a sixteenth of memory, 3/4 and 3/2 of that"),
    entry("net.ipv4.tcp_min_snd_mss", "bytes", Namespace, always!("48"), TCP),
    entry("net.ipv4.tcp_min_tso_segs", "segments", Namespace, always!("2"), TCP),
    entry("net.ipv4.tcp_moderate_rcvbuf", "boolean", Namespace, always!("1"), TCP),
    entry("net.ipv4.tcp_mtu_probing", "mode", Namespace, always!("0"), TCP),
    entry("net.ipv4.tcp_no_metrics_save", "boolean", Namespace, always!("0"), TCP),
    entry("net.ipv4.tcp_notsent_lowat", "bytes", Namespace, always!("4294967295"), TCP),
    entry("net.ipv4.tcp_orphan_retries", "retries", Namespace, always!("0"), TCP),
    entry("net.ipv4.tcp_pacing_ca_ratio", "percent", Namespace, always!("120"), TCP),
    entry("net.ipv4.tcp_pacing_ss_ratio", "percent", Namespace, always!("200"), TCP),
    entry("net.ipv4.tcp_recovery", "bits", Namespace, always!("1"), TCP),
    entry("net.ipv4.tcp_reordering", "segments", Namespace, always!("3"), TCP),
    entry("net.ipv4.tcp_retries1", "retries", Namespace, always!("3"), TCP),
    entry("net.ipv4.tcp_retries2", "retries", Namespace, always!("15"), TCP),
    entry("net.ipv4.tcp_rfc1337", "boolean", Namespace, always!("0"), TCP),
    entry("net.ipv4.tcp_rmem", "bytes", Inherited, By(formula::tcp_rmem), "net/ipv4/tcp.c tcp_init: maximum 6 MiB, 32 MiB since 6.16 (572be9bf9d0d), at most 1/128 of memory; default 87380, 131072 since 4.20 (a337531b942b)"),
    entry("net.ipv4.tcp_sack", "boolean", Namespace, always!("1"), TCP),
    entry("net.ipv4.tcp_shrink_window", "boolean", Namespace, always!("0"), TCP),
    entry("net.ipv4.tcp_slow_start_after_idle", "boolean", Namespace, always!("1"), TCP),
    entry("net.ipv4.tcp_syn_retries", "retries", Namespace, always!("6"), TCP),
    entry("net.ipv4.tcp_synack_retries", "retries", Namespace, always!("5"), TCP),
    entry("net.ipv4.tcp_syncookies", "mode", Namespace, always!("1"), TCP),
    entry("net.ipv4.tcp_thin_linear_timeouts", "boolean", Namespace, always!("0"), TCP),
    entry("net.ipv4.tcp_timestamps", "mode", Namespace, always!("1"), TCP),
    entry("net.ipv4.tcp_tso_win_divisor", "divisor", Namespace, always!("3"), TCP),
    entry("net.ipv4.tcp_tw_reuse", "mode", Namespace, Since(&[((0, 0), "0"), ((4, 19), "2")]), "net/ipv4/tcp_ipv4.c; loopback only since 4.19 (79e9fed46038)"),
    entry("net.ipv4.tcp_window_scaling", "boolean", Namespace, always!("1"), TCP),
    entry("net.ipv4.tcp_wmem", "bytes", Inherited, By(formula::tcp_wmem), "net/ipv4/tcp.c tcp_init: maximum 4 MiB, at most 1/128 of memory"),
    entry("net.ipv4.tcp_workaround_signed_windows", "boolean", Namespace, always!("0"), TCP),
    entry("net.ipv4.udp_early_demux", "boolean", Namespace, always!("1"), IPV4),
    entry("net.ipv4.udp_mem", "pages", Host, By(formula::udp_mem), "net/ipv4/udp.c udp_init: an eighth of memory, 3/4 and 3/2 of that"),
    entry("net.ipv4.udp_rmem_min", "bytes", Namespace, By(formula::page), "net/ipv4/udp.c: a page since 6.0, before 4096"),
    entry("net.ipv4.udp_wmem_min", "bytes", Namespace, By(formula::page), "net/ipv4/udp.c: a page since 6.0, before 4096"),
    entry("net.ipv6.conf.all.forwarding", "boolean", Inherited, always!("0"), "net/ipv6/addrconf.c"),
    entry("net.netfilter.nf_conntrack_acct", "boolean", Namespace, always!("0"), "net/netfilter/nf_conntrack_acct.c"),
    entry("net.netfilter.nf_conntrack_buckets", "entries", Host, By(formula::conntrack_buckets), CT),
    entry("net.netfilter.nf_conntrack_checksum", "boolean", Namespace, always!("1"), CT),
    entry("net.netfilter.nf_conntrack_count", "connections", Namespace, State, ""),
    entry("net.netfilter.nf_conntrack_max", "connections", Host, By(formula::conntrack_max), CT),
    entry("net.netfilter.nf_conntrack_tcp_be_liberal", "boolean", Namespace, always!("0"), CT_TCP),
    entry("net.netfilter.nf_conntrack_tcp_loose", "boolean", Namespace, always!("1"), CT_TCP),
    entry("net.netfilter.nf_conntrack_tcp_timeout_established", "s", Namespace, always!("432000"), CT_TCP),
    entry("net.netfilter.nf_conntrack_tcp_timeout_time_wait", "s", Namespace, always!("120"), CT_TCP),
    entry("net.unix.max_dgram_qlen", "datagrams", Namespace, always!("10"), "net/unix/af_unix.c"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_ascend_and_versions_do_too() {
        assert!(TABLE.is_sorted_by(|a, b| a.key < b.key));
        for e in TABLE {
            if let Since(spans) = e.default {
                assert_eq!(spans[0].0, (0, 0), "{}", e.key);
                assert!(spans.is_sorted_by(|a, b| a.0 < b.0), "{}", e.key);
            }
            assert!(matches!(e.default, State) == e.source.is_empty(), "{}", e.key);
        }
    }
}
