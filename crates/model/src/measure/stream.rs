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
    /// What the document is: always `stream`.
    pub kind: String,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// Everything needed to run it again.
    pub request: StreamSpec,
    pub local: End,
    pub peer: End,
    /// What the generator itself costs.
    pub floor: Floor,
    /// One run for each combination of sizes and flows, and one for each direction.
    pub runs: Vec<StreamRun>,
    /// Whether it was ended early.
    pub interrupted: bool,
}

/// One run of one direction, as its receiver saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamRun {
    /// What carried the bytes.
    pub transport: Transport,
    /// Which way: `forward` or `reverse`.
    pub direction: Direction,
    pub flows: u32,
    /// Threads at this end.
    pub threads: u32,
    /// Bytes of one send.
    pub message_bytes: u64,
    /// How this end waited.
    pub wait: Wait,
    /// How the server waited.
    pub peer_wait: Wait,
    /// Where both ends ran.
    pub placement: Placement,
    /// The measured window, on the receiver's clock.
    pub window_ns: Nanos,
    /// Warm-up and cool-down around it.
    pub trimmed_ns: Nanos,
    /// Bytes received within the window (payload).
    pub bytes: u64,
    /// By second, in bits.
    pub bits_per_s: f64,
    pub bits_per_s_interval: Option<Interval>,
    /// Segments retransmitted, where the sender's kernel counts them.
    pub retransmits: Reading<u64>,
    /// UDP: what became of the datagrams.
    pub datagrams: Option<Datagrams>,
    /// Bytes received by flow.
    pub flow_bytes: Vec<u64>,
    /// Each interval of the window.
    pub intervals: Vec<StreamInterval>,
    /// The two throughputs that the intervals settle in; `None` where they show one, or are fewer
    /// than ten.
    #[serde(default)]
    pub modes: Option<StreamModes>,
    /// Zero copy: sends that the kernel copied after all, of all.
    pub zerocopy_copied: Option<ZeroCopyCount>,
    /// The congestion control in use.
    pub congestion: Reading<String>,
    /// The MSS in use.
    pub mss_bytes: Reading<u64>,
    /// CPU at both ends.
    pub cpu: BothCpu,
    /// Kernel counters that moved.
    pub evidence: BothEvidence,
    /// What to know before trusting the figures.
    pub warnings: Vec<Warning>,
}

/// Two throughputs, of which a mean describes neither.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamModes {
    pub slow: StreamMode,
    pub fast: StreamMode,
    /// Which of them goes with migrations of the measuring threads.
    pub with_migrations: Reading<GoesWith>,
    /// How likely the migrations differ so by chance (rank-sum test, two-sided).
    pub migrations_p: Option<f64>,
}

/// One of two throughputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamMode {
    pub intervals: u64,
    /// Their share of all, 0 to 1.
    pub share: f64,
    /// Their mean, bits by second.
    pub bits_per_s: f64,
    /// Migrations of either end's measuring threads, by second.
    pub migrations_per_s: Reading<f64>,
}

/// Which of two modes has more migrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoesWith {
    Slow,
    Fast,
    /// Neither, as far as these intervals tell.
    Neither,
}

/// What became of the sends with `MSG_ZEROCOPY`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZeroCopyCount {
    /// Sends whose completion was read.
    pub completed: u64,
    /// Those that the kernel copied.
    pub copied: u64,
}

/// What became of datagrams.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Datagrams {
    pub sent: u64,
    pub received: u64,
    /// Sent and never received.
    pub lost: u64,
    /// Received after a later one. Absent, as the next two, where the receiver is another program
    /// that does not tell it.
    pub reordered: Reading<u64>,
    pub duplicates: Reading<u64>,
    /// Smoothed change of the transit time, RFC 3550 section 6.4.1.
    pub jitter_ns: Reading<u64>,
    /// `sendto` said that there is no room (`ENOBUFS`, `EAGAIN`).
    pub send_refused: u64,
}

/// One interval of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamInterval {
    /// From, since the window's beginning.
    pub start_s: f64,
    pub end_s: f64,
    /// Bytes that the receiver got within the interval.
    pub bytes: u64,
    /// By second, in bits.
    pub bits_per_s: f64,
    pub retransmits: Reading<u64>,
    /// Congestion window at its end, summed over flows. **Source**: `TCP_INFO` of the sender.
    pub cwnd_bytes: Reading<u64>,
    /// Smoothed round-trip time, mean over flows. **Source**: `TCP_INFO` of the sender.
    pub rtt_ns: Reading<u64>,
    /// Times that a measuring thread of either end was moved to another CPU.
    pub migrations: Reading<u64>,
    /// UDP: what became of the datagrams.
    pub datagrams: Option<Datagrams>,
}
