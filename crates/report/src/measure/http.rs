//! `measure http` as text.

use model::{
    Bytes,
    measure::{HttpDocument, HttpRun, Quantiles},
    units::grouped,
};

use super::{
    cpu, ends,
    head::Head,
    numbers::{largest, none, quantile},
    rest,
    runs::{self, Aspect, Value, about, tell_apart},
    served,
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
    served::failures(&d.runs, &mut page);
    served::reconnects(&d.runs, "responses", &mut page);
    rest::warnings(&d.runs, &mut page);
    let unit = cpu::Unit { name: "REQUEST", of: 1.0 };
    let medians = d.runs.iter().filter(|r| r.latency_ns.count > 0).map(|r| r.latency_ns.p50);
    ends::show(&d.runs, &unit, &d.floor, medians.min(), &mut page);
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
        runs::threads(),
        Aspect {
            head: "PIPELINE",
            cell: |r| r.pipeline.to_string(),
            said: |r| match r.pipeline {
                1 => String::new(),
                n => format!("{n} outstanding on each"),
            },
        },
        served::wait(),
    ]
}

fn many_connections(n: u32) -> String {
    many(n as usize, "connection")
}

type Values = Vec<Value<HttpRun>>;

fn values(runs: &[HttpRun]) -> Vec<Values> {
    let mut all: Vec<Values> = vec![
        served::rates(),
        served::latencies(),
        vec![
            Value { head: "FIRST BYTE P50", cell: |r| quantile(&r.first_byte_ns, 0.5, |q| q.p50) },
            Value { head: "P99", cell: |r| quantile(&r.first_byte_ns, 0.99, |q| q.p99) },
        ],
        served::connects(),
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
    all.extend(served::lags(runs));
    all.push(vec![Value { head: "RESPONSE", cell: mean_response }, served::failed()]);
    all
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
