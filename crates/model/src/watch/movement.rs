//! Migrations of threads, and sends and receives of processes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuId, Reading, measure::Transport};

/// One thread that moved within the interval. **Source**: `sched_migrate_task`, which counts as
/// the kernel's own `nr_migrations` does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MigratedThread {
    pub pid: Reading<u32>,
    /// The thread. 0: all threads together for which there was no room of their own.
    pub tid: u32,
    /// The thread's short name.
    pub name: String,
    pub migrations: u64,
    /// Moves between CPUs that share no last-level cache.
    pub across_l3: Reading<u64>,
    /// Moves between NUMA nodes.
    pub across_node: Reading<u64>,
    pub across_package: Reading<u64>,
    /// From where to where, most often first.
    pub transitions: Vec<MigrationPath>,
}

/// Moves from one CPU to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MigrationPath {
    pub from: CpuId,
    pub to: CpuId,
    pub count: u64,
}

/// What one process sends and receives by its socket calls on one local or remote port.
/// **Source**: `sock_send_length` and `sock_recv_length`, since Linux 6.3. Calls that failed or
/// only looked, and what is spliced out of a socket, are not among them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Messages {
    /// The process. 0: all together for which there was no room of their own; only the number
    /// of their calls is known, as sends.
    pub pid: u32,
    pub name: String,
    pub transport: Transport,
    /// The port that tells the service: the listening side's, where that can be told.
    pub port: Reading<u16>,
    pub sends: u64,
    /// Bytes of all sends.
    pub sent_bytes: u64,
    pub receives: u64,
    /// Bytes of all receives.
    pub received_bytes: u64,
    /// Changes of direction from receiving to sending: exchanges as a server has them.
    pub exchanges: u64,
    /// Receiving calls that ran on another CPU than the one that had the packets.
    pub received_elsewhere: Reading<u64>,
    /// In which share of the interval calls were observed, 0 to 1: observing more would have cost
    /// too much. All counts are of that share.
    #[serde(default = "super::whole")]
    pub observed_share: f64,
}

/// Retransmitted segments of one connection, of whichever network namespace. **Source**:
/// `tcp_retransmit_skb` and `tcp_retransmit_synack`; as the kernel counts `Tcp.RetransSegs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Retransmits {
    /// Local address and port: `10.0.0.1:5432`, `[fd00::1]:80`. `*`: all connections together
    /// for which there was no room of their own.
    pub local: String,
    /// Remote address and port.
    pub remote: String,
    pub segments: u64,
}

/// Packets that the kernel dropped for one reason, of whichever network namespace. **Source**:
/// `kfree_skb`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PacketDrops {
    /// `NO_SOCKET`: the kernel's own word (`enum skb_drop_reason`), since Linux 5.17.
    pub reason: Reading<String>,
    /// `IPv4`, `IPv6`, `ARP`, else the EtherType in hexadecimal; `*`: all together for which there
    /// was no room of their own.
    pub protocol: String,
    /// The interface that it came in by, or was to leave by.
    pub nic: Reading<String>,
    /// Inode of its network namespace.
    pub net_namespace: Reading<u64>,
    /// The function of the kernel that dropped it.
    pub function: Reading<String>,
    pub packets: u64,
    /// In which share of the interval drops were observed, 0 to 1: observing more would have cost too
    /// much. The count is of that share.
    #[serde(default = "super::whole")]
    pub observed_share: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ipc {
    pub instructions: u64,
    /// Cycles in which the CPU was not halted.
    pub cycles: u64,
    pub per_cycle: f64,
}

/// The same of one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessIpc {
    pub pid: u32,
    pub name: String,
    /// Its instructions and cycles.
    pub ipc: Ipc,
}
