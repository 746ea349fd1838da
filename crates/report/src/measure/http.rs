//! `measure http` as text.

use model::{
    measure::{HttpDocument, HttpRun},
    units::grouped,
};

use super::{
    cpu, ends,
    head::{Head, not_started},
    numbers::quantile,
    rest,
    runs::{self, Aspect, Value, about, tell_apart},
    served,
};
use crate::{
    text::{Ink, Line, Page, TextStyle},
    words::many,
};

pub fn text(d: &HttpDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    let (apart, mut said) = tell_apart(&d.runs, aspects());
    let more = d.request.urls.len().saturating_sub(1);
    if more > 0 {
        said.insert(0, format!("and {} in turn", many(more, "more URL")));
    }
    if let Some(rate) = d.request.rate_per_s {
        said.push(format!("open loop, {}/s", grouped(rate)));
    }
    let what = format!("{} requests", d.request.method);
    Head {
        what: &what,
        common: &d.request.common,
        local: &d.local,
        peer: &d.peer,
        said,
        runs: &d.runs,
        interrupted: d.interrupted,
        missing: not_started(&d.request.flows, d.runs.len(), "flow"),
    }
    .show(served::answer(&d.runs, |r| r.clients, "flow"), &mut page);
    let groups = values(&d.runs);
    let groups: Vec<&[Value<HttpRun>]> = groups.iter().map(Vec::as_slice).collect();
    runs::table(&mut page, &d.runs, &apart, &groups);
    served::intervals(&d.runs, &mut page);
    served::tls(&d.runs, d.request.tls.resume, &mut page);
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
            said: |r| served::connections(r.clients, r.new_connections, "request"),
        },
        runs::threads(),
        Aspect {
            head: "PIPELINE",
            cell: |r| r.pipeline.to_string(),
            said: |r| served::outstanding(r.pipeline),
        },
        served::wait(),
    ]
}

type Values = Vec<Value<HttpRun>>;

fn values(runs: &[HttpRun]) -> Vec<Values> {
    let mut all: Vec<Values> = vec![served::rates(), served::latencies(runs)];
    all.extend(served::moments(runs));
    all.extend([
        vec![
            Value {
                head: "FIRST BYTE P50",
                cell: |r: &HttpRun| quantile(&r.first_byte_ns, 0.5, |q| q.p50),
            },
            Value { head: "P99", cell: |r: &HttpRun| quantile(&r.first_byte_ns, 0.99, |q| q.p99) },
        ],
        served::connects(),
    ]);
    all.extend(served::handshakes(runs));
    all.extend(served::lags(runs));
    all.push(vec![
        Value { head: "RESPONSE", cell: |r| served::mean_answer(r.response_bytes, r.transactions) },
        Value { head: "MB/S", cell: |r| served::megabytes(r.response_bytes, r.window_ns.0) },
        served::failed(),
    ]);
    all
}

/// Responses by status; nothing where all are 200.
fn statuses(runs: &[HttpRun], page: &mut Page) {
    for (n, run) in runs.iter().enumerate() {
        if run.statuses.keys().all(|s| *s == 200) {
            continue;
        }
        let mut line =
            Line::new().ink(Ink::Faint, format!("{}statuses: ", about(&[n + 1], runs.len())));
        for (i, (status, count)) in run.statuses.iter().enumerate() {
            let ink = if *status >= 400 { Ink::Bad } else { Ink::Strong };
            let comma = if i == 0 { "" } else { ", " };
            line = line.text(format!("{comma}{} × ", grouped(*count))).ink(ink, status);
        }
        page.line(line, 2);
    }
}
