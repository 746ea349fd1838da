//! What every run has: distributions, placement, CPU time of both ends, kernel evidence, and
//! measurement noise.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TrustLimit;
use crate::{CpuId, CpuSet, Nanos, Reading};

/// Quantiles of a distribution of durations.
///
/// **Unit**: nanoseconds. **Shape**: each is interpolated by its rank and the bucket's mean within
/// a bucket that is at most 1/128 of its value wide (`stats::Histogram`); `min` and `max` are
/// exact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// Number of samples in the distribution.
    pub count: u64,
    pub min: u64,
    pub p50: u64,
    pub p75: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub p9999: u64,
    pub max: u64,
    /// The arithmetic mean of all samples.
    pub mean: f64,
    /// The sample standard deviation, exact; 0 with fewer than two samples.
    pub sd: f64,
}

/// A value with its confidence interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The estimate, in the unit of the field that has the interval.
    pub value: f64,
    /// The lower end, in the same unit.
    pub low: f64,
    /// The upper end, in the same unit.
    pub high: f64,
    /// Confidence level: the share of such intervals that contain the true value, 0.95.
    pub level: f64,
    /// Method: `batch means, 32 batches of 150 ms`.
    pub method: String,
}

/// Where one end's threads ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndPlacement {
    /// The CPUs the threads were pinned to, in thread order; empty when not pinned.
    pub pinned: Vec<CpuId>,
    pub why: String,
    /// Samples by the CPU that the thread ran on.
    pub ran_on: BTreeMap<CpuId, u64>,
    /// Samples by the CPU that received the packets (`SO_INCOMING_CPU`).
    pub received_on: BTreeMap<CpuId, u64>,
    /// Samples by the NAPI id that received the packets (`SO_INCOMING_NAPI_ID`); 0 is none.
    pub napi_ids: BTreeMap<u32, u64>,
    /// Migrations of the threads to another CPU within the window. **Source**:
    /// `/proc/PID/task/TID/sched` where the kernel has it, else the changes of CPU that the thread
    /// saw between two samples.
    pub migrations: Reading<u64>,
    /// Every CPU that this end's process may use.
    pub allowed: CpuSet,
}

/// Where both ends ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    pub local: EndPlacement,
    pub peer: EndPlacement,
    /// Whether both ends are on one host (their boot ids are equal).
    pub same_host: bool,
}

/// Name of a [`Mode`] whose placements equal those of the others.
pub const NOTHING_SETS_APART: &str = "no placement sets it apart";

/// Name of a [`Mode`] where samples were not recorded by placement.
pub const PLACEMENT_NOT_KNOWN: &str = "placement not known";

/// One mode of a multimodal distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mode {
    /// Its share of all samples, 0 to 1.
    pub share: f64,
    /// Lower bound of the mode.
    pub low_ns: Nanos,
    /// Upper bound of the mode.
    pub high_ns: Nanos,
    pub p50_ns: Nanos,
    /// Placements of its samples, most samples first.
    pub placements: Vec<ModePlacement>,
    /// The placement that distinguishes it, in words: `local cpu 0, peer cpu 1`.
    pub name: String,
}

/// A placement's part in a mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModePlacement {
    /// CPU of the local thread.
    pub local_cpu: CpuId,
    /// CPU of the server's thread, where the response was large enough to carry it.
    pub peer_cpu: Option<CpuId>,
    /// Its share of the mode's samples, 0 to 1.
    pub share: f64,
}

/// CPU time that one end spent over exactly the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndCpu {
    /// The end's own window: its length on its own clock.
    pub window_ns: Nanos,
    /// CPU time of the measuring threads. **Source**: their CPU clocks.
    pub threads_ns: Reading<u64>,
    /// The measuring threads' time in user mode and in the kernel. **Source**: `/proc`, in ticks;
    /// absent with fewer than 50 ticks.
    pub threads_user_ns: Reading<u64>,
    /// The part in the kernel; absent where `threads_user_ns` is.
    pub threads_system_ns: Reading<u64>,
    /// CPU time of the whole process. **Source**: its CPU clock. Absent where the server is a
    /// program that does not report it.
    pub process_ns: Reading<u64>,
    /// The whole host's CPU time by state (`user`, `system`, `softirq`, `irq`, `steal`,
    /// `idle`…). **Source**: `/proc/stat`, in ticks.
    pub host_ns: Reading<BTreeMap<String, u64>>,
    /// The host's busy time (all but idle) per transaction or, for streams, per byte received.
    pub host_busy_per_unit_ns: Reading<f64>,
    /// The threads' CPU time per the same unit.
    pub threads_per_unit_ns: Reading<f64>,
    /// Voluntary context switches of the measuring threads.
    pub voluntary_switches: Reading<u64>,
    /// Involuntary context switches of the measuring threads.
    pub involuntary_switches: Reading<u64>,
}

/// CPU at both ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BothCpu {
    pub local: EndCpu,
    pub peer: Reading<EndCpu>,
}

/// Kernel counters that changed over the window at one end, by name: `softnet.time_squeeze`,
/// `TcpExt.TCPTimeouts`, `lo.tx_dropped`.
pub type Moved = BTreeMap<String, u64>;

/// Kernel evidence of both ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BothEvidence {
    pub local: Moved,
    pub peer: Moved,
}

/// Cost of the generator itself, and the value below which figures are not to be trusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Floor {
    /// Time of one reading of the clock.
    pub clock_ns: f64,
    /// The clock's smallest step seen.
    pub clock_step_ns: u64,
    /// Time to record one sample, the reading of the clock included.
    pub sample_ns: f64,
    /// Wake-up jitter: delay of wake-ups from sleeps of 100 µs on the CPU that the process measures
    /// on.
    pub timer_lateness_ns: Quantiles,
    /// Steal time of this host within the window.
    pub steal_ns: Reading<u64>,
    /// A figure below this value is not to be trusted: the generator is more than 1% of it.
    pub trust_above_ns: u64,
    /// Reasons, and other limits on the trust in a figure.
    pub why: Vec<TrustLimit>,
}

/// Identity of both ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct End {
    /// Program and version: `netwright 0.1.0`, `qperf 0.4.11`.
    pub program: String,
    pub kernel: String,
    pub arch: String,
    pub cpus: u32,
    pub address: String,
}

/// Answers of a server in one interval of a window: `measure http` and `pg`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServedInterval {
    /// Start of the interval, from the beginning of the window.
    pub start_s: f64,
    pub end_s: f64,
    /// Answered requests or transactions.
    pub transactions: u64,
    /// Answered transactions per second of the interval.
    pub transactions_per_s: f64,
    pub latency_mean_ns: Reading<u64>,
    pub failed: u64,
}
