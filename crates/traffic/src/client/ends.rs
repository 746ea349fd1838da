//! What stood around a run at both ends, of all its rounds together: placement, CPU, evidence,
//! warnings.

use std::collections::BTreeMap;

use model::{
    Reading,
    measure::{BothCpu, BothEvidence, EndCpu, EndPlacement, Moved, Placement, Wait},
};

use super::{Peer, conduct::Course};
use crate::{
    control::message::{FarReport, Ready, Test},
    host,
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

const SILENT: &str = "the far end did not report";

/// Where both ends ran.
pub fn placement<'a>(
    rounds: impl Iterator<Item = &'a Ended> + Clone,
    seats: &Seats,
    peer: &Peer,
) -> Placement {
    let mut local = EndPlacement {
        pinned: seats.cpus.clone(),
        why: seats.why.clone(),
        allowed: seats.allowed.clone(),
        ..EndPlacement::default()
    };
    let mut far = EndPlacement::default();
    for r in rounds.clone() {
        add(&mut local.ran_on, &r.seen.ran_on);
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
    let here = |r: &Ended| host::between(&r.course.marks.0, &r.course.marks.1).extras.migrations;
    local.migrations = sum(rounds.clone().map(here));
    far.migrations = sum(rounds.map(|r| match &r.report {
        Some(report) => report.migrations.clone(),
        None => Reading::absent(SILENT),
    }));
    Placement { local, peer: far, same_host: peer.same_host }
}

fn add<K: Ord + Clone>(to: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    from.iter().for_each(|(k, n)| *to.entry(k.clone()).or_default() += n);
}

/// The sum, where every part is known.
pub fn sum(parts: impl Iterator<Item = Reading<u64>>) -> Reading<u64> {
    parts.reduce(|a, b| a.and_then(|a| b.map(|b| a + b))).unwrap_or_default()
}

/// CPU and evidence of both ends. CPU by transaction comes from the rate: each end's looks
/// enclose the window and are a little longer than it.
pub fn costs<'a>(rounds: impl Iterator<Item = &'a Ended>, per_s: f64) -> (BothCpu, BothEvidence) {
    let (mut local, mut peer): (Option<EndCpu>, Option<Reading<EndCpu>>) = (None, None);
    let (mut moved_here, mut moved_there) = (Moved::new(), Moved::new());
    for r in rounds {
        let here = host::between(&r.course.marks.0, &r.course.marks.1);
        local = Some(match local.take() {
            None => here.cpu,
            Some(sum) => host::added(sum, here.cpu),
        });
        add(&mut moved_here, &here.moved);
        let there = match &r.report {
            Some(report) => {
                add(&mut moved_there, &report.moved);
                report.cpu.clone()
            }
            None => Reading::absent(SILENT),
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
    let cpu = BothCpu { local: share(local), peer: peer.unwrap_or_default().map(share) };
    (cpu, BothEvidence { local: moved_here, peer: moved_there })
}

/// What both ends had to say, each thing once.
pub fn warnings<'a>(rounds: impl Iterator<Item = &'a Ended>) -> Vec<String> {
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
pub fn spinning_on_one_cpu(
    round: Option<&Ended>,
    test: &Test,
    wait: Wait,
    peer: &Peer,
) -> Option<String> {
    let far = round.map(|r| r.ready.pinned.as_slice()).unwrap_or_default();
    let shared = peer.same_host && far.iter().any(|cpu| test.near_cpus.contains(*cpu));
    let spins = [wait, test.wait].contains(&Wait::Spin);
    (shared && spins).then(|| {
        "an end that spins shares its CPU with the other: the figures show time slices".into()
    })
}
