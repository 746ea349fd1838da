//! The stages of a packet's way to a reader.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Reading;

/// A distribution of times, nanoseconds; the bounds of quantiles are those of its buckets (four per
/// power of two: at most 19% wide). An empty distribution is absent, never all zeros.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitNs {
    /// Number of values, 1 or more.
    #[schemars(range(min = 1))]
    pub count: u64,
    /// The arithmetic mean of all values.
    pub mean: f64,
    /// The 50% quantile, the median.
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    /// The maximum: the upper bound of its bucket.
    pub max: u64,
    /// Number of values by power of two, for programs that sum them up; in no document. **Shape**: below
    /// 2^6 ns, then from 2^6 to below 2^7 ns, and so on; empty where it was read from a document.
    #[serde(skip)]
    pub by_power: Vec<u64>,
}

impl WaitNs {
    /// The exponent at which the first entry of [`WaitNs::by_power`] ends.
    pub const FIRST_POWER: usize = 6;
}

/// Waits of one process. A wait is counted when a thread slept, was woken up because a socket
/// became readable, and read from it before it slept again. All other reads are left out and
/// counted. A part without observations in the interval is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessWaits {
    pub pid: u32,
    pub name: String,
    /// From a packet's entry into the stack until the socket is readable.
    pub stack: Reading<WaitNs>,
    /// From readable until the reader is woken up.
    pub wakeup: Reading<WaitNs>,
    /// From the wake-up until the reader runs: run queue delay and idle exit.
    pub runqueue: Reading<WaitNs>,
    /// The part of these where the CPU was idle before: idle exit.
    pub idle_exit: Reading<WaitNs>,
    /// From running until the data is copied.
    pub copy: Reading<WaitNs>,
    /// Reads without a known wait: they found data, or were late because an earlier packet was
    /// missing.
    pub excluded_reads: Reading<u64>,
    /// Those of these reads that were late (TCP): data that had come before had to wait for the
    /// packet that woke up the reader. That packet was lost or overtaken on its way, or was needed
    /// because the reader asks for more at once.
    pub late_reads: Reading<u64>,
    /// Share of the interval in which waits were observed, 0 to 1: observing more would have cost
    /// too much. All counts are from that share.
    pub observed_share: f64,
}
