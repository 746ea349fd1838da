//! `measure redis` as text.

use model::{
    measure::{RedisDocument, RedisRun},
    units::grouped,
};

use super::{
    cpu, ends,
    head::{Head, not_started},
    rest,
    runs::{self, Aspect, Value, tell_apart},
    served,
};
use crate::text::{Page, TextStyle};

pub fn text(d: &RedisDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    let (apart, mut said) = tell_apart(&d.runs, aspects());
    let commands: Vec<String> = d.request.commands.iter().map(|c| format!("\"{c}\"")).collect();
    said.insert(0, commands.join(", then "));
    if let Some(rate) = d.request.rate_per_s {
        said.push(format!("open loop, {}/s", grouped(rate)));
    }
    Head {
        what: "Redis commands",
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
    let groups: Vec<&[Value<RedisRun>]> = groups.iter().map(Vec::as_slice).collect();
    runs::table(&mut page, &d.runs, &apart, &groups);
    served::intervals(&d.runs, &mut page);
    served::tls(&d.runs, d.request.tls.resume, &mut page);
    served::failures(&d.runs, &mut page);
    served::reconnects(&d.runs, "replies", &mut page);
    rest::warnings(&d.runs, &mut page);
    let unit = cpu::Unit { name: "COMMAND", of: 1.0 };
    let medians = d.runs.iter().filter(|r| r.latency_ns.count > 0).map(|r| r.latency_ns.p50);
    ends::show(&d.runs, &unit, &d.floor, medians.min(), &mut page);
    page.finish()
}

fn aspects() -> Vec<Aspect<RedisRun>> {
    vec![
        Aspect {
            head: "FLOWS",
            cell: |r| grouped(r.clients.into()),
            said: |r| served::connections(r.clients, r.new_connections, "command"),
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

fn values(runs: &[RedisRun]) -> Vec<Vec<Value<RedisRun>>> {
    let mut all = vec![served::rates(), served::latencies(runs)];
    all.extend(served::moments(runs));
    all.push(served::connects());
    all.extend(served::handshakes(runs));
    all.extend(served::lags(runs));
    all.push(vec![
        Value { head: "REPLY", cell: |r| served::mean_answer(r.response_bytes, r.transactions) },
        Value { head: "MB/S", cell: |r| served::megabytes(r.response_bytes, r.window_ns.0) },
        served::failed(),
    ]);
    all
}
