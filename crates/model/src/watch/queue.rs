//! NAPI instances: where packets are polled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuId, IrqId, QueueId, Reading};

/// One NAPI instance over the interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NapiWatch {
    /// The kernel's NAPI id; absent for the CPU's backlog and for others without an id.
    pub napi_id: Reading<u32>,
    /// Polled device: the NIC's name, `backlog` for a CPU's own queue.
    pub nic: Reading<String>,
    /// The NIC's network namespace (inode). Queue and interrupt are known only in the namespace of
    /// this program.
    pub netns: Reading<u64>,
    /// Its receive queue, or its transmit queue where it polls only that. **Source**: netdev
    /// netlink, otherwise the interrupt after which it is polled.
    pub queue: Reading<QueueId>,
    /// The interrupt that wakes it. **Source**: netdev netlink, otherwise the interrupt after which
    /// it is polled, if that belongs to the NIC, otherwise that of the queue.
    pub irq: Reading<IrqId>,
    /// Whether it is polled in its own thread (threaded NAPI), as the kernel reports or the
    /// thread's name shows.
    pub threaded: Reading<bool>,
    /// Share of the interval in which polls were observed, 0 to 1: observing more would have cost
    /// too much. All counts and the time in softirqs are from that share; the time of a thread is
    /// from the whole interval.
    #[serde(default = "super::whole")]
    pub observed_share: f64,
    /// The CPUs on which it was polled, ascending.
    pub cpus: Vec<NapiOnCpu>,
}

/// Polls on one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NapiOnCpu {
    pub cpu: CpuId,
    pub polls: u64,
    /// Packets: the work that the polls reported.
    pub packets: u64,
    /// Polls that used up their budget: more packets were waiting.
    pub full_polls: u64,
    /// Polls outside a softirq: by a NAPI thread, or by a task in busy polling.
    pub polls_outside_softirq: u64,
    /// Time of its polls: time in softirqs, and the whole time of a NAPI thread. Absent where all
    /// polls were busy polling.
    pub ns: Reading<u64>,
}
