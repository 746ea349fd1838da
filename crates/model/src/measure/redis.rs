//! `measure redis`: the request and the result.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BothCpu, BothEvidence, Common, End, Floor, Interval, Placement, Quantiles, ServedInterval,
    TlsRun, TlsSpec, Transport, Wait,
};
use crate::{Nanos, Warning};

/// `measure redis`: commands of Redis' protocol, RESP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedisSpec {
    /// What every kind is asked; its target is the URL without a password.
    pub common: Common,
    /// Sent in turn on each thread; `{key}` stands for a number below `keys`, `{data}` for a value
    /// of `data_bytes`.
    pub commands: Vec<String>,
    /// How many keys `{key}` draws from.
    pub keys: u64,
    /// The length of `{data}`.
    pub data_bytes: u64,
    /// How TLS is spoken, with `rediss`.
    #[serde(default)]
    pub tls: TlsSpec,
    /// A `netwright serve` on the server's host that tells what its CPUs did: HOST:PORT.
    #[serde(default)]
    pub responder: Option<String>,
    /// Connections at once, one run each.
    pub flows: Vec<u32>,
    /// Commands outstanding on each connection; 1 is no pipelining.
    pub pipeline: u32,
    /// Each command on a connection of its own.
    pub new_connections: bool,
    /// Commands a second over all connections, by schedule (open loop); `None` sends the next
    /// command on the last one's reply (closed loop).
    pub rate_per_s: Option<u64>,
    /// So many commands in all instead of a duration.
    pub requests: Option<u64>,
    /// When a command, or a connection being made, counts as failed.
    pub timeout_ns: Nanos,
    /// The length of [`ServedInterval`]s; a second where none was asked for.
    #[serde(default)]
    pub interval_ns: Option<Nanos>,
}

/// The document of `measure redis --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RedisDocument {
    /// Version of the document's shape.
    pub schema_version: u32,
    /// What the document is: always `redis`.
    pub kind: String,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// Everything needed to run it again, but for a password.
    pub request: RedisSpec,
    pub local: End,
    /// The server: its version as `INFO` says, and its address.
    pub peer: End,
    /// What the generator itself costs.
    pub floor: Floor,
    /// One run for each number of connections.
    pub runs: Vec<RedisRun>,
    /// Whether it was ended early.
    pub interrupted: bool,
}

/// One run of commands.
///
/// A command counts for the moment its reply was whole (closed loop) or the one that the schedule
/// gave it (open loop).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RedisRun {
    /// What carried the bytes.
    pub transport: Transport,
    pub clients: u32,
    /// Threads at this end.
    pub threads: u32,
    /// Commands outstanding on each connection.
    pub pipeline: u32,
    /// Whether each command had a connection of its own.
    pub new_connections: bool,
    /// How this end waited.
    pub wait: Wait,
    /// Where this end ran.
    pub placement: Placement,
    pub window_ns: Nanos,
    /// Warm-up and cool-down around it.
    pub trimmed_ns: Nanos,
    /// Commands with a whole reply within the window that is no error.
    pub transactions: u64,
    /// Answered commands per second of the window.
    pub transactions_per_s: f64,
    pub transactions_per_s_interval: Option<Interval>,
    /// Open loop: what was asked for.
    pub target_per_s: Option<u64>,
    /// From sending the command until its reply is whole; with a schedule, from its time. With new
    /// connections it includes making the connection, TLS's handshake and `AUTH`.
    pub latency_ns: Quantiles,
    /// The median with its interval.
    pub latency_p50_interval_ns: Option<Interval>,
    /// Open loop: the same from the moment of sending.
    pub latency_from_send_ns: Option<Quantiles>,
    /// Open loop: how long after its time each command was sent.
    pub send_lag_ns: Option<Quantiles>,
    /// From the call of `connect` until the server has answered `AUTH`, `SELECT` (where they are
    /// sent) and `PING`.
    pub connect_ns: Quantiles,
    /// With `rediss`: the TLS handshake.
    pub tls_handshake_ns: Option<Quantiles>,
    /// With `rediss`: what was agreed on.
    pub tls: Option<TlsRun>,
    /// Commands that got an error, or no whole reply.
    pub failed: u64,
    /// The same by what happened; of an error reply the first one of its code.
    pub failures: BTreeMap<String, u64>,
    /// Connections that the server ended between replies, and that were made anew.
    pub reconnects: u64,
    /// Connections that were there again within the window. 0 with new connections.
    pub reopened: u64,
    /// Time of the window that connections were not there, summed over all. `None` with new
    /// connections: their latency includes it.
    pub disconnected_ns: Option<Nanos>,
    /// Open loop: commands due before the window's end that no connection was free for.
    pub not_started: u64,
    /// Open loop: how far behind its schedule it was at the end.
    pub schedule_lag_ns: Option<Nanos>,
    /// Commands without an end when the run ended.
    pub unfinished: u64,
    /// Bytes of the commands that those reply to.
    pub request_bytes: u64,
    /// Bytes of the replies that count.
    pub response_bytes: u64,
    /// Calls of the window that received something.
    pub receives: u64,
    /// CPU at both ends.
    pub cpu: BothCpu,
    /// Kernel counters that moved.
    pub evidence: BothEvidence,
    /// Every whole interval of the window.
    pub intervals: Vec<ServedInterval>,
    /// What to know before trusting the figures.
    pub warnings: Vec<Warning>,
}
