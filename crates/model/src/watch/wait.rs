//! The stages of a packet's way to a reader.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Reading;

/// A distribution of times, nanoseconds; the bounds of quantiles are those of its buckets
/// (four to each power of two: 19% wide or less). One of nothing is absent, never all zeros.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitNs {
    /// How many, 1 or more.
    #[schemars(range(min = 1))]
    pub count: u64,
    pub mean: f64,
    /// Half were no longer.
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    /// The longest, to its bucket's end.
    pub max: u64,
}

/// What one process waited for: each time that a thread slept, was woken up because a socket
/// became readable, and read from it before it slept again. All other reads are left out and
/// counted. A part of which nothing was observed in the interval is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessWaits {
    pub pid: u32,
    pub name: String,
    /// From a packet's entry into the stack to the socket's being readable.
    pub stack: Reading<WaitNs>,
    /// From readable to the reader's being woken up.
    pub wakeup: Reading<WaitNs>,
    /// From woken up to running: the run queue, and leaving idle.
    pub runqueue: Reading<WaitNs>,
    /// Those of the former where the CPU was idle before: leaving idle.
    pub idle_exit: Reading<WaitNs>,
    /// From running to the data's being copied.
    pub copy: Reading<WaitNs>,
    /// Reads for which no wait is known: they found data, or were late for want of an earlier
    /// packet.
    pub excluded_reads: Reading<u64>,
    /// Those of the former that were late (TCP): data that had come before had to wait for the
    /// packet that woke up the reader, lost or overtaken on its way, or needed because the
    /// reader asks for more at once.
    pub late_reads: Reading<u64>,
    /// In which share of the interval waits were observed, 0 to 1: observing more would have
    /// cost too much. All counts are of that share.
    pub observed_share: f64,
}
