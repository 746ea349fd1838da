//! Per-CPU receive backlog and NAPI instances.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuId, IrqId, Nanos, QueueId, Reading};

/// One row of `/proc/net/softnet_stat`: counters since boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SoftnetRow {
    /// The CPU: column 13 (since 5.10); before that the n-th online CPU, marked by
    /// [`SoftnetRow::cpu_from_position`].
    pub cpu: CpuId,
    /// Whether the id was deduced from the row's position among the online CPUs.
    pub cpu_from_position: bool,
    pub processed: u64,
    /// Packets dropped because the backlog was full (`netdev_max_backlog`).
    pub dropped: u64,
    /// Number of times that `net_rx_action` stopped with work left (`netdev_budget`,
    /// `netdev_budget_usecs`).
    pub time_squeeze: u64,
    /// Number of wake-ups by RPS on another CPU. Since 2.6.35.
    pub received_rps: Reading<u64>,
    /// Flow-limit hits. Since 3.11.
    pub flow_limit_count: Reading<u64>,
    /// Packets now in the backlog. Since 5.10.
    pub backlog_len: Reading<u64>,
}

/// One NAPI instance of a NIC. **Source**: `netdev` generic-netlink `napi-get`, since 6.8.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Napi {
    /// The kernel's NAPI id.
    pub id: u32,
    /// Its interrupt; virtio-net reports none.
    pub irq: Reading<IrqId>,
    /// The kernel thread, when threaded.
    pub pid: Reading<u32>,
    /// Whether a kernel thread polls it instead of a softirq. Per NAPI since 6.17; before that see
    /// the NIC.
    pub threaded: Reading<bool>,
    /// `gro-flush-timeout` of this NAPI. Since 6.13.
    pub gro_flush_timeout_ns: Reading<Nanos>,
    /// `defer-hard-irqs` of this NAPI. Since 6.13.
    pub defer_hard_irqs: Reading<u32>,
    pub queues: Vec<QueueId>,
}
