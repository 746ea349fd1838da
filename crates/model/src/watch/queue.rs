//! NAPI instances: where packets are polled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuId, IrqId, QueueId, Reading};

/// One NAPI instance over the interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NapiWatch {
    /// The kernel's number; absent for the CPU's backlog and others that have none.
    pub napi_id: Reading<u32>,
    /// What it polls: the NIC's name, `backlog` for a CPU's own queue.
    pub nic: Reading<String>,
    /// The NIC's network namespace (inode); only of this program's own are queue and interrupt
    /// known.
    pub netns: Reading<u64>,
    /// Its receive queue (its transmit queue where it polls only that). **Source**: netdev
    /// netlink, else the interrupt after which it is polled.
    pub queue: Reading<QueueId>,
    /// The interrupt that wakes it. **Source**: netdev netlink, else the one after which it is
    /// polled, if that is the NIC's, else the queue's.
    pub irq: Reading<IrqId>,
    /// Polled within a thread of its own, by the kernel's word or the thread's name.
    pub threaded: Reading<bool>,
    /// In which share of the interval polls were observed, 0 to 1: observing more would have cost
    /// too much. All counts are of that share, and so is the time in softirqs; a thread's time is
    /// whole.
    #[serde(default = "super::whole")]
    pub observed_share: f64,
    /// By CPU, ascending, where it was polled.
    pub cpus: Vec<NapiOnCpu>,
}

/// The same on one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NapiOnCpu {
    pub cpu: CpuId,
    pub polls: u64,
    /// Packets: the work that the polls said they did.
    pub packets: u64,
    /// Polls that used up their whole budget: more was waiting.
    pub full_polls: u64,
    /// Polls outside a softirq: by a thread of its own, or a task that polls busily.
    pub polls_outside_softirq: u64,
    /// Time of its polls: in softirqs, and the whole time of a thread that only polls. Absent
    /// where all of it was busy polling.
    pub ns: Reading<u64>,
}
