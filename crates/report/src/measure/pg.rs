//! `measure pg` as text.

use model::{
    measure::{PgDocument, PgProtocol, PgRun, Quantiles, Wait},
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
pub fn text(d: &PgDocument, look: Look) -> String {
    let mut page = Page::new(look);
    let (apart, mut said) = tell_apart(&d.runs, aspects());
    if d.request.pipeline {
        said.push("each one pipeline".into());
    }
    if d.scale > 1 {
        said.push(format!("scale {}", d.scale));
    }
    if let Some(rate) = d.request.rate_per_s {
        said.push(format!("{} a second by schedule", grouped(rate)));
    }
    let names: Vec<&str> = d.request.scripts.iter().map(|s| s.name.as_str()).collect();
    let what = format!("{} transactions", names.join(", "));
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
    let groups: Vec<&[Value<PgRun>]> = groups.iter().map(Vec::as_slice).collect();
    runs::table(&mut page, &d.runs, &apart, &groups);
    scripts(&d.runs, &mut page);
    statements(&d.runs, &mut page);
    failures(&d.runs, &mut page);
    retries(&d.runs, &mut page);
    reconnects(&d.runs, &mut page);
    rest::warnings(&d.runs, &mut page);
    ends::placement(&d.runs, &mut page);
    cpu::show(&d.runs, &cpu::Unit { name: "TRANSACTION", of: 1.0 }, &mut page);
    let medians = d.runs.iter().filter(|r| r.latency_ns.count > 0).map(|r| r.latency_ns.p50);
    rest::floor(&d.floor, medians.min(), &mut page);
    if !d.runs.is_empty() {
        rest::evidence(&d.runs, &mut page);
    }
    page.finish()
}

fn aspects() -> Vec<Aspect<PgRun>> {
    vec![
        Aspect {
            head: "CLIENTS",
            cell: |r| grouped(r.clients.into()),
            said: |r| match r.connect_each {
                true => format!(
                    "{} at once, a connection for each transaction",
                    many_clients(r.clients)
                ),
                false => many_clients(r.clients),
            },
        },
        Aspect {
            head: "THREADS",
            cell: |r| r.threads.to_string(),
            said: |r| many(r.threads as usize, "thread"),
        },
        Aspect {
            head: "PROTOCOL",
            cell: |r| protocol(r).into(),
            said: |r| format!("{} protocol", protocol(r)),
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

fn many_clients(n: u32) -> String {
    many(n as usize, "client")
}

type Values = Vec<Value<PgRun>>;

fn values(runs: &[PgRun]) -> Vec<Values> {
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
            Value { head: "CONNECT P50", cell: |r| quantile(&r.connect_ns, 0.5, |q| q.p50) },
            Value { head: "MAX", cell: |r| largest(&r.connect_ns) },
        ],
    ];
    if runs.iter().any(|r| r.latency_from_send_ns.is_some()) {
        all.push(vec![
            Value { head: "FROM SENDING P50", cell: |r| sent(r, 0.5, |q| q.p50) },
            Value { head: "P99", cell: |r| sent(r, 0.99, |q| q.p99) },
            Value { head: "SENT LATE BY P99", cell: |r| late(r, 0.99, |q| q.p99) },
            Value { head: "MAX", cell: |r| r.send_lag_ns.as_ref().map_or_else(none, largest) },
        ]);
    }
    all.push(vec![
        Value {
            head: "PER S WITH CONNECTING",
            cell: |r| some_rate(r, r.transactions_per_s_with_connecting),
        },
        Value { head: "WITHOUT", cell: |r| some_rate(r, r.transactions_per_s_without_connecting) },
        Value { head: "FAILED", cell: failed },
    ]);
    all
}

/// A dash where nothing was measured: a 0 would be a result.
fn rate(r: &PgRun) -> Line {
    some_rate(r, r.transactions_per_s)
}

fn some_rate(r: &PgRun, per_s: f64) -> Line {
    if r.transactions == 0 { none() } else { per_second(per_s) }
}

fn protocol(r: &PgRun) -> &'static str {
    match r.protocol {
        PgProtocol::Simple => "simple",
        PgProtocol::Extended => "extended",
        PgProtocol::Prepared => "prepared",
    }
}

fn sent(r: &PgRun, share: f64, pick: fn(&Quantiles) -> u64) -> Line {
    r.latency_from_send_ns.as_ref().map_or_else(none, |q| quantile(q, share, pick))
}

fn late(r: &PgRun, share: f64, pick: fn(&Quantiles) -> u64) -> Line {
    r.send_lag_ns.as_ref().map_or_else(none, |q| quantile(q, share, pick))
}

fn failed(r: &PgRun) -> Line {
    match r.failed {
        0 => Line::plain("0"),
        n => Line::new().ink(Ink::Bad, grouped(n)),
    }
}

/// Each script's part, where there are several.
fn scripts(runs: &[PgRun], page: &mut Page) {
    for (n, run) in runs.iter().enumerate().filter(|(_, r)| r.scripts.len() > 1) {
        for script in &run.scripts {
            let mut line = Line::new()
                .ink(Ink::Faint, about(&[n + 1], runs.len()))
                .ink(Ink::Strong, format!("{}@{}", script.name, script.weight))
                .text(format!(": {} transactions, P50 ", grouped(script.transactions)))
                .also(quantile(&script.latency_ns, 0.5, |q| q.p50));
            if script.failed > 0 {
                line = line.ink(Ink::Bad, format!(", {} failed", grouped(script.failed)));
            }
            page.line(line, 2);
        }
    }
}

/// Each statement's latency, where that was asked for.
fn statements(runs: &[PgRun], page: &mut Page) {
    for (n, run) in runs.iter().enumerate() {
        for statement in run.scripts.iter().flat_map(|s| &s.statements) {
            let line = Line::new()
                .ink(Ink::Faint, about(&[n + 1], runs.len()))
                .text("P50 ")
                .also(quantile(&statement.latency_ns, 0.5, |q| q.p50))
                .text(", P99 ")
                .also(quantile(&statement.latency_ns, 0.99, |q| q.p99))
                .ink(Ink::Faint, format!("  {}", statement.sql));
            page.line(line, 2);
        }
    }
}

/// Transactions that failed, by what happened.
fn failures(runs: &[PgRun], page: &mut Page) {
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

fn retries(runs: &[PgRun], page: &mut Page) {
    for (n, run) in runs.iter().enumerate().filter(|(_, r)| r.retried > 0) {
        let text = format!(
            "{}{} tried more than once, {} beyond the first.",
            about(&[n + 1], runs.len()),
            many(usize::try_from(run.retried).unwrap_or(usize::MAX), "transaction"),
            grouped(run.retries),
        );
        page.line(Line::new().ink(Ink::Faint, rest::capital(&text)), 2);
    }
}

fn reconnects(runs: &[PgRun], page: &mut Page) {
    for (n, run) in runs.iter().enumerate().filter(|(_, r)| r.reconnects > 0) {
        let text = format!(
            "{}the server ended {} between transactions; they were made anew.",
            about(&[n + 1], runs.len()),
            many(usize::try_from(run.reconnects).unwrap_or(usize::MAX), "connection"),
        );
        page.line(Line::new().ink(Ink::Faint, rest::capital(&text)), 2);
    }
}
