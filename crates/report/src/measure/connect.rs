//! `measure connect` as text.

use model::{
    Bytes,
    measure::{Close, ConnectDocument, ConnectRun, PortBudget, Quantiles},
    reading::{Absent, Denied, Known},
    units::grouped,
};

use super::{
    Run, cpu, ends,
    head::{Head, waits, waits_said},
    intervals,
    numbers::{largest, none, per_second, quantile, width},
    rest,
    runs::{self, Aspect, Value, about, alike, flows, tell_apart},
    sweep,
};
use crate::text::{Ink, Line, Page, TextStyle};

pub fn text(d: &ConnectDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    let (apart, said) = tell_apart(&d.runs, aspects());
    Head {
        what: "Connections",
        common: &d.request.common,
        local: &d.local,
        peer: &d.peer,
        said,
        runs: &d.runs,
        interrupted: d.interrupted,
        missing: String::new(),
    }
    .show(answer(&d.runs), &mut page);
    let [rates, connects, first_bytes, lags, failures] = values(&d.runs);
    runs::table(&mut page, &d.runs, &apart, &[&rates, &connects, &first_bytes, &lags, &failures]);
    let interval = |r: &'_ ConnectRun| r.connections_per_s_interval.clone();
    intervals::show(&d.runs, "rate", &interval, &mut page);
    accepted(&d.runs, &mut page);
    failed(&d.runs, &mut page);
    rest::warnings(&d.runs, &mut page);
    ports(&d.runs, &mut page);
    let unit = cpu::Unit { name: "CONNECTION", of: 1.0 };
    let medians = d.runs.iter().filter(|r| r.connect_ns.count > 0).map(|r| r.connect_ns.p50);
    ends::show(&d.runs, &unit, &d.floor, medians.min(), &mut page);
    page.finish()
}

/// The rate and the median of a single run; the knee of a sweep over flows, or the range of rates.
fn answer(runs: &[ConnectRun]) -> Option<Line> {
    let [r] = runs else {
        let closed = runs.iter().all(|r| r.start_lag_ns.is_none());
        let points: Vec<(u32, f64)> = runs.iter().map(|r| (r.flows, r.connections_per_s)).collect();
        let rates: Vec<f64> = points.iter().map(|p| p.1).collect();
        let knee = closed.then(|| sweep::knee(&points, "flow")).flatten();
        return knee.or_else(|| sweep::range("connections/s", &rates, per_second));
    };
    if r.connections == 0 {
        return None;
    }
    let rate = r.connections_per_s_interval.as_ref();
    let rate = intervals::figure(&per_second(r.connections_per_s).text("/s"), rate, per_second);
    let p50 = quantile(&r.connect_ns, 0.5, |q| q.p50).bare();
    Some(Line::new().ink(Ink::Strong, format!("{rate} · p50 {p50}")))
}

fn aspects() -> Vec<Aspect<ConnectRun>> {
    vec![
        Aspect { head: "FLOWS", cell: |r| grouped(r.flows.into()), said: |r| flows(r.flows) },
        runs::threads(),
        Aspect {
            head: "REQUEST",
            cell: |r| Bytes(r.request_bytes).to_string(),
            said: |r| match (r.request_bytes, r.response_bytes) {
                (0, 0) => "no request".into(),
                (out, back) => {
                    format!("{} request, {} response on each connection", Bytes(out), Bytes(back))
                }
            },
        },
        Aspect {
            head: "CLOSED BY",
            cell: |r| closed(r.close).into(),
            said: |r| match r.close {
                Close::Local => "closed by the client".into(),
                Close::Peer => "closed by the server".into(),
                Close::Reset => "reset by the client".into(),
            },
        },
        Aspect { head: "WAIT", cell: |r| waits(r.waits()), said: |r| waits_said(r.waits()) },
    ]
}

fn closed(close: Close) -> &'static str {
    match close {
        Close::Local => "client",
        Close::Peer => "server",
        Close::Reset => "reset",
    }
}

type Values = Vec<Value<ConnectRun>>;

fn values(runs: &[ConnectRun]) -> [Values; 5] {
    let rates: Values = vec![
        Value { head: "PER S", cell: rate },
        Value { head: "±", cell: |r| width(r.connections_per_s_interval.as_ref()) },
    ];
    let connects: Values = vec![
        Value { head: "CONNECT P50", cell: |r| quantile(&r.connect_ns, 0.5, |q| q.p50) },
        Value { head: "P99", cell: |r| quantile(&r.connect_ns, 0.99, |q| q.p99) },
        Value { head: "MAX", cell: |r| largest(&r.connect_ns) },
    ];
    let mut first_bytes: Values = vec![];
    if runs.iter().any(|r| r.first_byte_ns.is_some()) {
        first_bytes.extend::<[Value<ConnectRun>; 3]>([
            Value { head: "FIRST BYTE P50", cell: |r| first(r, 0.5, |q| q.p50) },
            Value { head: "P99", cell: |r| first(r, 0.99, |q| q.p99) },
            Value { head: "MAX", cell: |r| r.first_byte_ns.as_ref().map_or_else(none, largest) },
        ]);
    }
    let mut lags: Values = vec![];
    if runs.iter().any(|r| r.start_lag_ns.is_some()) {
        lags.extend::<[Value<ConnectRun>; 3]>([
            Value { head: "START LAG P50", cell: |r| late(r, 0.5, |q| q.p50) },
            Value { head: "P99", cell: |r| late(r, 0.99, |q| q.p99) },
            Value { head: "MAX", cell: |r| r.start_lag_ns.as_ref().map_or_else(none, largest) },
        ]);
    }
    let mut failures: Values = vec![];
    if runs.iter().any(|r| !r.failed.is_empty()) {
        failures.push(Value { head: "FAILED", cell: all_failed });
    }
    [rates, connects, first_bytes, lags, failures]
}

/// A dash where nothing was measured: a 0 would be a result.
fn rate(r: &ConnectRun) -> Line {
    if r.connections == 0 { none() } else { per_second(r.connections_per_s) }
}

fn late(r: &ConnectRun, share: f64, pick: fn(&Quantiles) -> u64) -> Line {
    r.start_lag_ns.as_ref().map_or_else(none, |q| quantile(q, share, pick))
}

fn all_failed(r: &ConnectRun) -> Line {
    match r.failed.values().fold(0u64, |a, n| a.saturating_add(*n)) {
        0 => Line::plain("0"),
        n => Line::new().ink(Ink::Bad, grouped(n)),
    }
}

fn first(r: &ConnectRun, share: f64, pick: fn(&Quantiles) -> u64) -> Line {
    r.first_byte_ns.as_ref().map_or_else(none, |q| quantile(q, share, pick))
}

/// Where the two ends count differently.
fn accepted(runs: &[ConnectRun], page: &mut Page) {
    for (n, run) in runs.iter().enumerate() {
        let Some(theirs) = run.peer_accepted_in_all.get() else { continue };
        if theirs != run.established_in_all {
            let text = format!(
                "{}the client established {} connections, the server accepted {}.",
                about(&[n + 1], runs.len()),
                grouped(run.established_in_all),
                grouped(theirs)
            );
            page.line(Line::new().ink(Ink::Warn, text), 2);
        }
    }
}

/// Attempts that failed, by what the kernel said.
fn failed(runs: &[ConnectRun], page: &mut Page) {
    for (n, run) in runs.iter().enumerate() {
        rest::failures(&run.failed, &about(&[n + 1], runs.len()), page);
    }
}

/// What the local ports allow.
fn ports(runs: &[ConnectRun], page: &mut Page) {
    if runs.is_empty() {
        return;
    }
    page.heading("LOCAL PORTS");
    let lines = runs.iter().enumerate().map(|(n, r)| (n + 1, budget(r)));
    for (line, numbers) in alike(lines) {
        let about = about(&numbers, runs.len());
        page.line(Line::plain("  ").ink(Ink::Faint, about).also(line), 4);
    }
}

fn budget(r: &ConnectRun) -> Line {
    let b: &PortBudget = match &r.ports {
        Known(b) => b,
        Absent(why) | Denied(why) => return Line::new().ink(Ink::Faint, why),
    };
    let from = match b.addresses {
        0 | 1 => String::new(),
        n => format!(" and local address ({n} addresses)"),
    };
    let limit = match r.close {
        Close::Local => format!(
            "A closed connection keeps its port for {}: at most {} connections/s are sustainable.",
            b.kept_ns,
            per_second(b.sustained_per_s).bare()
        ),
        Close::Peer => "The server closes: no port stays in TIME_WAIT at the client.".into(),
        Close::Reset => "The client resets: no port stays in TIME_WAIT.".into(),
    };
    let text = format!(
        "{} ports per destination{from}; in TIME_WAIT {} before, {} after. {limit}",
        grouped(b.ports),
        grouped(b.time_wait_before),
        grouped(b.time_wait_after),
    );
    let faster = r.close == Close::Local && r.connections_per_s > b.sustained_per_s;
    let line = Line::plain(text);
    match faster {
        true => line.ink(Ink::Warn, " This run was faster: a longer run would exhaust the ports."),
        false => line,
    }
}
