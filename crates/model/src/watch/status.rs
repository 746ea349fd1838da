//! Netwright's eBPF programs and their cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Nanos, Reading};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramStatus {
    /// The group it belongs to: `softirq`.
    pub object: String,
    /// The tracepoint, which is the program's name.
    pub program: String,
    /// What figures it is for.
    pub gives: String,
    /// What it did in the interval; why it is not attached, where it is not.
    pub ran: Reading<Ran>,
}

/// What an attached program did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ran {
    /// How often it ran in the interval.
    pub runs: Reading<u64>,
    /// Nanoseconds a run, measured by the kernel (`BPF_ENABLE_STATS`, which adds about 65 of
    /// its own) over short parts of the intervals.
    pub ns_per_run: Reading<f64>,
    /// The product: its share of the interval's CPU time.
    pub time_ns: Reading<u64>,
}

/// The observer as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observer {
    /// Every program that the view would like to have.
    pub programs: Vec<ProgramStatus>,
    /// Time in programs: the sum of those for which it is known.
    pub programs_ns: Nanos,
    /// How many attached programs ran for a time that is not known, mostly because they ran too
    /// seldom to be timed: `programs_ns` and `share_of_host` are without them.
    #[serde(default)]
    pub programs_untimed: u32,
    /// CPU time of this process in the interval.
    pub process_ns: Reading<Nanos>,
    /// Both as a share of the host's CPU time (interval × CPUs), 0 to 1.
    pub share_of_host: Reading<f64>,
    /// How long attaching took, before the first interval.
    #[serde(default)]
    pub attach_ns: Reading<Nanos>,
}
