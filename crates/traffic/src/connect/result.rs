//! Combines the threads' records into one run of the result document.

use std::collections::BTreeMap;

use model::{
    Nanos, Reading, Warning,
    measure::{ConnectRun, ConnectSpec, Placement, PortBudget},
};
use stats::{Estimate, Histogram, Series};

use super::{
    local::ConnectPath,
    ports::Ports,
    recorder::{Failed, Recorder},
};
use crate::{
    Error,
    client::Peer,
    control::message::Test,
    engine::{
        assignments::Assignments,
        confidence::{self, Next},
        ends::{self, Ended, Ends},
    },
    net::errno::errno_text,
};

/// Records of one round.
#[derive(Debug)]
pub struct Round {
    pub way: ConnectPath,
    pub ports: Ports,
    pub budget: Reading<PortBudget>,
    pub recorders: Vec<Recorder>,
    pub ended: Ended,
    pub broken: Option<Error>,
}

/// Status line while a run is in progress.
pub fn progress_text(spec: &ConnectSpec, flows: u32, rounds: usize) -> String {
    let again = match (spec.common.confidence_per_mille, rounds) {
        (Some(_), n) => format!(", round {}", n + 1),
        _ => String::new(),
    };
    format!("connect, {flows} at once{again}")
}

/// The batches of all threads and rounds, concatenated.
fn series(rounds: &[Round]) -> Option<Series> {
    let mut all: Option<Series> = None;
    for round in rounds {
        let until = round.ended.course.start_ns + round.ended.course.window_ns;
        let mut parts =
            round.recorders.iter().filter_map(|r| Some(r.batches.as_ref()?.series(until)));
        let mut one = parts.next()?;
        // Batches from one start that double in length always align.
        parts.for_each(|p| {
            let _ = one.add(&p);
        });
        match &mut all {
            None => all = Some(one),
            Some(all) => {
                let _ = all.append(&one);
            }
        }
    }
    all
}

/// Connections per second, estimated from the batches; `None` with too few.
fn rate(rounds: &[Round]) -> Option<Estimate> {
    stats::interval::of_rate(&series(rounds)?).ok()
}

/// Whether the rounds reach the requested precision of connections per second.
pub fn next(spec: &ConnectSpec, rounds: &[Round], took_ns: u64) -> Next {
    // Skips the estimate if no precision was requested.
    let wanted = spec.common.confidence_per_mille.is_some();
    confidence::next(&spec.common, &[wanted.then(|| rate(rounds)).flatten()], took_ns)
}

pub fn connect_run(
    spec: &ConnectSpec,
    test: &Test,
    assignments: &Assignments,
    peer: &Peer,
    rounds: &[Round],
) -> ConnectRun {
    let recorders = || rounds.iter().flat_map(|r| &r.recorders);
    let total = |of: fn(&Recorder) -> Option<&Histogram>| {
        let mut sum = Histogram::new();
        recorders().filter_map(of).for_each(|h| sum.add(h));
        sum.quantiles()
    };
    let connect = total(|r| Some(&r.connect));
    let window_ns: u64 = rounds.iter().map(|r| r.ended.course.window_ns).sum();
    let connections_per_s = connect.count as f64 * 1e9 / window_ns.max(1) as f64;
    let ends = Ends::of(rounds.iter().map(|r| &r.ended));
    let placement = ends.placement(assignments, peer.same_host);
    ConnectRun {
        transport: test.transport,
        flows: test.flows,
        threads: test.threads,
        request_bytes: spec.request_bytes,
        response_bytes: spec.response_bytes,
        close: spec.close,
        wait: spec.common.wait,
        peer_wait: spec.common.peer_wait,
        placement: placement.clone(),
        window_ns: Nanos(window_ns),
        trimmed_ns: Nanos(spec.common.warmup_ns.0 + spec.common.cooldown_ns.0),
        connections: connect.count,
        connections_per_s,
        connections_per_s_interval: rate(rounds).map(|e| e.interval),
        connect_ns: connect,
        first_byte_ns: (spec.response_bytes > 0).then(|| total(|r| r.first_byte.as_ref())),
        start_lag_ns: spec.rate_per_s.map(|_| total(|r| r.lag.as_ref())),
        failed: failed(spec, recorders()),
        established_in_all: recorders().map(|r| r.established).sum(),
        peer_accepted_in_all: accepted(rounds),
        ports: match rounds.last() {
            Some(last) => last.budget.clone(),
            None => Reading::absent("nothing was measured"),
        },
        cpu: ends.cpu(ends::at_rate(connections_per_s)),
        evidence: ends.evidence(),
        warnings: warnings(spec, test, peer, rounds, connections_per_s, (&ends, &placement)),
    }
}

fn failed<'a>(
    spec: &ConnectSpec,
    recorders: impl Iterator<Item = &'a Recorder>,
) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (why, n) in recorders.flat_map(|r| &r.failed) {
        *all.entry(named(*why, spec.timeout_ns)).or_default() += n;
    }
    all
}

/// Text of a failure; an errno with its name.
fn named(why: Failed, limit: Nanos) -> String {
    match why {
        Failed::Connecting(errno) => errno_text(errno),
        Failed::Talking(errno) => format!("established, then {}", errno_text(errno)),
        Failed::NoConnection => format!("not established in {limit}"),
        Failed::NoAnswer => format!("established, then no answer in {limit}"),
        Failed::ClosedEarly => "closed by the server before its response".into(),
    }
}

fn accepted(rounds: &[Round]) -> Reading<u64> {
    let of = |r: &Round| match r.ended.report.as_ref().and_then(|f| f.accepted) {
        Some(n) => Reading::Known(n),
        None => Reading::absent("the server did not report"),
    };
    ends::sum(rounds.iter().map(of))
}

fn warnings(
    spec: &ConnectSpec,
    test: &Test,
    peer: &Peer,
    rounds: &[Round],
    rate: f64,
    (ends, placement): (&Ends, &Placement),
) -> Vec<Warning> {
    let mut all = vec![];
    let count = |of: fn(&Recorder) -> u64| -> u64 {
        rounds.iter().flat_map(|r| &r.recorders).map(of).sum()
    };
    let root = probe::Root::live();
    if let Some(last) = rounds.last() {
        let to = match last.way.to.as_socket() {
            Some(address) => address.to_string(),
            None => peer.name.clone(),
        };
        if count(|r| r.portless) > 0 {
            all.push(last.ports.explain(&root, &to, spec.close));
        } else {
            all.extend(last.ports.outruns(spec.close, rate));
        }
    }
    match count(|r| r.never_begun) {
        0 => {}
        connections => all.push(Warning::ConnectionsNotBegun { connections, flows: test.flows }),
    }
    match count(|r| r.unfinished) {
        0 => {}
        count => {
            all.push(Warning::Unfinished { count, what: "attempts".into(), done: "made".into() })
        }
    }
    all.extend(ends.warnings());
    all.extend(ends.others(placement));
    all.extend(ends.spinning_on_one_cpu(test, spec.common.wait, peer.same_host));
    all
}
