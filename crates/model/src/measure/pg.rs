//! `measure pg`: the request and the result.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BothCpu, BothEvidence, Common, End, Floor, Interval, Placement, Quantiles, ServedInterval,
    TlsRun, Transport, Wait,
};
use crate::{Nanos, Reading, Warning};

/// How statements are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PgProtocol {
    /// As text, values and all, in one `Query` message.
    #[default]
    Simple,
    /// Parsed anew each time, values beside the text.
    Extended,
    /// Parsed once on each connection.
    Prepared,
}

/// What makes the transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PgDriver {
    #[default]
    Netwright,
    /// The real pgbench, a process of its own.
    Pgbench,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PgScript {
    /// A built-in (`select-only`, `simple-update`, `tpcb-like`, `select1`) or a file.
    pub name: String,
    /// How often it is chosen, beside the other scripts' weights.
    pub weight: u32,
}

/// `measure pg`: transactions of PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PgSpec {
    /// What every kind is asked; its target is the connection string without its password, which
    /// no result holds: to run it again it is taken from the environment or the password file.
    pub common: Common,
    /// Chosen from at random, by weight.
    pub scripts: Vec<PgScript>,
    /// How statements are sent.
    pub protocol: PgProtocol,
    /// Connections at once, one run each.
    pub clients: Vec<u32>,
    /// All statements of a transaction are sent before the first answer is awaited.
    pub pipeline: bool,
    /// Each transaction on a connection of its own.
    pub connect_each: bool,
    /// Transactions a second over all connections, by schedule (open loop); `None` begins the
    /// next transaction with the last one's end (closed loop).
    pub rate_per_s: Option<u64>,
    /// So many transactions in all instead of a duration.
    pub transactions: Option<u64>,
    /// How often a transaction is tried that fails by serialization or deadlock.
    pub max_tries: u32,
    /// Whether each statement's latency is told.
    pub per_statement: bool,
    /// The scripts' `:scale`; else the number of rows of `pgbench_branches`.
    pub scale: Option<u32>,
    /// Begins the scripts' random numbers; the same gives the same ones.
    pub seed: Option<u64>,
    /// Variables for the scripts.
    pub variables: BTreeMap<String, String>,
    /// When a statement, or a connection being made, counts as failed.
    pub timeout_ns: Nanos,
    /// The length of [`ServedInterval`]s; a second where none was asked for.
    #[serde(default)]
    pub interval_ns: Option<Nanos>,
    /// A `netwright serve` on the server's host that tells what its CPUs did: HOST:PORT.
    #[serde(default)]
    pub responder: Option<String>,
    /// What makes the transactions.
    #[serde(default)]
    pub driver: PgDriver,
    /// So long each client waits upon an answer before it takes notice: a path that is slower by this
    /// for a round trip. 0 for none; our own driver alone does.
    #[serde(default)]
    pub answer_delay_ns: Nanos,
}

/// The document of `measure pg --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PgDocument {
    /// Version of the document's shape.
    pub schema_version: u32,
    /// What the document is: always `pg`.
    pub kind: String,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// Everything needed to run it again, but the password.
    pub request: PgSpec,
    /// Another program that made the transactions, as it names itself: `pgbench (PostgreSQL)
    /// 15.14`; `None` where it was this one.
    #[serde(default)]
    pub driver: Option<String>,
    pub local: End,
    /// The server: its version as it says, and its address.
    pub peer: End,
    /// Value of `:scale` in the scripts: pgbench's scale factor.
    pub scale: u32,
    /// The first of the scripts' random numbers came from this.
    pub seed: u64,
    /// What the generator itself costs.
    pub floor: Floor,
    /// One run for each number of connections.
    pub runs: Vec<PgRun>,
    /// Whether it was ended early.
    pub interrupted: bool,
}

/// The document of `measure pg --init --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PgInitDocument {
    /// Version of the document's shape.
    pub schema_version: u32,
    /// What the document is: always `pg_init`.
    pub kind: String,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// The connection string without its password.
    pub target: String,
    /// The server: its version as it says, and its address.
    pub peer: End,
    /// The scale: so many branches.
    pub scale: u32,
    /// Number of rows in `pgbench_accounts`.
    pub accounts: u64,
    pub took_ns: Nanos,
    /// Of it, the filling.
    pub copy_ns: Nanos,
    /// Of it, `VACUUM ANALYZE` and the primary keys.
    pub keys_ns: Nanos,
    pub warnings: Vec<Warning>,
}

/// What transactions moved between this end and the kernel, all of them together, under TLS what
/// is within it. Of those that
/// were tried again all tries; with a connection for each transaction its beginning included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PgMoved {
    /// Times that this end sent and then had to wait for an answer.
    pub round_trips: u64,
    /// Calls of `send` that took something.
    pub sends: u64,
    /// Calls of `recv` that gave something.
    pub receives: u64,
    /// Bytes sent, without headers.
    pub sent_bytes: u64,
    /// Bytes received, without headers.
    pub received_bytes: u64,
}

/// One script's part of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PgScriptRun {
    pub name: String,
    pub weight: u32,
    /// Transactions within the window.
    pub transactions: u64,
    pub latency_ns: Quantiles,
    pub failed: u64,
    /// Each statement, in the script's order; empty where that was not asked for.
    pub statements: Vec<PgStatement>,
}

/// One command of a script: a statement of SQL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PgStatement {
    pub sql: String,
    /// From sending it until its response was whole. Within a pipeline: until its own part of
    /// the responses came.
    pub latency_ns: Quantiles,
}

/// One run of transactions.
///
/// A transaction counts for the moment of its end (closed loop) or the one that the schedule gave
/// it (open loop).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PgRun {
    /// What carried the bytes.
    pub transport: Transport,
    pub clients: u32,
    /// Threads at this end.
    pub threads: u32,
    /// How statements were sent.
    pub protocol: PgProtocol,
    /// Whether each transaction had a connection of its own.
    pub connect_each: bool,
    /// How this end waited.
    pub wait: Wait,
    /// Where this end ran.
    pub placement: Placement,
    pub window_ns: Nanos,
    /// Warm-up and cool-down around it.
    pub trimmed_ns: Nanos,
    /// Transactions that were committed, or ended without an error, within the window. The times
    /// also have those that were due within it by schedule and ended after it.
    pub transactions: u64,
    /// By second of the window. With a connection for each transaction that includes making it,
    /// else the connections were made before.
    pub transactions_per_s: f64,
    pub transactions_per_s_interval: Option<Interval>,
    /// By second, with the time that it took to connect: as if the connections had been made
    /// within the window.
    pub transactions_per_s_with_connecting: f64,
    /// By second, without the time that it took to connect.
    pub transactions_per_s_without_connecting: f64,
    /// Open loop: what was asked for.
    pub target_per_s: Option<u64>,
    /// From the first statement's sending until the last one's response is whole, what the script
    /// sleeps and computes included; with a schedule, from its time. With a connection for each
    /// transaction it includes making it. Of one that was tried again, all its tries.
    pub latency_ns: Quantiles,
    /// The median with its interval.
    pub latency_p50_interval_ns: Option<Interval>,
    /// Open loop: the same from the moment of sending, which hides what the generator or the
    /// server kept waiting.
    pub latency_from_send_ns: Option<Quantiles>,
    /// Open loop: how long after its time each transaction was begun.
    pub send_lag_ns: Option<Quantiles>,
    /// From the call of `connect` until the server is ready for a query: TCP, TLS, authentication, and
    /// a new process there. With a connection for each transaction those of the window; else all,
    /// warm-up included.
    pub connect_ns: Quantiles,
    /// Of it, from the request for TLS until the handshake is done. `None` without TLS.
    pub tls_handshake_ns: Option<Quantiles>,
    /// What both ends agreed on; `None` without TLS, or where no handshake was made.
    pub tls: Option<TlsRun>,
    /// Statements whose response was whole within the window. Absent where another program made the
    /// transactions: it does not tell.
    pub statements: Reading<u64>,
    /// What the transactions of the window moved; absent as `statements` is.
    #[serde(default)]
    pub moved: Reading<PgMoved>,
    pub failed: u64,
    /// The same by what happened: the server's SQLSTATE and message, or what became of the
    /// connection.
    pub failures: BTreeMap<String, u64>,
    /// Transactions that were tried more than once, whatever came of it.
    pub retried: u64,
    /// Tries beyond the first, of all of them.
    pub retries: u64,
    /// Connections made anew after the server ended them between transactions.
    pub reconnects: u64,
    /// Open loop: transactions due before the window's end that no connection was free for until
    /// the end of the run; the times leave them out. Absent where the driver does not tell.
    pub not_started: Reading<u64>,
    /// Open loop: how far behind its schedule it was at the end; it grows where the rate is more
    /// than the server answers. `None` in closed loop and where it is not reported.
    #[serde(default)]
    pub schedule_lag_ns: Option<Nanos>,
    /// Transactions without an end when the run ended.
    pub unfinished: u64,
    pub scripts: Vec<PgScriptRun>,
    /// CPU at both ends.
    pub cpu: BothCpu,
    /// Kernel counters that moved.
    pub evidence: BothEvidence,
    /// Every whole interval of the window. None where another program made the transactions.
    #[serde(default)]
    pub intervals: Vec<ServedInterval>,
    /// What to know before trusting the figures.
    pub warnings: Vec<Warning>,
}
