//! From the host under its workload to candidates: doctor's findings, in their order.

use std::{collections::BTreeMap, time::Duration};

use diagnose::{Case, diagnose};
use model::{
    Finding, Nanos,
    fix::{Candidate, Fate, FixChange},
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
use prove::{Experiment, load::Load};
use tune::{
    Host,
    wish::{self, Wish, Wishes},
};

use super::{Attempt, args::FixArgs};
use crate::{
    commands::{
        far::{FAR, near::Far},
        prove::failure,
        tune::plan,
    },
    exit::Failure,
    interrupt::Window,
    request::readings,
};

/// What a look gave.
pub struct Look {
    /// Every finding.
    pub findings: Vec<Finding>,
    /// The middle of how long runs of the workload took.
    pub run: Duration,
}

/// Watches the host for so long while the workload runs, and judges; the far end's at the same
/// time.
pub fn look(
    (args, long): (&FixArgs, Nanos),
    probe: &Experiment,
    window: &Window,
    far: Option<&Far>,
) -> Result<Look, Failure> {
    let root = Root::live();
    let facts = facts::collect(&root, &Request { processes: vec![] });
    let ours = super::ours()?;
    let load = Load::start(probe, &ours);
    let options =
        Options { window: Duration::from_nanos(long.0), readings: readings(long), pids: vec![] };
    let goal = args.goal.of_findings();
    let (samples, theirs) = std::thread::scope(|threads| {
        let theirs = threads.spawn(|| far.map(|f| f.look(long, goal)).transpose());
        let softirq = OverWindow::begin(&root, !args.no_bpf);
        let taken = samples::take(&root, &options, window.stop(), &mut |_| {});
        let samples = reading(taken.map(|samples| softirq.end(samples)));
        let lost = |_| Err(Failure::Bug("the far end was not waited for".into()));
        (samples, theirs.join().unwrap_or_else(lost))
    });
    let mut took = load.end().map_err(failure)?;
    took.sort_unstable();
    let ours = diagnose(&Case { facts: &facts, samples: &samples, goal }).findings;
    Ok(Look {
        findings: merged(ours, theirs?.unwrap_or_default()),
        // None was whole within the window: then one takes that long at least.
        run: took.get(took.len() / 2).copied().unwrap_or(Duration::from_nanos(long.0)),
    })
}

/// Findings of both hosts, each host's in its own order: the more severe and sure first, this
/// host's before the other's. The other's knobs are named as such.
fn merged(ours: Vec<Finding>, theirs: Vec<Finding>) -> Vec<Finding> {
    let weight = |f: &Finding| (f.severity, f.confidence);
    let mut theirs = theirs.into_iter().map(far_knobs).peekable();
    let mut all = Vec::new();
    for finding in ours {
        while let Some(their) = theirs.next_if(|t| weight(t) > weight(&finding)) {
            all.push(their);
        }
        all.push(finding);
    }
    all.extend(theirs);
    all
}

fn far_knobs(mut finding: Finding) -> Finding {
    for change in finding.changes.iter_mut().filter(|c| !c.knob.is_empty()) {
        change.knob.insert_str(0, FAR);
    }
    finding
}

/// What the findings and the operator ask for, in order: each finding's changes together. What
/// waits or has no knob is told as such.
pub fn candidates(findings: &[Finding], also: &[Wish]) -> Vec<(Candidate, Vec<Wish>)> {
    let mut all: Vec<(Candidate, Vec<Wish>)> = Vec::new();
    for finding in findings {
        let asked = wish::findings(std::slice::from_ref(finding));
        let taken = |w: &Wish| all.iter().any(|(_, other)| other.iter().any(|o| o.knob == w.knob));
        let (again, fresh): (Vec<Wish>, Vec<Wish>) = asked.wishes.into_iter().partition(taken);
        if !fresh.is_empty() {
            all.push((candidate(&finding.title, &fresh), fresh));
        }
        for wish in again {
            let mut c = candidate(&finding.title, &[wish]);
            c.why = "another finding, which comes first, asks for this knob".into();
            all.push((c, vec![]));
        }
        for refused in asked.refused {
            let Refused { asked_by, knob, new: value, kind, why } = refused;
            let mut c =
                candidate(&finding.title, &[Wish { knob, value, asked_by, ..Wish::default() }]);
            c.changes.retain(|c| !c.knob.is_empty());
            let later = kind == RefusedAs::Postponed;
            c.fate = if later { Fate::NotTried } else { Fate::Refused };
            c.why = why;
            all.push((c, vec![]));
        }
    }
    all.extend(also.iter().map(|w| (candidate("", std::slice::from_ref(w)), vec![w.clone()])));
    all
}

/// What was undone and comes of the same rule, together: each of two small buffers hides what
/// the other one costs.
pub fn together(tried: &[Candidate]) -> Vec<(Candidate, Vec<Wish>)> {
    let alone = |c: &&Candidate| {
        let shown = c.verdict.as_ref().map(|v| v.outcome);
        c.fate == Fate::Undone && shown == Some(Outcome::NoDifferenceShown)
    };
    let mut rules: BTreeMap<&str, Vec<&Candidate>> = BTreeMap::new();
    for c in tried.iter().filter(alone).filter(|c| c.asked_by.starts_with("finding ")) {
        rules.entry(&c.asked_by).or_default().push(c);
    }
    let group = |(asked_by, all): (&str, Vec<&Candidate>)| {
        let asked_by = format!("{asked_by}, {} of them together", all.len());
        let wishes: Vec<Wish> = all
            .iter()
            .flat_map(|c| &c.changes)
            .map(|c| Wish {
                knob: c.knob.clone(),
                value: c.new.clone(),
                asked_by: asked_by.clone(),
                ..Wish::default()
            })
            .collect();
        (candidate("", &wishes), wishes)
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
        radius: None,
    }
}

fn candidate(title: &str, wishes: &[Wish]) -> Candidate {
    Candidate {
        asked_by: wishes.first().map_or_else(String::new, |w| w.asked_by.clone()),
        title: title.to_owned(),
        changes: wishes.iter().map(|w| change(&w.knob, &w.value)).collect(),
        fate: Fate::NotTried,
        why: String::new(),
        verdict: None,
        runs: 0,
    }
}

/// Plans a candidate on the hosts as they are now, by `plan`; what `tune plan` refuses is refused
/// in its words.
pub fn planned(
    plan: impl FnOnce(Vec<Wish>) -> Result<Plan, Failure>,
    own_connection: bool,
    (candidate, wishes): (Candidate, Vec<Wish>),
) -> Result<Attempt, Failure> {
    let mut attempt = Attempt { candidate, wishes, plan: None };
    if attempt.wishes.is_empty() {
        return Ok(attempt);
    }
    let plan = plan(attempt.wishes.clone())?;
    let c = &mut attempt.candidate;
    if let Some(refused) = plan.refused.first() {
        (c.fate, c.why) = (Fate::Refused, format!("{}: {}", refused.knob, refused.why));
    } else if plan.changes.is_empty() {
        (c.fate, c.why) = (Fate::Refused, "is so already".into());
    } else if let Some(why) = super::trial::cuts(&plan).filter(|_| !own_connection) {
        (c.fate, c.why) = (Fate::Refused, why);
    } else {
        c.changes = changes(&plan.changes);
        attempt.plan = Some(plan);
    }
    Ok(attempt)
}

/// The plan for some wishes.
pub fn plan(host: &Host, wishes: Vec<Wish>) -> Result<Plan, Failure> {
    let wishes = Wishes { wishes, ..Wishes::default() };
    let facts = plan::facts(host, &wishes);
    plan::of_facts(host, &facts, wishes)
}

/// Planned changes for a document.
pub fn changes(planned: &[Planned]) -> Vec<FixChange> {
    let one = |p: &Planned| FixChange {
        knob: p.knob.clone(),
        host: String::new(),
        old: p.old.clone(),
        new: p.new.clone(),
        unit: p.unit.clone(),
        radius: Some(p.radius.clone()),
    };
    planned.iter().map(one).collect()
}

/// The shortest window that is any good.
pub const SHORTEST: Nanos = Nanos(100_000_000);

#[cfg(test)]
mod tests {
    use model::Severity;

    use super::*;

    #[test]
    fn findings_of_both_hosts_stand_in_one_order() {
        let finding = |rule: &str, severity| -> Finding {
            serde_json::from_value(serde_json::json!({
                "rule": rule, "number": 1, "title": "", "severity": severity,
                "confidence": "high", "rank": 1, "subject": "", "explanation": "",
                "expected_gain": "", "evidence": [], "caused_by": [],
                "changes": [{ "knob": "k", "old": "", "new": "", "command": "", "risk": "" }],
            }))
            .unwrap()
        };
        let ours = vec![finding("a", Severity::Warning), finding("b", Severity::Info)];
        let theirs = vec![finding("c", Severity::Critical), finding("d", Severity::Info)];
        let all = merged(ours, theirs);
        let names: Vec<_> = all.iter().map(|f| (&*f.rule, &*f.changes[0].knob)).collect();
        assert_eq!(names, [("c", "far:k"), ("a", "k"), ("b", "k"), ("d", "far:k")]);
    }
}
