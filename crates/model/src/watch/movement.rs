//! Migrations of threads, and sends and receives of processes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuId, Reading, measure::Transport};

/// One thread that migrated within the interval. **Source**: `sched_migrate_task`, whose count
/// equals the kernel's own `nr_migrations`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MigratedThread {
    pub pid: Reading<u32>,
    /// The thread. 0: the sum of all threads that did not fit into the table.
    pub tid: u32,
    /// The thread's short name.
    pub name: String,
    pub migrations: u64,
    /// Migrations between CPUs that share no last-level cache.
    pub across_l3: Reading<u64>,
    /// Migrations between NUMA nodes.
    pub across_node: Reading<u64>,
    pub across_package: Reading<u64>,
    /// Migrations by source and destination CPU, most frequent first.
    pub transitions: Vec<MigrationPath>,
}

/// Migrations from one CPU to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MigrationPath {
    pub from: CpuId,
    pub to: CpuId,
    pub count: u64,
}

/// Sends and receives of one process by its socket calls on one local or remote port. **Source**:
/// `sock_send_length` and `sock_recv_length`, since Linux 6.3. Not included: failed calls, calls
/// that only peek, and data that is spliced out of a socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Messages {
    /// The process. 0: the sum of all processes that did not fit into the table; only the number of
    /// their calls is known, as sends.
    pub pid: u32,
    pub name: String,
    pub transport: Transport,
    /// The port that identifies the service: that of the listening side, where known.
    pub port: Reading<u16>,
    pub sends: u64,
    /// Bytes of all sends.
    pub sent_bytes: u64,
    pub receives: u64,
    /// Bytes of all receives.
    pub received_bytes: u64,
    /// Changes of direction from receiving to sending: the requests that a server answers.
    pub exchanges: u64,
    /// Receiving calls that ran on another CPU than the one that processed the packets.
    pub received_elsewhere: Reading<u64>,
    /// Share of the interval in which calls were observed, 0 to 1: observing more would have cost
    /// too much. All counts are from that share.
    #[serde(default = "super::whole")]
    pub observed_share: f64,
}

/// Retransmitted segments of one connection, in any network namespace. **Source**:
/// `tcp_retransmit_skb` and `tcp_retransmit_synack`; counted as in the kernel's `Tcp.RetransSegs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Retransmits {
    /// Local address and port: `10.0.0.1:5432`, `[fd00::1]:80`. `*`: the sum of all connections
    /// that did not fit into the table.
    pub local: String,
    /// Remote address and port.
    pub remote: String,
    pub segments: u64,
}

/// Packets that the kernel dropped for one reason, in any network namespace. **Source**:
/// `kfree_skb`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PacketDrops {
    /// The kernel's own name of the reason (`enum skb_drop_reason`), such as `NO_SOCKET`; since
    /// Linux 5.17.
    pub reason: Reading<String>,
    /// `IPv4`, `IPv6`, `ARP`, else the EtherType in hexadecimal; `*`: the sum of all rows that did
    /// not fit into the table.
    pub protocol: String,
    /// The interface of arrival, or of the intended departure.
    pub nic: Reading<String>,
    /// Inode of its network namespace.
    pub net_namespace: Reading<u64>,
    /// The kernel function that dropped it.
    pub function: Reading<String>,
    pub packets: u64,
    /// Share of the interval in which drops were observed, 0 to 1: observing more would have cost
    /// too much. The count is from that share.
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

/// The same for one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessIpc {
    pub pid: u32,
    pub name: String,
    /// Its instructions and cycles.
    pub ipc: Ipc,
}
