//! Combines the threads' records into one run of the result document.

use std::collections::BTreeMap;

use model::{
    Nanos, Warning,
    measure::{HttpRun, HttpSpec, Transport},
};
use stats::Histogram;
use traffic::engine::{
    admitted::Admitted,
    assignments::Assignments,
    backlog::Backlog,
    failed::{Failed, Words},
    sums::{EndsAsked, Sums},
};

use super::{recorder::HttpRecorder, statuses};

const WORDS: Words = Words { unconnected: "not connected", answer: "response" };
const NO_RESPONDER: &str = "this kind of server does not report it; a responder on its host does \
                      (--responder)";

/// The run's result; `request_bytes` is the mean length of its requests, which are sent in turn.
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
    let asked = EndsAsked {
        total: spec.requests.is_some(),
        responder: spec.responder.is_some(),
        assignments,
        same_host,
        no_responder_reason: NO_RESPONDER,
    };
    let (cpu, placement) = sums.both_ends(&asked, (transactions, per_s));
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
        failures: all.requests.failures_by_text(spec.timeout_ns, WORDS),
        reconnects: all.requests.connections.reconnects,
        reopened: if spec.new_connections { 0 } else { all.requests.reopened },
        disconnected_ns: (!spec.new_connections)
            .then_some(Nanos(all.requests.connections.disconnected_ns)),
        not_started: all.requests.connections.left.not_started,
        schedule_lag_ns: by_schedule(spec)
            .map(|_| Nanos(all.requests.connections.left.schedule_lag_ns)),
        unfinished: all.requests.connections.unfinished,
        request_bytes: (request_bytes * transactions as f64).round() as u64,
        response_bytes: all.bytes,
        receives: all.receives,
        cpu,
        evidence: ends.evidence(),
        intervals: sums.intervals.clone(),
        warnings: warnings(spec, flows, per_s, sums),
    }
}

/// The scheduled rate, if the schedule lasts for the whole window.
fn by_schedule(spec: &HttpSpec) -> Option<u64> {
    spec.rate_per_s.filter(|_| spec.requests.is_none())
}

/// The server's name for itself.
pub fn server(all: &HttpRecorder) -> String {
    all.server.clone().unwrap_or_else(|| "an HTTP server (no Server header)".into())
}

fn statuses(all: &HttpRecorder) -> BTreeMap<u16, u64> {
    (0u16..).zip(all.statuses.iter().copied()).filter(|(_, n)| *n > 0).collect()
}

fn backlog(spec: &HttpSpec, flows: u32, per_s: f64, sums: &Sums<HttpRecorder>) -> Option<Warning> {
    Backlog {
        what: "requests",
        places: "--flows",
        rate_per_s: by_schedule(spec)?,
        per_s,
        at_once: u64::from(flows) * u64::from(spec.pipeline),
        left: sums.all.requests.connections.left,
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
    .warning(&sums.all.requests.connections, |why| {
        why.text(spec.timeout_ns, WORDS, &sums.all.requests.messages)
    })
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
    match recorded.requests.connections.unfinished {
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
