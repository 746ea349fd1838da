//! Combines the threads' records into one run of the result document.

use model::{
    Nanos, Reading, Warning,
    measure::{PgDriver, PgRun, PgScriptRun, PgSpec, PgStatement, Quantiles},
};
use stats::Histogram;
use traffic::engine::{
    admitted::Admitted,
    assignments::Assignments,
    backlog::Backlog,
    failed::Words,
    sums::{EndsAsked, Sums},
};

use super::{plan::Plan, protocol::PgShape, recorder::PgRecorder, unsent};

const WORDS: Words = Words { unconnected: "no session", answer: "answer" };
const NO_RESPONDER: &str =
    "PostgreSQL does not report it; a responder on its host does (--responder)";

/// Text such as `1 client` or `8 clients`.
pub fn clients_text(n: u32) -> String {
    format!("{n} client{}", if n == 1 { "" } else { "s" })
}

pub fn pg_run(
    spec: &PgSpec,
    clients: u32,
    shape: &PgShape,
    assignments: &Assignments,
    same_host: bool,
    sums: &Sums<PgRecorder>,
) -> PgRun {
    let Sums { all, ends, window_ns, .. } = sums;
    let transactions = all.requests.answered;
    let per_s = by_second(transactions, *window_ns as f64);
    let asked = EndsAsked {
        total: spec.transactions.is_some(),
        responder: spec.responder.is_some(),
        assignments,
        same_host,
        no_responder_reason: NO_RESPONDER,
    };
    let (cpu, placement) = sums.both_ends(&asked, (transactions, per_s));
    let (p50, rate) = sums.estimates();
    let open = |h: &Option<Histogram>| h.as_ref().map(Histogram::quantiles);
    let (with, without) = rates(spec, clients, sums);
    PgRun {
        transport: shape.connecting.way.transport,
        clients,
        threads: spec.common.threads,
        protocol: spec.protocol,
        connect_each: spec.connect_each,
        wait: spec.common.wait,
        placement,
        window_ns: Nanos(*window_ns),
        trimmed_ns: Nanos(spec.common.warmup_ns.0 + spec.common.cooldown_ns.0),
        transactions,
        transactions_per_s: per_s,
        transactions_per_s_interval: rate.map(|e| e.interval),
        transactions_per_s_with_connecting: with,
        transactions_per_s_without_connecting: without,
        target_per_s: spec.rate_per_s,
        latency_p50_interval_ns: p50.map(|e| e.interval),
        latency_ns: all.requests.latency.quantiles(),
        latency_from_send_ns: open(&all.requests.from_send),
        send_lag_ns: open(&all.requests.lag),
        connect_ns: all.requests.connect.quantiles(),
        tls_handshake_ns: shape
            .connecting
            .tls
            .as_ref()
            .map(|_| all.requests.handshakes.took.quantiles()),
        tls: all.requests.handshakes.run(shape.verifies),
        statements: Reading::Known(all.statements),
        moved: Reading::Known(all.moved),
        failed: all.requests.failures(),
        failures: all.requests.failures_by_text(spec.timeout_ns, WORDS),
        refused: all.requests.refused_by_text(spec.timeout_ns, WORDS),
        retried: all.retried,
        retries: all.retries,
        reconnects: all.requests.connections.reconnects,
        not_started: Reading::Known(all.requests.connections.left.not_started),
        schedule_lag_ns: by_schedule(spec)
            .map(|_| Nanos(all.requests.connections.left.schedule_lag_ns)),
        unfinished: all.requests.connections.unfinished,
        scripts: scripts(spec, shape, all),
        cpu,
        evidence: ends.evidence(),
        intervals: sums.intervals.clone(),
        warnings: warnings(spec, clients, &shape.plan, per_s, sums),
    }
}

/// The scheduled rate, if our schedule lasts for the whole window.
fn by_schedule(spec: &PgSpec) -> Option<u64> {
    spec.rate_per_s.filter(|_| spec.transactions.is_none())
}

fn by_second(transactions: u64, ns: f64) -> f64 {
    transactions as f64 * 1e9 / ns.max(1.0)
}

/// Transactions per second, including and excluding connection time.
fn rates(spec: &PgSpec, clients: u32, sums: &Sums<PgRecorder>) -> (f64, f64) {
    let Sums { all, .. } = sums;
    let window = sums.window_ns as f64;
    let rate = |ns| by_second(all.requests.answered, ns);
    if !spec.connect_each {
        // The slowest round's connection time stands for each round.
        let connecting = all.requests.connecting_ns as f64 * sums.rounds.max(1) as f64;
        return (rate(window + connecting), rate(window));
    }
    // Mean connection time of a client.
    let connect = &all.requests.connect;
    let spent = connect.mean().unwrap_or(0.0) * connect.count() as f64 / f64::from(clients.max(1));
    (rate(window), rate((window - spent).max(window / 1000.0)))
}

fn scripts(spec: &PgSpec, shape: &PgShape, all: &PgRecorder) -> Vec<PgScriptRun> {
    let plan = &shape.plan;
    let statements =
        |script: usize| plan.statements.iter().enumerate().filter(move |(_, s)| s.script == script);
    let quantiles = |h: Option<&Histogram>| h.map_or_else(Quantiles::default, Histogram::quantiles);
    let part = |script: usize| {
        let record = all.scripts.get(script);
        let latency_ns = match plan.scripts.len() {
            1 => all.requests.latency.quantiles(),
            _ => record?.latency.quantiles(),
        };
        let asked = &plan.scripts.get(script)?.asked;
        Some(PgScriptRun {
            name: asked.name.clone(),
            weight: asked.weight,
            transactions: record.map_or(0, |s| s.answered),
            latency_ns,
            failed: record.map_or(0, |s| s.failed),
            statements: statements(script)
                .filter(|_| spec.per_statement)
                .map(|(n, statement)| PgStatement {
                    sql: statement.shown.clone(),
                    latency_ns: quantiles(all.by_statement.get(n)),
                })
                .collect(),
        })
    };
    (0..plan.scripts.len()).filter_map(part).collect()
}

fn backlog(spec: &PgSpec, clients: u32, per_s: f64, sums: &Sums<PgRecorder>) -> Option<Warning> {
    Backlog {
        what: "transactions",
        places: "--flows",
        rate_per_s: by_schedule(spec)?,
        per_s,
        at_once: clients.into(),
        left: sums.all.requests.connections.left,
        window_ns: sums.window_ns,
    }
    .warning()
}

fn admitted(
    spec: &PgSpec,
    clients: u32,
    answers: bool,
    sums: &Sums<PgRecorder>,
) -> Option<Warning> {
    Admitted {
        who: "clients",
        limit: "max_connections, a role's or database's connection limit, a pooler's",
        asked: clients,
        kept: !spec.connect_each && spec.transactions.is_none(),
        answers,
        keep: "Have it, or the pooler between, keep them, or measure with --connect-each, whose times \
               have it",
        window_ns: sums.window_ns,
    }
    .warning(&sums.all.requests.connections, |why| why.text(spec.timeout_ns, WORDS, &sums.all.requests.messages))
}

fn warnings(
    spec: &PgSpec,
    clients: u32,
    plan: &Plan,
    per_s: f64,
    sums: &Sums<PgRecorder>,
) -> Vec<Warning> {
    let Sums { all: recorded, ends, .. } = sums;
    let mut all = vec![];
    let unsent = unsent::count(plan, recorded, spec.driver == PgDriver::Pgbench);
    all.extend(unsent::warning(unsent, recorded.requests.answered));
    all.extend(backlog(spec, clients, per_s, sums));
    // A run that sent nothing has no answers.
    let answers = unsent < recorded.requests.answered.max(1);
    all.extend(admitted(spec, clients, answers, sums));
    match recorded.requests.connections.unfinished {
        0 => {}
        count => all.push(Warning::Unfinished {
            count,
            what: "transactions".into(),
            done: "done".into(),
        }),
    }
    if spec.transactions.is_some() && spec.rate_per_s.is_none() && recorded.requests.settled() < 100
    {
        all.push(Warning::FewMeasured { what: "transactions".into() });
    }
    all.extend(ends.warnings());
    all
}
