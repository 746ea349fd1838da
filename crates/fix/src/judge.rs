//! Observes the host under its workload, and judges it by doctor's rules.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread::Builder,
    time::Duration,
};

use diagnose::{Case, diagnose};
use model::{Facts, Finding};
use probe::{
    Root,
    error::reading,
    facts::{self, Request as FactsRequest},
    samples::Options,
    watch::OverWindow,
};
use prove::{Experiment, ProveError, workload_loop::WorkloadLoop};
use remote::peer_end::PeerEnd;
use tune::{change_request::PEER, operator::Operator};

use crate::{Result, candidate_search::Observation, request::Request, time_budget};

/// The result of an observation.
pub struct ObservationResult {
    pub findings: Vec<Finding>,
    /// The median duration of the workload's runs; `None` where interrupted before a run was
    /// complete.
    pub run: Option<Duration>,
    /// The longest duration of a run.
    pub longest: Duration,
}

/// Observes this host and the server's while the workload runs, and judges each part of the
/// observation. Where no run is complete by then, it waits for one, for a share of `room`, the rest
/// of the budget.
///
/// # Errors
/// The workload failed, gave no figure, or none of its runs ended.
pub fn look(
    (request, observation): (&Request, Observation),
    (probe, room): (&Experiment, Duration),
    (operator, ours): (&dyn Operator, &Path),
    peer: Option<&PeerEnd>,
) -> Result<ObservationResult> {
    let facts = facts::collect(&Root::live(), &FactsRequest { processes: vec![] });
    let load = WorkloadLoop::start(probe, ours)?;
    let goal = request.goal;
    let (over, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let (ours, theirs) = std::thread::scope(|threads| {
        // A failure of the workload ends the observation at once.
        let minding = Builder::new().spawn_scoped(threads, || {
            while !done.load(Ordering::Relaxed) {
                over.store(operator.wants_end() || load.failed(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let theirs = || peer.map_or(Ok(vec![]), |f| peer_findings(f, observation, goal, &over));
        let both = minding.and_then(|_| Builder::new().spawn_scoped(threads, theirs));
        let (ours, theirs) = match both {
            Ok(theirs) => {
                let ours = local_findings((request, &facts), observation, &over);
                (ours, theirs.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            }
            Err(e) => (vec![], Err(ProveError::Thread(e))),
        };
        done.store(true, Ordering::Relaxed);
        (ours, theirs)
    });
    let patience =
        time_budget::patience(room.saturating_sub(Duration::from_nanos(observation.long().0)));
    if !load.reported() && !operator.wants_end() {
        let patience = patience.as_secs_f64();
        operator.note(&format!(
            "no run of the workload has ended in this look; waiting for one, {patience:.0} s at most"
        ));
    }
    let mut took = load.end(patience, operator.stop()).map_err(|e| endless(e, request))?;
    took.sort_unstable();
    let longest = took.last().copied().unwrap_or_default();
    Ok(ObservationResult {
        findings: merged(ours, theirs?),
        run: took.get(took.len() / 2).copied(),
        longest,
    })
}

/// The error for a workload none of whose runs ended, with what to do.
fn endless(e: ProveError, request: &Request) -> ProveError {
    match e {
        ProveError::Endless(_) => ProveError::Budget(format!(
            "{e}: it hangs, or it takes shorter runs (a measurement's --duration) or a longer --budget \
             than {}",
            request.budget
        )),
        e => e,
    }
}

/// The findings of this host in all parts.
fn local_findings(
    (request, facts): (&Request, &Facts),
    observation: Observation,
    over: &AtomicBool,
) -> Vec<Finding> {
    let root = Root::live();
    let options = Options::over(observation.part);
    let goal = request.goal;
    let mut programs = OverWindow::begin(&root, request.bpf);
    let mut all = vec![];
    for _ in 0..observation.parts {
        let samples = reading(programs.take(&root, &options, over, &mut |_| {}));
        all = merge_new(all, diagnose(&Case { facts, samples: &samples, goal }).findings);
        if over.load(Ordering::Relaxed) {
            break;
        }
    }
    all
}

/// The findings of the server's host.
fn peer_findings(
    peer: &PeerEnd,
    observation: Observation,
    goal: model::Goal,
    over: &AtomicBool,
) -> Result<Vec<Finding>> {
    let mut all = vec![];
    for _ in 0..observation.parts {
        all = merge_new(all, peer.look(observation.part, goal)?);
        if over.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(all)
}

/// Adds to the findings of one part those of a later part that are new.
fn merge_new(first: Vec<Finding>, later: Vec<Finding>) -> Vec<Finding> {
    let known = |f: &Finding| first.iter().any(|o| (&o.rule, &o.subject) == (&f.rule, &f.subject));
    let later = later.into_iter().filter(|f| !known(f)).collect();
    by_weight(first, later)
}

/// The findings of both hosts, severe and certain ones first, this host's before the server's. Each
/// host's order is kept. The server's knobs get their prefix.
fn merged(ours: Vec<Finding>, theirs: Vec<Finding>) -> Vec<Finding> {
    by_weight(ours, theirs.into_iter().map(peer_knobs).collect())
}

/// Merges two lists and keeps the order of each. An item of the second goes first only where it is
/// more severe or more certain.
fn by_weight(first: Vec<Finding>, second: Vec<Finding>) -> Vec<Finding> {
    let weight = |f: &Finding| (f.severity, f.confidence);
    let mut second = second.into_iter().peekable();
    let mut all = Vec::new();
    for finding in first {
        while let Some(other) = second.next_if(|o| weight(o) > weight(&finding)) {
            all.push(other);
        }
        all.push(finding);
    }
    all.extend(second);
    all
}

fn peer_knobs(mut finding: Finding) -> Finding {
    for change in finding.changes.iter_mut().filter(|c| !c.knob.is_empty()) {
        change.knob.insert_str(0, PEER);
    }
    finding
}

#[cfg(test)]
mod tests {
    use model::Severity;

    use super::*;

    fn finding(rule: &str, severity: Severity) -> Finding {
        serde_json::from_value(serde_json::json!({
            "rule": rule, "number": 1, "title": "", "severity": severity,
            "confidence": "high", "rank": 1, "subject": "", "explanation": "",
            "expected_benefit": "", "evidence": [], "caused_by": [],
            "changes": [{ "knob": "k", "old": "", "new": "", "command": "", "risk": "" }],
        }))
        .unwrap()
    }

    #[test]
    fn what_one_part_shows_is_reported_once_in_the_order_of_weight() {
        let part = |all: &[(&str, Severity)]| all.iter().map(|(r, s)| finding(r, *s)).collect();
        let squeeze = ("time_squeeze", Severity::Warning);
        let all =
            merge_new(part(&[squeeze]), part(&[("few_channels", Severity::Critical), squeeze]));
        let all = merge_new(all, part(&[squeeze, ("rps", Severity::Info)]));
        let names: Vec<_> = all.iter().map(|f| &*f.rule).collect();
        assert_eq!(names, ["few_channels", "time_squeeze", "rps"]);
    }

    #[test]
    fn findings_of_both_hosts_stand_in_one_order() {
        let ours = vec![finding("a", Severity::Warning), finding("b", Severity::Info)];
        let theirs = vec![finding("c", Severity::Critical), finding("d", Severity::Info)];
        let all = merged(ours, theirs);
        let names: Vec<_> = all.iter().map(|f| (&*f.rule, &*f.changes[0].knob)).collect();
        assert_eq!(names, [("c", "peer:k"), ("a", "k"), ("b", "k"), ("d", "peer:k")]);
    }
}
