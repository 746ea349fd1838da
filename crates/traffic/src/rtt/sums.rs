//! All rounds of a run added up, in memory that does not grow with their number.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Reading,
    measure::{BothEvidence, EndCpu, EndPlacement, Moved},
};
use stats::{Estimate, Histogram, Series, interval};

use super::recorder::{Placed, Recorder};
use crate::{
    Error,
    client::conduct::Course,
    control::message::{FarReport, Ready},
    host,
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

/// The rounds so far.
#[derive(Debug, Default)]
pub struct Sums {
    pub rounds: usize,
    pub window_ns: u64,
    pub by_placement: BTreeMap<Placed, Histogram>,
    /// All threads' batches, one round after the other.
    series: Option<Series>,
    pub from_send: Histogram,
    pub lag: Histogram,
    pub lost: u64,
    pub late: u64,
    /// Where the near end's threads ran and what they received; the seats are the caller's.
    pub near: EndPlacement,
    pub far: EndPlacement,
    pub near_cpu: Option<EndCpu>,
    pub far_cpu: Option<Reading<EndCpu>>,
    pub evidence: BothEvidence,
    pub warnings: Vec<String>,
    /// What moved the bytes.
    near_engines: BTreeSet<&'static str>,
    far_engine: String,
}

impl Sums {
    /// Adds a round.
    pub fn add(&mut self, round: &Round) {
        self.window_ns += round.course.window_ns;
        for recorder in &round.recorders {
            self.add_samples(recorder);
        }
        self.add_batches(round);
        self.add_placement(round);
        self.add_costs(round);
        let far = round.report.iter().flat_map(|f| &f.warnings).map(|w| format!("far end: {w}"));
        for w in round.warnings.iter().chain(&round.seen.warnings).cloned().chain(far) {
            if !self.warnings.contains(&w) {
                self.warnings.push(w);
            }
        }
        self.near_engines.extend(&round.seen.engines);
        if let Some(report) = round.report.as_ref().filter(|r| !r.engine.is_empty()) {
            self.far_engine.clone_from(&report.engine);
        }
        self.rounds += 1;
    }

    /// What moved the bytes at both ends; the near end alone where the far one does not tell.
    pub fn engine(&self) -> String {
        let near = self.near_engines.iter().copied().collect::<Vec<_>>().join(" and ");
        match self.far_engine.as_str() {
            "" => format!("{near} here"),
            far => format!("{near} here, {far} there"),
        }
    }

    fn add_samples(&mut self, recorder: &Recorder) {
        for (placed, h) in &recorder.by_placement {
            self.by_placement.entry(*placed).or_default().add(h);
        }
        if let (Some(s), Some(l)) = (&recorder.from_send, &recorder.lag) {
            self.from_send.add(s);
            self.lag.add(l);
        }
        self.lost += recorder.lost;
        self.late += recorder.late;
        add(&mut self.near.ran_on, &recorder.ran_on());
    }

    fn add_batches(&mut self, round: &Round) {
        let until = round.course.start_ns + round.course.window_ns;
        let mut parts =
            round.recorders.iter().filter_map(|r| Some(r.batches.as_ref()?.series(until)));
        let Some(mut one) = parts.next() else { return };
        // Batches of one beginning and of lengths that double are always alike.
        parts.for_each(|p| {
            let _ = one.add(&p);
        });
        match &mut self.series {
            None => self.series = Some(one),
            Some(all) => {
                let _ = all.append(&one);
            }
        }
    }

    fn add_placement(&mut self, round: &Round) {
        add(&mut self.near.received_on, &round.seen.received_on);
        add(&mut self.near.napi_ids, &round.seen.napi_ids);
        self.far.pinned.clone_from(&round.ready.pinned);
        self.far.why.clone_from(&round.ready.why);
        self.far.allowed.clone_from(&round.ready.allowed);
        let mut far_migrations = Reading::absent("the far end did not report");
        if let Some(report) = &round.report {
            add(&mut self.far.ran_on, &report.ran_on);
            add(&mut self.far.received_on, &report.received_on);
            add(&mut self.far.napi_ids, &report.napi_ids);
            far_migrations = report.migrations.clone();
        }
        let first = self.rounds == 0;
        let together = |sum: &mut Reading<u64>, more: Reading<u64>| {
            let before = std::mem::take(sum);
            *sum = if first { more } else { before.and_then(|a| more.map(|b| a + b)) };
        };
        let here = host::between(&round.course.marks.0, &round.course.marks.1);
        together(&mut self.near.migrations, here.extras.migrations);
        together(&mut self.far.migrations, far_migrations);
    }

    fn add_costs(&mut self, round: &Round) {
        let here = host::between(&round.course.marks.0, &round.course.marks.1);
        self.near_cpu = Some(match self.near_cpu.take() {
            None => here.cpu,
            Some(sum) => host::added(sum, here.cpu),
        });
        add_moved(&mut self.evidence.local, here.moved);
        let there = match &round.report {
            Some(report) => {
                add_moved(&mut self.evidence.peer, report.moved.clone());
                report.cpu.clone()
            }
            None => Reading::absent("the far end did not report"),
        };
        self.far_cpu = Some(match self.far_cpu.take() {
            None => there,
            Some(sum) => sum.and_then(|a| there.map(|b| host::added(a, b))),
        });
    }

    /// All samples.
    pub fn total(&self) -> Histogram {
        let mut sum = Histogram::new();
        self.by_placement.values().for_each(|h| sum.add(h));
        sum
    }

    /// The estimates that a run rests on: its median and its rate.
    pub fn estimates(&self) -> (Option<Estimate>, Option<Estimate>) {
        let Some(series) = &self.series else { return (None, None) };
        let median = interval::of_quantile(series, &self.total(), 0.5);
        (median.ok(), interval::of_rate(series).ok())
    }
}

fn add<K: Ord + Copy>(to: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    from.iter().for_each(|(k, n)| *to.entry(*k).or_default() += n);
}

fn add_moved(to: &mut Moved, from: Moved) {
    from.into_iter().for_each(|(name, n)| *to.entry(name).or_default() += n);
}
