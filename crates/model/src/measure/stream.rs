//! The result of `measure stream`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BothCpu, BothEvidence, Direction, End, Floor, Interval, Placement, StreamSpec, Transport, Wait,
};
use crate::{Nanos, Reading, Warning};

/// The document of `measure stream --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamDocument {
    /// Version of the document's shape.
    pub schema_version: u32,
    /// Kind of the document: always `stream`.
    pub kind: String,
    /// Start of the run, seconds since 1970.
    pub started_unix_s: u64,
    /// All parameters that are needed to repeat the run.
    pub request: StreamSpec,
    pub local: End,
    pub peer: End,
    /// Cost of the generator itself.
    pub floor: Floor,
    /// One run for each combination of sizes and flows, in each direction.
    pub runs: Vec<StreamRun>,
    /// Whether the run was ended early.
    pub interrupted: bool,
}

/// One run of one direction, as the receiver measured it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamRun {
    /// How the two ends were connected.
    pub transport: Transport,
    /// Direction: `forward` or `reverse`.
    pub direction: Direction,
    pub flows: u32,
    /// Threads of the client.
    pub threads: u32,
    /// Bytes of one send.
    pub message_bytes: u64,
    /// Wait mode of the client.
    pub wait: Wait,
    /// Wait mode of the server.
    pub peer_wait: Wait,
    /// Placement of both ends.
    pub placement: Placement,
    /// The measured window, on the receiver's clock.
    pub window_ns: Nanos,
    /// Warm-up and cool-down around the window.
    pub trimmed_ns: Nanos,
    /// Bytes received within the window (payload).
    pub bytes: u64,
    /// Payload received, bits per second of the window; headers are not counted.
    pub bits_per_s: f64,
    pub bits_per_s_interval: Option<Interval>,
    /// Retransmitted segments, where the sender's kernel counts them.
    pub retransmits: Reading<u64>,
    /// UDP: delivery of the datagrams.
    pub datagrams: Option<Datagrams>,
    /// Bytes received by flow.
    pub flow_bytes: Vec<u64>,
    /// Each interval of the window.
    pub intervals: Vec<StreamInterval>,
    /// The two throughput levels of the intervals; `None` where there is one level, or fewer than
    /// ten intervals.
    #[serde(default)]
    pub modes: Option<StreamModes>,
    /// Zero copy: sends that the kernel copied all the same, and all sends.
    pub zerocopy_copied: Option<ZeroCopyCount>,
    /// The congestion control in use.
    pub congestion: Reading<String>,
    /// The MSS in use.
    pub mss_bytes: Reading<u64>,
    /// CPU at both ends.
    pub cpu: BothCpu,
    /// Kernel counters that changed.
    pub evidence: BothEvidence,
    /// Limits on the trust in the figures.
    pub warnings: Vec<Warning>,
}

/// Two throughput levels; a mean describes neither.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamModes {
    pub slow: StreamMode,
    pub fast: StreamMode,
    /// The level that coincides with migrations of the measuring threads.
    pub with_migrations: Reading<GoesWith>,
    /// Probability that the migrations differ this much by chance (rank-sum test, two-sided).
    pub migrations_p: Option<f64>,
}

/// One of two throughput levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamMode {
    pub intervals: u64,
    /// Their share of all intervals, 0 to 1.
    pub share: f64,
    /// Their mean, bits per second.
    pub bits_per_s: f64,
    /// Migrations of the measuring threads of both ends per second.
    pub migrations_per_s: Reading<f64>,
}

/// The one of two modes that has more migrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoesWith {
    Slow,
    Fast,
    /// Neither, as far as these intervals show.
    Neither,
}

/// Completions of the sends with `MSG_ZEROCOPY`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZeroCopyCount {
    /// Sends whose completion was read.
    pub completed: u64,
    /// Sends that the kernel copied.
    pub copied: u64,
}

/// What became of the datagrams of one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Datagrams {
    /// Datagrams that the kernel took.
    pub sent: u64,
    /// Datagrams that arrived, duplicates not counted.
    pub received: u64,
    /// Sent and never received.
    pub lost: u64,
    /// Received after a later datagram. Absent, as the next two, where the receiver is another
    /// program that does not report it.
    pub reordered: Reading<u64>,
    /// Received a second time.
    pub duplicates: Reading<u64>,
    /// Interarrival jitter, RFC 3550 section 6.4.1.
    pub jitter_ns: Reading<u64>,
    /// Sends refused for lack of buffer space (`ENOBUFS`, `EAGAIN`).
    pub send_refused: u64,
}

/// One interval of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamInterval {
    /// Start of the interval, from the beginning of the window.
    pub start_s: f64,
    /// End of the interval, from the beginning of the window.
    pub end_s: f64,
    /// Bytes that the receiver got within the interval.
    pub bytes: u64,
    /// Payload received, bits per second of the interval.
    pub bits_per_s: f64,
    /// Segments retransmitted in the interval, summed over flows. **Source**: `TCP_INFO` of the
    /// sender.
    pub retransmits: Reading<u64>,
    /// Congestion window at its end, summed over flows. **Source**: `TCP_INFO` of the sender.
    pub cwnd_bytes: Reading<u64>,
    /// Smoothed round-trip time, mean over flows. **Source**: `TCP_INFO` of the sender.
    pub rtt_ns: Reading<u64>,
    /// Migrations of the measuring threads of both ends.
    pub migrations: Reading<u64>,
    /// UDP: delivery of the datagrams.
    pub datagrams: Option<Datagrams>,
}
