//! `measure redis`: the request and the result.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BothCpu, BothEvidence, Common, End, Floor, Interval, Placement, Quantiles, ServedInterval,
    TlsRun, TlsSpec, Transport, Wait,
};
use crate::{Nanos, Warning};

/// `measure redis`: commands of the Redis protocol, RESP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedisSpec {
    /// Parameters common to all measurements; its target is the URL without the password.
    pub common: Common,
    /// Commands, sent cyclically on each thread; `{key}` stands for a number below `keys`, `{data}`
    /// for a value of `data_bytes`.
    pub commands: Vec<String>,
    /// Number of keys that `{key}` draws from.
    pub keys: u64,
    /// The length of `{data}`.
    pub data_bytes: u64,
    /// TLS parameters, with `rediss`.
    #[serde(default)]
    pub tls: TlsSpec,
    /// A `netwright serve` on the server's host that reports the CPU use of that host: HOST:PORT.
    #[serde(default)]
    pub responder: Option<String>,
    /// Concurrent connections, one run each.
    pub flows: Vec<u32>,
    /// Commands outstanding on each connection; 1 is no pipelining.
    pub pipeline: u32,
    /// Whether each command has its own connection.
    pub new_connections: bool,
    /// Commands per second over all connections (open loop). `None` sends the next command after
    /// the last reply (closed loop).
    pub rate_per_s: Option<u64>,
    /// Total number of commands, instead of a duration.
    pub requests: Option<u64>,
    /// Time after which a command, or a connection attempt, counts as failed.
    pub timeout_ns: Nanos,
    /// The length of [`ServedInterval`]s; one second by default.
    #[serde(default)]
    pub interval_ns: Option<Nanos>,
}

/// The document of `measure redis --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RedisDocument {
    /// Version of the document's shape.
    pub schema_version: u32,
    /// Kind of the document: always `redis`.
    pub kind: String,
    /// Start of the run, seconds since 1970.
    pub started_unix_s: u64,
    /// All parameters that are needed to repeat the run, except a password.
    pub request: RedisSpec,
    pub local: End,
    /// The server: the version that `INFO` reports, and its address.
    pub peer: End,
    /// Cost of the generator itself.
    pub floor: Floor,
    /// One run for each number of connections.
    pub runs: Vec<RedisRun>,
    /// Whether the run was ended early.
    pub interrupted: bool,
}

/// One run of commands.
///
/// A command counts at the time when its reply was complete (closed loop) or at its scheduled time
/// (open loop).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RedisRun {
    /// How the client was connected to the server.
    pub transport: Transport,
    /// Connections at the same time.
    pub clients: u32,
    /// Threads of the client.
    pub threads: u32,
    /// Commands outstanding on each connection.
    pub pipeline: u32,
    /// Whether each command had its own connection.
    pub new_connections: bool,
    /// Wait mode of the client.
    pub wait: Wait,
    /// Placement of the client.
    pub placement: Placement,
    pub window_ns: Nanos,
    /// Warm-up and cool-down around the window.
    pub trimmed_ns: Nanos,
    /// Commands with a complete reply within the window that is not an error.
    pub transactions: u64,
    /// Answered commands per second of the window.
    pub transactions_per_s: f64,
    pub transactions_per_s_interval: Option<Interval>,
    /// Open loop: the requested rate.
    pub target_per_s: Option<u64>,
    /// From sending the command until its reply is complete; in open loop, from the scheduled time.
    /// With new connections it includes connecting, the TLS handshake and `AUTH`.
    pub latency_ns: Quantiles,
    /// The median with its confidence interval.
    pub latency_p50_interval_ns: Option<Interval>,
    /// Open loop: service latency, from the moment of sending.
    pub latency_from_send_ns: Option<Quantiles>,
    /// Open loop: send lag of each command.
    pub send_lag_ns: Option<Quantiles>,
    /// From the call of `connect` until the server has answered `AUTH`, `SELECT` (where they are
    /// sent) and `PING`.
    pub connect_ns: Quantiles,
    /// With `rediss`: the TLS handshake.
    pub tls_handshake_ns: Option<Quantiles>,
    /// With `rediss`: the negotiated parameters.
    pub tls: Option<TlsRun>,
    /// Commands with an error reply, or without a complete reply.
    pub failed: u64,
    /// The same by cause; for error replies, the first one of each code.
    pub failures: BTreeMap<String, u64>,
    /// Reconnects after the server closed the connection between replies.
    pub reconnects: u64,
    /// Reconnects completed within the window. 0 with new connections.
    pub reopened: u64,
    /// Time of the window in which connections were down, summed over all connections. `None` with
    /// new connections: their latency includes it.
    pub disconnected_ns: Option<Nanos>,
    /// Open loop: commands scheduled before the end of the window for which no connection became
    /// free.
    pub not_started: u64,
    /// Open loop: schedule lag at the end of the run.
    pub schedule_lag_ns: Option<Nanos>,
    /// Commands still outstanding when the run ended.
    pub unfinished: u64,
    /// Bytes of the answered commands.
    pub request_bytes: u64,
    /// Bytes of the counted replies.
    pub response_bytes: u64,
    /// Calls within the window that received data.
    pub receives: u64,
    /// CPU at both ends.
    pub cpu: BothCpu,
    /// Kernel counters that changed.
    pub evidence: BothEvidence,
    /// Every complete interval of the window.
    pub intervals: Vec<ServedInterval>,
    /// Limits on the trust in the figures.
    pub warnings: Vec<Warning>,
}
