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

/// Packets a second, all CPUs together, from which a host counts as carrying traffic: below it
/// no setting can cost anything measurable. Our proposal.
pub const TRAFFIC_PER_S: f64 = 1_000.0;

/// Counters over one window, as deltas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Samples {
    /// The window's real length: start of the first reading to start of the last.
    pub window_ns: Nanos,
    /// How long one reading took, the longest: how blurred the window's edges are.
    pub reading_ns: Nanos,
    /// How many readings (2 or more).
    pub readings: u32,
    /// Per CPU, ascending; CPUs seen in both the first and the last reading.
    pub cpus: Vec<CpuSample>,
    /// CPUs that went on- or offline within the window.
    pub cpu_changes: Vec<HostChange>,
    /// Per interrupt, those that counted up or broke.
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
    /// Threads of the chosen processes, and every ksoftirqd.
    pub threads: Vec<ThreadSample>,
    /// conntrack counters summed over CPUs: `drop`, `insert_failed`, `early_drop`. **Source**:
    /// `/proc/net/stat/nf_conntrack`.
    pub conntrack: Reading<BTreeMap<String, Delta>>,
    /// Memory counters: `numa_hint_faults`, … **Source**: `/proc/vmstat`.
    pub vmstat: Reading<BTreeMap<String, Delta>>,
    /// Connections in the last reading by state (`time_wait`, `established`).
    pub tcp_states: Reading<BTreeMap<String, u64>>,
    /// Listening TCP sockets, ascending by address. **Source**: `sock_diag` at each reading.
    #[serde(default = "not_sampled::<ListenerSample>")]
    pub listeners: Reading<Vec<ListenerSample>>,
    /// In how many of the window's steps, from one reading to the next, each counter grew: those of
    /// [`Samples::protocols`] by their names, columns of `softnet_stat` as
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
    /// Cgroups with a CPU quota, of the chosen processes and of this program, those above theirs
    /// included; ascending by path. None in the list: all were read, and none has a quota.
    #[serde(default = "not_sampled::<CgroupSample>")]
    pub cgroups: Reading<Vec<CgroupSample>>,
    /// Packets that the kernel dropped, by reason: those of this network namespace, and those that
    /// tell none. **Source**: eBPF.
    #[serde(default = "not_sampled::<PacketDrops>")]
    pub drops: Reading<Vec<PacketDrops>>,
    /// There was one reading, and the window is the time since boot: everything is an average.
    #[serde(default)]
    pub since_boot: bool,
}

impl Samples {
    /// Steps from one reading to the next.
    pub fn steps(&self) -> u32 {
        self.readings.saturating_sub(1)
    }
}

/// A document from before there was such a sample.
fn not_sampled<T>() -> Reading<Vec<T>> {
    Reading::absent("not sampled")
}

/// A process that holds a socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Owner {
    pub pid: u32,
    /// Its short name; empty where it ended meanwhile.
    pub name: String,
}

/// One UDP socket over the window. **Source**: `sock_diag`, else `/proc/net/udp` and `udp6`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpSocketSample {
    /// Its own address and port.
    pub address: String,
    /// Inode of its descriptor.
    pub inode: u64,
    /// Datagrams dropped because its buffer was full.
    pub drops: Delta,
    /// In how many of the window's steps it dropped any.
    pub dropped_in: u32,
    /// At how many readings it was there.
    pub readings: u32,
    /// At how many of them at least half of its buffer was in use; 0 where the buffer is not known.
    pub filled_readings: u32,
    /// The most that was waiting at any reading, as the kernel counts it against the buffer.
    pub most_queue_bytes: u64,
    /// In how many of the window's steps less was waiting than before: somebody had read.
    pub shrank_in: u32,
    /// The buffer's size (`rb` of `ss -m`), twice what the application asked for.
    pub buffer_bytes: Reading<u64>,
    pub owners: Reading<Vec<Owner>>,
}

/// One TCP connection over the window. **Source**: `sock_diag` with `tcp_info`, since Linux 4.10
/// for the times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionSample {
    /// Its own address and port.
    pub local: String,
    pub remote: String,
    /// Inode of its descriptor.
    pub inode: u64,
    pub retransmits: Delta,
    /// Segments with data that were sent, again or not.
    pub segments_out: Delta,
    /// Payload that the other end acknowledged.
    pub bytes_acked: Delta,
    pub bytes_received: Delta,
    /// Time with data to send or not acknowledged.
    pub busy_ns: Delta,
    /// Time of it in which the other end's receive window held the sender back.
    pub rwnd_limited_ns: Delta,
    /// Time of it in which the own send buffer did.
    pub sndbuf_limited_ns: Delta,
    /// At how many readings it was there.
    #[serde(default)]
    pub readings: u32,
    /// At how many of them a full segment waited to be sent for the first time. **Source**:
    /// `tcpi_notsent_bytes`.
    #[serde(default = "not_counted")]
    pub waiting_readings: Reading<u32>,
    /// The shortest round trip seen lately, at the last reading.
    pub min_rtt_ns: Reading<u64>,
    /// The largest receive window that the other end offered at any reading. Since Linux 5.4.
    pub peer_window_bytes: Reading<u64>,
    /// The send buffer (`tb` of `ss -m`) at the last reading.
    pub send_buffer_bytes: Reading<u64>,
    /// Who holds it; looked up only for those that sent most and those that a rule may name.
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
    /// From the root of the hierarchy, as `/proc/PID/cgroup` has it.
    pub path: String,
    /// Folder of its files.
    pub folder: String,
    /// The chosen processes in it or below it, ascending.
    pub pids: Vec<u32>,
    /// This program is in it or below it.
    pub own: bool,
    /// CPUs that the quota grants, at the last reading.
    pub quota_cpus: Reading<f64>,
    /// Periods in which it had something to run.
    pub periods: Delta,
    /// Periods of them in which it used up its quota.
    pub throttled_periods: Delta,
    /// Time for which its tasks were kept from running, all CPUs together.
    pub throttled_ns: Delta,
}

/// The listening sockets of one address over the window; several may share one
/// (`SO_REUSEPORT`), and the fullest of them stands for all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListenerSample {
    /// Address and port, `0.0.0.0:5432`, `[::]:80`.
    pub address: String,
    /// The most connections that were waiting to be accepted at any reading.
    pub fullest_accept_queue: u32,
    /// The most that may wait there.
    pub accept_queue_limit: u32,
    /// At how many readings as many were waiting as may, or more.
    pub full_readings: u32,
}

/// One CPU over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuSample {
    pub id: CpuId,
    /// Time by state as `/proc/stat` claims.
    pub proc_stat: Reading<ProcStat>,
    /// Softirqs raised by vector name (`NET_RX`). **Source**: `/proc/softirqs`.
    pub softirqs: Reading<BTreeMap<String, Delta>>,
    pub softnet: Reading<SoftnetSample>,
    /// Softirq time by context as eBPF measured it over the same window.
    #[serde(default = "not_measured")]
    pub softirq_ns: Reading<ByContext>,
}

/// CPU time by state over the window; the kernel's ticks converted once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcStat {
    /// User mode, guests included.
    pub user_ns: Delta,
    /// User mode at low priority.
    pub nice_ns: Delta,
    pub system_ns: Delta,
    pub idle_ns: Delta,
    /// Idle with I/O pending; unreliable by nature.
    pub iowait_ns: Delta,
    pub irq_ns: Delta,
    pub softirq_ns: Delta,
    /// Taken by the hypervisor.
    pub steal_ns: Delta,
}

impl ProcStat {
    /// Time not idle, where every part is known.
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

    /// All time, where every part is known.
    ///
    /// Only `iowait` may be unknown: the kernel lets it shrink on hosts that wait for disks
    /// (proc(5)). One that shrank added nothing to the window, and leaving it out keeps the
    /// rest of the CPU's account, which never shrinks.
    pub fn total_ns(&self) -> Option<u64> {
        Some(self.busy_ns()? + self.idle_ns.get()? + self.iowait_ns.get().unwrap_or(0))
    }

    /// Busy share of all time, 0 to 1; `None` when unknown or when no tick passed.
    pub fn busy_share(&self) -> Option<f64> {
        let total = self.total_ns().filter(|&t| t > 0)?;
        Some(self.busy_ns()? as f64 / total as f64)
    }

    /// Softirq share of all time, 0 to 1, as `/proc/stat` claims it.
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
    /// Growth by CPU, only where above zero or not known.
    pub cpus: Vec<IrqDelta>,
}

/// One interrupt's growth on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IrqDelta {
    pub cpu: CpuId,
    pub count: Delta,
}

/// One NIC over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NicSample {
    pub name: String,
    /// Growth by file name. **Source**: `/sys/class/net/X/statistics`.
    pub statistics: Reading<BTreeMap<String, Delta>>,
    /// Growth of the driver's counters by name. **Source**: `ethtool -S`.
    pub driver_stats: Reading<BTreeMap<String, Delta>>,
    /// netdev netlink `qstats-get` by queue and counter (`rx-packets`), since 6.9.
    pub queues: Reading<Vec<QueueSample>>,
    pub qdiscs: Reading<Vec<QdiscSample>>,
    /// Carrier changes within the window. **Source**: `carrier_changes`.
    pub carrier_changes: Delta,
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
    /// Waiting in the last reading.
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
    /// Time runnable but waiting for a CPU. **Source**: `schedstat`.
    pub run_queue_ns: Delta,
    /// Moves between CPUs. **Source**: `sched`.
    pub migrations: Delta,
    /// Gave up the CPU by itself.
    pub voluntary_switches: Delta,
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
