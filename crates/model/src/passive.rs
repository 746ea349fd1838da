//! The result of `explain --pid`, `--port`: the exchanges of a running server, and the latency to
//! its clients. Netwright sends nothing for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Nanos, Reading, Warning, watch::ProgramStatus};

/// The document of `explain --pid PID --json` and `explain --port PORT --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassiveDocument {
    /// Version of the document's shape.
    pub schema_version: u32,
    /// What the document is: always `explain-passive`.
    pub kind: String,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// The ports that were asked for.
    pub ports: Vec<u16>,
    /// The processes that were asked for.
    pub pids: Vec<u32>,
    /// How long it was watched.
    pub window_ns: Nanos,
    /// In which share of that calls were observed, 0 to 1: observing more would have cost too
    /// much. All counts are of that share; rates are per second of it.
    pub observed_share: f64,
    /// Connections by service, most exchanges first.
    pub classes: Vec<ConnectionClass>,
    pub cost: Cost,
    /// What to know before trusting the figures.
    pub warnings: Vec<Warning>,
    /// Whether it was ended early.
    pub interrupted: bool,
}

/// Connections that one program serves on one port. An exchange is a response that begins upon a
/// request: receiving after sending begins the next one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionClass {
    /// The server's port; absent for a Unix socket.
    pub port: Reading<u16>,
    /// What carries the bytes: `tcp` or `unix`.
    pub transport: String,
    /// The program's short name.
    pub process: String,
    /// The processes that served, ascending.
    pub pids: Vec<u32>,
    pub exchanges: u64,
    /// Exchanges a second over the whole window: each second's by the share of it that was observed.
    pub exchanges_per_s: f64,
    /// Bytes of a request, in the mean.
    pub request_bytes: f64,
    /// Bytes sent upon a request, in the mean.
    pub response_bytes: f64,
    /// Calls that sent them, in the mean.
    pub response_calls: f64,
    /// TCP's smoothed round trip time as each response left. An acknowledgement that waits for
    /// the client's next request has the client's own time in it, up to 40 ms.
    pub path_rtt_ns: Reading<TimesNs>,
    /// TCP's least round trip time of the last minutes as each response left.
    pub path_least_rtt_ns: Reading<TimesNs>,
    /// From the request's last byte being readable to its being read: waiting for the server.
    pub queueing_ns: Reading<TimesNs>,
    /// Of it, where the request woke the reader up: from being woken up to running.
    pub wakeup_ns: Reading<TimesNs>,
    /// From the request's being read to the first byte of the response being sent.
    pub service_ns: TimesNs,
    /// Exchanges whose response was timed by the end of the call that sent it, as it is on Unix
    /// sockets: waking up the client on this host is in the service then.
    pub timed_by_call: u64,
    /// The network's share of path, queueing and service, means: from the least round trip.
    pub network_share_low: Reading<f64>,
    /// The same from the smoothed one.
    pub network_share_high: Reading<f64>,
}

/// A distribution of times, nanoseconds. Quantiles are the middles of buckets, 16 to each power
/// of two: at most 3% off.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimesNs {
    /// How many, 1 or more.
    pub count: u64,
    pub mean: f64,
    /// Half were no longer.
    pub p50: u64,
    /// 90%; `None` of less than 10.
    pub p90: Option<u64>,
    /// 99%; `None` of less than 100.
    pub p99: Option<u64>,
}

/// What watching cost the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Every program that was to be attached.
    pub programs: Vec<ProgramStatus>,
    /// Time in all of them.
    pub programs_ns: Reading<Nanos>,
    /// The same by exchange.
    pub ns_per_exchange: Reading<f64>,
    /// Of the time of the CPU on which they took most, the share, 0 to 1.
    pub busiest_cpu_share: Reading<f64>,
    /// What no CPU was to lose more of; absent where all was to be observed.
    pub budget_share: Reading<f64>,
}
