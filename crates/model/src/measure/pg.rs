//! `measure pg`: the request and the result.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BothCpu, BothEvidence, Common, End, Floor, Interval, Placement, Quantiles, ServedInterval,
    TlsRun, Transport, Wait,
};
use crate::{Nanos, Reading, Warning};

/// Protocol mode of the statements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PgProtocol {
    /// As text, values included, in one `Query` message.
    #[default]
    Simple,
    /// Parsed each time; values are sent separately from the text.
    Extended,
    /// Parsed once on each connection.
    Prepared,
}

/// Driver that makes the transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PgDriver {
    #[default]
    Netwright,
    /// pgbench itself, as a separate process.
    Pgbench,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PgScript {
    /// A built-in (`select-only`, `simple-update`, `tpcb-like`, `select1`) or a file.
    pub name: String,
    /// Weight of the script among all scripts.
    pub weight: u32,
}

/// `measure pg`: transactions of PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PgSpec {
    /// Parameters common to all measurements; its target is the connection string without the
    /// password. No result contains the password; a repeated run takes it from the environment or
    /// the password file.
    pub common: Common,
    /// Scripts, chosen at random by weight.
    pub scripts: Vec<PgScript>,
    /// Protocol mode of the statements.
    pub protocol: PgProtocol,
    /// Concurrent connections, one run each.
    pub clients: Vec<u32>,
    /// Whether all statements of a transaction are sent before the first answer is awaited.
    pub pipeline: bool,
    /// Whether each transaction has its own connection.
    pub connect_each: bool,
    /// Transactions per second over all connections (open loop). `None` begins the next transaction
    /// at the end of the last one (closed loop).
    pub rate_per_s: Option<u64>,
    /// Total number of transactions, instead of a duration.
    pub transactions: Option<u64>,
    /// Maximum number of tries of a transaction that fails by serialization or deadlock.
    pub max_tries: u32,
    /// Whether the latency of each statement is reported.
    pub per_statement: bool,
    /// The scripts' `:scale`; else the number of rows of `pgbench_branches`.
    pub scale: Option<u32>,
    /// Seed of the scripts' random numbers; the same seed gives the same numbers.
    pub seed: Option<u64>,
    /// Variables for the scripts.
    pub variables: BTreeMap<String, String>,
    /// Time after which a statement, or a connection attempt, counts as failed.
    pub timeout_ns: Nanos,
    /// The length of [`ServedInterval`]s; one second by default.
    #[serde(default)]
    pub interval_ns: Option<Nanos>,
    /// A `netwright serve` on the server's host that reports the CPU use of that host: HOST:PORT.
    #[serde(default)]
    pub responder: Option<String>,
    /// Driver that makes the transactions.
    #[serde(default)]
    pub driver: PgDriver,
    /// Delay after each answer before the client processes it: it simulates a path with a round
    /// trip that is longer by this. 0 for none; only Netwright's own driver supports it.
    #[serde(default)]
    pub answer_delay_ns: Nanos,
}

/// The document of `measure pg --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PgDocument {
    /// Version of the document's shape.
    pub schema_version: u32,
    /// Kind of the document: always `pg`.
    pub kind: String,
    /// Start of the run, seconds since 1970.
    pub started_unix_s: u64,
    /// All parameters that are needed to repeat the run, except the password.
    pub request: PgSpec,
    /// The other program that made the transactions, as it names itself: `pgbench (PostgreSQL)
    /// 15.14`; `None` for Netwright's own driver.
    #[serde(default)]
    pub driver: Option<String>,
    pub local: End,
    /// The server: the version that it reports, and its address.
    pub peer: End,
    /// Value of `:scale` in the scripts: pgbench's scale factor.
    pub scale: u32,
    /// Seed of the scripts' random numbers.
    pub seed: u64,
    /// Cost of the generator itself.
    pub floor: Floor,
    /// One run for each number of connections.
    pub runs: Vec<PgRun>,
    /// Whether the run was ended early.
    pub interrupted: bool,
}

/// The document of `measure pg --init --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PgInitDocument {
    /// Version of the document's shape.
    pub schema_version: u32,
    /// Kind of the document: always `pg_init`.
    pub kind: String,
    /// Start of the run, seconds since 1970.
    pub started_unix_s: u64,
    /// The connection string without its password.
    pub target: String,
    /// The server: the version that it reports, and its address.
    pub peer: End,
    /// The scale factor: the number of branches.
    pub scale: u32,
    /// Number of rows in `pgbench_accounts`.
    pub accounts: u64,
    pub took_ns: Nanos,
    /// Of it, the time to fill the tables.
    pub copy_ns: Nanos,
    /// Of it, the time of `VACUUM ANALYZE` and the primary keys.
    pub keys_ns: Nanos,
    pub warnings: Vec<Warning>,
}

/// Data that all transactions together moved between the client and the kernel; under TLS, the data
/// within TLS. It includes all tries of retried transactions and, with one connection per
/// transaction, the start of the connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PgMoved {
    /// Number of times that the client sent and then had to wait for an answer.
    pub round_trips: u64,
    /// Calls of `send` that accepted data.
    pub sends: u64,
    /// Calls of `recv` that returned data.
    pub receives: u64,
    /// Bytes sent, without headers.
    pub sent_bytes: u64,
    /// Bytes received, without headers.
    pub received_bytes: u64,
}

/// Results of one script of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PgScriptRun {
    pub name: String,
    pub weight: u32,
    /// Transactions within the window.
    pub transactions: u64,
    pub latency_ns: Quantiles,
    pub failed: u64,
    /// Each statement, in the order of the script; empty where not requested.
    pub statements: Vec<PgStatement>,
}

/// One command of a script: an SQL statement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PgStatement {
    pub sql: String,
    /// From sending the statement until its response was complete. Within a pipeline: until its own
    /// part of the responses came.
    pub latency_ns: Quantiles,
}

/// One run of transactions.
///
/// A transaction counts at its end (closed loop) or at its scheduled time (open loop).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PgRun {
    /// How the client was connected to the server.
    pub transport: Transport,
    /// Connections at the same time.
    pub clients: u32,
    /// Threads of the client.
    pub threads: u32,
    /// Protocol mode of the statements.
    pub protocol: PgProtocol,
    /// Whether each transaction had its own connection.
    pub connect_each: bool,
    /// Wait mode of the client.
    pub wait: Wait,
    /// Placement of the client.
    pub placement: Placement,
    pub window_ns: Nanos,
    /// Warm-up and cool-down around the window.
    pub trimmed_ns: Nanos,
    /// Transactions that were committed, or ended without an error, within the window. The times
    /// also include transactions that were scheduled within the window and ended after it.
    pub transactions: u64,
    /// Transactions per second of the window. With one connection per transaction this includes
    /// connecting; otherwise the connections were made before.
    pub transactions_per_s: f64,
    pub transactions_per_s_interval: Option<Interval>,
    /// Transactions per second including connection time: as if the connections had been made
    /// within the window.
    pub transactions_per_s_with_connecting: f64,
    /// Transactions per second excluding connection time.
    pub transactions_per_s_without_connecting: f64,
    /// Open loop: the requested rate.
    pub target_per_s: Option<u64>,
    /// From sending the first statement until the response to the last one is complete, the
    /// script's sleeps and computations included; in open loop, from the scheduled time. With one
    /// connection per transaction it includes connecting. For a retried transaction it includes all
    /// tries.
    pub latency_ns: Quantiles,
    /// The median with its confidence interval.
    pub latency_p50_interval_ns: Option<Interval>,
    /// Open loop: service latency, from the moment of sending. It hides the time that the generator
    /// or the server kept transactions waiting.
    pub latency_from_send_ns: Option<Quantiles>,
    /// Open loop: send lag of each transaction.
    pub send_lag_ns: Option<Quantiles>,
    /// From the call of `connect` until the server is ready for a query: TCP, TLS, authentication,
    /// and a new process on the server. With one connection per transaction, those of the window;
    /// otherwise all, warm-up included.
    pub connect_ns: Quantiles,
    /// Of it, from the request for TLS until the handshake is complete. `None` without TLS.
    pub tls_handshake_ns: Option<Quantiles>,
    /// The negotiated TLS parameters; `None` without TLS, or where no handshake was made.
    pub tls: Option<TlsRun>,
    /// Statements whose response was complete within the window. Absent where another program made
    /// the transactions: it does not report them.
    pub statements: Reading<u64>,
    /// Data that the transactions of the window moved; absent where `statements` is.
    #[serde(default)]
    pub moved: Reading<PgMoved>,
    pub failed: u64,
    /// The same by cause: the server's SQLSTATE and message, or the failure of the connection.
    pub failures: BTreeMap<String, u64>,
    /// Transactions that were tried more than once, whatever the outcome.
    pub retried: u64,
    /// Tries beyond the first, of all transactions.
    pub retries: u64,
    /// Connections that served no transaction, warm-up included, by reason: the server refused them
    /// or did not answer. Empty where another program made the transactions.
    #[serde(default)]
    pub refused: BTreeMap<String, u64>,
    /// Reconnects after the server closed the connection between transactions.
    pub reconnects: u64,
    /// Open loop: transactions scheduled before the end of the window for which no connection
    /// became free until the end of the run. The times leave them out. Absent where the driver does
    /// not report them.
    pub not_started: Reading<u64>,
    /// Open loop: schedule lag at the end of the run. It grows where the rate is higher than the
    /// server's capacity. `None` in closed loop and where it is not reported.
    #[serde(default)]
    pub schedule_lag_ns: Option<Nanos>,
    /// Transactions still outstanding when the run ended.
    pub unfinished: u64,
    pub scripts: Vec<PgScriptRun>,
    /// CPU at both ends.
    pub cpu: BothCpu,
    /// Kernel counters that changed.
    pub evidence: BothEvidence,
    /// Every complete interval of the window. Empty where another program made the transactions.
    #[serde(default)]
    pub intervals: Vec<ServedInterval>,
    /// Limits on the trust in the figures.
    pub warnings: Vec<Warning>,
}
