//! Warnings about figures, as values: each kind has a stable code, its numbers, and one line with
//! both.

mod precision;
mod statuses;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use precision::{NotPrecise, PrecisionAdvice};
pub use statuses::StatusKind;

use crate::{CpuSet, Nanos, coded::coded, units::grouped};

/// A remark on a measurement or an explanation. In JSON `{code, data, message}`: `code` is the kind
/// in snake case, `data` has its fields, `message` is the line for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[schemars(tag = "code", content = "data", transform = crate::coded::short)]
pub enum Warning {
    // Nothing measured.
    /// The run was ended before anything was measured, while it waited for `what`.
    #[error("nothing was measured: the run ended before the first {what}")]
    EndedTooEarly { what: String },
    #[error(
        "nothing was measured: no {what} came within the window of {window_ns}; give it a longer \
         --duration"
    )]
    NothingWithinWindow { what: String, window_ns: Nanos },
    #[error(
        "nothing was measured: --rate {rate_per_s} makes {what} due every {}, and the window was \
         {window_ns}; give it a longer --duration",
        Nanos(1_000_000_000 / (*.rate_per_s).max(1))
    )]
    NothingDue { rate_per_s: u64, what: String, window_ns: Nanos },
    #[error("no round trip was measured: all {requests} requests were lost")]
    AllRequestsLost { requests: u64 },
    #[error("no datagram was received: all {datagrams} were lost")]
    AllDatagramsLost { datagrams: u64 },
    /// `figure` is the intended measurement, `tries` the failed attempts.
    #[error(
        "no {figure} was measured: all {count}{tries} failed: {}{}",
        .causes.join("; "),
        if *.perhaps_tls { PERHAPS_TLS } else { "" }
    )]
    AllFailed { figure: String, tries: String, count: u64, causes: Vec<String>, perhaps_tls: bool },

    /// Every connection was closed, or returned an invalid response.
    #[error("no request was answered{PERHAPS_TLS}")]
    PerhapsTls,

    // A schedule that was not kept.
    #[error(
        "--rate {rate_per_s} was not reached: {}/s is the most with {at_once} at once; {}, and \
         they grow with --duration. Use a --rate below {}, or more {places}",
        grouped(.per_s.round() as u64), behind(*.lag_ns, *.not_started, .what),
        grouped(two_digits(*.per_s))
    )]
    RateNotKept {
        rate_per_s: u64,
        per_s: f64,
        at_once: u64,
        lag_ns: Nanos,
        not_started: u64,
        what: String,
        places: String,
    },
    #[error("the schedule was kept on average, but {}", behind(*.lag_ns, *.not_started, .what))]
    ScheduleBehindAtEnd { lag_ns: Nanos, not_started: u64, what: String },
    /// The same with another program's schedule, with its mean and maximum lag.
    #[error(
        "--rate {rate_per_s} was not reached: {}/s is the most with {at_once} at once{}; the lag \
         grows with --duration, and the program does not report how many were not started. Use a \
         --rate below {}, or more {places}",
        grouped(.per_s.round() as u64), began_late(.program, *.lag_ns), grouped(two_digits(*.per_s))
    )]
    RateNotKeptByProgram {
        program: String,
        rate_per_s: u64,
        per_s: f64,
        at_once: u64,
        lag_ns: Option<(Nanos, Nanos)>,
        places: String,
    },
    #[error("{sender} did not reach the target rate: {:.1}% of it was sent", .share * 100.0)]
    RateNotReached { sender: String, share: f64 },
    #[error(
        "{connections} scheduled connections were not started: all {flows} flows were busy; the \
         times leave them out. Use more --flows or a lower --rate"
    )]
    ConnectionsNotBegun { connections: u64, flows: u32 },

    // What was counted, and what not.
    /// `done` is the term for a completed one.
    #[error(
        "{count} {what} were unfinished when the run ended and count as neither {done} nor failed"
    )]
    Unfinished { count: u64, what: String, done: String },
    #[error("too few {what} to describe a server that is warmed up")]
    FewMeasured { what: String },
    #[error(
        "no transaction sent the server a statement: rate and times are this host's alone, and say \
         nothing of server and network. Give a --script with a statement in it, such as SELECT 1;"
    )]
    NoStatementSent,
    #[error(
        "{} of {} transactions sent the server no statement ({:.1}%); rate and times include \
         them",
        grouped(*.unsent), grouped(*.answered), *.unsent as f64 * 100.0 / *.answered as f64
    )]
    SomeSentNoStatement { unsent: u64, answered: u64 },
    /// Fewer than requested were active; `text` states it in the workload's terms.
    #[error("{text}")]
    NotAllServed {
        asked: u32,
        disconnected: f64,
        silent: u64,
        failed: u64,
        ended: u64,
        text: String,
    },
    /// Responses by status that are not the requested content, and the number of all responses.
    #[error("{}", statuses::line(*.kind, .by_status, *.responses))]
    Statuses { kind: StatusKind, by_status: BTreeMap<u16, u64>, responses: u64 },
    #[error(
        "the ends disagree: {client} {client_what} at the client, {server} {server_what} at the server"
    )]
    EndsDisagree { client: u64, client_what: String, server: u64, server_what: String },
    #[error(
        "{lost} datagrams were lost; at the {end} {}",
        match .buffer_full {
            true => format!(
                "{dropped} found the socket's buffer full (Udp.RcvbufErrors): the receiver is too \
                 slow, not the network; try a lower --rate or a larger --buffer"
            ),
            false => format!("the kernel took in and dropped {dropped} (Udp.InErrors)"),
        }
    )]
    DatagramsDropped { lost: u64, end: String, dropped: u64, buffer_full: bool },
    #[error(
        "the kernel copied every MSG_ZEROCOPY send after all: it does on loopback, and where the \
         interface cannot gather"
    )]
    ZerocopyCopied,

    // What makes intervals doubtful.
    #[error("the median drifts by {:+.1}% over the run", .trend * 100.0)]
    MedianDrifts { trend: f64 },
    #[error("autocorrelated samples: the CI may be too narrow; measure longer")]
    BatchesResemble,
    #[error(
        "±{}% was not reached: {why}{}",
        f64::from(*.per_mille) / 10.0,
        .advice.as_ref().map(|a| format!("; {a}")).unwrap_or_default()
    )]
    PrecisionNotReached { per_mille: u32, why: NotPrecise, advice: Option<PrecisionAdvice> },

    // What disturbed the ends.
    #[error(
        "CPU contention at the {end}: other tasks ran on its CPUs ({cpus}) for at least {:.0}% of \
         the time",
        .share * 100.0
    )]
    OthersOnCpus { end: String, cpus: CpuSet, share: f64 },
    #[error("client and server share a CPU and spin: the figures show the scheduler's time slices")]
    SpinningOnSharedCpu,
    #[error("connections waited to be accepted: {why}")]
    AcceptDelayed { why: String },
    /// No local port was free towards a server; `local` has the existing ports, where known.
    #[error("{}", exhausted(.to, *.time_wait, .local.as_ref()))]
    PortsExhausted { to: String, time_wait: u64, local: Option<UsedPorts> },
    #[error(
        "{rate_per_s:.0} connections a second are more than the local ports allow for ever \
         ({sustained_per_s:.0}/s: {ports} ports, each kept for {kept_ns} by --close local); a run of \
         {:.1} s uses all of them up",
        *.ports as f64 / .rate_per_s
    )]
    PortsOutrun { rate_per_s: f64, sustained_per_s: f64, ports: u64, kept_ns: Nanos },

    // What could not be done as asked.
    #[error("busy polling is not available ({why}): blocking I/O is used")]
    NoBusyPoll { why: String },
    #[error("MSG_ZEROCOPY is not available ({why}): sends are copied")]
    NoZerocopy { why: String },
    #[error("io_uring is not available ({why}): epoll is used")]
    NoIoUring { why: String },
    #[error("the kernel does not pace ({why}): --fq-rate has no effect")]
    NoPacing { why: String },
    /// A thread could not be pinned to its CPU.
    #[error("{why}")]
    NotPinned { why: String },
    /// A thread of the server ended early.
    #[error("{why}")]
    ThreadEnded { why: String },

    // Who was measured, and how it was trusted.
    #[error("server: {0}")]
    AtServer(Box<Warning>),
    #[error(
        "the responder at {responder} is not at the server's address {server}: the server's CPU and \
         counters are those of the responder's host"
    )]
    ResponderElsewhere { responder: String, server: String },
    #[error("the server's certificate was not checked (--insecure): any server may have answered")]
    CertificateNotChecked,
    #[error(
        "sslrootcert {file} does not exist: the certificate is not checked, as in libpq; \
         sslmode=verify-full requires the check"
    )]
    NoRootCertificate { file: String },
    #[error(
        "the connection is in clear, as with libpq's sslmode=prefer; sslmode=require insists on \
         TLS. TLS was tried first: {why}"
    )]
    InClear { why: String },
    #[error("{file} was not used: {why}")]
    PasswordFileNotUsed { file: String, why: String },

    // qperf, iperf3 and pgbench in place of our own ends.
    #[error("qperf's server waits by blocking, whatever is asked for")]
    QperfBlocks,
    #[error(
        "qperf prints half of the mean round trip as its latency: here {:.3} µs", .mean_ns / 2000.0
    )]
    QperfPrintsHalf { mean_ns: f64 },
    #[error("no warm-up: qperf counts all datagrams of a test together")]
    QperfNoWarmup,
    #[error("no intervals: qperf reports what it received only at the end")]
    QperfNoIntervals,
    #[error("the server did not report what it received")]
    ReceiveCountMissing,
    #[error("streams to qperf are not repeated for an interval")]
    QperfNotRepeated,
    #[error("the server's CPU is iperf3's own figure for its process (cpu_util), warm-up included")]
    Iperf3Cpu,
    #[error(
        "the server did not report what it received: the bytes are those that the client's kernel \
         counted"
    )]
    BytesOfThisEnd,
    #[error("intervals show what the server's kernel acknowledged: iperf3 reports only its sum")]
    IntervalsAcknowledged,
    #[error(
        "intervals show what was sent; iperf3 reports neither reordered nor duplicate datagrams"
    )]
    IntervalsSent,
    #[error("this version of iperf3 counts datagrams lost in the warm-up among the lost")]
    Iperf3LostInWarmup,
    #[error("the warm-up took {seconds} s: iperf3 takes whole seconds only")]
    Iperf3Warmup { seconds: u64 },
    /// A warning of pgbench itself.
    #[error("pgbench: {text}")]
    Pgbench { text: String },
    #[error(
        "pgbench's latencies leave out the connection of each transaction; --driver netwright \
         includes it"
    )]
    PgbenchWithoutConnection,
    #[error(
        "pgbench was ended: what it had not written of its log yet, up to 4 KiB for each thread, is \
         lost"
    )]
    PgbenchEnded,
    #[error("pgbench reports {reported} transactions, its log has {logged}")]
    PgbenchCountsDiffer { reported: u64, logged: u64 },

    // Explanations.
    #[error(
        "the server closes connections: {}. Reconnecting is a component of its own; {}",
        how_often(*.per_request), round_trips_more(*.round_trips)
    )]
    ConnectionsNotKept { per_request: f64, round_trips: Option<f64> },
    #[error("more clients than {most} were not measured, and not predicted")]
    ClientsNotMeasured { most: u32 },
    #[error(
        "--channels: no prediction, because the CPU time of receiving is not known: on loopback, or \
         where the server's host does not report it"
    )]
    ReceivingNotKnown,
    #[error("--cores: no prediction, because the server's CPU time is not known")]
    CoresNotPredicted,
    #[error("{path}: ended before it was measured; nothing is predicted for it")]
    PathNotMeasured { path: String },
    #[error(
        "{path}: with {clients} clients a synthetic workload was slower there than the path \
         explains. {fitted_ns} of this host's CPU time a transaction would, and it had no more than \
         {had_ns} for it: predictions are made with that, and something else slowed the synthetic \
         workload"
    )]
    PathSlowerThanExplained { path: String, clients: u32, fitted_ns: Nanos, had_ns: Nanos },
    #[error(
        "other programs kept {cpus:.1} of this host's CPUs busy: client and server may have waited \
         for a CPU; the server's CPU time does not include theirs"
    )]
    OthersBusy { cpus: f64 },
    #[error(
        "the workload uses TLS, and the network alone was measured in clear: encryption counts as \
         the server's service; handshakes are left out{}",
        if *.sslmode { ". Use sslmode=disable to explain it without TLS" } else { "" }
    )]
    UnderTls { sslmode: bool },
    #[error("some requests failed in all rounds together, and the times leave them out: {}", listed(.by_cause))]
    SomeFailed { by_cause: BTreeMap<String, u64> },
    #[error("{}", rounds_repeated(.by_cause))]
    RoundsRepeated { by_cause: BTreeMap<String, u64> },
    #[error(
        "the server's host does not report CPU time: the server's limit and the effect of more CPUs \
         are not known, only bounds are given"
    )]
    ServerElsewhere,
    #[error(
        "the server's processes cannot be read ({why}{}): its CPU time is not known, only bounds \
         are given",
        if *.denied { "; run as root to see it" } else { "" }
    )]
    ServerNotSeen { why: String, denied: bool },
    #[error(
        "the responder may run only on CPUs {cpus}, as this command; the server's affinity is not \
         known"
    )]
    ResponderConfined { cpus: CpuSet },

    // Servers that are watched as they run.
    #[error("{calls} calls were not counted: too many kinds of connections")]
    CallsNotCounted { calls: u64 },
    #[error("too many server processes to record: their list is incomplete")]
    ProcessesNotComplete,
    #[error("no sk_data_ready probe: queueing and wake-up latency are not known")]
    QueueingNotKnown,
    #[error("responses are timed at the end of the send call: service includes that call")]
    ServiceContainsSend,

    /// Written by another version of this program.
    #[error("{message}")]
    Other { code: String, message: String },
}

/// Likely kind of a server that closes an unencrypted connection.
pub const PERHAPS_TLS: &str = "; is it a port with TLS, for https://?";

impl Warning {
    /// Whether the remark concerns a confidence interval and not the figure itself.
    pub fn doubts_interval(&self) -> bool {
        matches!(
            self,
            Self::MedianDrifts { .. } | Self::BatchesResemble | Self::PrecisionNotReached { .. }
        )
    }
}

/// The local ports towards a server, all in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsedPorts {
    /// On all local addresses together.
    pub ports: u64,
    /// **Source**: both numbers of `net.ipv4.ip_local_port_range`.
    pub first: u16,
    pub last: u16,
    /// Time for which the client keeps each port, where it closed first.
    pub kept_ns: Option<Nanos>,
}

fn exhausted(to: &str, time_wait: u64, local: Option<&UsedPorts>) -> String {
    let Some(UsedPorts { ports, first, last, kept_ns }) = local else {
        return format!("there was no local port towards {to}");
    };
    let (why, less) = match kept_ns {
        Some(kept) => (
            format!(
                "all {ports} local ports towards {to} are in TIME_WAIT or in use ({time_wait} in \
                 TIME_WAIT now; this end closed first and keeps each for {kept}), so that new \
                 connections waited for one"
            ),
            "use --close reset or peer",
        ),
        None => (
            format!(
                "all {ports} local ports towards {to} were in use ({time_wait} in TIME_WAIT now), so \
                 that new connections waited for one"
            ),
            "use fewer --flows",
        ),
    };
    format!(
        "{why}: {less}, several addresses (--bind A,B), a wider net.ipv4.ip_local_port_range (now \
         {first} to {last}), or net.ipv4.tcp_tw_reuse=1"
    )
}

fn behind(lag_ns: Nanos, not_started: u64, what: &str) -> String {
    format!(
        "schedule lag {lag_ns} at the end, with {} {what} due and not started; the times leave \
         those out",
        grouped(not_started)
    )
}

fn began_late(program: &str, lag_ns: Option<(Nanos, Nanos)>) -> String {
    lag_ns.map_or_else(String::new, |(mean, most)| {
        format!("; send lag by {program}: mean {mean}, max {most}")
    })
}

/// Rounded down: a rate to ask for.
fn two_digits(per_s: f64) -> u64 {
    let n = per_s.max(1.0) as u64;
    let step = 10u64.pow(n.ilog10().saturating_sub(1));
    (n / step * step).max(1)
}

fn how_often(per_request: f64) -> String {
    // nginx ends one after 1,000 requests.
    match per_request {
        n if n > 0.0 && n < 0.1 => {
            format!("a new one every {} requests", grouped((1.0 / n) as u64))
        }
        n => format!("{n:.2} new ones a request"),
    }
}

fn round_trips_more(round_trips: Option<f64>) -> String {
    match round_trips {
        Some(n) => format!(
            "predictions for another path add {n:.0} round trip{} for each reconnect",
            if n == 1.0 { "" } else { "s" }
        ),
        None => "predictions for another path leave it out".into(),
    }
}

fn listed(by_cause: &BTreeMap<String, u64>) -> String {
    let each: Vec<String> =
        by_cause.iter().map(|(why, n)| format!("{} × {why}", grouped(*n))).collect();
    each.join(", ")
}

fn rounds_repeated(by_cause: &BTreeMap<String, u64>) -> String {
    let n: u64 = by_cause.values().sum();
    let (rounds, was, it) = match n {
        1 => ("round", "was", "it"),
        _ => ("rounds", "were", "them"),
    };
    let each = listed(by_cause);
    format!("{n} {rounds} failed and {was} repeated; the figures leave {it} out: {each}")
}

coded!(Warning);

#[cfg(test)]
mod tests;
