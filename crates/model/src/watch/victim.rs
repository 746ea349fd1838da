//! Tasks that softirqs and interrupts take time from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Reading;

/// One thread over the interval. Sums by process are left to the view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterruptedTask {
    pub pid: u32,
    /// The process's short name, `/proc/PID/comm`. Absent where the process ended before it was
    /// read; then only the thread's own name is known.
    #[serde(default)]
    pub process: Reading<String>,
    pub tid: u32,
    /// The thread's short name.
    pub name: String,
    /// Softirqs of interrupts that interrupted it while it ran: time lost to packets of others.
    pub preempted_by_softirq_ns: u64,
    /// Interrupt handlers that interrupted it while it ran.
    pub preempted_by_irq_ns: u64,
    /// Softirq work within its own system calls.
    pub own_softirq_ns: u64,
    /// Number of softirqs of both kinds.
    pub softirqs: u64,
}

/// A followed process that ended, or whose id another process has taken since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndedProcess {
    pub pid: u32,
    /// Its short name, as it was last.
    pub name: String,
}
