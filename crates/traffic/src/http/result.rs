//! The run, from what the threads kept.

use std::collections::BTreeMap;

use model::{
    Nanos, Reading, Warning,
    measure::{HttpRun, HttpSpec, Transport},
};
use stats::Histogram;

use super::{recorder::HttpRecorder, statuses};
use crate::{
    assignments::Assignments,
    client::ends,
    connect::errno_text,
    engine::{admitted::Admitted, backlog::Backlog, failed::Failed, sums::Sums},
};

const UNTOLD: &str = "a server of another kind does not tell; a responder on its host would \
                      (--responder)";

/// The run; `request_bytes` is the mean length of its requests, which are sent in turn.
pub fn http_run(
    spec: &HttpSpec,
    flows: u32,
    assignments: &Assignments,
    same_host: bool,
    request_bytes: f64,
    sums: &Sums<HttpRecorder>,
) -> HttpRun {
    let Sums { all, ends, window_ns, .. } = sums;
    let transactions = all.requests.answered;
    let per_s = transactions as f64 * 1e9 / (*window_ns).max(1) as f64;
    // The looks enclose the window; with a number of requests nothing moved in the rest.
    let mut cpu = match spec.requests {
        Some(_) => ends.cpu(|_| transactions),
        None => ends.cpu(ends::at_rate(per_s)),
    };
    let mut placement = ends.placement(assignments, same_host);
    placement.peer.migrations = Reading::absent(UNTOLD);
    if spec.responder.is_none() {
        cpu.peer = Reading::absent(UNTOLD);
    }
    let (p50, rate) = sums.estimates();
    let open = |h: &Option<Histogram>| h.as_ref().map(Histogram::quantiles);
    HttpRun {
        transport: Transport::Tcp,
        clients: flows,
        threads: spec.common.threads,
        pipeline: spec.pipeline,
        new_connections: spec.new_connections,
        wait: spec.common.wait,
        placement,
        window_ns: Nanos(*window_ns),
        trimmed_ns: Nanos(spec.common.warmup_ns.0 + spec.common.cooldown_ns.0),
        transactions,
        transactions_per_s: per_s,
        transactions_per_s_interval: rate.map(|e| e.interval),
        target_per_s: spec.rate_per_s,
        latency_p50_interval_ns: p50.map(|e| e.interval),
        latency_ns: all.requests.latency.quantiles(),
        latency_from_send_ns: open(&all.requests.from_send),
        send_lag_ns: open(&all.requests.lag),
        first_byte_ns: all.first_byte.quantiles(),
        connect_ns: all.requests.connect.quantiles(),
        tls_handshake_ns: spec.is_tls().then(|| all.requests.handshakes.took.quantiles()),
        tls: all.requests.handshakes.run(!spec.tls.insecure),
        statuses: statuses(all),
        failed: all.requests.failures(),
        failures: failures(spec, all),
        reconnects: all.requests.fate.reconnects,
        reopened: if spec.new_connections { 0 } else { all.requests.reopened },
        disconnected_ns: (!spec.new_connections)
            .then_some(Nanos(all.requests.fate.disconnected_ns)),
        not_started: all.requests.fate.left.not_started,
        schedule_lag_ns: by_schedule(spec).map(|_| Nanos(all.requests.fate.left.schedule_lag_ns)),
        unfinished: all.requests.fate.unfinished,
        request_bytes: (request_bytes * transactions as f64).round() as u64,
        response_bytes: all.bytes,
        receives: all.receives,
        cpu,
        evidence: ends.evidence(),
        intervals: sums.intervals.clone(),
        warnings: warnings(spec, flows, per_s, sums),
    }
}

/// The rate of a schedule that lasts as long as the window.
fn by_schedule(spec: &HttpSpec) -> Option<u64> {
    spec.rate_per_s.filter(|_| spec.requests.is_none())
}

/// What the server calls itself.
pub fn server(all: &HttpRecorder) -> String {
    all.server.clone().unwrap_or_else(|| "an HTTP server (no Server header)".into())
}

fn statuses(all: &HttpRecorder) -> BTreeMap<u16, u64> {
    (0u16..).zip(all.statuses.iter().copied()).filter(|(_, n)| *n > 0).collect()
}

fn failures(spec: &HttpSpec, all: &HttpRecorder) -> BTreeMap<String, u64> {
    let mut by_name = BTreeMap::new();
    for (why, n) in &all.requests.failed {
        *by_name.entry(named(why, spec.timeout_ns)).or_default() += n;
    }
    by_name
}

/// In words; what the kernel said, with its name.
fn named(why: &Failed, limit: Nanos) -> String {
    match why {
        Failed::Connecting(errno) => format!("not connected: {}", errno_text(*errno)),
        Failed::NoConnection => format!("not connected in {limit}"),
        Failed::Talking(errno) => errno_text(*errno),
        Failed::NoAnswer => format!("no whole response in {limit}"),
        Failed::ClosedBefore => "closed by the server before its response".into(),
        Failed::ClosedWithin => "closed by the server within its response".into(),
        Failed::Bad(why) | Failed::Tls(why) => (*why).into(),
        Failed::Server(code) => code.clone(),
    }
}

fn backlog(spec: &HttpSpec, flows: u32, per_s: f64, sums: &Sums<HttpRecorder>) -> Option<Warning> {
    Backlog {
        what: "requests",
        places: "--flows",
        rate_per_s: by_schedule(spec)?,
        per_s,
        at_once: u64::from(flows) * u64::from(spec.pipeline),
        left: sums.all.requests.fate.left,
        window_ns: sums.window_ns,
    }
    .warning()
}

fn admitted(spec: &HttpSpec, flows: u32, sums: &Sums<HttpRecorder>) -> Option<Warning> {
    Admitted {
        who: "connections",
        limit: "nginx: worker_connections, worker_processes",
        asked: flows,
        kept: !spec.new_connections && spec.requests.is_none(),
        answers: true,
        keep: "Have it keep them (nginx: keepalive_timeout, keepalive_requests), or measure with \
               --new-connections, whose times have it",
        window_ns: sums.window_ns,
    }
    .warning(&sums.all.requests.fate, |why| named(why, spec.timeout_ns))
}

fn warnings(spec: &HttpSpec, flows: u32, per_s: f64, sums: &Sums<HttpRecorder>) -> Vec<Warning> {
    let Sums { all: recorded, ends, .. } = sums;
    let mut all = vec![];
    if spec.is_tls() && spec.tls.insecure {
        all.push(Warning::CertificateNotChecked);
    }
    let closed =
        |why: &Failed| matches!(why, Failed::ClosedBefore | Failed::ClosedWithin | Failed::Bad(_));
    if !spec.is_tls()
        && recorded.requests.answered == 0
        && recorded.requests.failures() > 0
        && recorded.requests.failed.keys().all(closed)
    {
        all.push(Warning::PerhapsTls);
    }
    all.extend(backlog(spec, flows, per_s, sums));
    all.extend(admitted(spec, flows, sums));
    match recorded.requests.fate.unfinished {
        0 => {}
        count => all.push(Warning::Unfinished {
            count,
            what: "requests".into(),
            done: "answered".into(),
        }),
    }
    all.extend(statuses::of_statuses(&statuses(recorded)));
    if spec.requests.is_some() && spec.rate_per_s.is_none() && recorded.requests.settled() < 100 {
        all.push(Warning::FewMeasured { what: "requests".into() });
    }
    all.extend(ends.warnings());
    all
}
