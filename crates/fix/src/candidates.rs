//! Turns findings into candidates, in the findings' order.

use std::collections::BTreeMap;

use model::{
    Finding,
    fix::{Candidate, CandidateStatus, FixChange},
    prove::Outcome,
    tune::{Plan, Planned, Refused, RefusedAs},
};
use tune::{
    change_request::{self, ChangeRequest},
    trial_setup,
};

use crate::{Result, attempt::Attempt};

/// The candidates of the findings and of the operator, in order; each finding's changes are one
/// candidate. A finding that waits for another, or has no knob, says so.
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

/// Reverted candidates of the same rule, together: each of two small buffers hides the effect of
/// the other.
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

/// Plans a candidate on the hosts as they are now, by `plan`. A refusal has the words of `tune
/// plan`.
///
/// # Errors
/// What `plan` returns. A refused change is no error, but the candidate's status.
pub fn planned(
    plan: impl FnOnce(Vec<ChangeRequest>) -> Result<Plan>,
    own_connection: bool,
    (candidate, change_requests): (Candidate, Vec<ChangeRequest>),
) -> Result<Attempt> {
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
    } else if let Some(why) = trial_setup::cuts_connection(&plan).filter(|_| !own_connection) {
        (c.status, c.why) = (CandidateStatus::Refused, why);
    } else {
        c.changes = changes(&plan.changes);
        attempt.plan = Some(plan);
    }
    Ok(attempt)
}

/// The planned changes as the document has them.
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
