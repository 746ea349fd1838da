//! `measure rtt` as text.

use model::{
    Bytes,
    measure::{
        Mode, NOTHING_SETS_APART, PLACEMENT_NOT_KNOWN, RttDocument, RttRun, SplitAnswer, Transport,
    },
    units::grouped,
};

use super::{
    Run, cpu, ends,
    head::{Head, not_started, waits, waits_said},
    intervals,
    numbers::{deviation, largest, none, per_second, quantile, share, time, time_of, width},
    rest,
    runs::{self, Aspect, Value, flows, tell_apart},
    sweep,
};
use crate::text::{Ink, Line, Page, Table, TextStyle};

pub fn text(d: &RttDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    let (apart, said) = tell_apart(&d.runs, aspects(&d.runs));
    Head {
        what: "Round trips",
        common: &d.request.common,
        local: &d.local,
        peer: &d.peer,
        said,
        runs: &d.runs,
        interrupted: d.interrupted,
        missing: missing(d),
    }
    .show(parts(d).or_else(|| answer(&d.runs)), &mut page);
    let (medians, tails, rates, losses) = values(&d.runs);
    runs::table(&mut page, &d.runs, &apart, &[&medians, &tails, &rates, &losses]);
    let median = |r: &'_ RttRun| r.rtt_p50_interval_ns.clone();
    intervals::show(&d.runs, "P50", &median, &mut page);
    let missing = |r: &RttRun| r.transactions > 0 && r.rtt_p50_interval_ns.is_none();
    rest::no_interval(&d.runs, missing, &mut page);
    rest::warnings(&d.runs, &mut page);
    schedule(&d.runs, &mut page);
    split(d, &mut page);
    modes(&d.runs, &mut page);
    let unit = cpu::Unit { name: "ROUND TRIP", of: 1.0 };
    let medians = d.runs.iter().filter(|r| r.rtt_ns.count > 0).map(|r| r.rtt_ns.p50);
    ends::show(&d.runs, &unit, &d.floor, medians.min(), &mut page);
    page.finish()
}

/// Each number of flows is combined with each pair of sizes.
fn missing(d: &RttDocument) -> String {
    let sizes = d.request.request_bytes.len() * d.request.response_bytes.len().max(1);
    match (sizes, (sizes * d.request.flows.len()).saturating_sub(d.runs.len())) {
        _ if d.wait_split.is_some() => String::new(),
        (1, _) => not_started(&d.request.flows, d.runs.len(), "flow"),
        (_, 0) => String::new(),
        (_, left) => format!("{left} of {} combinations", left + d.runs.len()),
    }
}

fn aspects(runs: &[RttRun]) -> Vec<Aspect<RttRun>> {
    let mut all = vec![];
    if runs.iter().all(|r| r.request_bytes == r.response_bytes) {
        all.push(Aspect {
            head: "SIZE",
            cell: |r: &RttRun| Bytes(r.request_bytes).to_string(),
            said: |r| format!("{} each way", Bytes(r.request_bytes)),
        });
    } else {
        all.push(Aspect {
            head: "REQUEST",
            cell: |r| Bytes(r.request_bytes).to_string(),
            said: |r| format!("{} request", Bytes(r.request_bytes)),
        });
        all.push(Aspect {
            head: "RESPONSE",
            cell: |r| Bytes(r.response_bytes).to_string(),
            said: |r| format!("{} response", Bytes(r.response_bytes)),
        });
    }
    all.extend([
        Aspect {
            head: "FLOWS",
            cell: |r: &RttRun| grouped(r.flows.into()),
            said: |r| flows(r.flows),
        },
        runs::threads(),
        Aspect {
            head: "QUEUE DEPTH",
            cell: |r| r.queue_depth.to_string(),
            said: |r| match r.queue_depth {
                1 => String::new(),
                n => format!("queue depth {n}"),
            },
        },
        Aspect { head: "WAIT", cell: |r| waits(r.waits()), said: |r| waits_said(r.waits()) },
        Aspect { head: "CPUS", cell: two_cpus, said: |_| String::new() },
    ]);
    all
}

/// Whether the ends on one host had different CPUs, where netwright chose them.
fn two_cpus(r: &RttRun) -> String {
    let (local, peer) = (&r.placement.local.pinned, &r.placement.peer.pinned);
    match r.placement.same_host && !local.is_empty() && !peer.is_empty() {
        true if local.iter().any(|c| peer.contains(c)) => "shared".into(),
        true => "separate".into(),
        false => String::new(),
    }
}

type Values = Vec<Value<RttRun>>;

fn values(runs: &[RttRun]) -> (Values, Values, Values, Values) {
    let median = Value { head: "P50", cell: |r: &RttRun| quantile(&r.rtt_ns, 0.5, |q| q.p50) };
    // The answer of a single run shows the interval.
    let medians: Values = match runs {
        [_] => vec![median, Value { head: "P75", cell: |r| quantile(&r.rtt_ns, 0.75, |q| q.p75) }],
        _ => vec![median, Value { head: "±", cell: |r| width(r.rtt_p50_interval_ns.as_ref()) }],
    };
    let tails: Values = vec![
        Value { head: "P90", cell: |r| quantile(&r.rtt_ns, 0.9, |q| q.p90) },
        Value { head: "P99", cell: |r| quantile(&r.rtt_ns, 0.99, |q| q.p99) },
        Value { head: "P99.9", cell: |r| quantile(&r.rtt_ns, 0.999, |q| q.p999) },
        Value { head: "MAX", cell: |r| largest(&r.rtt_ns) },
    ];
    let rates: Values = match runs {
        [_] => vec![
            Value { head: "MIN", cell: |r| some(r, r.rtt_ns.min as f64) },
            Value { head: "MEAN", cell: |r| some(r, r.rtt_ns.mean) },
            Value { head: "SD", cell: |r| deviation(&r.rtt_ns) },
            Value { head: "SAMPLES", cell: |r| Line::plain(grouped(r.rtt_ns.count)) },
        ],
        _ => vec![Value { head: "PER S", cell: rate }],
    };
    let mut losses: Values = vec![];
    if runs.iter().any(|r| r.transport == Transport::Udp || r.lost + r.late > 0) {
        losses.push(Value { head: "LOST", cell: |r| count(r.lost) });
        losses.push(Value { head: "LATE", cell: |r| count(r.late) });
    }
    (medians, tails, rates, losses)
}

/// The two parts of the median, where the variants of `--wait-split` tell them apart.
fn parts(d: &RttDocument) -> Option<Line> {
    let SplitAnswer::Split { blocking_ns, stack_ns, waking_ns } = &d.wait_split.as_ref()?.says
    else {
        return None;
    };
    let text = format!("network stack {stack_ns} + wake-up {waking_ns} = p50 {blocking_ns}");
    Some(Line::new().ink(Ink::Strong, text))
}

/// The median and the rate of a single run; the knee of a closed-loop sweep over flows alone; the
/// range of the medians of other runs.
fn answer(runs: &[RttRun]) -> Option<Line> {
    if let [r] = runs {
        if r.transactions == 0 {
            return None;
        }
        let p50 = quantile(&r.rtt_ns, 0.5, |q| q.p50);
        let p50 = intervals::figure(&p50, r.rtt_p50_interval_ns.as_ref(), time_of);
        let rate = r.transactions_per_s_interval.as_ref();
        let rate =
            intervals::figure(&per_second(r.transactions_per_s).text("/s"), rate, per_second);
        return Some(Line::new().ink(Ink::Strong, format!("p50 {p50} · {rate}")));
    }
    // Runs that differ in more than flows are no sweep over flows.
    let rest = |r: &RttRun| (r.request_bytes, r.response_bytes, waits(r.waits()), two_cpus(r));
    let alike = runs.windows(2).all(|p| matches!(p, [a, b] if rest(a) == rest(b)));
    let sweep = alike && runs.iter().all(|r| r.target_per_s.is_none());
    let points: Vec<(u32, f64)> = runs.iter().map(|r| (r.flows, r.transactions_per_s)).collect();
    let knee = sweep.then(|| sweep::knee(&points, "flow")).flatten();
    let medians: Vec<f64> = runs.iter().map(|r| r.rtt_ns.p50 as f64).collect();
    knee.or_else(|| sweep::range("p50", &medians, time_of))
}

fn some(r: &RttRun, ns: f64) -> Line {
    if r.rtt_ns.count == 0 { none() } else { time_of(ns) }
}

/// A dash where nothing was measured: a 0 would be a result.
fn rate(r: &RttRun) -> Line {
    if r.transactions == 0 { none() } else { per_second(r.transactions_per_s) }
}

fn count(n: u64) -> Line {
    if n == 0 { Line::new().ink(Ink::Faint, "0") } else { Line::new().ink(Ink::Warn, grouped(n)) }
}

/// Open loop: how well the schedule was kept.
fn schedule(runs: &[RttRun], page: &mut Page) {
    if runs.iter().all(|r| r.send_lag_ns.is_none()) {
        return;
    }
    page.heading("OPEN LOOP");
    page.line(
        Line::plain(
            "  Round trips count from each request's scheduled time, so a stall shows in full.",
        ),
        2,
    );
    let rates: [Value<RttRun>; 2] =
        [Value { head: "TARGET/S", cell: asked }, Value { head: "ACHIEVED/S", cell: rate }];
    let lags: [Value<RttRun>; 3] = [
        Value { head: "SEND LAG P50", cell: |r| lag(r, 0.5, |q| q.p50) },
        Value { head: "P99", cell: |r| lag(r, 0.99, |q| q.p99) },
        Value { head: "MAX", cell: |r| r.send_lag_ns.as_ref().map_or_else(Line::new, largest) },
    ];
    let from_sending: [Value<RttRun>; 3] = [
        Value { head: "SERVICE P50", cell: |r| sent(r, 0.5, |q| q.p50) },
        Value { head: "P99", cell: |r| sent(r, 0.99, |q| q.p99) },
        Value {
            head: "MAX",
            cell: |r| r.rtt_from_send_ns.as_ref().map_or_else(Line::new, largest),
        },
    ];
    runs::table(page, runs, &[], &[&rates, &lags, &from_sending]);
}

fn asked(r: &RttRun) -> Line {
    r.target_per_s.map_or_else(Line::new, |n| Line::plain(grouped(n)))
}

type Pick = fn(&model::measure::Quantiles) -> u64;

fn lag(r: &RttRun, share: f64, pick: Pick) -> Line {
    r.send_lag_ns.as_ref().map_or_else(Line::new, |q| quantile(q, share, pick))
}

fn sent(r: &RttRun, share: f64, pick: Pick) -> Line {
    r.rtt_from_send_ns.as_ref().map_or_else(Line::new, |q| quantile(q, share, pick))
}

fn split(d: &RttDocument, page: &mut Page) {
    let Some(split) = &d.wait_split else { return };
    page.heading("NETWORK STACK AND WAKE-UP");
    let names: Vec<String> = split
        .variants
        .iter()
        .enumerate()
        .map(|(n, v)| format!("run {}: {}", n + 1, v.name))
        .collect();
    let one_cpu = split.one_cpu_ns.map(|ns| format!("; on one CPU it takes {ns}"));
    let says = format!("{}{}", split.says, one_cpu.unwrap_or_default());
    page.line(Line::plain(format!("  {}.", rest::capital(&says))), 2);
    if !names.is_empty() {
        page.line(Line::plain("  ").ink(Ink::Faint, names.join("; ")), 2);
    }
}

/// How far apart the medians of neighbouring modes must be to be shown without another difference.
const CLEARLY_APART: f64 = 1.5;

/// Whether its modes are worth showing: placements differ, or they are far apart. The document has
/// all modes.
fn tell(run: &RttRun) -> bool {
    let named = |m: &Mode| m.name != NOTHING_SETS_APART && m.name != PLACEMENT_NOT_KNOWN;
    let apart = |pair: &[Mode]| match pair {
        [a, b] => b.p50_ns.0 as f64 >= CLEARLY_APART * a.p50_ns.0 as f64,
        _ => false,
    };
    run.modes.iter().any(named) || run.modes.windows(2).any(apart)
}

/// The modes of each run that has several worth showing.
fn modes(runs: &[RttRun], page: &mut Page) {
    if !runs.iter().any(tell) {
        return;
    }
    page.heading("MODES");
    let mut table = Table::new();
    if runs.len() > 1 {
        table = table.right("RUN");
    }
    table = table.right("SHARE").right("P50").right("FROM").right("TO").wrapping("WHERE");
    for (n, run) in runs.iter().enumerate().filter(|(_, r)| tell(r)) {
        for mode in &run.modes {
            let number = (runs.len() > 1).then(|| Line::plain(n + 1));
            let cells = [
                Line::plain(share(mode.share)),
                time(mode.p50_ns.0),
                time(mode.low_ns.0),
                time(mode.high_ns.0),
                placed(mode, page.look().verbose),
            ];
            table.row(number.into_iter().chain(cells));
        }
    }
    page.table(&table, 2);
}

/// A mode's name, and the placements in it.
fn placed(mode: &Mode, verbose: bool) -> Line {
    let most = if verbose { usize::MAX } else { 3 };
    let parts: Vec<String> = mode
        .placements
        .iter()
        .take(most)
        .map(|p| format!("{} {}", ends::cpu_pair(p.local_cpu, p.peer_cpu), share(p.share)))
        .collect();
    let line = Line::new().ink(Ink::Strong, &mode.name);
    match parts.is_empty() {
        true => line,
        false => line.ink(Ink::Faint, format!(" ({})", parts.join("; "))),
    }
}
