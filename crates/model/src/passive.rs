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
    /// Kind of the document: always `explain-passive`.
    pub kind: String,
    /// Start of the observation, seconds since 1970.
    pub started_unix_s: u64,
    /// The TCP ports asked for (`--port`); empty where processes were.
    pub ports: Vec<u16>,
    /// The process ids asked for (`--pid`); empty where ports were.
    pub pids: Vec<u32>,
    /// Length of the observation.
    pub window_ns: Nanos,
    /// Share of that time in which calls were observed, 0 to 1: observing more would have cost too
    /// much. All counts are from that share; rates are per second of it.
    pub observed_share: f64,
    /// Connections by service, most exchanges first.
    pub classes: Vec<ConnectionClass>,
    pub cost: Cost,
    /// Limits on the trust in the figures.
    pub warnings: Vec<Warning>,
    /// Whether the observation was ended early.
    pub interrupted: bool,
}

/// Connections that one program serves on one port. An exchange is a request and its response; a
/// receive after a send begins the next exchange.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionClass {
    /// The server's port; absent for a Unix socket.
    pub port: Reading<u16>,
    /// Transport: `tcp` or `unix`.
    pub transport: String,
    /// The program's short name.
    pub process: String,
    /// The serving processes, ascending.
    pub pids: Vec<u32>,
    pub exchanges: u64,
    /// Exchanges per second over the whole window: the count of each second is scaled by the
    /// observed share of that second.
    pub exchanges_per_s: f64,
    /// Mean bytes of a request.
    pub request_bytes: f64,
    /// Mean bytes sent in response to a request.
    pub response_bytes: f64,
    /// Mean number of calls that sent them.
    pub response_calls: f64,
    /// TCP's smoothed round trip time when each response was sent. A delayed acknowledgement, which
    /// waits for the client's next request, adds up to 40 ms of the client's own time.
    pub path_rtt_ns: Reading<TimesNs>,
    /// TCP's minimum round trip time of the last minutes when each response was sent.
    pub path_least_rtt_ns: Reading<TimesNs>,
    /// Queueing: from the moment when the last byte of the request is readable until the server
    /// reads it.
    pub queueing_ns: Reading<TimesNs>,
    /// Of it, where the request woke the reader: from the wake-up until the reader runs.
    pub wakeup_ns: Reading<TimesNs>,
    /// Service: from reading the request until sending the first byte of the response.
    pub service_ns: TimesNs,
    /// Exchanges whose response was timed at the end of the call that sent it, as on Unix sockets:
    /// the service time then includes waking up the client on this host.
    pub timed_by_call: u64,
    /// The network's share of path, queueing and service, from means, with the minimum round trip.
    pub network_share_low: Reading<f64>,
    /// The same with the smoothed round trip.
    pub network_share_high: Reading<f64>,
}

/// A distribution of times, nanoseconds. Quantiles are midpoints of buckets, 16 per power of two;
/// the error is at most 3%.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimesNs {
    /// Number of values, 1 or more.
    pub count: u64,
    /// The arithmetic mean of all values.
    pub mean: f64,
    /// The 50% quantile, the median.
    pub p50: u64,
    /// The 90% quantile; `None` with less than 10 values.
    pub p90: Option<u64>,
    /// The 99% quantile; `None` with less than 100 values.
    pub p99: Option<u64>,
}

/// Cost of the observation for the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Every eBPF program that was to be attached.
    pub programs: Vec<ProgramStatus>,
    /// Time in all programs.
    pub programs_ns: Reading<Nanos>,
    /// The same per exchange.
    pub ns_per_exchange: Reading<f64>,
    /// Their share of CPU time on the CPU on which they took most, 0 to 1.
    pub busiest_cpu_share: Reading<f64>,
    /// Upper limit of that share for every CPU; absent where all calls were to be observed.
    pub budget_share: Reading<f64>,
}
