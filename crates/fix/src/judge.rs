//! From the host under its workload to candidates: doctor's findings, in their order.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    thread::Builder,
    time::Duration,
};

use diagnose::{Case, diagnose};
use model::{
    Facts, Finding, Nanos,
    fix::{Candidate, CandidateStatus, FixChange},
    prove::Outcome,
    tune::{Plan, Planned, Refused, RefusedAs},
};
use probe::{
    Root,
    error::reading,
    facts::{self, Request},
    samples::{self, Options},
    watch::OverWindow,
};
use prove::{Experiment, ProveError, load::Load};
use tune::{
    Host,
    change_request::{self, ChangeRequest, ChangeRequests},
};

use super::{Attempt, args::FixArgs, candidate_search::Observation, time_budget};
use crate::{
    commands::{
        peer::{PEER, local::PeerEnd},
        prove::failure,
        tune::plan,
    },
    exit::Failure,
    interrupt::Window,
    output::note,
    request::readings,
};

/// What a look gave.
pub struct JudgeRequest {
    pub findings: Vec<Finding>,
    /// The middle of how long runs of the workload took; `None` where somebody wanted an end before
    /// one was whole.
    pub run: Option<Duration>,
    /// How long the longest took.
    pub longest: Duration,
}

/// Watches the host while the workload runs, and judges each part of the look; the server's at the
/// same time. Where no run is whole by then, one is waited for, so long as `room`, what is left of the
/// budget, can spare.
///
/// **Errors**: the workload failed, gave no figure, or no run of it ended.
pub fn look(
    (args, observation): (&FixArgs, Observation),
    (probe, room): (&Experiment, Duration),
    window: &Window,
    peer: Option<&PeerEnd>,
) -> Result<JudgeRequest, Failure> {
    let ours = super::ours()?;
    let facts = facts::collect(&Root::live(), &Request { processes: vec![] });
    let load = Load::start(probe, &ours).map_err(failure)?;
    let goal = args.goal.of_findings();
    let (over, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let (ours, theirs) = std::thread::scope(|threads| {
        // A workload that failed is told at once, however long the look.
        let minding = Builder::new().spawn_scoped(threads, || {
            while !done.load(Ordering::Relaxed) {
                over.store(window.was_interrupted() || load.failed(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let theirs = || peer.map_or(Ok(vec![]), |f| there(f, observation, goal, &over));
        let both = minding.and_then(|_| Builder::new().spawn_scoped(threads, theirs));
        let (ours, theirs) = match both {
            Ok(theirs) => {
                let ours = here((args, &facts), observation, &over);
                let lost = |_| Err(Failure::Bug("the server was not waited for".into()));
                (ours, theirs.join().unwrap_or_else(lost))
            }
            Err(e) => (vec![], Err(Failure::thread(&e))),
        };
        done.store(true, Ordering::Relaxed);
        (ours, theirs)
    });
    let patience =
        time_budget::patience(room.saturating_sub(Duration::from_nanos(observation.long().0)));
    if !load.reported() && !window.was_interrupted() && !args.output.talk.quiet {
        let patience = patience.as_secs_f64();
        note(&format!(
            "no run of the workload has ended in this look; waiting for one, {patience:.0} s at most"
        ));
    }
    let mut took = load.end(patience, window.stop()).map_err(|e| endless(e, args))?;
    took.sort_unstable();
    let longest = took.last().copied().unwrap_or_default();
    Ok(JudgeRequest {
        findings: merged(ours, theirs?),
        run: took.get(took.len() / 2).copied(),
        longest,
    })
}

/// No run has ended: what that means, and what to do.
fn endless(e: ProveError, args: &FixArgs) -> Failure {
    match e {
        ProveError::Endless(_) => Failure::Environment(format!(
            "{e}: it hangs, or it takes shorter runs (a measurement's --duration) or a longer --budget \
             than {}",
            args.budget
        )),
        e => failure(e),
    }
}

/// What the parts show of this host.
fn here(
    (args, facts): (&FixArgs, &Facts),
    observation: Observation,
    over: &AtomicBool,
) -> Vec<Finding> {
    let root = Root::live();
    let options = Options {
        window: Duration::from_nanos(observation.part.0),
        readings: readings(observation.part),
        pids: vec![],
        sockets: true,
    };
    let goal = args.goal.of_findings();
    let mut softirq = OverWindow::begin(&root, !args.no_bpf);
    let mut all = vec![];
    for _ in 0..observation.parts {
        let taken = samples::take(&root, &options, over, &mut |_| {});
        let samples = reading(taken.map(|samples| softirq.part(samples)));
        all = woven(all, diagnose(&Case { facts, samples: &samples, goal }).findings);
        if over.load(Ordering::Relaxed) {
            break;
        }
    }
    all
}

/// And of the server.
fn there(
    peer: &PeerEnd,
    observation: Observation,
    goal: model::Goal,
    over: &AtomicBool,
) -> Result<Vec<Finding>, Failure> {
    let mut all = vec![];
    for _ in 0..observation.parts {
        all = woven(all, peer.look(observation.part, goal)?);
        if over.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(all)
}

/// Findings of one part and those of a later one that it has not.
fn woven(first: Vec<Finding>, later: Vec<Finding>) -> Vec<Finding> {
    let there = |f: &Finding| first.iter().any(|o| (&o.rule, &o.subject) == (&f.rule, &f.subject));
    let later = later.into_iter().filter(|f| !there(f)).collect();
    by_weight(first, later)
}

/// Findings of both hosts, each host's in its own order: the more severe and sure first, this
/// host's before the other's. The other's knobs are named as such.
fn merged(ours: Vec<Finding>, theirs: Vec<Finding>) -> Vec<Finding> {
    by_weight(ours, theirs.into_iter().map(peer_knobs).collect())
}

/// Two lists as one, each in its own order: of the second what is more severe and sure comes first.
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

/// What the findings and the operator ask for, in order: each finding's changes together. What
/// waits or has no knob is told as such.
pub fn candidates(
    findings: &[Finding],
    also: &[ChangeRequest],
) -> Vec<(Candidate, Vec<ChangeRequest>)> {
    let mut all: Vec<(Candidate, Vec<ChangeRequest>)> = Vec::new();
    for finding in findings {
        let asked = change_request::findings(std::slice::from_ref(finding));
        let taken =
            |w: &ChangeRequest| all.iter().any(|(_, other)| other.iter().any(|o| o.knob == w.knob));
        let (again, fresh): (Vec<ChangeRequest>, Vec<ChangeRequest>) =
            asked.change_requests.into_iter().partition(taken);
        if !fresh.is_empty() {
            all.push((candidate(&finding.title, &fresh), fresh));
        }
        for change_request in again {
            let mut c = candidate(&finding.title, &[change_request]);
            c.why = "another finding, which comes first, asks for this knob".into();
            all.push((c, vec![]));
        }
        for refused in asked.refused {
            let Refused { asked_by, knob, new: value, kind, why, .. } = refused;
            let mut c = candidate(
                &finding.title,
                &[ChangeRequest { knob, value, asked_by, ..ChangeRequest::default() }],
            );
            c.changes.retain(|c| !c.knob.is_empty());
            let later = kind == RefusedAs::Postponed;
            c.status = if later { CandidateStatus::NotTried } else { CandidateStatus::Refused };
            c.why = why;
            all.push((c, vec![]));
        }
    }
    all.extend(also.iter().map(|w| (candidate("", std::slice::from_ref(w)), vec![w.clone()])));
    all
}

/// What was undone and comes of the same rule, together: each of two small buffers hides what
/// the other one costs.
pub fn together(tried: &[Candidate]) -> Vec<(Candidate, Vec<ChangeRequest>)> {
    let alone = |c: &&Candidate| {
        let shown = c.verdict.as_ref().map(|v| v.outcome);
        let nothing = [Outcome::NoDifferenceShown, Outcome::Undecided];
        c.status == CandidateStatus::Undone
            && shown.is_some_and(|outcome| nothing.contains(&outcome))
    };
    let mut rules: BTreeMap<&str, Vec<&Candidate>> = BTreeMap::new();
    for c in tried.iter().filter(alone).filter(|c| c.asked_by.starts_with("finding ")) {
        rules.entry(&c.asked_by).or_default().push(c);
    }
    let group = |(asked_by, all): (&str, Vec<&Candidate>)| {
        let asked_by = format!("{asked_by}, {} of them together", all.len());
        let change_requests: Vec<ChangeRequest> = all
            .iter()
            .flat_map(|c| &c.changes)
            .map(|c| ChangeRequest {
                knob: c.knob.clone(),
                value: c.new.clone(),
                asked_by: asked_by.clone(),
                ..ChangeRequest::default()
            })
            .collect();
        (candidate("", &change_requests), change_requests)
    };
    rules.into_iter().filter(|(_, all)| all.len() > 1).map(group).collect()
}

fn change(knob: &str, new: &str) -> FixChange {
    FixChange {
        knob: knob.to_owned(),
        host: String::new(),
        old: String::new(),
        new: new.to_owned(),
        unit: String::new(),
        impact: None,
    }
}

fn candidate(title: &str, change_requests: &[ChangeRequest]) -> Candidate {
    Candidate {
        asked_by: change_requests.first().map_or_else(String::new, |w| w.asked_by.clone()),
        title: title.to_owned(),
        changes: change_requests.iter().map(|w| change(&w.knob, &w.value)).collect(),
        status: CandidateStatus::NotTried,
        why: String::new(),
        verdict: None,
        runs: 0,
    }
}

/// Plans a candidate on the hosts as they are now, by `plan`; what `tune plan` refuses is refused
/// in its words.
pub fn planned(
    plan: impl FnOnce(Vec<ChangeRequest>) -> Result<Plan, Failure>,
    own_connection: bool,
    (candidate, change_requests): (Candidate, Vec<ChangeRequest>),
) -> Result<Attempt, Failure> {
    let mut attempt = Attempt { candidate, change_requests, plan: None };
    if attempt.change_requests.is_empty() {
        return Ok(attempt);
    }
    let plan = plan(attempt.change_requests.clone())?;
    let c = &mut attempt.candidate;
    if let Some(refused) = plan.refused.first() {
        (c.status, c.why) =
            (CandidateStatus::Refused, format!("{}: {}", refused.knob, refused.why));
    } else if plan.changes.is_empty() {
        (c.status, c.why) = (CandidateStatus::Refused, "is so already".into());
    } else if let Some(why) = super::trial::cuts(&plan).filter(|_| !own_connection) {
        (c.status, c.why) = (CandidateStatus::Refused, why);
    } else {
        c.changes = changes(&plan.changes);
        attempt.plan = Some(plan);
    }
    Ok(attempt)
}

/// The plan for some change requests.
pub fn plan(host: &Host, change_requests: Vec<ChangeRequest>) -> Result<Plan, Failure> {
    let change_requests =
        ChangeRequests { change_requests, trial: true, ..ChangeRequests::default() };
    let facts = plan::facts(host, &change_requests);
    plan::of_facts(host, &facts, change_requests)
}

/// Planned changes for a document.
pub fn changes(planned: &[Planned]) -> Vec<FixChange> {
    let one = |p: &Planned| FixChange {
        knob: p.knob.clone(),
        host: String::new(),
        old: p.old.clone(),
        new: p.new.clone(),
        unit: p.unit.clone(),
        impact: Some(p.impact.clone()),
    };
    planned.iter().map(one).collect()
}

/// The shortest window that is any good.
pub const SHORTEST: Nanos = Nanos(100_000_000);

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
    fn what_one_part_shows_is_told_once_in_the_order_of_weight() {
        let part = |all: &[(&str, Severity)]| all.iter().map(|(r, s)| finding(r, *s)).collect();
        let squeeze = ("time_squeeze", Severity::Warning);
        let all = woven(part(&[squeeze]), part(&[("few_channels", Severity::Critical), squeeze]));
        let all = woven(all, part(&[squeeze, ("rps", Severity::Info)]));
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
