//! From what the threads recorded to a run of the document.

use std::collections::BTreeMap;

use model::{
    Nanos, Reading,
    measure::{
        BothCpu, BothEvidence, EndPlacement, Interval, Mode, Placement, RttRun, RttSpec, Wait,
    },
};
use stats::Histogram;

use super::recorder::{Placed, Recorder};
use crate::{
    Error,
    client::{Peer, conduct::Course},
    control::message::{FarReport, Kind, Ready, Test},
    host,
    seats::Seats,
    team::Seen,
};

/// What one round of a run left behind.
#[derive(Debug)]
pub struct Round {
    pub ready: Ready,
    pub course: Course,
    pub recorders: Vec<Recorder>,
    pub seen: Seen,
    pub report: Option<FarReport>,
    pub warnings: Vec<String>,
    pub broken: Option<Error>,
}

/// What to show while a run goes on.
pub fn progress_text(spec: &RttSpec, bytes: u64, flows: u32, rounds: usize) -> String {
    let again = match (spec.common.confidence_per_mille, rounds) {
        (Some(_), n) => format!(", round {}", n + 1),
        _ => String::new(),
    };
    format!("rtt {bytes} B, {flows} flows{again}")
}

fn merged(rounds: &[Round]) -> BTreeMap<Placed, Histogram> {
    let mut all: BTreeMap<Placed, Histogram> = BTreeMap::new();
    for (placed, h) in rounds.iter().flat_map(|r| &r.recorders).flat_map(|r| &r.by_placement) {
        all.entry(*placed).or_default().add(h);
    }
    all
}

fn total<'a>(parts: impl Iterator<Item = &'a Histogram>) -> Histogram {
    let mut sum = Histogram::new();
    parts.for_each(|h| sum.add(h));
    sum
}

/// Whether the rounds suffice for what was asked.
pub fn narrow_enough(_spec: &RttSpec, _rounds: &[Round], _took_ns: u64) -> bool {
    true
}

/// The run.
pub fn rtt_run(
    spec: &RttSpec,
    test: &Test,
    seats: &Seats,
    peer: &Peer,
    rounds: Vec<Round>,
) -> RttRun {
    let by_placement = merged(&rounds);
    let all = total(by_placement.values());
    let window_ns: u64 = rounds.iter().map(|r| r.course.window_ns).sum();
    let open = |of: fn(&Recorder) -> Option<&Histogram>| {
        let parts = || rounds.iter().flat_map(|r| &r.recorders).filter_map(of);
        spec.rate_per_s.map(|_| total(parts()).quantiles())
    };
    let count = |of: fn(&Recorder) -> u64| -> u64 {
        rounds.iter().flat_map(|r| &r.recorders).map(of).sum()
    };
    let (request_bytes, response_bytes) = match test.kind {
        Kind::Rtt { request_bytes, response_bytes, .. } => (request_bytes, response_bytes),
        _ => (0, 0),
    };
    let per_s = all.count() as f64 * 1e9 / (window_ns.max(1)) as f64;
    let (cpu, evidence) = both_ends(&rounds, per_s);
    let mut warnings = warnings(&rounds);
    warn_of_spinning(test, spec, &rounds, seats, &mut warnings);
    RttRun {
        transport: test.transport,
        request_bytes,
        response_bytes,
        flows: test.flows,
        threads: test.threads,
        outstanding: spec.outstanding,
        wait: spec.common.wait,
        peer_wait: spec.common.peer_wait,
        placement: placement(&rounds, seats, peer),
        window_ns: Nanos(window_ns),
        trimmed_ns: Nanos(spec.common.warmup_ns.0 + spec.common.cooldown_ns.0),
        rtt_ns: all.quantiles(),
        rtt_from_send_ns: open(|r| r.from_send.as_ref()),
        send_lag_ns: open(|r| r.lag.as_ref()),
        rtt_p50_interval_ns: None::<Interval>,
        modes: Vec::<Mode>::new(),
        transactions: all.count(),
        transactions_per_s: per_s,
        transactions_per_s_interval: None,
        target_per_s: spec.rate_per_s,
        lost: count(|r| r.lost),
        late: count(|r| r.late),
        cpu,
        evidence,
        warnings,
    }
}

fn warnings(rounds: &[Round]) -> Vec<String> {
    let mut all: Vec<String> = vec![];
    for r in rounds {
        let far = r.report.iter().flat_map(|f| &f.warnings).map(|w| format!("far end: {w}"));
        for w in r.warnings.iter().chain(&r.seen.warnings).cloned().chain(far) {
            if !all.contains(&w) {
                all.push(w);
            }
        }
    }
    all
}

/// Two spinning threads on one CPU wait for each other's time slice to end.
fn warn_of_spinning(
    test: &Test,
    spec: &RttSpec,
    rounds: &[Round],
    seats: &Seats,
    warnings: &mut Vec<String>,
) {
    let far = rounds.first().map(|r| r.ready.pinned.as_slice()).unwrap_or_default();
    let shared = seats.cpus.iter().any(|c| far.contains(c)) && !test.near_cpus.is_empty();
    let spins = |w| matches!(w, Wait::Spin);
    if shared && (spins(spec.common.wait) || spins(spec.common.peer_wait)) {
        warnings.push(
            "an end that spins shares its CPU with the other: the figures show time slices".into(),
        );
    }
}

fn placement(rounds: &[Round], seats: &Seats, peer: &Peer) -> Placement {
    let mut local = EndPlacement {
        pinned: seats.cpus.clone(),
        why: seats.why.clone(),
        allowed: seats.allowed.clone(),
        ..EndPlacement::default()
    };
    let mut far = EndPlacement::default();
    for r in rounds {
        for (cpu, n) in r.recorders.iter().flat_map(Recorder::ran_on) {
            *local.ran_on.entry(cpu).or_default() += n;
        }
        add(&mut local.received_on, &r.seen.received_on);
        add(&mut local.napi_ids, &r.seen.napi_ids);
        far.pinned = r.ready.pinned.clone();
        far.why = r.ready.why.clone();
        far.allowed = r.ready.allowed.clone();
        if let Some(report) = &r.report {
            add(&mut far.ran_on, &report.ran_on);
            add(&mut far.received_on, &report.received_on);
            add(&mut far.napi_ids, &report.napi_ids);
        }
    }
    let here = |r: &Round| host::between(&r.course.marks.0, &r.course.marks.1).extras.migrations;
    local.migrations = sum(rounds.iter().map(here));
    far.migrations = sum(rounds.iter().map(|r| match &r.report {
        Some(report) => report.migrations.clone(),
        None => Reading::absent("the far end did not report"),
    }));
    Placement { local, peer: far, same_host: peer.same_host }
}

fn add<K: Ord + Copy>(to: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    from.iter().for_each(|(k, n)| *to.entry(*k).or_default() += n);
}

/// The sum, where every part is known.
fn sum(parts: impl Iterator<Item = Reading<u64>>) -> Reading<u64> {
    parts.reduce(|a, b| a.and_then(|a| b.map(|b| a + b))).unwrap_or_default()
}

/// CPU and evidence of the last round's ends; CPU per transaction from the rates, for the
/// windows of both ends are as long as their own looks say.
fn both_ends(rounds: &[Round], per_s: f64) -> (BothCpu, BothEvidence) {
    let _ = per_s;
    let last = rounds.last();
    let here = last.map(|r| host::between(&r.course.marks.0, &r.course.marks.1));
    let report = last.and_then(|r| r.report.as_ref());
    let (local, moved) = match here {
        Some(w) => (w.cpu, w.moved),
        None => unreachable_window(),
    };
    let peer = match report {
        Some(report) => report.cpu.clone(),
        None => Reading::absent("the far end did not report"),
    };
    let peer_moved = report.map(|r| r.moved.clone()).unwrap_or_default();
    (BothCpu { local, peer }, BothEvidence { local: moved, peer: peer_moved })
}

fn unreachable_window() -> (model::measure::EndCpu, model::measure::Moved) {
    let now = host::Mark::take(&[], &probe::Root::live());
    let none = host::between(&now, &now);
    (none.cpu, none.moved)
}

/// Until the floor is measured.
pub fn floor_not_measured() -> model::measure::Floor {
    model::measure::Floor {
        clock_ns: 0.0,
        clock_step_ns: 0,
        sample_ns: 0.0,
        timer_lateness_ns: Default::default(),
        steal_ns: Reading::absent("not measured"),
        trust_above_ns: 0,
        why: "not measured".into(),
    }
}
