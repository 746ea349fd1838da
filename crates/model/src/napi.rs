//! Per-CPU receive backlog and NAPI instances.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuId, IrqId, Nanos, QueueId, Reading, ids::Direction};

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
    /// `irq-suspend-timeout` of this NAPI: how long an application that busy-polls by epoll keeps
    /// the interrupt off; 0 is off. Since 6.13.
    #[serde(default)]
    pub irq_suspend_timeout_ns: Reading<Nanos>,
    pub queues: Vec<QueueId>,
}

/// Names of one interface's NAPI instances, by id. An instance is named after the first queue that
/// it polls (`rx-0`): a driver that recreates its instances gives the new one the same queue. Most
/// virtual drivers report no queues; their instances are numbered in the order of their ids, which
/// is the order of creation.
pub fn names(napis: Vec<(u32, Vec<QueueId>)>) -> BTreeMap<u32, String> {
    let mut napis = napis;
    napis.sort_unstable();
    let mut count = 0..;
    let mut name = |queues: Vec<QueueId>| {
        let first =
            |side: Direction| queues.iter().filter(|q| q.direction == side).map(|q| q.index).min();
        match (first(Direction::Rx), first(Direction::Tx)) {
            (Some(n), _) => format!("rx-{n}"),
            (None, Some(n)) => format!("tx-{n}"),
            (None, None) => count.next().unwrap_or(0).to_string(),
        }
    };
    napis.into_iter().map(|(id, queues)| (id, name(queues))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_napi_goes_by_its_queue_and_without_one_by_its_turn() {
        let all = names(vec![
            (261, vec![]),
            (300, vec![QueueId::tx(0), QueueId::rx(1)]),
            (301, vec![QueueId::tx(3)]),
            (260, vec![]),
        ]);
        let all: Vec<&str> = all.values().map(String::as_str).collect();
        assert_eq!(all, ["0", "1", "rx-1", "tx-3"]);
    }
}
