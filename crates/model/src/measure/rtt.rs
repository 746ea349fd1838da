//! The result of `measure rtt`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BothCpu, BothEvidence, End, Floor, Interval, Mode, Placement, Quantiles, RttSpec, SplitAnswer,
    Transport, Wait,
};
use crate::{Nanos, Warning};

/// The document of `measure rtt --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RttDocument {
    /// Version of the document's shape.
    pub schema_version: u32,
    /// What the document is: always `rtt`.
    pub kind: String,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// Everything needed to run it again.
    pub request: RttSpec,
    pub local: End,
    pub peer: End,
    /// What the generator itself costs.
    pub floor: Floor,
    /// One run for each combination of sizes and flows.
    pub runs: Vec<RttRun>,
    /// What of the round trip is stack and what is waking up, when asked for.
    pub wait_split: Option<WaitSplit>,
    /// Whether it was ended early.
    pub interrupted: bool,
}

/// One run of request and response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RttRun {
    /// What carried the bytes.
    pub transport: Transport,
    pub request_bytes: u64,
    pub response_bytes: u64,
    pub flows: u32,
    /// Threads at this end.
    pub threads: u32,
    /// Requests outstanding on each flow.
    pub queue_depth: u32,
    /// How this end waited.
    pub wait: Wait,
    /// How the server waited.
    pub peer_wait: Wait,
    /// Where both ends ran.
    pub placement: Placement,
    /// What moved the bytes at both ends: `io_uring here, epoll there`. One flow on a thread has
    /// plain `send/recv`.
    #[serde(default)]
    pub engine: String,
    pub window_ns: Nanos,
    /// Warm-up and cool-down around it.
    pub trimmed_ns: Nanos,
    /// Round trips; in open loop from the time the schedule said.
    pub rtt_ns: Quantiles,
    /// Open loop: round trips from the moment of sending.
    pub rtt_from_send_ns: Option<Quantiles>,
    /// Open loop: how long after its time each request was sent.
    pub send_lag_ns: Option<Quantiles>,
    /// The median round trip with its interval.
    pub rtt_p50_interval_ns: Option<Interval>,
    /// Modes, where there are several; else empty.
    pub modes: Vec<Mode>,
    /// How long the server spun before each response on purpose, by its own clock and in the
    /// mean over the test; `None` where it does not tell.
    #[serde(default)]
    pub peer_service_ns: Option<f64>,
    /// Round trips that ended within the window; `rtt_ns` also has those that ended after it and
    /// were due within it by schedule.
    pub transactions: u64,
    /// Round trips per second of the window.
    pub transactions_per_s: f64,
    pub transactions_per_s_interval: Option<Interval>,
    /// Open loop: what was asked for.
    pub target_per_s: Option<u64>,
    /// Open loop: how far behind its schedule it was at the end; it grows where the rate is more
    /// than the server answers. `None` in closed loop and where it is not reported.
    #[serde(default)]
    pub schedule_lag_ns: Option<Nanos>,
    /// Open loop: requests due within the window that were not sent until the end.
    #[serde(default)]
    pub not_started: u64,
    /// UDP: requests without an answer within the time limit.
    pub lost: u64,
    /// UDP: answers that came after the time limit.
    pub late: u64,
    /// CPU at both ends.
    pub cpu: BothCpu,
    /// Kernel counters that moved.
    pub evidence: BothEvidence,
    /// What to know before trusting the figures.
    pub warnings: Vec<Warning>,
}

/// The wait split: variants of one exchange, and what they say together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitSplit {
    /// The variants, as they were run.
    pub variants: Vec<WaitVariant>,
    /// The round trip with both ends spinning on two CPUs: the stack alone. `None` where the
    /// ends had no CPUs of their own, or the round trip was not clearly shorter than blocking;
    /// `says` tells why.
    pub stack_ns: Option<Nanos>,
    /// What blocking on two CPUs adds: waking up the other CPU, both ways. `None` with `stack_ns`.
    pub waking_ns: Option<Nanos>,
    /// The round trip with both ends on one CPU: stack and two switches of task, nobody woken
    /// from idle.
    pub one_cpu_ns: Option<Nanos>,
    pub says: SplitAnswer,
}

/// One variant of the wait split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitVariant {
    /// `two CPUs, blocking`, `two CPUs, spinning`, `one CPU, blocking`.
    pub name: String,
    pub run: RttRun,
}
