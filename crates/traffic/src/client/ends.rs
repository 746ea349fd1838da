//! What stood around a run at both ends, of all its rounds together: placement, CPU, evidence,
//! warnings.

use std::collections::BTreeMap;

use model::{
    CpuId, Reading,
    measure::{BothCpu, BothEvidence, EndCpu, EndPlacement, Placement, Wait},
};

use super::conduct::Course;
use crate::{
    control::message::{FarReport, Ready, Test},
    host::{self, Mark},
    seats::Seats,
    team::Seen,
};

/// One round, apart from its samples.
#[derive(Debug)]
pub struct Ended {
    pub ready: Ready,
    pub course: Course,
    pub seen: Seen,
    pub report: Option<FarReport>,
    /// What could not be set up as asked.
    pub warnings: Vec<String>,
}

impl Ended {
    fn around(&self) -> Around<'_> {
        Around {
            ready: &self.ready,
            marks: &self.course.marks,
            seen: &self.seen,
            report: self.report.as_ref(),
            warnings: &self.warnings,
        }
    }
}

/// What of a round stands around it.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    pub ready: &'a Ready,
    /// Before and after the window.
    pub marks: &'a (Mark, Mark),
    pub seen: &'a Seen,
    pub report: Option<&'a FarReport>,
    /// What could not be set up as asked.
    pub warnings: &'a [String],
}

/// The rounds so far, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct Ends {
    local: EndPlacement,
    peer: EndPlacement,
    local_migrations: Option<Reading<u64>>,
    peer_migrations: Option<Reading<u64>>,
    local_cpu: Option<EndCpu>,
    peer_cpu: Option<Reading<EndCpu>>,
    evidence: BothEvidence,
    warnings: Vec<String>,
}

impl Ends {
    /// Of these rounds.
    pub fn of<'a>(rounds: impl Iterator<Item = &'a Ended>) -> Self {
        let mut all = Self::default();
        rounds.for_each(|r| all.add(r));
        all
    }

    /// Adds a round.
    pub fn add(&mut self, round: &Ended) {
        self.add_around(round.around());
    }

    /// Adds a round of another shape.
    pub fn add_around(&mut self, round: Around<'_>) {
        let Around { ready, marks, seen, report, warnings } = round;
        let here = host::between(&marks.0, &marks.1);
        self.add_local_ran_on(&seen.ran_on);
        add(&mut self.local.received_on, &seen.received_on);
        add(&mut self.local.napi_ids, &seen.napi_ids);
        plus(&mut self.local_migrations, here.extras.migrations, u64::saturating_add);
        self.local_cpu = Some(match self.local_cpu.take() {
            None => here.cpu,
            Some(sum) => host::added(sum, here.cpu),
        });
        add(&mut self.evidence.local, &here.moved);
        self.peer.pinned.clone_from(&ready.pinned);
        self.peer.why.clone_from(&ready.why);
        self.peer.allowed.clone_from(&ready.allowed);
        self.add_report(report);
        let far = report.iter().flat_map(|r| &r.warnings).map(|w| format!("far end: {w}"));
        for w in warnings.iter().chain(&seen.warnings).cloned().chain(far) {
            if !self.warnings.contains(&w) {
                self.warnings.push(w);
            }
        }
    }

    fn add_report(&mut self, report: Option<&FarReport>) {
        let (migrations, cpu) = match report {
            Some(r) => (r.migrations.clone(), r.cpu.clone()),
            None => (Reading::absent(SILENT), Reading::absent(SILENT)),
        };
        plus(&mut self.peer_migrations, migrations, u64::saturating_add);
        plus(&mut self.peer_cpu, cpu, host::added);
        if let Some(r) = report {
            add(&mut self.peer.ran_on, &r.ran_on);
            add(&mut self.peer.received_on, &r.received_on);
            add(&mut self.peer.napi_ids, &r.napi_ids);
            add(&mut self.evidence.peer, &r.moved);
        }
    }

    /// Samples by the CPU of the near thread, where they are counted elsewhere than in
    /// [`Seen::ran_on`].
    pub fn add_local_ran_on(&mut self, ran_on: &BTreeMap<CpuId, u64>) {
        add(&mut self.local.ran_on, ran_on);
    }

    /// Where both ends ran.
    pub fn placement(&self, seats: &Seats, same_host: bool) -> Placement {
        let local = EndPlacement {
            pinned: seats.cpus.clone(),
            why: seats.why.clone(),
            allowed: seats.allowed.clone(),
            migrations: self.local_migrations.clone().unwrap_or_default(),
            ..self.local.clone()
        };
        let migrations = self.peer_migrations.clone().unwrap_or_default();
        Placement { local, peer: EndPlacement { migrations, ..self.peer.clone() }, same_host }
    }

    /// CPU of both ends, also by unit; `units` says how many went with an end's window.
    pub fn cpu(&self, units: impl Fn(&EndCpu) -> u64) -> BothCpu {
        let share = |cpu: EndCpu| {
            let units = units(&cpu);
            host::per_unit(cpu, units)
        };
        let local = self.local_cpu.clone().unwrap_or_else(|| {
            let now = Mark::take(&[], &probe::Root::live());
            host::between(&now, &now).cpu
        });
        let peer = self.peer_cpu.clone().unwrap_or_default();
        BothCpu { local: share(local), peer: peer.map(share) }
    }

    /// The counters that moved.
    pub fn evidence(&self) -> BothEvidence {
        self.evidence.clone()
    }

    /// What both ends had to say, each thing once.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Two spinning threads on one CPU wait for each other's time slice to end.
    pub fn spinning_on_one_cpu(&self, test: &Test, wait: Wait, same_host: bool) -> Option<String> {
        let shared = same_host && self.peer.pinned.iter().any(|c| test.near_cpus.contains(*c));
        let spins = [wait, test.wait].contains(&Wait::Spin);
        (shared && spins).then(|| {
            "an end that spins shares its CPU with the other: the figures show time slices".into()
        })
    }
}

const SILENT: &str = "the far end did not report";

/// How many went with a window at that rate: each end's looks enclose the measured window and
/// are a little longer than it.
pub fn at_rate(per_s: f64) -> impl Fn(&EndCpu) -> u64 {
    move |cpu| (per_s * cpu.window_ns.0 as f64 / 1e9).round() as u64
}

/// The sum, where every part is known.
pub fn sum(parts: impl Iterator<Item = Reading<u64>>) -> Reading<u64> {
    let mut all = None;
    parts.for_each(|p| plus(&mut all, p, u64::saturating_add));
    all.unwrap_or_default()
}

/// One more part of a sum that is known where every part is.
fn plus<T>(sum: &mut Option<Reading<T>>, more: Reading<T>, add: impl FnOnce(T, T) -> T) {
    *sum = Some(match sum.take() {
        None => more,
        Some(sum) => sum.and_then(|a| more.map(|b| add(a, b))),
    });
}

fn add<K: Ord + Clone>(to: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (k, n) in from {
        let sum = to.entry(k.clone()).or_default();
        // A far end may say anything.
        *sum = sum.saturating_add(*n);
    }
}
