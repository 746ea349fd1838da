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
    /// Kind of the document: always `explain`.
    pub kind: String,
    /// Start of the run, seconds since 1970.
    pub started_unix_s: u64,
    /// The explained workload: `rtt://HOST:PORT`, `http://HOST/PATH`, `pg://HOST/DATABASE` without
    /// its password.
    pub target: String,
    /// The server used to measure the network.
    pub responder: String,
    /// What one transaction moves.
    pub exchange: Exchange,
    /// Number of concurrent clients that the explanation is for.
    pub clients: u32,
    /// Number of rounds of the workload and of the network alone, interleaved.
    pub rounds: u32,
    /// The measured length of each round.
    pub round_ns: Nanos,
    /// Components of the time between two transactions of a client; they add up to it.
    pub components: Vec<Component>,
    pub sum: Sum,
    /// Response times of the workload beside those of the network alone.
    pub quantiles: SideBySide,
    /// The typical transaction with one client, from medians: outliers do not affect it. Absent
    /// where several scripts make several kinds of transactions, whose median has no meaning.
    pub typical: Option<Typical>,
    /// The same, by the naive estimate.
    pub naive: Naive,
    /// Demand of one transaction on each place; the input of the model.
    pub demands: Vec<Demand>,
    /// Measurements on this path by number of clients, the basis of the predictions.
    pub levels: Vec<Level>,
    /// Number of clients from which the limiting place is busy all the time.
    pub knee_clients: Option<f64>,
    /// The place that limits throughput with many clients.
    pub limiting: Option<String>,
    /// What each requested path adds to a transaction.
    #[serde(default)]
    pub other_paths: Vec<OtherPath>,
    pub predictions: Vec<Prediction>,
    /// Changes and their expected results.
    pub what_if: Vec<WhatIf>,
    /// Error of the predictions that could be compared with a measurement.
    pub verified: Option<Verified>,
    /// Mean time that the server deliberately spun before each response, as it reports.
    pub injected_service_ns: Option<f64>,
    /// HTTP responses by status, over all rounds; empty for other workloads.
    #[serde(default)]
    pub statuses: BTreeMap<u16, u64>,
    /// Failed rounds that were measured again, by reason. No figure includes them.
    #[serde(default)]
    pub left_out: BTreeMap<String, u32>,
    /// Limits on the trust in the figures.
    pub warnings: Vec<Warning>,
    /// Whether the run was ended early.
    pub interrupted: bool,
}

/// One transaction on the wire, as the client counted it: means over all rounds with one client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exchange {
    /// Bytes of the request, without headers.
    pub request_bytes: u64,
    /// Bytes of the response, without headers.
    pub response_bytes: u64,
    /// Messages in both directions: sends and receives, rounded.
    pub messages: u32,
    /// Number of times that the client sends and then waits for an answer.
    pub round_trips: f64,
    /// Calls that sent data.
    pub sends: f64,
    /// Calls that received data.
    pub receives: f64,
    /// Reconnects because the server had closed the connection.
    #[serde(default)]
    pub new_connections: f64,
    /// Round trips that the protocols need for each reconnect before the first request: one for
    /// TCP, and one more under TLS 1.3, two more under TLS 1.2. Absent where not known, as for
    /// PostgreSQL's logins.
    #[serde(default)]
    pub connect_round_trips: Option<f64>,
}

/// Another path compared with the measured one, per transaction with one client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherPath {
    /// The path as given on the command line: `rtt=80us`, `host=db1`.
    pub path: String,
    /// Additional time of its network alone; negative where that network is faster.
    pub added_ns: f64,
    /// Additional time of the server because it is idle for longer between two requests, beyond
    /// that of the responder. Measured on this path in open loop.
    pub idle_ns: f64,
    /// Additional time to reconnect after the server closes connections: each round trip
    /// (`connect_round_trips` of the exchange) costs as much as one of the network alone. Absent
    /// where there are reconnects and their round trips are not known; predictions leave it out
    /// then.
    #[serde(default)]
    pub reconnecting_ns: Option<f64>,
    /// CPU time of this host that the path takes beyond the measured path: a tunnel's process, a
    /// driver. With the most clients of `loads`; absent where it was not measured.
    #[serde(default)]
    pub cpu_ns: Option<f64>,
    /// Results of a synthetic workload on that path: threads that compute for as long as the server
    /// does and send as much, at the other end of either path. Empty where only one client was
    /// requested, or where the path is given by its round trip and not measured.
    #[serde(default)]
    pub loads: Vec<PathLoad>,
    /// How far `added_ns` and `idle_ns` together can be off: half of their 95% interval.
    #[serde(default)]
    pub margin_ns: f64,
    /// The workload on the measured path with a client that delays each answer by as much as this
    /// path is slower. It shows the server's behaviour on that path, locks held over round trips
    /// included, without the path's own CPU time. Empty where the client cannot delay, or where the
    /// path is faster.
    #[serde(default)]
    pub delayed: Vec<Level>,
}

/// A synthetic copy of the workload on the measured path and on another path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathLoad {
    pub clients: u32,
    /// Its transactions per second on the measured path.
    pub this_path_per_s: f64,
    /// CPU time of its threads at both ends per transaction on the measured path, where known.
    pub this_path_cpu_ns: Option<f64>,
    /// Its transactions per second on the other path, where that was measured.
    pub other_path_per_s: Option<f64>,
    /// CPU time of this host per transaction that, together with the path's delay, explains the
    /// difference. Its upper bound is the busy time of the whole host on the other path less that
    /// of the threads on the measured path. Absent where the rest is not known.
    pub cpu_ns: Option<f64>,
    /// The CPU time that would explain all of the difference. A value above `cpu_ns` is not
    /// possible: something else made the synthetic workload slower on the other path.
    #[serde(default)]
    pub fitted_cpu_ns: Option<f64>,
    /// Standard deviation of its rounds on the other path, as a share.
    #[serde(default)]
    pub other_path_spread: Option<f64>,
    /// Error of `other_path_per_s`, as a logarithm, when predicted with the CPU time found with the
    /// nearest other number of clients; without another number, with half of the CPU time.
    #[serde(default)]
    pub held_out: Option<f64>,
}

/// One component of the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Component {
    /// `network`, `tls`, `service`, `server queueing`, `reconnecting`, `client`.
    pub name: String,
    pub about: String,
    /// The mean per transaction.
    pub ns: f64,
    /// The lower end of its 95% interval.
    pub low_ns: f64,
    pub high_ns: f64,
    /// Its share of the reported components, 0 to 1; null where it is not reported itself.
    pub share: Option<f64>,
    /// Whether it is distinguishable from zero: its interval lies above zero. A difference of two
    /// measurements can be zero or negative, which a component of a time cannot be: then `ns` is
    /// meaningful only as part of the interval.
    #[serde(default = "yes")]
    pub reported: bool,
}

fn yes() -> bool {
    true
}

/// The sum of the components compared with the whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sum {
    /// The mean time between two transactions of a client, over all rounds.
    pub measured_ns: f64,
    pub sum_ns: f64,
    /// Deviation of the sum, as a share.
    pub error: f64,
    /// Limit of the deviation; a larger one is inconclusive.
    pub allowed: f64,
    /// Whether the components add up, and enough was measured.
    pub conclusive: bool,
    /// Disturbances, shown or suspected.
    pub disturbed: Vec<Disturbance>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideBySide {
    /// The workload's response time: the median over rounds of each round's quantile. The mean is
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

/// Demand of one transaction on one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Demand {
    /// `client`, `server`, `path`; `server and path` where the server's CPU time is not known.
    pub place: String,
    /// Number of transactions served at once; `None` for a delay.
    pub servers: Option<u32>,
    pub ns: f64,
    /// Source of the demand.
    pub source: String,
}

/// Measurement with one number of clients.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    pub clients: u32,
    /// Throughput of all clients, transactions per second.
    pub per_s: f64,
    /// Throughput of the slowest and fastest round.
    pub low_per_s: f64,
    pub high_per_s: f64,
    /// CPU time of the client's threads per transaction.
    pub client_cpu_ns: Option<f64>,
    /// CPU time of the server per transaction, where known.
    pub server_cpu_ns: Option<f64>,
    /// Busy CPU time of this host per transaction. **Source**: `/proc/stat`.
    #[serde(default)]
    pub host_cpu_ns: Option<f64>,
    #[serde(default)]
    pub rounds: u32,
    /// Standard deviation of a round, as a share of the rate; absent with a single round.
    #[serde(default)]
    pub spread: Option<f64>,
    /// Number of this host's CPUs that neither client nor server kept busy meanwhile, where known.
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
    /// The same, by the naive estimate.
    pub naive_per_s: Option<f64>,
    /// The limiting place: `path`, `server`, `client`.
    pub limiting: Option<String>,
    /// The measured throughput (`--verify`).
    pub measured_per_s: Option<f64>,
    /// Error of the prediction, as a share of the measured value.
    pub error: Option<f64>,
    /// Whether the prediction is unreliable: its components do not add up (`sum.conclusive`), or
    /// its interval is too wide.
    #[serde(default)]
    pub inconclusive: bool,
    /// Whether the path's CPU time in it is at its upper bound, because the measurement on that
    /// path would need more (`other_paths.loads.fitted_cpu_ns`).
    #[serde(default)]
    pub cpu_bounded: bool,
}

/// A change and its expected result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// `no network`, `server CPUs doubled`.
    pub change: String,
    pub clients: u32,
    /// Throughput of all clients, transactions per second.
    pub predicted_per_s: f64,
    /// Factor to the present throughput.
    pub factor: f64,
    /// Set where only a bound is known: whether the throughput would be at most, or at least, this
    /// value.
    #[serde(default)]
    pub bound: Option<Bound>,
    /// Whether the figure is unreliable, because its components do not add up (`sum.conclusive`).
    #[serde(default)]
    pub inconclusive: bool,
}

/// The known bound of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The value is an upper bound.
    AtMost,
    /// The value is a lower bound.
    AtLeast,
}

/// Predictions compared with measurements.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// How many numbers of clients were measured for this comparison alone, and not for the curve.
    pub cells: u32,
    /// The median of the absolute errors, as a share; absent where the curve's own points did not
    /// repeat.
    pub median_error: Option<f64>,
    /// The largest absolute error, as a share; absent in the same case.
    pub worst_error: Option<f64>,
    /// Largest change of the curve's own points when they were measured again, as a share. Where
    /// the points do not repeat, the error of a prediction says nothing about the prediction.
    /// Absent where they repeat.
    #[serde(default)]
    pub drift: Option<f64>,
}
