//! The result of `measure connect`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BothCpu, BothEvidence, Close, ConnectSpec, End, Floor, Interval, Placement, Quantiles,
    Transport, Wait,
};
use crate::{Nanos, Reading, Warning};

/// The document of `measure connect --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectDocument {
    /// Version of the document's shape.
    pub schema_version: u32,
    /// Kind of the document: always `connect`.
    pub kind: String,
    /// Start of the run, seconds since 1970.
    pub started_unix_s: u64,
    /// All parameters that are needed to repeat the run.
    pub request: ConnectSpec,
    pub local: End,
    pub peer: End,
    /// Cost of the generator itself.
    pub floor: Floor,
    /// One run for each number of flows.
    pub runs: Vec<ConnectRun>,
    /// Whether the run was ended early.
    pub interrupted: bool,
}

/// One run of connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectRun {
    /// How the two ends were connected.
    pub transport: Transport,
    /// Connections that are attempted at the same time, at most.
    pub flows: u32,
    /// Threads of the client.
    pub threads: u32,
    /// Bytes of the request on each connection.
    pub request_bytes: u64,
    /// Bytes of the response on each connection.
    pub response_bytes: u64,
    pub close: Close,
    /// Wait mode of the client.
    pub wait: Wait,
    /// Wait mode of the server.
    pub peer_wait: Wait,
    /// Placement of both ends.
    pub placement: Placement,
    pub window_ns: Nanos,
    /// Warm-up and cool-down around the window.
    pub trimmed_ns: Nanos,
    /// Connections completed within the window, with their request where there is one.
    pub connections: u64,
    /// Connections per second of the window.
    pub connections_per_s: f64,
    pub connections_per_s_interval: Option<Interval>,
    /// From the call of `connect` until the connection is established; in open loop, from the
    /// scheduled time.
    pub connect_ns: Quantiles,
    /// From the same moment until the first byte of the response.
    pub first_byte_ns: Option<Quantiles>,
    /// Open loop: send lag of each attempt, from its scheduled time to its start.
    pub start_lag_ns: Option<Quantiles>,
    /// Failed attempts, by the kernel's error.
    pub failed: BTreeMap<String, u64>,
    /// Connections that the client established in all, warm-up and cool-down included.
    pub established_in_all: u64,
    /// Connections that the server accepted in all.
    pub peer_accepted_in_all: Reading<u64>,
    /// Local ports and the connection rate that they allow.
    pub ports: Reading<PortBudget>,
    /// CPU at both ends.
    pub cpu: BothCpu,
    /// Kernel counters that changed.
    pub evidence: BothEvidence,
    /// Limits on the trust in the figures.
    pub warnings: Vec<Warning>,
}

/// Connections per second that the local ports allow towards one address and port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortBudget {
    /// Ports of `net.ipv4.ip_local_port_range` without the reserved ones.
    pub ports: u64,
    /// Local addresses that connections are made from.
    pub addresses: u64,
    /// Time that a port stays in use after the client closed first: 60 s of TIME_WAIT, or less
    /// where `net.ipv4.tcp_tw_reuse` applies.
    pub kept_ns: Nanos,
    /// Connections in TIME_WAIT on this host when the run began.
    pub time_wait_before: u64,
    /// Connections in TIME_WAIT on this host when the run ended.
    pub time_wait_after: u64,
    /// Sustainable connections per second when each leaves a TIME_WAIT on the client: `ports *
    /// addresses` per `kept_ns`.
    pub sustained_per_s: f64,
}
