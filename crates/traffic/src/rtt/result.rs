//! From what the threads recorded to a run of the document.

use std::collections::BTreeMap;

use model::{
    CpuId, Nanos, Reading,
    measure::{
        BothCpu, BothEvidence, EndCpu, EndPlacement, Mode, Moved, Placement, RttRun, RttSpec, Wait,
    },
};
use stats::{Enough, Estimate, Histogram, Series, interval};

use super::{
    exchange::UNKNOWN_CPU,
    recorder::{Placed, Recorder},
};
use crate::{
    Error,
    client::conduct::Course,
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

/// All threads' batches of all rounds, one after the other.
fn series(rounds: &[Round]) -> Option<Series> {
    let mut all: Option<Series> = None;
    for round in rounds {
        let until = round.course.start_ns + round.course.window_ns;
        let mut parts =
            round.recorders.iter().filter_map(|r| Some(r.batches.as_ref()?.series(until)));
        let mut one = parts.next()?;
        // Batches of one beginning and of lengths that double are always alike.
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

/// The estimates that a run rests on: its median and its rate.
fn estimates(rounds: &[Round]) -> (Option<Estimate>, Option<Estimate>) {
    let Some(series) = series(rounds) else { return (None, None) };
    let all = total(merged(rounds).values());
    (interval::of_quantile(&series, &all, 0.5).ok(), interval::of_rate(&series).ok())
}

/// What to do after a round.
pub enum Next {
    /// Another round.
    Again,
    /// It suffices, or nothing was asked; or why it never will.
    Done(Option<String>),
}

/// Whether the rounds suffice for the interval that was asked for: that of the median round
/// trip.
pub fn next(spec: &RttSpec, rounds: &[Round], took_ns: u64) -> Next {
    let Some(per_mille) = spec.common.confidence_per_mille else { return Next::Done(None) };
    let goal = f64::from(per_mille) / 1000.0;
    let longest = spec.common.longest_ns;
    let out_of_time = took_ns.saturating_add(spec.common.duration_ns.0) > longest.0;
    let not = |why: String| Next::Done(Some(format!("±{}% was not reached: {why}", goal * 100.0)));
    match estimates(rounds).0 {
        None if out_of_time => not("there are too few batches; give it a longer --longest".into()),
        None => Next::Again,
        Some(estimate) => match stats::enough(&estimate, goal, Nanos(took_ns), longest) {
            Enough::Yes => Next::Done(None),
            Enough::WillNotGetThere(why) => not(why),
            Enough::More { .. } if out_of_time => not(format!(
                "it is ±{:.1}% after {}",
                estimate.relative_half_width() * 100.0,
                Nanos(took_ns)
            )),
            Enough::More { .. } => Next::Again,
        },
    }
}

/// The run.
pub fn rtt_run(
    spec: &RttSpec,
    test: &Test,
    seats: &Seats,
    same_host: bool,
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
    let (p50, rate) = estimates(&rounds);
    let mut warnings = warnings(&rounds);
    warnings.extend(p50.as_ref().and_then(doubt));
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
        placement: placement(&rounds, seats, same_host),
        window_ns: Nanos(window_ns),
        trimmed_ns: Nanos(spec.common.warmup_ns.0 + spec.common.cooldown_ns.0),
        rtt_ns: all.quantiles(),
        rtt_from_send_ns: open(|r| r.from_send.as_ref()),
        send_lag_ns: open(|r| r.lag.as_ref()),
        rtt_p50_interval_ns: p50.map(|e| e.interval),
        modes: modes(&all, by_placement, same_host),
        transactions: all.count(),
        transactions_per_s: per_s,
        transactions_per_s_interval: rate.map(|e| e.interval),
        target_per_s: spec.rate_per_s,
        lost: count(|r| r.lost),
        late: count(|r| r.late),
        cpu,
        evidence,
        warnings,
    }
}

/// The humps, each with where the ends ran.
fn modes(all: &Histogram, by_placement: BTreeMap<Placed, Histogram>, same_host: bool) -> Vec<Mode> {
    let cpu = |n: u16| (n != UNKNOWN_CPU).then_some(CpuId(n.into()));
    let key = |p: Placed| Some((cpu(p.local)?, cpu(p.peer)));
    let parts: Vec<_> =
        by_placement.into_iter().filter_map(|(placed, h)| Some((key(placed)?, h))).collect();
    stats::modes::describe(all, &parts, same_host, 1)
}

/// What makes the interval itself doubtful.
fn doubt(median: &Estimate) -> Option<String> {
    if let Some(trend) = median.trend {
        return Some(format!("the median drifts, by {:+.1}% over the run", trend * 100.0));
    }
    (!median.independent).then(|| {
        "the batches resemble their neighbours: the intervals may be too narrow; measure longer"
            .into()
    })
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

fn placement(rounds: &[Round], seats: &Seats, same_host: bool) -> Placement {
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
    Placement { local, peer: far, same_host }
}

fn add<K: Ord + Copy>(to: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    from.iter().for_each(|(k, n)| *to.entry(*k).or_default() += n);
}

/// The sum, where every part is known.
fn sum(parts: impl Iterator<Item = Reading<u64>>) -> Reading<u64> {
    parts.reduce(|a, b| a.and_then(|a| b.map(|b| a + b))).unwrap_or_default()
}

/// CPU and evidence of both ends, all rounds together. CPU per transaction comes from rates:
/// each end's looks enclose the window and are a little longer than it.
fn both_ends(rounds: &[Round], per_s: f64) -> (BothCpu, BothEvidence) {
    let mut local: Option<EndCpu> = None;
    let mut peer: Option<Reading<EndCpu>> = None;
    let mut evidence = BothEvidence::default();
    for r in rounds {
        let here = host::between(&r.course.marks.0, &r.course.marks.1);
        local = Some(match local.take() {
            None => here.cpu,
            Some(sum) => host::added(sum, here.cpu),
        });
        add_moved(&mut evidence.local, here.moved);
        let there = match &r.report {
            Some(report) => {
                add_moved(&mut evidence.peer, report.moved.clone());
                report.cpu.clone()
            }
            None => Reading::absent("the far end did not report"),
        };
        peer = Some(match peer.take() {
            None => there,
            Some(sum) => sum.and_then(|a| there.map(|b| host::added(a, b))),
        });
    }
    let share = |cpu: EndCpu| {
        let units = (per_s * cpu.window_ns.0 as f64 / 1e9).round() as u64;
        host::per_unit(cpu, units)
    };
    let local = local.unwrap_or_else(|| {
        let now = host::Mark::take(&[], &probe::Root::live());
        host::between(&now, &now).cpu
    });
    let peer = peer.unwrap_or_default().map(share);
    (BothCpu { local: share(local), peer }, evidence)
}

fn add_moved(to: &mut Moved, from: Moved) {
    from.into_iter().for_each(|(name, n)| *to.entry(name).or_default() += n);
}
