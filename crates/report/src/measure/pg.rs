//! `measure pg` as text.

use model::{
    measure::{PgDocument, PgInitDocument, PgProtocol, PgRun},
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
    text::{Ink, Line, Page, Table, TextStyle},
    words::many,
};

pub fn text(d: &PgDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    let (apart, mut said) = tell_apart(&d.runs, aspects());
    if d.request.pipeline {
        said.push("each transaction as one pipeline".into());
    }
    if d.scale > 1 {
        said.push(format!("scale {}", d.scale));
    }
    if let Some(rate) = d.request.rate_per_s {
        said.push(format!("open loop, {}/s", grouped(rate)));
    }
    said.extend(d.driver.as_ref().map(|driver| format!("driver {driver}")));
    let names: Vec<&str> = d.request.scripts.iter().map(|s| s.name.as_str()).collect();
    let what = format!("{} transactions", names.join(", "));
    Head {
        what: &what,
        common: &d.request.common,
        local: &d.local,
        peer: &d.peer,
        said,
        runs: &d.runs,
        interrupted: d.interrupted,
        missing: not_started(&d.request.clients, d.runs.len(), "client"),
    }
    .show(served::answer(&d.runs, |r| r.clients, "client"), &mut page);
    let groups = values(&d.runs);
    let groups: Vec<&[Value<PgRun>]> = groups.iter().map(Vec::as_slice).collect();
    runs::table(&mut page, &d.runs, &apart, &groups);
    served::intervals(&d.runs, &mut page);
    served::tls(&d.runs, false, &mut page);
    scripts(&d.runs, &mut page);
    statements(&d.runs, &mut page);
    served::failures(&d.runs, &mut page);
    retries(&d.runs, &mut page);
    served::reconnects(&d.runs, "transactions", &mut page);
    rest::warnings(&d.runs, &mut page);
    let unit = cpu::Unit { name: "TRANSACTION", of: 1.0 };
    let medians = d.runs.iter().filter(|r| r.latency_ns.count > 0).map(|r| r.latency_ns.p50);
    // The noise certificate is for our generator, not for another program.
    let floor = d.driver.is_none().then_some(&d.floor);
    ends::show_with(&d.runs, &unit, floor, medians.min(), &mut page);
    page.finish()
}

fn aspects() -> Vec<Aspect<PgRun>> {
    vec![
        Aspect {
            head: "CLIENTS",
            cell: |r| grouped(r.clients.into()),
            said: |r| match r.connect_each {
                true => {
                    format!("{}, a new connection for each transaction", many_clients(r.clients))
                }
                false => many_clients(r.clients),
            },
        },
        runs::threads(),
        Aspect {
            head: "PROTOCOL",
            cell: |r| protocol(r).into(),
            said: |r| format!("{} protocol", protocol(r)),
        },
        served::wait(),
    ]
}

fn many_clients(n: u32) -> String {
    many(n as usize, "client")
}

type Values = Vec<Value<PgRun>>;

fn values(runs: &[PgRun]) -> Vec<Values> {
    let mut all: Vec<Values> = vec![served::rates(), served::latencies(runs)];
    all.extend(served::moments(runs));
    all.push(served::connects());
    all.extend(served::handshakes(runs));
    all.extend(served::lags(runs));
    all.push(vec![
        Value {
            head: "PER S INCL. CONNECT",
            cell: |r| served::some_rate(r, r.transactions_per_s_with_connecting),
        },
        Value {
            head: "EXCL. CONNECT",
            cell: |r| served::some_rate(r, r.transactions_per_s_without_connecting),
        },
        served::failed(),
    ]);
    all
}

fn protocol(r: &PgRun) -> &'static str {
    match r.protocol {
        PgProtocol::Simple => "simple",
        PgProtocol::Extended => "extended",
        PgProtocol::Prepared => "prepared",
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

/// Each statement's latency, where requested.
fn statements(runs: &[PgRun], page: &mut Page) {
    if runs.iter().flat_map(|r| &r.scripts).all(|s| s.statements.is_empty()) {
        return;
    }
    page.heading("STATEMENTS");
    let mut table = Table::new();
    if runs.len() > 1 {
        table = table.right("RUN");
    }
    table = table.right("ANSWERED").right("P50").right("P99").wrapping("STATEMENT");
    for (n, run) in runs.iter().enumerate() {
        for statement in run.scripts.iter().flat_map(|s| &s.statements) {
            let number = (runs.len() > 1).then(|| Line::plain(n + 1));
            let cells = [
                Line::plain(grouped(statement.latency_ns.count)),
                quantile(&statement.latency_ns, 0.5, |q| q.p50),
                quantile(&statement.latency_ns, 0.99, |q| q.p99),
                Line::new().ink(Ink::Faint, &statement.sql),
            ];
            table.row(number.into_iter().chain(cells));
        }
    }
    page.table(&table, 2);
}

fn retries(runs: &[PgRun], page: &mut Page) {
    for (n, run) in runs.iter().enumerate().filter(|(_, r)| r.retried > 0) {
        let text = format!(
            "{}{} retried, {} retries in all.",
            about(&[n + 1], runs.len()),
            many(usize::try_from(run.retried).unwrap_or(usize::MAX), "transaction"),
            grouped(run.retries),
        );
        page.line(Line::new().ink(Ink::Faint, rest::capital(&text)), 2);
    }
}

/// The tables that were made, in words.
pub fn pg_init(made: &PgInitDocument) -> String {
    let mut text = format!(
        "Made pgbench's tables of scale {}: {} accounts, in {}, of which {} filling and {} keys.\n",
        made.scale,
        grouped(made.accounts),
        made.took_ns,
        made.copy_ns,
        made.keys_ns,
    );
    for warning in &made.warnings {
        text.push_str(&format!("Warning: {warning}.\n"));
    }
    text
}
