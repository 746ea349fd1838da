//! The run, from what the threads kept.

use std::collections::BTreeMap;

use model::{
    Nanos, Reading,
    measure::{PgRun, PgScriptRun, PgSpec, PgStatement, Quantiles},
};
use stats::{Histogram, Series};

use super::{
    near::Shape,
    recorder::{Failed, Recorder},
};
use crate::{
    Error,
    client::{
        conduct::Course,
        ends::{self, Around, Ends},
    },
    connect::errno_text,
    control::message::Ready,
    seats::Seats,
    team::Seen,
};

const UNTOLD: &str = "PostgreSQL does not tell";

/// A run that is over.
#[derive(Debug)]
pub struct Round {
    pub recorders: Vec<Recorder>,
    pub course: Course,
    /// When the first connection was begun.
    pub begun_ns: u64,
    pub seen: Seen,
    pub broken: Option<Error>,
}

impl Round {
    fn sum(&self, of: impl Fn(&Recorder) -> u64) -> u64 {
        self.recorders.iter().map(of).sum()
    }

    fn failed(&self) -> u64 {
        self.sum(|r| r.failed.values().sum())
    }

    fn settled(&self) -> u64 {
        self.sum(|r| r.latency.count()) + self.failed()
    }

    /// Whether it ended before its time, or before all that was asked for.
    pub fn is_cut_short(&self, spec: &PgSpec) -> bool {
        match spec.transactions {
            Some(all) => self.settled() < all,
            None => self.course.cut_short,
        }
    }

    /// The window: with a number of requests it ends with the last of them.
    fn window_ns(&self, spec: &PgSpec) -> u64 {
        let last = self.recorders.iter().map(|r| r.last_ns).max().unwrap_or(0);
        match spec.transactions.is_some() && !self.is_cut_short(spec) {
            true => last.saturating_sub(self.course.start_ns),
            false => self.course.window_ns,
        }
    }

    /// How long it took until all connections were made.
    fn connecting_ns(&self) -> u64 {
        let last = self.recorders.iter().map(|r| r.connected_ns).max().unwrap_or(0);
        last.saturating_sub(self.begun_ns)
    }

    /// All threads' batches.
    fn series(&self, window_ns: u64) -> Option<Series> {
        let until = self.course.start_ns + window_ns;
        let mut parts =
            self.recorders.iter().filter_map(|r| Some(r.batches.as_ref()?.series(until)));
        let mut all = parts.next()?;
        // Batches of one beginning and of lengths that double are always alike.
        parts.for_each(|p| {
            let _ = all.add(&p);
        });
        Some(all)
    }

    fn histogram(&self, of: impl Fn(&Recorder) -> Option<&Histogram>) -> Histogram {
        let mut sum = Histogram::new();
        self.recorders.iter().filter_map(of).for_each(|h| sum.add(h));
        sum
    }
}

/// The run.
pub fn pg_run(
    spec: &PgSpec,
    clients: u32,
    shape: &Shape,
    seats: &Seats,
    same_host: bool,
    round: &Round,
) -> PgRun {
    let window_ns = round.window_ns(spec);
    let latency = round.histogram(|r| Some(&r.latency));
    let series = round.series(window_ns);
    let transactions = latency.count();
    let per_s = by_second(transactions, window_ns as f64);
    let mut ends = Ends::default();
    let ready = Ready { why: "not ours to place".into(), ..Ready::default() };
    let Round { course, seen, .. } = round;
    ends.add_around(Around {
        ready: &ready,
        marks: &course.marks,
        seen,
        report: None,
        warnings: &[],
    });
    // The looks enclose the window; with a number of transactions nothing moved in the rest.
    let mut cpu = match spec.transactions {
        Some(_) => ends.cpu(|_| transactions),
        None => ends.cpu(ends::at_rate(per_s)),
    };
    cpu.peer = Reading::absent(UNTOLD);
    let mut placement = ends.placement(seats, same_host);
    placement.peer.migrations = Reading::absent(UNTOLD);
    let open = |of: fn(&Recorder) -> Option<&Histogram>| {
        spec.rate_per_s.map(|_| round.histogram(of).quantiles())
    };
    let connect = round.histogram(|r| Some(&r.connect));
    let (with, without) = rates(spec, clients, round, transactions, window_ns, &connect);
    PgRun {
        transport: shape.transport,
        clients,
        threads: spec.common.threads,
        protocol: spec.protocol,
        connect_each: spec.connect_each,
        wait: spec.common.wait,
        placement,
        window_ns: Nanos(window_ns),
        trimmed_ns: Nanos(spec.common.warmup_ns.0 + spec.common.cooldown_ns.0),
        transactions,
        transactions_per_s: per_s,
        transactions_per_s_interval: series
            .as_ref()
            .and_then(|s| Some(stats::interval::of_rate(s).ok()?.interval)),
        transactions_per_s_with_connecting: with,
        transactions_per_s_without_connecting: without,
        target_per_s: spec.rate_per_s,
        latency_p50_interval_ns: series
            .as_ref()
            .and_then(|s| Some(stats::interval::of_quantile(s, &latency, 0.5).ok()?.interval)),
        latency_ns: latency.quantiles(),
        latency_from_send_ns: open(|r| r.from_send.as_ref()),
        send_lag_ns: open(|r| r.lag.as_ref()),
        connect_ns: connect.quantiles(),
        statements: round.sum(|r| r.statements),
        failed: round.failed(),
        failures: failures(spec, round),
        retried: round.sum(|r| r.retried),
        retries: round.sum(|r| r.retries),
        reconnects: round.sum(|r| r.reconnects),
        not_begun: round.sum(|r| r.not_begun),
        unfinished: round.sum(|r| r.unfinished),
        scripts: scripts(spec, shape, round, &latency.quantiles()),
        cpu,
        evidence: ends.evidence(),
        warnings: warnings(spec, round, &ends),
    }
}

fn by_second(transactions: u64, ns: f64) -> f64 {
    transactions as f64 * 1e9 / ns.max(1.0)
}

/// Transactions a second with the time that it took to connect and without it.
fn rates(
    spec: &PgSpec,
    clients: u32,
    round: &Round,
    transactions: u64,
    window_ns: u64,
    connect: &Histogram,
) -> (f64, f64) {
    let window = window_ns as f64;
    let rate = |ns| by_second(transactions, ns);
    if !spec.connect_each {
        return (rate(window + round.connecting_ns() as f64), rate(window));
    }
    // What each client spent on it, in the mean.
    let spent = connect.mean().unwrap_or(0.0) * connect.count() as f64 / f64::from(clients.max(1));
    (rate(window), rate((window - spent).max(window / 1000.0)))
}

fn scripts(spec: &PgSpec, shape: &Shape, round: &Round, all: &Quantiles) -> Vec<PgScriptRun> {
    let plan = &shape.plan;
    let statements =
        |script: usize| plan.statements.iter().enumerate().filter(move |(_, s)| s.script == script);
    let part = |script: usize| {
        let latency_ns = match plan.scripts.len() {
            1 => all.clone(),
            _ => round.histogram(|r| Some(&r.scripts.get(script)?.latency)).quantiles(),
        };
        let asked = &plan.scripts.get(script)?.asked;
        Some(PgScriptRun {
            name: asked.name.clone(),
            weight: asked.weight,
            transactions: latency_ns.count,
            latency_ns,
            failed: round.sum(|r| r.scripts.get(script).map_or(0, |s| s.failed)),
            statements: statements(script)
                .filter(|_| spec.per_statement)
                .map(|(n, statement)| PgStatement {
                    sql: statement.shown.clone(),
                    latency_ns: round.histogram(|r| r.by_statement.get(n)).quantiles(),
                })
                .collect(),
        })
    };
    (0..plan.scripts.len()).filter_map(part).collect()
}

fn failures(spec: &PgSpec, round: &Round) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (why, n) in round.recorders.iter().flat_map(|r| &r.failed) {
        *all.entry(named(why, spec.timeout_ns, round)).or_default() += n;
    }
    all
}

/// In words; what the kernel or the server said, with its name.
fn named(why: &Failed, limit: Nanos, round: &Round) -> String {
    match why {
        Failed::Connecting(errno) => format!("not connected: {}", errno_text(*errno)),
        Failed::NoConnection => format!("no session in {limit}"),
        Failed::Talking(errno) => errno_text(*errno),
        Failed::NoAnswer => format!("no whole answer in {limit}"),
        Failed::Closed => "closed by the server before its answer".into(),
        Failed::Bad(why) => (*why).into(),
        Failed::Server(code) => {
            // Of all threads the first one's: else one failure would have several names.
            let message = round.recorders.iter().find_map(|r| r.messages.get(code));
            format!("{code}: {}", message.map_or("", String::as_str))
        }
    }
}

fn warnings(spec: &PgSpec, round: &Round, ends: &Ends) -> Vec<String> {
    let mut all = vec![];
    match round.sum(|r| r.not_begun) {
        0 => {}
        n => all.push(format!(
            "{n} transactions of the schedule were not begun: every connection was busy; the \
             times leave them out. Give more --clients or a lower --rate"
        )),
    }
    match round.sum(|r| r.unfinished) {
        0 => {}
        n => all.push(format!(
            "{n} transactions had no end when the run ended and count as neither done nor failed"
        )),
    }
    if spec.transactions.is_some() && spec.rate_per_s.is_none() && round.settled() < 100 {
        all.push("so few transactions say little of the server once it is warm".into());
    }
    all.extend(ends.warnings());
    all
}
