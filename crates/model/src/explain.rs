//! The result of `explain`: the components of a workload's response time, and predictions for other
//! paths and numbers of clients.

mod disturbance;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use disturbance::{Disturbance, NetworkBeside, RoundSide};

use crate::{Nanos, Warning, measure::Quantiles};

/// The document of `explain --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainDocument {
    /// Version of the document's shape.
    pub schema_version: u32,
    /// What the document is: always `explain`.
    pub kind: String,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// What was explained: `rtt://HOST:PORT`, `http://HOST/PATH`, `pg://HOST/DATABASE`
    /// without its password.
    pub target: String,
    /// The server that the network was measured with.
    pub responder: String,
    /// What one transaction moves.
    pub exchange: Exchange,
    /// How many clients at once are explained.
    pub clients: u32,
    /// Rounds of the workload and of the network alone, interleaved.
    pub rounds: u32,
    /// The measured length of each.
    pub round_ns: Nanos,
    /// Parts of the time between two transactions of a client, which add up to it.
    pub components: Vec<Component>,
    pub sum: Sum,
    /// Response times of the workload beside those of the network alone.
    pub quantiles: SideBySide,
    /// The typical transaction with one client: what disturbs single ones does not move it. None
    /// where several scripts make transactions of several kinds: their median is of no kind.
    pub typical: Option<Typical>,
    /// The same by the naive estimate.
    pub naive: Naive,
    /// What a transaction takes of each place; the model is made of them.
    pub demands: Vec<Demand>,
    /// What was measured with which number of clients on this path, for the predictions.
    pub levels: Vec<Level>,
    /// From how many clients on the limiting place is busy all the time.
    pub knee_clients: Option<f64>,
    /// The place that limits throughput with many clients.
    pub limiting: Option<String>,
    /// What the paths that were asked for add to a transaction.
    #[serde(default)]
    pub other_paths: Vec<OtherPath>,
    pub predictions: Vec<Prediction>,
    /// What would change it.
    pub what_if: Vec<WhatIf>,
    /// How far off the predictions were that could be held against a measurement.
    pub verified: Option<Verified>,
    /// What the server says that it spun in the mean before each response on purpose.
    pub injected_service_ns: Option<f64>,
    /// HTTP's responses by status, of all rounds; empty for other workloads.
    #[serde(default)]
    pub statuses: BTreeMap<u16, u64>,
    /// Rounds that came to nothing and were measured again, by why; no figure has them.
    #[serde(default)]
    pub left_out: BTreeMap<String, u32>,
    /// What to know before trusting the figures.
    pub warnings: Vec<Warning>,
    /// Whether it was ended early.
    pub interrupted: bool,
}

/// One transaction on the wire, as this end counted it: means over all rounds with one client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exchange {
    /// Bytes there, without headers.
    pub request_bytes: u64,
    /// Bytes of the response, without headers.
    pub response_bytes: u64,
    /// Messages there and back: sends and receives, rounded.
    pub messages: u32,
    /// How often this end sends and then waits for an answer.
    pub round_trips: f64,
    /// Calls that sent something.
    pub sends: f64,
    /// Calls that received something.
    pub receives: f64,
    /// Connections that were made anew because the server had ended the one before.
    #[serde(default)]
    pub new_connections: f64,
    /// Round trips that each of those takes before it can be asked, by the protocols: one of TCP, and
    /// one more under TLS 1.3, two under TLS 1.2. None where nobody knows, as of PostgreSQL's logins.
    #[serde(default)]
    pub connect_round_trips: Option<f64>,
}

/// Another path beside the measured one, by transaction with one client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherPath {
    /// As it was asked for: `rtt=80us`, `host=db1`.
    pub path: String,
    /// What its network alone takes longer; negative where it is faster.
    pub added_ns: f64,
    /// What the server takes longer because it has nothing to do for longer between two requests,
    /// beyond what the responder does: measured here with requests by schedule.
    pub idle_ns: f64,
    /// What it takes longer to make the connections anew that the server ends: each of their round trips
    /// (`connect_round_trips` of the exchange) as much as one of the network alone. None where there are such
    /// connections and nobody knows those; predictions have nothing of it then.
    #[serde(default)]
    pub reconnecting_ns: Option<f64>,
    /// CPU time of this host that the path takes beyond what this one does: a tunnel's process, a
    /// driver. With the most clients of `loads`; None where it was not measured.
    #[serde(default)]
    pub cpu_ns: Option<f64>,
    /// What became of a synthetic workload of the workload there: threads that compute for as long as the server
    /// does and send as much, at the other end of either path. Empty where only one client was
    /// asked for, or the path is told and not measured.
    #[serde(default)]
    pub loads: Vec<PathLoad>,
    /// How far `added_ns` and `idle_ns` together can be off: half of their 95% interval.
    #[serde(default)]
    pub margin_ns: f64,
    /// The workload here with a client that takes notice of each answer as much later as this path is
    /// slower: what becomes of the server there, locks held over round trips included, without the
    /// path's own CPU time. Empty where the client cannot, or the path is faster.
    #[serde(default)]
    pub delayed: Vec<Level>,
}

/// A synthetic workload of the workload on this path and on another one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathLoad {
    pub clients: u32,
    /// Its transactions a second here.
    pub this_path_per_s: f64,
    /// CPU time of its threads at both ends by transaction here, where it is known.
    pub this_path_cpu_ns: Option<f64>,
    /// Its transactions a second on the other path, where that was measured.
    pub other_path_per_s: Option<f64>,
    /// CPU time of this host that explains the difference, for a transaction, beside the path's
    /// delay, and no more than can be: what all of this host was busy with there, less its threads here.
    /// None where nobody tells what the rest takes.
    pub cpu_ns: Option<f64>,
    /// The same as it would have to be to explain all of the difference. More than `cpu_ns` is none
    /// that can be: something else made the synthetic workload slower there.
    #[serde(default)]
    pub fitted_cpu_ns: Option<f64>,
    /// Standard deviation of its rounds there, as a share.
    #[serde(default)]
    pub other_path_spread: Option<f64>,
    /// By how much, as a logarithm, `other_path_per_s` is missed with the CPU time that was found with the
    /// nearest other number of clients, or, without another, with half of it.
    #[serde(default)]
    pub held_out: Option<f64>,
}

/// A part of the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Component {
    /// `network`, `tls`, `service`, `server queueing`, `reconnecting`, `client`.
    pub name: String,
    pub about: String,
    /// The mean by transaction.
    pub ns: f64,
    /// The lower end of its 95% interval.
    pub low_ns: f64,
    pub high_ns: f64,
    /// Its share of the parts that are told, 0 to 1; null where it is not reported itself.
    pub share: Option<f64>,
    /// Whether it is told from zero: its interval lies above. A difference of two measurements may
    /// come out as nothing, or less, which no part of a time can be: then `ns` says nothing but
    /// that it lies within the interval.
    #[serde(default = "yes")]
    pub reported: bool,
}

fn yes() -> bool {
    true
}

/// The components held against the whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sum {
    /// The mean time between two transactions of a client, over all rounds.
    pub measured_ns: f64,
    pub sum_ns: f64,
    /// By how much the sum is off, as a share.
    pub error: f64,
    /// More than this is inconclusive.
    pub allowed: f64,
    /// Whether it adds up, and enough was measured.
    pub conclusive: bool,
    /// What disturbed it, or is known to have.
    pub disturbed: Vec<Disturbance>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideBySide {
    /// The workload's response time: the median over rounds of each round's quantile, but the mean is
    /// that of all transactions.
    pub workload_ns: Quantiles,
    pub network_ns: Quantiles,
}

/// Medians instead of means, with one client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Typical {
    pub network_ns: f64,
    /// The workload's median less the network's.
    pub service_ns: f64,
    /// The lower end of its 95% interval.
    pub low_ns: f64,
    pub high_ns: f64,
}

/// Service time by the naive estimate: `clients / rate - 2 one-way latencies`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Naive {
    /// Half of the network's round trip at the same number of clients.
    pub one_way_ns: f64,
    pub service_ns: f64,
}

/// What a transaction takes of a place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Demand {
    /// `client`, `server`, `path`; `server and path` where the server's CPU time is not known.
    pub place: String,
    /// How many work there at once; `None` for a delay.
    pub servers: Option<u32>,
    pub ns: f64,
    /// Where it comes from.
    pub source: String,
}

/// What was measured with a number of clients.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    pub clients: u32,
    /// Throughput of all clients, transactions per second.
    pub per_s: f64,
    /// The lowest and highest of its rounds.
    pub low_per_s: f64,
    pub high_per_s: f64,
    /// CPU time of this end's threads by transaction.
    pub client_cpu_ns: Option<f64>,
    /// CPU time of the server by transaction, where it is known.
    pub server_cpu_ns: Option<f64>,
    /// CPU time of this host by transaction, all that was busy, as `/proc/stat` has it.
    #[serde(default)]
    pub host_cpu_ns: Option<f64>,
    #[serde(default)]
    pub rounds: u32,
    /// Standard deviation of a round, as a share of the rate; None of a single one.
    #[serde(default)]
    pub spread: Option<f64>,
    /// CPUs of this host that neither client nor server kept busy meanwhile, where that is known.
    #[serde(default)]
    pub others_cpus: Option<f64>,
}

/// Throughput predicted for a path and a number of clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// `this`, `rtt=80 µs`, `none` (no network).
    pub path: String,
    pub clients: u32,
    /// Throughput of all clients, transactions per second.
    pub predicted_per_s: f64,
    /// The lower end of its 95% interval.
    pub low_per_s: f64,
    pub high_per_s: f64,
    /// The same by the naive estimate.
    pub naive_per_s: Option<f64>,
    /// What limits there: `path`, `server`, `client`.
    pub limiting: Option<String>,
    /// What was measured (`--verify`).
    pub measured_per_s: Option<f64>,
    /// By how much the prediction is off, as a share of the measured.
    pub error: Option<f64>,
    /// Whether it is none to rely on: it is made of parts that do not add up (`sum.conclusive`), or its
    /// interval is too wide.
    #[serde(default)]
    pub inconclusive: bool,
    /// Whether the path's CPU time in it is the most that it can be, because what was measured there
    /// would need more (`other_paths.loads.fitted_cpu_ns`).
    #[serde(default)]
    pub cpu_bounded: bool,
}

/// A change and what it would give.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// `no network`, `server CPUs doubled`.
    pub change: String,
    pub clients: u32,
    /// Throughput of all clients, transactions per second.
    pub predicted_per_s: f64,
    /// Times what it is now.
    pub factor: f64,
    /// Where only that much is known: whether it would be at most, or at least, so many.
    #[serde(default)]
    pub bound: Option<Bound>,
    /// Whether it is made of parts that do not add up (`sum.conclusive`), and so is none to rely on.
    #[serde(default)]
    pub inconclusive: bool,
}

/// What is known of a figure of which not all is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// No more than it.
    AtMost,
    /// No less than it.
    AtLeast,
}

/// Predictions held against measurements.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// How many numbers of clients were measured for this alone, and not for the curve.
    pub cells: u32,
    /// The median of the errors' sizes, as a share; None where the curve's own points moved.
    pub median_error: Option<f64>,
    /// The largest; None as well.
    pub worst_error: Option<f64>,
    /// By how much the curve's own points moved until they were measured again, as a share: that of
    /// the one that moved most. Where they do not repeat, how far off a prediction is says nothing
    /// of the prediction. None where they do.
    #[serde(default)]
    pub drift: Option<f64>,
}
