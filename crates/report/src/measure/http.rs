//! `measure http` as text.

use model::{
    Bytes,
    measure::{HttpDocument, HttpRun, Quantiles, Wait},
    units::grouped,
};

use super::{
    Run, cpu, ends,
    head::{Head, waits},
    numbers::{largest, none, per_second, quantile, width},
    rest,
    runs::{self, Aspect, Value, about, tell_apart},
};
use crate::{
    text::{Ink, Line, Look, Page},
    words::many,
};

/// The whole result.
pub fn text(d: &HttpDocument, look: Look) -> String {
    let mut page = Page::new(look);
    let (apart, mut said) = tell_apart(&d.runs, aspects());
    let more = d.request.urls.len().saturating_sub(1);
    if more > 0 {
        said.insert(0, format!("and {} in turn", many(more, "more URL")));
    }
    if let Some(rate) = d.request.rate_per_s {
        said.push(format!("{} a second by schedule", grouped(rate)));
    }
    let what = format!("{} requests", d.request.method);
    Head {
        what: &what,
        common: &d.request.common,
        local: &d.local,
        peer: &d.peer,
        said,
        runs: &d.runs,
        cut_short: d.cut_short,
    }
    .show(&mut page);
    let groups = values(&d.runs);
    let groups: Vec<&[Value<HttpRun>]> = groups.iter().map(Vec::as_slice).collect();
    runs::table(&mut page, &d.runs, &apart, &groups);
    tls(d, &mut page);
    statuses(&d.runs, &mut page);
    failures(&d.runs, &mut page);
    reconnects(&d.runs, &mut page);
    rest::warnings(&d.runs, &mut page);
    ends::placement(&d.runs, &mut page);
    cpu::show(&d.runs, &cpu::Unit { name: "REQUEST", of: 1.0 }, &mut page);
    let medians = d.runs.iter().filter(|r| r.latency_ns.count > 0).map(|r| r.latency_ns.p50);
    rest::floor(&d.floor, medians.min(), &mut page);
    if !d.runs.is_empty() {
        rest::evidence(&d.runs, &mut page);
    }
    page.finish()
}

fn aspects() -> Vec<Aspect<HttpRun>> {
    vec![
        Aspect {
            head: "FLOWS",
            cell: |r| grouped(r.clients.into()),
            said: |r| match r.new_connections {
                true => format!("{} at once, one for each request", many_connections(r.clients)),
                false => many_connections(r.clients),
            },
        },
        Aspect {
            head: "THREADS",
            cell: |r| r.threads.to_string(),
            said: |r| many(r.threads as usize, "thread"),
        },
        Aspect {
            head: "PIPELINE",
            cell: |r| r.pipeline.to_string(),
            said: |r| match r.pipeline {
                1 => String::new(),
                n => format!("{n} outstanding on each"),
            },
        },
        Aspect {
            head: "WAIT",
            cell: |r| waits(r.waits()),
            said: |r| match r.wait {
                Wait::Block => String::new(),
                Wait::Spin => "the near end spins".into(),
                Wait::SpinThenBlock => "the near end spins a while, then blocks".into(),
                Wait::BusyPoll => "the near end busy-polls".into(),
            },
        },
    ]
}

fn many_connections(n: u32) -> String {
    many(n as usize, "connection")
}

type Values = Vec<Value<HttpRun>>;

fn values(runs: &[HttpRun]) -> Vec<Values> {
    let mut all: Vec<Values> = vec![
        vec![
            Value { head: "PER S", cell: rate },
            Value { head: "±", cell: |r| width(r.transactions_per_s_interval.as_ref()) },
        ],
        vec![
            Value { head: "LATENCY P50", cell: |r| quantile(&r.latency_ns, 0.5, |q| q.p50) },
            Value { head: "P90", cell: |r| quantile(&r.latency_ns, 0.9, |q| q.p90) },
            Value { head: "P99", cell: |r| quantile(&r.latency_ns, 0.99, |q| q.p99) },
            Value { head: "P99.9", cell: |r| quantile(&r.latency_ns, 0.999, |q| q.p999) },
            Value { head: "MAX", cell: |r| largest(&r.latency_ns) },
        ],
        vec![
            Value { head: "FIRST BYTE P50", cell: |r| quantile(&r.first_byte_ns, 0.5, |q| q.p50) },
            Value { head: "P99", cell: |r| quantile(&r.first_byte_ns, 0.99, |q| q.p99) },
        ],
        vec![
            Value { head: "CONNECT P50", cell: |r| quantile(&r.connect_ns, 0.5, |q| q.p50) },
            Value { head: "MAX", cell: |r| largest(&r.connect_ns) },
        ],
    ];
    if runs.iter().any(|r| r.tls_handshake_ns.is_some()) {
        all.push(vec![
            Value {
                head: "TLS HANDSHAKE P50",
                cell: |r| handshake(r, |q| quantile(q, 0.5, |q| q.p50)),
            },
            Value { head: "P99", cell: |r| handshake(r, |q| quantile(q, 0.99, |q| q.p99)) },
            Value { head: "MAX", cell: |r| handshake(r, largest) },
        ]);
    }
    if runs.iter().any(|r| r.latency_from_send_ns.is_some()) {
        all.push(vec![
            Value { head: "FROM SENDING P50", cell: |r| sent(r, 0.5, |q| q.p50) },
            Value { head: "P99", cell: |r| sent(r, 0.99, |q| q.p99) },
            Value { head: "SENT LATE BY P99", cell: |r| late(r, 0.99, |q| q.p99) },
            Value { head: "MAX", cell: |r| r.send_lag_ns.as_ref().map_or_else(none, largest) },
        ]);
    }
    all.push(vec![
        Value { head: "RESPONSE", cell: mean_response },
        Value { head: "FAILED", cell: failed },
    ]);
    all
}

/// A dash where nothing was measured: a 0 would be a result.
fn rate(r: &HttpRun) -> Line {
    if r.transactions == 0 { none() } else { per_second(r.transactions_per_s) }
}

fn sent(r: &HttpRun, share: f64, pick: fn(&Quantiles) -> u64) -> Line {
    r.latency_from_send_ns.as_ref().map_or_else(none, |q| quantile(q, share, pick))
}

fn late(r: &HttpRun, share: f64, pick: fn(&Quantiles) -> u64) -> Line {
    r.send_lag_ns.as_ref().map_or_else(none, |q| quantile(q, share, pick))
}

fn handshake(r: &HttpRun, cell: fn(&Quantiles) -> Line) -> Line {
    r.tls_handshake_ns.as_ref().map_or_else(none, cell)
}

fn mean_response(r: &HttpRun) -> Line {
    match r.response_bytes.checked_div(r.transactions) {
        Some(n) => Line::plain(Bytes(n)),
        None => none(),
    }
}

fn failed(r: &HttpRun) -> Line {
    match r.failed {
        0 => Line::plain("0"),
        n => Line::new().ink(Ink::Bad, grouped(n)),
    }
}

/// Responses by status; nothing where all are 200.
fn statuses(runs: &[HttpRun], page: &mut Page) {
    for (n, run) in runs.iter().enumerate() {
        if run.statuses.keys().all(|s| *s == 200) {
            continue;
        }
        let mut line =
            Line::new().ink(Ink::Faint, "statuses: ").ink(Ink::Faint, about(&[n + 1], runs.len()));
        for (i, (status, count)) in run.statuses.iter().enumerate() {
            let ink = if *status >= 400 { Ink::Bad } else { Ink::Strong };
            let comma = if i == 0 { "" } else { ", " };
            line = line.text(comma).ink(ink, status).text(format!(" × {}", grouped(*count)));
        }
        page.line(line, 2);
    }
}

/// What was agreed on; once where it is the same of all runs.
fn tls(d: &HttpDocument, page: &mut Page) {
    let mut said = None;
    for (n, run) in d.runs.iter().enumerate() {
        let Some(tls) = &run.tls else { continue };
        let sessions = match d.request.tls.resume {
            false => "every handshake was whole".to_owned(),
            true => format!(
                "{} of {} took up an earlier session",
                grouped(tls.resumed),
                many(usize::try_from(tls.handshakes).unwrap_or(usize::MAX), "handshake")
            ),
        };
        let text = format!("{}, {}; {sessions}.", tls.version, tls.cipher);
        if said.as_ref() != Some(&text) {
            let about = if said.is_some() { about(&[n + 1], d.runs.len()) } else { String::new() };
            page.line(Line::new().ink(Ink::Faint, format!("{about}{text}")), 2);
            said = Some(text);
        }
    }
}

/// Requests that failed, by what happened.
fn failures(runs: &[HttpRun], page: &mut Page) {
    for (n, run) in runs.iter().enumerate().filter(|(_, r)| !r.failures.is_empty()) {
        let parts: Vec<String> =
            run.failures.iter().map(|(why, n)| format!("{} × {why}", grouped(*n))).collect();
        let line = Line::new()
            .ink(Ink::Bad, "failed: ")
            .ink(Ink::Faint, about(&[n + 1], runs.len()))
            .text(parts.join(", "));
        page.line(line, 2);
    }
}

fn reconnects(runs: &[HttpRun], page: &mut Page) {
    for (n, run) in runs.iter().enumerate().filter(|(_, r)| r.reconnects > 0) {
        let text = format!(
            "{}the server ended {} between responses; they were made anew.",
            about(&[n + 1], runs.len()),
            many(usize::try_from(run.reconnects).unwrap_or(usize::MAX), "connection"),
        );
        page.line(Line::new().ink(Ink::Faint, rest::capital(&text)), 2);
    }
}
