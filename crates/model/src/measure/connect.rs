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
    /// What the document is: always `connect`.
    pub kind: String,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// Everything needed to run it again.
    pub request: ConnectSpec,
    pub local: End,
    pub peer: End,
    /// What the generator itself costs.
    pub floor: Floor,
    /// One run for each number of flows.
    pub runs: Vec<ConnectRun>,
    /// Whether it was ended early.
    pub interrupted: bool,
}

/// One run of connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectRun {
    /// What carried the bytes.
    pub transport: Transport,
    /// Connections being made at once.
    pub flows: u32,
    /// Threads at this end.
    pub threads: u32,
    /// Bytes of the request on each.
    pub request_bytes: u64,
    /// Bytes of the response on each.
    pub response_bytes: u64,
    pub close: Close,
    /// How this end waited.
    pub wait: Wait,
    /// How the server waited.
    pub peer_wait: Wait,
    /// Where both ends ran.
    pub placement: Placement,
    pub window_ns: Nanos,
    /// Warm-up and cool-down around it.
    pub trimmed_ns: Nanos,
    /// Connections completed within the window, with their request if there is one.
    pub connections: u64,
    /// Connections per second of the window.
    pub connections_per_s: f64,
    pub connections_per_s_interval: Option<Interval>,
    /// From the call of `connect` until it is established; with a schedule, from its time.
    pub connect_ns: Quantiles,
    /// From the same moment until the response's first byte.
    pub first_byte_ns: Option<Quantiles>,
    /// With a schedule: how long after its time each attempt began.
    pub start_lag_ns: Option<Quantiles>,
    /// Attempts that failed, by what the kernel said.
    pub failed: BTreeMap<String, u64>,
    /// Connections established at this end in all, warm-up and cool-down included.
    pub established_in_all: u64,
    /// Connections that the server accepted in all.
    pub peer_accepted_in_all: Reading<u64>,
    /// Local ports and what they allow.
    pub ports: Reading<PortBudget>,
    /// CPU at both ends.
    pub cpu: BothCpu,
    /// Kernel counters that moved.
    pub evidence: BothEvidence,
    /// What to know before trusting the figures.
    pub warnings: Vec<Warning>,
}

/// How many connections a second the local ports allow towards one address and port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortBudget {
    /// Ports of `net.ipv4.ip_local_port_range` without the reserved ones.
    pub ports: u64,
    /// Local addresses that connections are made from.
    pub addresses: u64,
    /// How long a port stays taken after this end closed first: 60 s of TIME_WAIT, or less
    /// where `net.ipv4.tcp_tw_reuse` applies.
    pub kept_ns: Nanos,
    /// Connections in TIME_WAIT on this host when the run began.
    pub time_wait_before: u64,
    /// And when it ended.
    pub time_wait_after: u64,
    /// Connections a second that may go on for ever when each leaves a TIME_WAIT here:
    /// `ports * addresses` in `kept_ns`.
    pub sustained_per_s: f64,
}
