//! `measure http`: the request and the result.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BothCpu, BothEvidence, Common, End, Floor, Interval, Placement, Quantiles, ServedInterval,
    Transport, Wait,
};
use crate::{Nanos, Warning};

/// `measure http`: HTTP/1.1 requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpSpec {
    /// What every kind is asked; its target is the server that all the URLs name.
    pub common: Common,
    /// Asked for in turn on each thread: `http://HOST[:PORT]/PATH` or `https://…`, of one server.
    pub urls: Vec<String>,
    /// How TLS is spoken, with `https`.
    #[serde(default)]
    pub tls: TlsSpec,
    /// A `netwright serve` on the server's host that tells what its CPUs did: HOST:PORT.
    #[serde(default)]
    pub responder: Option<String>,
    /// Method of every request, such as `GET`.
    pub method: String,
    /// Header lines beside our own: `Name: value`. One of ours (`Host`, `User-Agent`, `Accept`)
    /// gives way to one of the same name.
    pub headers: Vec<String>,
    /// The body of each request.
    pub body: Option<String>,
    /// A file that holds the body instead.
    pub body_file: Option<String>,
    /// Connections at once, one run each.
    pub flows: Vec<u32>,
    /// Requests outstanding on each connection; 1 is no pipelining.
    pub pipeline: u32,
    /// Each request on a connection of its own.
    pub new_connections: bool,
    /// Requests a second over all connections, by schedule (open loop); `None` sends the next
    /// request on the last one's response (closed loop).
    pub rate_per_s: Option<u64>,
    /// So many requests in all instead of a duration.
    pub requests: Option<u64>,
    /// When a request, or a connection being made, counts as failed.
    pub timeout_ns: Nanos,
    /// The length of [`ServedInterval`]s; a second where none was asked for.
    #[serde(default)]
    pub interval_ns: Option<Nanos>,
}

impl HttpSpec {
    /// Whether TLS is spoken: the first URL, and with it all, says `https`.
    pub fn is_tls(&self) -> bool {
        let scheme = self.urls.first().and_then(|u| u.split_once("://")).map(|(s, _)| s);
        scheme.is_some_and(|s| s.eq_ignore_ascii_case("https"))
    }
}

/// How TLS is spoken to a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TlsSpec {
    /// A PEM file whose certificates are trusted instead of the system's.
    pub ca: Option<String>,
    /// Whether any certificate will do.
    pub insecure: bool,
    /// Whether connections take up the session of an earlier one; else every handshake is whole.
    pub resume: bool,
}

/// What TLS was, between the two ends of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TlsRun {
    /// `TLS 1.3`; of the first connection, as is the cipher.
    pub version: String,
    /// IANA's name of the cipher suite: `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// Whether the server's certificate was checked.
    pub verified: bool,
    /// Handshakes, those that `tls_handshake_ns` has.
    pub handshakes: u64,
    /// How many of them took up an earlier session.
    pub resumed: u64,
    /// Nanoseconds that this end takes to encrypt and decrypt by request or transaction, in the
    /// mean, no handshake; absent where the driver does not tell.
    #[serde(default)]
    pub cipher_per_unit_ns: Option<u64>,
}

/// The document of `measure http --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HttpDocument {
    /// Version of the document's shape.
    pub schema_version: u32,
    /// What the document is: always `http`.
    pub kind: String,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// Everything needed to run it again.
    pub request: HttpSpec,
    pub local: End,
    /// The server: what it calls itself (its header `Server`), and its address. What else it is
    /// no server tells.
    pub peer: End,
    /// What the generator itself costs.
    pub floor: Floor,
    /// One run for each number of connections.
    pub runs: Vec<HttpRun>,
    /// Whether it was ended early.
    pub interrupted: bool,
}

/// One run of HTTP requests.
///
/// A request counts for the moment its response was whole (closed loop) or the one that the
/// schedule gave it (open loop).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HttpRun {
    /// What carried the bytes.
    pub transport: Transport,
    pub clients: u32,
    /// Threads at this end.
    pub threads: u32,
    /// Requests outstanding on each connection.
    pub pipeline: u32,
    /// Whether each request had a connection of its own.
    pub new_connections: bool,
    /// How this end waited.
    pub wait: Wait,
    /// Where this end ran.
    pub placement: Placement,
    pub window_ns: Nanos,
    /// Warm-up and cool-down around it.
    pub trimmed_ns: Nanos,
    /// Requests with a whole response within the window, whatever its status. The times also have
    /// those that were due within it by schedule and ended after it.
    pub transactions: u64,
    /// Answered requests per second of the window.
    pub transactions_per_s: f64,
    pub transactions_per_s_interval: Option<Interval>,
    /// Open loop: what was asked for.
    pub target_per_s: Option<u64>,
    /// From sending the request until its response is whole; with a schedule, from its time.
    /// With new connections it includes making the connection, and TLS's handshake.
    pub latency_ns: Quantiles,
    /// The median with its interval.
    pub latency_p50_interval_ns: Option<Interval>,
    /// Open loop: the same from the moment of sending, which hides what the generator or the
    /// server kept waiting.
    pub latency_from_send_ns: Option<Quantiles>,
    /// Open loop: how long after its time each request was sent.
    pub send_lag_ns: Option<Quantiles>,
    /// From the same moment as `latency_ns` until the response's first byte.
    pub first_byte_ns: Quantiles,
    /// From the call of `connect` until it is established. With new connections those of the
    /// window; else all, warm-up included.
    pub connect_ns: Quantiles,
    /// With `https`: from then until the TLS handshake is done and a request may be sent.
    #[serde(default)]
    pub tls_handshake_ns: Option<Quantiles>,
    /// With `https`: what was agreed on; `None` before a handshake was done.
    #[serde(default)]
    pub tls: Option<TlsRun>,
    /// Responses by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests that got no whole response.
    pub failed: u64,
    /// The same by what happened.
    pub failures: BTreeMap<String, u64>,
    /// Connections that the server ended between responses, as it may, and that were made anew.
    /// Requests in flight after its last response are retransmitted and count once.
    pub reconnects: u64,
    /// Connections that were there again within the window, after the server had ended them or a
    /// request had failed on them. 0 with new connections.
    #[serde(default)]
    pub reopened: u64,
    /// Time of the window that connections were not there: until they were made anew, TLS
    /// included, summed over all of them. No request's latency has it. `None` with new connections,
    /// whose latency it is a part of.
    #[serde(default)]
    pub disconnected_ns: Option<Nanos>,
    /// Open loop: requests due before the window's end that no connection was free for until the
    /// end of the run; the times leave them out.
    pub not_started: u64,
    /// Open loop: how far behind its schedule it was at the end; it grows where the rate is more
    /// than the server answers. `None` in closed loop and where it is not reported.
    #[serde(default)]
    pub schedule_lag_ns: Option<Nanos>,
    /// Requests without an end when the run ended.
    pub unfinished: u64,
    /// Bytes of the requests that those answer, heads included; of several URLs by their mean length.
    #[serde(default)]
    pub request_bytes: u64,
    /// Bytes of the responses that count, heads included.
    pub response_bytes: u64,
    /// Calls of the window that received something.
    #[serde(default)]
    pub receives: u64,
    /// CPU at both ends.
    pub cpu: BothCpu,
    /// Kernel counters that moved.
    pub evidence: BothEvidence,
    /// Every whole interval of the window.
    #[serde(default)]
    pub intervals: Vec<ServedInterval>,
    /// What to know before trusting the figures.
    pub warnings: Vec<Warning>,
}
