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
    /// Parameters common to all measurements; its target is the server that all the URLs name.
    pub common: Common,
    /// URLs, requested cyclically on each thread: `http://HOST[:PORT]/PATH` or `https://…`, all of
    /// one server.
    pub urls: Vec<String>,
    /// TLS parameters, with `https`.
    #[serde(default)]
    pub tls: TlsSpec,
    /// A `netwright serve` on the server's host that reports the CPU use of that host: HOST:PORT.
    #[serde(default)]
    pub responder: Option<String>,
    /// Method of every request, such as `GET`.
    pub method: String,
    /// Additional header lines: `Name: value`. One of the same name replaces Netwright's own
    /// (`Host`, `User-Agent`, `Accept`).
    pub headers: Vec<String>,
    /// The body of each request.
    pub body: Option<String>,
    /// A file with the body, instead of `body`.
    pub body_file: Option<String>,
    /// Concurrent connections, one run each.
    pub flows: Vec<u32>,
    /// Requests outstanding on each connection; 1 is no pipelining.
    pub pipeline: u32,
    /// Whether each request has its own connection.
    pub new_connections: bool,
    /// Requests per second over all connections (open loop). `None` sends the next request after
    /// the last response (closed loop).
    pub rate_per_s: Option<u64>,
    /// Total number of requests, instead of a duration.
    pub requests: Option<u64>,
    /// Time after which a request, or a connection attempt, counts as failed.
    pub timeout_ns: Nanos,
    /// The length of [`ServedInterval`]s; one second by default.
    #[serde(default)]
    pub interval_ns: Option<Nanos>,
}

impl HttpSpec {
    /// Whether TLS is used: the first URL, and so every URL, has the scheme `https`.
    pub fn is_tls(&self) -> bool {
        let scheme = self.urls.first().and_then(|u| u.split_once("://")).map(|(s, _)| s);
        scheme.is_some_and(|s| s.eq_ignore_ascii_case("https"))
    }
}

/// TLS parameters of the connections to a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TlsSpec {
    /// A PEM file whose certificates are trusted instead of the system's.
    pub ca: Option<String>,
    /// Whether any certificate is accepted.
    pub insecure: bool,
    /// Whether connections resume the session of an earlier one; otherwise every handshake is full.
    pub resume: bool,
}

/// TLS between the two ends of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TlsRun {
    /// Version, such as `TLS 1.3`; of the first connection, as is the cipher.
    pub version: String,
    /// IANA's name of the cipher suite: `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// Whether the server's certificate was checked.
    pub verified: bool,
    /// Handshakes that are in `tls_handshake_ns`.
    pub handshakes: u64,
    /// Handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Mean nanoseconds that the client takes to encrypt and decrypt per request or transaction,
    /// handshakes excluded; absent where the driver does not report it.
    #[serde(default)]
    pub cipher_per_unit_ns: Option<u64>,
}

/// The document of `measure http --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HttpDocument {
    /// Version of the document's shape.
    pub schema_version: u32,
    /// Kind of the document: always `http`.
    pub kind: String,
    /// Start of the run, seconds since 1970.
    pub started_unix_s: u64,
    /// All parameters that are needed to repeat the run.
    pub request: HttpSpec,
    pub local: End,
    /// The server: its name (the header `Server`) and its address. An HTTP server reports nothing
    /// else of its identity.
    pub peer: End,
    /// Cost of the generator itself.
    pub floor: Floor,
    /// One run for each number of connections.
    pub runs: Vec<HttpRun>,
    /// Whether the run was ended early.
    pub interrupted: bool,
}

/// One run of HTTP requests.
///
/// A request counts at the time when its response was complete (closed loop) or at its scheduled
/// time (open loop).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HttpRun {
    /// How the client was connected to the server.
    pub transport: Transport,
    /// Connections at the same time.
    pub clients: u32,
    /// Threads of the client.
    pub threads: u32,
    /// Requests outstanding on each connection.
    pub pipeline: u32,
    /// Whether each request had its own connection.
    pub new_connections: bool,
    /// Wait mode of the client.
    pub wait: Wait,
    /// Placement of the client.
    pub placement: Placement,
    pub window_ns: Nanos,
    /// Warm-up and cool-down around the window.
    pub trimmed_ns: Nanos,
    /// Requests with a complete response within the window, whatever its status. The times also
    /// include requests that were scheduled within the window and ended after it.
    pub transactions: u64,
    /// Answered requests per second of the window.
    pub transactions_per_s: f64,
    pub transactions_per_s_interval: Option<Interval>,
    /// Open loop: the requested rate.
    pub target_per_s: Option<u64>,
    /// From sending the request until its response is complete; in open loop, from the scheduled
    /// time. With new connections it includes connecting and the TLS handshake.
    pub latency_ns: Quantiles,
    /// The median with its confidence interval.
    pub latency_p50_interval_ns: Option<Interval>,
    /// Open loop: service latency, from the moment of sending. It hides the time that the generator
    /// or the server kept requests waiting.
    pub latency_from_send_ns: Option<Quantiles>,
    /// Open loop: send lag of each request.
    pub send_lag_ns: Option<Quantiles>,
    /// From the same moment as `latency_ns` until the first byte of the response.
    pub first_byte_ns: Quantiles,
    /// From the call of `connect` until the connection is established. With new connections, those
    /// of the window; otherwise all, warm-up included.
    pub connect_ns: Quantiles,
    /// With `https`: from then until the TLS handshake is complete and a request can be sent.
    #[serde(default)]
    pub tls_handshake_ns: Option<Quantiles>,
    /// With `https`: the negotiated parameters; `None` where no handshake was completed.
    #[serde(default)]
    pub tls: Option<TlsRun>,
    /// Responses by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a complete response.
    pub failed: u64,
    /// The same by cause.
    pub failures: BTreeMap<String, u64>,
    /// Reconnects after the server closed a connection between responses, as it may. Requests in
    /// flight after its last response are repeated and count once.
    pub reconnects: u64,
    /// Reconnects completed within the window, after the server had closed the connection or a
    /// request had failed on it. 0 with new connections.
    #[serde(default)]
    pub reopened: u64,
    /// Time of the window in which connections were down until they were reconnected, TLS included,
    /// summed over all connections. No request's latency includes it. `None` with new connections:
    /// their latency includes it.
    #[serde(default)]
    pub disconnected_ns: Option<Nanos>,
    /// Open loop: requests scheduled before the end of the window for which no connection became
    /// free until the end of the run. The times leave them out.
    pub not_started: u64,
    /// Open loop: schedule lag at the end of the run. It grows where the rate is higher than the
    /// server's capacity. `None` in closed loop and where it is not reported.
    #[serde(default)]
    pub schedule_lag_ns: Option<Nanos>,
    /// Requests still outstanding when the run ended.
    pub unfinished: u64,
    /// Bytes of the answered requests, headers included; with several URLs, by their mean length.
    #[serde(default)]
    pub request_bytes: u64,
    /// Bytes of the counted responses, headers included.
    pub response_bytes: u64,
    /// Calls within the window that received data.
    #[serde(default)]
    pub receives: u64,
    /// CPU at both ends.
    pub cpu: BothCpu,
    /// Kernel counters that changed.
    pub evidence: BothEvidence,
    /// Every complete interval of the window.
    #[serde(default)]
    pub intervals: Vec<ServedInterval>,
    /// Limits on the trust in the figures.
    pub warnings: Vec<Warning>,
}
