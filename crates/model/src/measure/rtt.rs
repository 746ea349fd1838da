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
    /// Kind of the document: always `rtt`.
    pub kind: String,
    /// Start of the run, seconds since 1970.
    pub started_unix_s: u64,
    /// All parameters that are needed to repeat the run.
    pub request: RttSpec,
    pub local: End,
    pub peer: End,
    /// Cost of the generator itself.
    pub floor: Floor,
    /// One run for each combination of sizes and flows.
    pub runs: Vec<RttRun>,
    /// The parts of the round trip in the network stack and in wake-ups, where requested.
    pub wait_split: Option<WaitSplit>,
    /// Whether the run was ended early.
    pub interrupted: bool,
}

/// One run of request and response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RttRun {
    /// How the two ends were connected.
    pub transport: Transport,
    /// Payload of a request, bytes.
    pub request_bytes: u64,
    /// Payload of a response, bytes.
    pub response_bytes: u64,
    /// Connections, or UDP sockets, at the same time.
    pub flows: u32,
    /// Threads of the client.
    pub threads: u32,
    /// Queue depth: requests outstanding on each flow.
    pub queue_depth: u32,
    /// Wait mode of the client.
    pub wait: Wait,
    /// Wait mode of the server.
    pub peer_wait: Wait,
    /// Placement of both ends.
    pub placement: Placement,
    /// I/O engine of both ends: `io_uring at the client, epoll at the server`. One flow on a
    /// thread uses plain `send/recv`.
    #[serde(default)]
    pub engine: String,
    pub window_ns: Nanos,
    /// Warm-up and cool-down around the window.
    pub trimmed_ns: Nanos,
    /// Round trips; in open loop from the scheduled time.
    pub rtt_ns: Quantiles,
    /// Open loop: service latency, from the moment of sending.
    pub rtt_from_send_ns: Option<Quantiles>,
    /// Open loop: send lag of each request.
    pub send_lag_ns: Option<Quantiles>,
    /// The median round trip with its confidence interval.
    pub rtt_p50_interval_ns: Option<Interval>,
    /// Modes of the distribution where there are several; otherwise empty.
    pub modes: Vec<Mode>,
    /// Mean time that the server deliberately spun before each response over the test, by its own
    /// clock; `None` where it does not report it.
    #[serde(default)]
    pub peer_service_ns: Option<f64>,
    /// Round trips that ended within the window. `rtt_ns` also includes those that were scheduled
    /// within the window and ended after it.
    pub transactions: u64,
    /// Round trips per second of the window.
    pub transactions_per_s: f64,
    pub transactions_per_s_interval: Option<Interval>,
    /// Open loop: the requested rate.
    pub target_per_s: Option<u64>,
    /// Open loop: schedule lag at the end of the run. It grows where the rate is higher than the
    /// server's capacity. `None` in closed loop and where it is not reported.
    #[serde(default)]
    pub schedule_lag_ns: Option<Nanos>,
    /// Open loop: requests scheduled within the window that were not sent until the end.
    #[serde(default)]
    pub not_started: u64,
    /// UDP: requests without an answer within the time limit.
    pub lost: u64,
    /// UDP: answers that came after the time limit.
    pub late: u64,
    /// CPU at both ends.
    pub cpu: BothCpu,
    /// Kernel counters that changed.
    pub evidence: BothEvidence,
    /// Limits on the trust in the figures.
    pub warnings: Vec<Warning>,
}

/// The wait split: variants of one exchange, and the conclusions from all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitSplit {
    /// The variants, in the order of the runs.
    pub variants: Vec<WaitVariant>,
    /// The round trip with both ends busy polling on two CPUs: the stack alone. `None` where the
    /// ends had no dedicated CPUs, or where the round trip was not clearly shorter than with
    /// blocking; `says` has the reason.
    pub stack_ns: Option<Nanos>,
    /// Additional time with blocking on two CPUs: waking up the other CPU, both ways. `None` where
    /// `stack_ns` is.
    pub waking_ns: Option<Nanos>,
    /// The round trip with both ends on one CPU: the stack and two context switches, without a
    /// wake-up from idle.
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
