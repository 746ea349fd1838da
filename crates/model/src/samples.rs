//! Samples: what happened on a host over a window.

mod host_change;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use host_change::{FrequencyLimit, HostChange, Presence};

use crate::{
    Bytes, CpuId, IrqId, Nanos, QueueId, Reading,
    watch::{ByContext, PacketDrops},
};

pub use crate::reading::Delta;

/// Packets per second, all CPUs together, from which a host counts as carrying traffic: below this
/// rate no setting has a measurable cost. Netwright's own threshold.
pub const TRAFFIC_PER_S: f64 = 1_000.0;

/// Counters over one window, as deltas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Samples {
    /// The window's real length: start of the first reading to start of the last.
    pub window_ns: Nanos,
    /// Duration of the longest reading: the uncertainty of the window's edges.
    pub reading_ns: Nanos,
    /// Number of readings (2 or more).
    pub readings: u32,
    /// Per CPU, ascending; CPUs that are in both the first and the last reading.
    pub cpus: Vec<CpuSample>,
    /// CPUs that went on- or offline within the window.
    pub cpu_changes: Vec<HostChange>,
    /// Per interrupt: those whose count grew or is not known.
    pub irqs: Reading<Vec<IrqSample>>,
    /// Protocol counters: `Tcp.RetransSegs`, `TcpExt.ListenOverflows`, `Udp6.RcvbufErrors`.
    /// **Source**: `/proc/net/snmp`, `snmp6`, `netstat`.
    pub protocols: Reading<BTreeMap<String, Delta>>,
    /// Gauges of the last reading: `TCP.mem` (pages), `TCP.tw`, `UDP.inuse`. **Source**:
    /// `/proc/net/sockstat`, `sockstat6`.
    pub sockstat: Reading<BTreeMap<String, u64>>,
    pub nics: Vec<NicSample>,
    /// NICs that came or went within the window.
    pub nic_changes: Vec<HostChange>,
    /// Threads of the selected processes, and every ksoftirqd.
    pub threads: Vec<ThreadSample>,
    /// conntrack counters summed over CPUs: `drop`, `insert_failed`, `early_drop`. **Source**:
    /// `/proc/net/stat/nf_conntrack`.
    pub conntrack: Reading<BTreeMap<String, Delta>>,
    /// The neighbour tables of IPv4 and IPv6, which all network namespaces of the host share.
    #[serde(default = "not_sampled::<NeighbourTable>")]
    pub neighbours: Reading<Vec<NeighbourTable>>,
    /// Memory counters: `numa_hint_faults`, … **Source**: `/proc/vmstat`.
    pub vmstat: Reading<BTreeMap<String, Delta>>,
    /// Connections in the last reading by state (`time_wait`, `established`).
    pub tcp_states: Reading<BTreeMap<String, u64>>,
    /// Listening TCP sockets, ascending by address. **Source**: `sock_diag` at each reading.
    #[serde(default = "not_sampled::<ListenerSample>")]
    pub listeners: Reading<Vec<ListenerSample>>,
    /// Number of the window's steps, from one reading to the next, in which each counter grew:
    /// those of [`Samples::protocols`] by their names, columns of `softnet_stat` as
    /// `softnet.CPU.time_squeeze`. A counter that never grew is left out.
    #[serde(default)]
    pub grew_in: BTreeMap<String, u32>,
    /// UDP sockets of this network namespace that dropped datagrams within the window, most drops
    /// first.
    #[serde(default = "not_sampled::<UdpSocketSample>")]
    pub udp_sockets: Reading<Vec<UdpSocketSample>>,
    /// TCP connections of this network namespace, those open at any reading.
    #[serde(default = "not_sampled::<ConnectionSample>")]
    pub connections: Reading<Vec<ConnectionSample>>,
    /// Cgroups with a CPU quota, of the selected processes and of this program, their ancestors
    /// included; ascending by path. An empty list means that all were read and none has a quota.
    #[serde(default = "not_sampled::<CgroupSample>")]
    pub cgroups: Reading<Vec<CgroupSample>>,
    /// Pressure stalls of the whole host and of the selected processes' cgroups.
    #[serde(default = "not_sampled::<PressureSample>")]
    pub pressure: Reading<Vec<PressureSample>>,
    /// Packets that the kernel dropped, by reason: those of this network namespace, and those
    /// without a namespace. **Source**: eBPF.
    #[serde(default = "not_sampled::<PacketDrops>")]
    pub drops: Reading<Vec<PacketDrops>>,
    /// Whether there was only one reading and the window is the time since boot: every rate is an
    /// average.
    #[serde(default)]
    pub since_boot: bool,
}

impl Samples {
    /// Steps from one reading to the next.
    pub fn steps(&self) -> u32 {
        self.readings.saturating_sub(1)
    }
}

/// The document is older than this kind of sample.
fn not_sampled<T>() -> Reading<Vec<T>> {
    Reading::absent("not sampled")
}

/// A process that holds a socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Owner {
    pub pid: u32,
    /// Its short name; empty where the process ended meanwhile.
    pub name: String,
}

/// One UDP socket over the window. **Source**: `sock_diag`, else `/proc/net/udp` and `udp6`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpSocketSample {
    /// Local address and port.
    pub address: String,
    /// Inode of its descriptor.
    pub inode: u64,
    /// Datagrams dropped because its buffer was full.
    pub drops: Delta,
    /// Number of the window's steps in which it dropped datagrams.
    pub dropped_in: u32,
    /// Number of readings at which the socket existed.
    pub readings: u32,
    /// Number of those readings at which at least half of its buffer was in use; 0 where the buffer
    /// size is not known.
    pub filled_readings: u32,
    /// The largest Recv-Q at any reading, as the kernel counts it against the buffer.
    pub most_queue_bytes: u64,
    /// Number of the window's steps in which the Recv-Q shrank: the application had read.
    pub shrank_in: u32,
    /// The buffer's size (`rb` of `ss -m`), twice the size that the application requested.
    pub buffer_bytes: Reading<u64>,
    pub owners: Reading<Vec<Owner>>,
}

/// One TCP connection over the window. **Source**: `sock_diag` with `tcp_info`, since Linux 4.10
/// for the times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionSample {
    /// Local address and port.
    pub local: String,
    pub remote: String,
    /// Inode of its descriptor.
    pub inode: u64,
    pub retransmits: Delta,
    /// Sent segments with data, retransmits included.
    pub segments_out: Delta,
    /// Payload that the peer acknowledged.
    pub bytes_acked: Delta,
    pub bytes_received: Delta,
    /// Time with unsent or unacknowledged data.
    pub busy_ns: Delta,
    /// Part of that time in which the peer's receive window limited the sender.
    pub rwnd_limited_ns: Delta,
    /// Part of that time in which the own send buffer limited the sender.
    pub sndbuf_limited_ns: Delta,
    /// Number of readings that have it.
    #[serde(default)]
    pub readings: u32,
    /// Number of those at which a full segment waited for its first transmission. **Source**:
    /// `tcpi_notsent_bytes`.
    #[serde(default = "not_counted")]
    pub waiting_readings: Reading<u32>,
    /// TCP's recent minimum round trip, at the last reading.
    pub min_rtt_ns: Reading<u64>,
    /// The largest receive window that the peer offered at any reading. Since Linux 5.4.
    pub peer_window_bytes: Reading<u64>,
    /// The send buffer (`tb` of `ss -m`) at the last reading.
    pub send_buffer_bytes: Reading<u64>,
    /// The processes that hold it; read only for the connections that sent most and for those that a rule
    /// may name.
    pub owners: Reading<Vec<Owner>>,
}

fn not_counted() -> Reading<u32> {
    Reading::absent("not counted")
}

fn not_measured() -> Reading<ByContext> {
    Reading::absent("not measured")
}

/// One cgroup with a CPU quota over the window. **Source**: `cpu.max` and `cpu.stat`, under v1
/// `cpu.cfs_quota_us`, `cpu.cfs_period_us` and `cpu.stat`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CgroupSample {
    /// Path from the root of the hierarchy, as in `/proc/PID/cgroup`.
    pub path: String,
    /// Directory of its files.
    pub folder: String,
    /// The selected processes in it or below it, ascending.
    pub pids: Vec<u32>,
    /// Whether this program is in it or below it.
    pub own: bool,
    /// CPUs that the quota grants, at the last reading.
    pub quota_cpus: Reading<f64>,
    /// Periods in which it had runnable tasks.
    pub periods: Delta,
    /// Those periods in which it used up its quota.
    pub throttled_periods: Delta,
    /// Time for which its tasks were throttled, all CPUs together.
    pub throttled_ns: Delta,
}

/// Time for which tasks waited for one resource. **Source**: `/proc/pressure/cpu`, `memory`, `io`, and
/// `cpu.pressure`, … of a cgroup v2; since 4.20 with `CONFIG_PSI`, where `psi=0` does not switch it off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PressureSample {
    /// `cpu`, `memory` or `io`.
    pub resource: String,
    /// Path of the cgroup as in `/proc/PID/cgroup`; empty for the whole host.
    pub cgroup: String,
    /// The file that was read.
    pub file: String,
    /// Time in which at least one task waited.
    pub some_ns: Delta,
    /// Time in which all tasks that were not idle waited; of `cpu` since 5.13, for cgroups only.
    pub full_ns: Delta,
}

/// The listening sockets of one address over the window; several may share one (`SO_REUSEPORT`),
/// and the fullest of them represents all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListenerSample {
    /// Address and port, `0.0.0.0:5432`, `[::]:80`.
    pub address: String,
    /// Maximum of connections waiting to be accepted, over all readings.
    pub fullest_accept_queue: u32,
    /// Limit of waiting connections.
    pub accept_queue_limit: u32,
    /// Number of readings at which the queue was at its limit or above.
    pub full_readings: u32,
}

/// One CPU over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuSample {
    pub id: CpuId,
    /// Time by state, as `/proc/stat` reports it.
    pub proc_stat: Reading<ProcStat>,
    /// Raised softirqs by vector name (`NET_RX`). **Source**: `/proc/softirqs`.
    pub softirqs: Reading<BTreeMap<String, Delta>>,
    pub softnet: Reading<SoftnetSample>,
    /// Softirq time by context, measured by eBPF over the same window.
    #[serde(default = "not_measured")]
    pub softirq_ns: Reading<ByContext>,
}

/// CPU time by state over the window, converted from the kernel's ticks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcStat {
    /// User mode, guests included.
    pub user_ns: Delta,
    /// User mode at low priority.
    pub nice_ns: Delta,
    pub system_ns: Delta,
    pub idle_ns: Delta,
    /// Idle with I/O pending; unreliable by design.
    pub iowait_ns: Delta,
    pub irq_ns: Delta,
    pub softirq_ns: Delta,
    /// Steal time: the hypervisor ran something else.
    pub steal_ns: Delta,
}

impl ProcStat {
    /// Busy time, where every part is known.
    pub fn busy_ns(&self) -> Option<u64> {
        let parts = [
            &self.user_ns,
            &self.nice_ns,
            &self.system_ns,
            &self.irq_ns,
            &self.softirq_ns,
            &self.steal_ns,
        ];
        parts.iter().map(|p| p.get()).sum()
    }

    /// Total time, where every part is known.
    ///
    /// Only `iowait` may be unknown: the kernel lets it shrink on hosts that wait for disks
    /// (proc(5)). An `iowait` that shrank adds nothing to the window; without it the other values
    /// of the CPU, which never shrink, remain usable.
    pub fn total_ns(&self) -> Option<u64> {
        Some(self.busy_ns()? + self.idle_ns.get()? + self.iowait_ns.get().unwrap_or(0))
    }

    /// Busy share of the total time, 0 to 1; `None` when unknown or when no tick passed.
    pub fn busy_share(&self) -> Option<f64> {
        let total = self.total_ns().filter(|&t| t > 0)?;
        Some(self.busy_ns()? as f64 / total as f64)
    }

    /// Softirq share of the total time, 0 to 1, as `/proc/stat` reports it.
    pub fn softirq_share(&self) -> Option<f64> {
        let total = self.total_ns().filter(|&t| t > 0)?;
        Some(self.softirq_ns.get()? as f64 / total as f64)
    }
}

/// `softnet_stat` of one CPU over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SoftnetSample {
    pub processed: Delta,
    pub dropped: Delta,
    /// Stopped with work left.
    pub time_squeeze: Delta,
    pub received_rps: Delta,
    pub flow_limit_count: Delta,
}

/// One interrupt over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IrqSample {
    pub irq: IrqId,
    /// Delta by CPU, only where above zero or not known.
    pub cpus: Vec<IrqDelta>,
}

/// Delta of one interrupt on one CPU.
/// The neighbour table of one family (ARP or NDP) over the window. **Source**: `/proc/net/stat/arp_cache`,
/// `ndisc_cache`, of the first network namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NeighbourTable {
    /// Protocol of the table: `ipv4` (ARP) or `ipv6` (NDP).
    pub family: String,
    /// Entries at the last reading, of all network namespaces.
    pub entries: Reading<u64>,
    /// Most entries. **Source**: `net.ipv4.neigh.default.gc_thresh3`, `net.ipv6.…`.
    pub most: Reading<u64>,
    /// Entries that found no room. **Source**: column `table_fulls`.
    pub table_fulls: Delta,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IrqDelta {
    pub cpu: CpuId,
    pub count: Delta,
}

/// One NIC over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NicSample {
    pub name: String,
    /// Deltas by file name. **Source**: `/sys/class/net/X/statistics`.
    pub statistics: Reading<BTreeMap<String, Delta>>,
    /// Deltas of the driver's counters by name. **Source**: `ethtool -S`.
    pub driver_stats: Reading<BTreeMap<String, Delta>>,
    /// netdev netlink `qstats-get` by queue and counter (`rx-packets`), since 6.9.
    pub queues: Reading<Vec<QueueSample>>,
    pub qdiscs: Reading<Vec<QdiscSample>>,
    /// Carrier changes within the window. **Source**: `carrier_changes`.
    pub carrier_changes: Delta,
    /// Growth of `corrected_blocks`, `uncorrectable_blocks` and `corrected_bits` of forward error
    /// correction, as far as the driver counts them. **Source**: *ethtool* netlink `FEC_GET`.
    #[serde(default)]
    pub fec: Reading<BTreeMap<String, Delta>>,
}

/// One queue over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueSample {
    pub id: QueueId,
    pub counters: BTreeMap<String, Delta>,
}

/// One qdisc over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QdiscSample {
    pub kind: String,
    pub handle: String,
    pub parent: String,
    pub sent_bytes: Delta,
    pub sent_packets: Delta,
    pub drops: Delta,
    pub requeues: Delta,
    /// Bytes in the queue at the last reading.
    pub backlog_bytes: Reading<u64>,
}

/// One thread over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSample {
    pub pid: u32,
    pub tid: u32,
    pub name: String,
    /// CPU time used. **Source**: `schedstat` (ns), else `stat` (ticks).
    pub cpu_ns: Delta,
    /// Run queue delay: runnable, but waiting for a CPU. **Source**: `schedstat`.
    pub run_queue_ns: Delta,
    /// Migrations between CPUs. **Source**: `sched`.
    pub migrations: Delta,
    /// Context switches because the thread slept. **Source**: `status`, `voluntary_ctxt_switches`.
    pub voluntary_switches: Delta,
    /// Context switches because the kernel took the CPU away. **Source**: `status`,
    /// `nonvoluntary_ctxt_switches`.
    pub involuntary_switches: Delta,
    /// CPU at each reading.
    pub on_cpus: Vec<CpuId>,
    /// Resident memory in the last reading.
    pub rss_bytes: Reading<Bytes>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shrunken_iowait_costs_no_other_figure_but_an_unknown_idle_does() {
        let mut cpu = ProcStat {
            user_ns: Reading::Known(30),
            nice_ns: Reading::Known(0),
            system_ns: Reading::Known(10),
            idle_ns: Reading::Known(50),
            iowait_ns: Reading::Known(10),
            irq_ns: Reading::Known(0),
            softirq_ns: Reading::Known(0),
            steal_ns: Reading::Known(0),
        };
        assert_eq!(cpu.busy_share(), Some(0.4));
        cpu.iowait_ns = Reading::absent("went backwards");
        assert_eq!(cpu.total_ns(), Some(90));
        cpu.idle_ns = Reading::absent("went backwards");
        assert_eq!(cpu.busy_share(), None);
    }
}
