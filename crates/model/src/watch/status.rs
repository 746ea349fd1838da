//! Netwright's eBPF programs and their cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Nanos, Reading};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramStatus {
    /// The group it belongs to: `softirq`.
    pub object: String,
    /// The tracepoint, which is also the program's name.
    pub program: String,
    /// The figures that it provides.
    pub gives: String,
    /// Its statistics of the interval, or the reason why it is not attached.
    pub ran: Reading<Ran>,
}

/// Statistics of an attached program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ran {
    /// Number of runs in the interval.
    pub runs: Reading<u64>,
    /// Nanoseconds per run, measured by the kernel (`BPF_ENABLE_STATS`, which itself adds about 65
    /// ns) over short parts of the intervals.
    pub ns_per_run: Reading<f64>,
    /// Its share of the interval's CPU time: runs times nanoseconds per run.
    pub time_ns: Reading<u64>,
}

/// The observer as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observer {
    /// Every program that the view uses.
    pub programs: Vec<ProgramStatus>,
    /// Time in programs: the sum of those for which it is known.
    pub programs_ns: Nanos,
    /// Number of attached programs whose run time is not known, mostly because they ran too seldom
    /// to be timed; `programs_ns` and `share_of_host` leave them out.
    #[serde(default)]
    pub programs_untimed: u32,
    /// CPU time of this process in the interval.
    pub process_ns: Reading<Nanos>,
    /// Both as a share of the host's CPU time (interval × CPUs), 0 to 1.
    pub share_of_host: Reading<f64>,
    /// Time to attach the programs, before the first interval.
    #[serde(default)]
    pub attach_ns: Reading<Nanos>,
}
