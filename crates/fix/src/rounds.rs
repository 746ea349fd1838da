//! Alternates diagnosis and trials, and compares everything that was kept at the end.

use std::time::Duration;

use model::{
    fix::{CandidateStatus, FixDocument, FixNote},
    prove::{Outcome, Verdict},
    tune::Plan,
};
use tune::{change_request::ChangeRequest, host_freeze, operator::Operator, trial::Trials};

use crate::{
    Result,
    attempt::Attempt,
    candidate_search::{self, CandidateSearch, Observation},
    candidates,
    fix_run::{ExperimentEnd, FixRun},
    judge,
    request::probe,
};

/// Diagnoses and tries candidates; again whenever something helped, as other findings may show
/// then.
///
/// # Errors
/// The hosts cannot be diagnosed, or as [`FixRun::candidate`]. What was kept so far stays in
/// `course`.
pub fn rounds(
    course: &mut FixRun<'_>,
    also: &[ChangeRequest],
    document: &mut FixDocument,
) -> Result<()> {
    let (mut candidate_search, mut also) = (CandidateSearch::new(course.request.window), also);
    loop {
        let kept = course.kept.len();
        let Some(observation) = candidate_search
            .next()
            .filter(|observation| candidate_search.is_first() || course.holds_look(*observation))
        else {
            document.ended = "no further remedy helps".into();
            document.notes.push(candidate_search.in_vain());
            return Ok(());
        };
        looks_again(course.operator, &candidate_search, observation);
        let probe = probe(&course.bounded())?;
        let probe = (&probe, course.time_budget().room);
        let by = (course.operator, course.ours);
        let look = judge::look((course.request, observation), probe, by, course.hosts.peer())?;
        let Some(run) = look.run else {
            document.ended = "interrupted".into();
            return Ok(());
        };
        course.pace.looked(run);
        course.pace.ran(look.longest);
        course.looks = Duration::from_nanos(candidate_search.all().0);
        let fresh = candidate_search.fresh(observation, &look.findings, also);
        also = &[];
        document.notes.extend(candidate_search.late(&fresh));
        candidate_search::no_longer_waits(&mut document.candidates, &fresh);
        if !all_tried(course, fresh, document)? {
            return Ok(());
        }
        if course.operator.wants_end() {
            document.ended = "interrupted".into();
            return Ok(());
        }
        if course.kept.len() > kept {
            candidate_search.anew();
        }
    }
}

/// Notes that the host is observed again, and for how long.
pub fn looks_again(
    operator: &dyn Operator,
    candidate_search: &CandidateSearch,
    observation: Observation,
) {
    if candidate_search.again() {
        operator.note(&candidate_search.why_again(observation));
    }
}

/// Tries the new candidates, then together those of one rule that did nothing alone; `false` when
/// it is to end.
fn all_tried(
    course: &mut FixRun<'_>,
    fresh: Vec<Attempt>,
    document: &mut FixDocument,
) -> Result<bool> {
    let first = document.candidates.len();
    if !tried(course, fresh, document)? {
        return Ok(false);
    }
    let alone = document.candidates.get(first..).unwrap_or_default();
    let joint = candidates::together(alone).into_iter();
    let joint = joint
        .map(|(candidate, change_requests)| Attempt { candidate, change_requests, plan: None })
        .collect();
    tried(course, joint, document)
}

/// Tries candidates one after the other; `false` when it is to end.
fn tried(course: &mut FixRun<'_>, fresh: Vec<Attempt>, document: &mut FixDocument) -> Result<bool> {
    let mut left = fresh.len();
    let mut goes_on = true;
    for mut attempt in fresh {
        left -= 1;
        if course.operator.wants_end() {
            (goes_on, document.ended) = (false, "interrupted".into());
        }
        if goes_on && !attempt.change_requests.is_empty() {
            let own = course.request.allow_disconnect;
            let plan = |change_requests| Ok(course.hosts.plan(own, change_requests)?);
            attempt = candidates::planned(plan, own, (attempt.candidate, attempt.change_requests))?;
            let slice = course.slice(left + 1);
            let c = &mut attempt.candidate;
            if course.request.freeze_host && c.changes.iter().any(|ch| host_freeze::sets(&ch.knob))
            {
                attempt.plan = None;
                (c.status, c.why) =
                    (CandidateStatus::NotTried, "--freeze-host holds it meanwhile".into());
            }
            match (&attempt.plan, slice) {
                (None, _) => {}
                (Some(_), None) => {
                    c.why = "the budget holds no more experiments".into();
                    document.notes.push(course.enough(left + 1));
                    let none = course.made == 0;
                    let ended = if none {
                        "the budget holds no experiment"
                    } else {
                        "the budget is used up"
                    };
                    (goes_on, document.ended) = (false, ended.into());
                }
                (Some(plan), Some(_)) if !(course.ask)(plan) => {
                    (c.status, c.why) = (CandidateStatus::Declined, "not wanted".into());
                }
                (Some(_), Some(slice)) => {
                    if !course.candidate(&mut attempt, slice)? {
                        (goes_on, document.ended) = (false, "interrupted".into());
                    }
                }
            }
        } else if !goes_on && attempt.candidate.why.is_empty() {
            attempt.candidate.why.clone_from(&document.ended);
        }
        document.candidates.push(attempt.candidate);
    }
    Ok(goes_on)
}

/// The final step: compares everything kept with the state before, then makes one change set of it.
///
/// # Errors
/// A kept change cannot be reverted, planned or set again, or the change set cannot be written.
pub fn settle(course: &mut FixRun<'_>, document: &mut FixDocument) -> Result<()> {
    if course.kept.is_empty() {
        return Ok(());
    }
    let mut change_requests: Vec<ChangeRequest> = Vec::new();
    for change_request in course.kept.iter().flat_map(|(change_requests, _)| change_requests) {
        change_requests.retain(|w| w.knob != change_request.knob);
        change_requests.push(change_request.clone());
    }
    course.undo_kept()?;
    let plan = course.hosts.plan(course.request.allow_disconnect, change_requests)?;
    let total = last(course, &plan, &mut document.notes)?;
    let harm =
        |v: &Verdict| matches!(v.outcome, Outcome::Worse | Outcome::Mixed | Outcome::GuardWorse);
    let harmful = total.as_ref().is_some_and(harm);
    document.total = total;
    if course.operator.wants_end() {
        document.ended = "interrupted".into();
    }
    if harmful {
        document.notes.push(FixNote::TogetherHarmful);
        let kept = document.candidates.iter_mut().filter(|c| c.status == CandidateStatus::Kept);
        kept.for_each(|c| {
            c.status = CandidateStatus::Undone;
            c.why = format!("{}; but not with the others", c.why);
        });
        return Ok(());
    }
    let id = course.hosts.try_out(&plan)?;
    let made = course.hosts.keep(id)?;
    (document.kept, document.kept_peer) = (made.local, made.peer);
    document.changes = candidates::changes(&plan.changes);
    Ok(())
}

/// The final experiment, if the budget holds it.
fn last(course: &mut FixRun<'_>, plan: &Plan, notes: &mut Vec<FixNote>) -> Result<Option<Verdict>> {
    if course.operator.wants_end() {
        notes.push(FixNote::EndedBeforeTotal);
        return Ok(None);
    }
    let slice = course.time_budget().last();
    match course.experiment(plan.clone(), "all of it", slice)? {
        ExperimentEnd::Failed(why) => {
            notes.push(FixNote::TotalFailed { why });
            Ok(None)
        }
        ExperimentEnd::Ended(document) => {
            notes.push(FixNote::EndedWithinTotal);
            // Without a complete block it has no result.
            let verdict = document.map(|d| d.verdict);
            Ok(verdict.filter(|v| v.effect.is_some()))
        }
        ExperimentEnd::Reported(document) => {
            if document.verdict.outcome != Outcome::Better {
                let verdict = Box::new(document.verdict.clone());
                let headline = report::prove::headline(&document);
                notes.push(FixNote::TotalNotBetter { verdict, headline });
            }
            Ok(Some(document.verdict))
        }
    }
}
