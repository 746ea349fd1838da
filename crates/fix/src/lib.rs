//! `netwright fix`: diagnose, try each remedy, prove it, keep it or undo it.

mod answers;
pub mod args;
mod candidate_search;
mod fix_run;
pub mod hosts;
mod judge;
mod time_budget;

use std::{
    io::IsTerminal,
    path::PathBuf,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use model::{
    SCHEMA_VERSION,
    fix::{Candidate, CandidateStatus, FixDocument},
    prove::{Outcome, Verdict},
    tune::{Plan, Refused, RefusedAs},
};
use prove::{Experiment, figure, spec::Spec};
use tune::{
    Host,
    change_request::{self, ChangeRequest},
    trial::Trials,
};

use self::{
    answers::Answers,
    args::FixArgs,
    candidate_search::{CandidateSearch, Observation},
    fix_run::{ExperimentEnd, FixRun},
    hosts::Hosts,
    time_budget::Pace,
};
use crate::{
    commands::{
        peer::{PEER, local::PeerEnd, ssh::SshTarget},
        prove::{failure, spec::metric},
        tune::{
            failure as tune_failure,
            hold::{self, Hold},
            plan, trial,
        },
    },
    exit::{CommandEnd, Failure},
    interrupt::Window,
    output::{Sink, note, row},
};

/// A candidate with what it takes to try it; `plan` is there where it can be tried.
struct Attempt {
    candidate: Candidate,
    change_requests: Vec<ChangeRequest>,
    plan: Option<Plan>,
}

impl Attempt {
    /// What it changes, for people.
    fn name(&self) -> String {
        name(&self.candidate)
    }

    /// What tells it from others: the same change request is not tried twice.
    fn key(&self) -> String {
        key(&self.candidate)
    }
}

fn name(c: &Candidate) -> String {
    let each = c.changes.iter().map(|c| format!("{}={}", c.knob, c.new));
    each.collect::<Vec<_>>().join(", ")
}

fn key(c: &Candidate) -> String {
    format!("{} {}", c.asked_by, name(c))
}

/// Runs the whole loop.
pub fn run(args: &FixArgs) -> Result<CommandEnd, Failure> {
    let sink = Sink::new(args.output.output.clone());
    sink.check()?;
    let (spec, also) = asked(args)?;
    if !args.dry_run {
        consent(args)?;
    }
    let began = Instant::now();
    let window = Window::open();
    let peer = args.responder.as_deref().map(PeerEnd::connect).transpose()?;
    can_be_tried(args, peer.as_ref(), &also)?;
    let mut document = if args.dry_run {
        list(args, &Host::live(), peer.as_ref(), spec, &also, &window, began)?
    } else {
        let bench = trial::bench("netwright fix", args.output.talk.quiet)?;
        let hosts = Hosts::open(&bench, peer.as_ref()).map_err(tune_failure)?;
        window.changing();
        // Waiting for others who change this host is no part of the budget.
        fix(args, &hosts, spec, &also, &window, Instant::now())?
    };
    whose(&mut document);
    match args.output.json {
        true => sink.json(&document)?,
        false => sink.text(&report::fix::text(&document, sink.look(args.output.talk.verbose)))?,
    }
    let helped = document.kept.is_some() || document.kept_peer.is_some() || document.dry_run;
    Ok(if helped { CommandEnd::Yes } else { CommandEnd::No })
}

/// Names the host of each change.
fn whose(document: &mut FixDocument) {
    let Some(responder) = &document.responder else { return };
    let target = responder.parse::<SshTarget>().ok();
    let peer = target.as_ref().map_or(responder.as_str(), SshTarget::host);
    let candidates = document.candidates.iter_mut().flat_map(|c| &mut c.changes);
    for change in candidates.chain(&mut document.changes) {
        if change.knob.starts_with(PEER) {
            peer.clone_into(&mut change.host);
        }
    }
}

/// The experiment without its factor, and what is to be tried beside the findings.
fn asked(args: &FixArgs) -> Result<(Spec, Vec<ChangeRequest>), Failure> {
    if args.window < judge::SHORTEST {
        return Err(Failure::Usage(format!("--window {}: from 100ms", args.window)));
    }
    if args.workload.is_none() && args.command.is_none() {
        return Err(Failure::Usage(
            "what is to get better? --workload 'measure …' or URL (pg://db1/bench), or --command LINE \
             with --metric; and --yes, --ask or --dry-run says whether this host may be changed"
                .into(),
        ));
    }
    if args.window >= args.budget {
        return Err(Failure::Usage(format!(
            "--window {}: the host is watched that long before anything is tried, and --budget is {}",
            args.window, args.budget
        )));
    }
    if let Some(runs) = args.runs.filter(|runs| *runs < time_budget::FEWEST_RUNS as usize) {
        return Err(Failure::Usage(format!(
            "--runs {runs}: {} at least, six blocks of four runs",
            time_budget::FEWEST_RUNS
        )));
    }
    let mut spec = Spec {
        workload: args.workload.clone(),
        command: args.command.clone(),
        metrics: args.metric.iter().map(|m| metric(m)).collect::<Result<_, _>>()?,
        ..Spec::default()
    };
    if let (Some(what), true) = (Experiment::measures(&spec), spec.metrics.is_empty()) {
        spec.metrics = figure::for_goal(&what, args.goal.of_figures());
        if spec.metrics.is_empty() {
            return Err(Failure::Usage(format!(
                "--goal: measure {what} tells no figure of that kind: another goal (throughput, p99, cpu), or \
                 --metric"
            )));
        }
    }
    let also = change_request::arguments(&args.also).map_err(tune_failure)?.change_requests;
    let also = also
        .into_iter()
        .map(|w| ChangeRequest { asked_by: w.asked_by.replace("argument", "--try"), ..w });
    // What is wrong with it is said before anything is done.
    probe(&spec).map(|_| (spec, also.collect()))
}

/// What was typed by hand and cannot be tried is said before anything is measured: a device that is
/// not there, a value that is none. What does harm is listed beside the findings'.
fn can_be_tried(
    args: &FixArgs,
    peer: Option<&PeerEnd>,
    also: &[ChangeRequest],
) -> Result<(), Failure> {
    let there = also.iter().find(|w| w.knob.starts_with(PEER));
    if let (Some(change_request), None) = (there, peer) {
        return Err(Failure::Usage(format!(
            "--try {}: is a knob of the server: --responder ssh://[USER@]HOST",
            change_request.knob
        )));
    }
    for change_request in also {
        let (plan, _) =
            hosts::plan(&Host::live(), peer, args.allow_disconnect, vec![change_request.clone()])?;
        let harmful = |r: &Refused| {
            use RefusedAs::{Harmful, NoEffect, Postponed};
            matches!(r.kind, Harmful | NoEffect | Postponed)
        };
        if plan.refused.first().is_some_and(|r| !harmful(r)) {
            plan::worst(&plan)?;
        }
    }
    Ok(())
}

/// The experiment with a factor that stands for what will be tried.
fn probe(spec: &Spec) -> Result<Experiment, Failure> {
    let factors = vec![super::prove::spec::of_changes(&["knob=value".to_owned()])];
    Experiment::check(Spec { factors, ..spec.clone() }, "fix").map_err(failure)
}

/// Nobody's host is changed who did not say so.
fn consent(args: &FixArgs) -> Result<(), Failure> {
    if args.yes || args.ask || std::io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Failure::Usage(
        "fix changes this host: --yes lets it, --ask asks before each change, --dry-run only says \
         what it would try"
            .into(),
    ))
}

fn ours() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|e| Failure::Environment(format!("our own program is not found: {e}")))
}

fn empty(args: &FixArgs, spec: &Spec) -> Result<FixDocument, Failure> {
    let experiment = probe(spec)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let goal = experiment.metrics.iter().find(|m| m.guard.is_none());
    Ok(FixDocument {
        schema_version: SCHEMA_VERSION,
        started_unix_s: now.as_secs(),
        took_s: 0.0,
        workload: experiment.shown(),
        goal: goal.map_or_else(String::new, |m| m.name.clone()),
        candidates: vec![],
        responder: args.responder.clone(),
        kept: None,
        kept_peer: None,
        changes: vec![],
        total: None,
        frozen_host: None,
        dry_run: args.dry_run,
        ended: String::new(),
        notes: vec![],
    })
}

/// What would be tried.
fn list(
    args: &FixArgs,
    host: &Host,
    peer: Option<&PeerEnd>,
    spec: Spec,
    also: &[ChangeRequest],
    window: &Window,
    began: Instant,
) -> Result<FixDocument, Failure> {
    let mut document = empty(args, &spec)?;
    let own = args.allow_disconnect;
    let (mut candidate_search, mut also, mut any) =
        (CandidateSearch::new(args.window), also, false);
    while let Some(observation) =
        candidate_search.next().filter(|_| !any && !window.was_interrupted())
    {
        looks_again(args, &candidate_search, observation);
        let room = Duration::from_nanos(args.budget.0).saturating_sub(began.elapsed());
        let look = judge::look((args, observation), (&probe(&spec)?, room), window, peer)?;
        let fresh = candidate_search.fresh(observation, &look.findings, also);
        document.notes.extend(candidate_search.late(&fresh));
        also = &[];
        for one in fresh {
            let plan = |change_requests| {
                hosts::plan(host, peer, own, change_requests).map(|(plan, _)| plan)
            };
            let mut attempt = judge::planned(plan, own, (one.candidate, one.change_requests))?;
            if attempt.plan.is_some() {
                any = true;
                attempt.candidate.why = "would be tried".into();
            }
            document.candidates.push(attempt.candidate);
        }
    }
    if !any {
        document.notes.push(candidate_search.in_vain());
    }
    document.ended = "nothing was changed".into();
    document.took_s = began.elapsed().as_secs_f64();
    Ok(document)
}

fn fix(
    args: &FixArgs,
    hosts: &Hosts<'_>,
    spec: Spec,
    also: &[ChangeRequest],
    window: &Window,
    began: Instant,
) -> Result<FixDocument, Failure> {
    let mut document = empty(args, &spec)?;
    let mut course = FixRun {
        args,
        hosts,
        window,
        began,
        started_unix_s: document.started_unix_s,
        spec,
        pace: Pace::default(),
        looks: Duration::ZERO,
        kept: vec![],
        made: 0,
        answers: Answers::of_operator(),
    };
    let hold = args.freeze_host.then(|| Hold::begin(hosts.local(), &[])).transpose()?;
    let went = rounds(&mut course, also, &mut document);
    let settled = match &went {
        Ok(()) => settle(&mut course, &mut document),
        Err(_) => course.undo_kept(),
    };
    let (still, went_on) = hold.map(Hold::end).unzip();
    document.frozen_host = still;
    settled?;
    went?;
    went_on.unwrap_or(Ok(()))?;
    document.took_s = began.elapsed().as_secs_f64();
    Ok(document)
}

/// Diagnoses and tries, again after something helped: then other findings may show.
fn rounds(
    course: &mut FixRun<'_>,
    also: &[ChangeRequest],
    document: &mut FixDocument,
) -> Result<(), Failure> {
    let (mut candidate_search, mut also) = (CandidateSearch::new(course.args.window), also);
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
        looks_again(course.args, &candidate_search, observation);
        let probe = probe(&course.bounded())?;
        let probe = (&probe, course.time_budget().room);
        let look =
            judge::look((course.args, observation), probe, course.window, course.hosts.peer())?;
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
        if course.window.was_interrupted() {
            document.ended = "interrupted".into();
            return Ok(());
        }
        if course.kept.len() > kept {
            candidate_search.anew();
        }
    }
}

/// Says that the host is looked at again, and for how long.
fn looks_again(args: &FixArgs, candidate_search: &CandidateSearch, observation: Observation) {
    if candidate_search.again() && !args.output.talk.quiet {
        note(&candidate_search.why_again(observation));
    }
}

/// Tries what is new, then together what of one rule showed nothing alone; `false` when it is to
/// end.
fn all_tried(
    course: &mut FixRun<'_>,
    fresh: Vec<Attempt>,
    document: &mut FixDocument,
) -> Result<bool, Failure> {
    let first = document.candidates.len();
    if !tried(course, fresh, document)? {
        return Ok(false);
    }
    let alone = document.candidates.get(first..).unwrap_or_default();
    let joint = judge::together(alone).into_iter();
    let joint = joint
        .map(|(candidate, change_requests)| Attempt { candidate, change_requests, plan: None })
        .collect();
    tried(course, joint, document)
}

/// Tries candidates in turn; `false` when it is to end.
fn tried(
    course: &mut FixRun<'_>,
    fresh: Vec<Attempt>,
    document: &mut FixDocument,
) -> Result<bool, Failure> {
    let mut left = fresh.len();
    let mut goes_on = true;
    for mut attempt in fresh {
        left -= 1;
        if course.window.was_interrupted() {
            (goes_on, document.ended) = (false, "interrupted".into());
        }
        if goes_on && !attempt.change_requests.is_empty() {
            let own = course.args.allow_disconnect;
            let plan = |change_requests| course.hosts.plan(own, change_requests);
            attempt = judge::planned(plan, own, (attempt.candidate, attempt.change_requests))?;
            let slice = course.slice(left + 1);
            let c = &mut attempt.candidate;
            if course.args.freeze_host && c.changes.iter().any(|ch| hold::holds(&ch.knob)) {
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
                (Some(plan), Some(_)) if !wanted(course, plan) => {
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

/// Asks, where the operator is to be asked.
fn wanted(course: &mut FixRun<'_>, plan: &Plan) -> bool {
    if course.args.yes || course.answers.over() {
        return course.args.yes;
    }
    for c in &plan.changes {
        let disturbs = &c.impact.why;
        let disturbs = if disturbs.is_empty() { "disturbs nothing" } else { disturbs };
        row(&format!("{}: {} -> {} {} ({disturbs})", c.knob, c.old, c.new, c.unit));
    }
    row("try it, and keep it only if it helps? [y/N] ");
    course.answers.yes(course.window.stop())
}

/// The end: all that was kept against before, then one change set with all of it.
fn settle(course: &mut FixRun<'_>, document: &mut FixDocument) -> Result<(), Failure> {
    if course.kept.is_empty() {
        return Ok(());
    }
    let mut change_requests: Vec<ChangeRequest> = Vec::new();
    for change_request in course.kept.iter().flat_map(|(change_requests, _)| change_requests) {
        change_requests.retain(|w| w.knob != change_request.knob);
        change_requests.push(change_request.clone());
    }
    course.undo_kept()?;
    let plan = course.hosts.plan(course.args.allow_disconnect, change_requests)?;
    let total = last(course, &plan, &mut document.notes)?;
    let harm =
        |v: &Verdict| matches!(v.outcome, Outcome::Worse | Outcome::Mixed | Outcome::GuardWorse);
    let harmful = total.as_ref().is_some_and(harm);
    document.total = total;
    if course.window.was_interrupted() {
        document.ended = "interrupted".into();
    }
    if harmful {
        document.notes.push("together they do harm: everything was undone".into());
        let kept = document.candidates.iter_mut().filter(|c| c.status == CandidateStatus::Kept);
        kept.for_each(|c| {
            c.status = CandidateStatus::Undone;
            c.why = format!("{}; but not with the others", c.why);
        });
        return Ok(());
    }
    let id = course.hosts.try_out(&plan).map_err(tune_failure)?;
    let made = course.hosts.keep(id).map_err(tune_failure)?;
    (document.kept, document.kept_peer) = (made.local, made.peer);
    document.changes = judge::changes(&plan.changes);
    Ok(())
}

/// The last experiment, if there is time for it.
fn last(
    course: &mut FixRun<'_>,
    plan: &Plan,
    notes: &mut Vec<String>,
) -> Result<Option<Verdict>, Failure> {
    if course.window.was_interrupted() {
        notes.push("ended by hand: all of it together was not compared with before".into());
        return Ok(None);
    }
    let slice = course.time_budget().last();
    match course.experiment(plan.clone(), "all of it", slice)? {
        ExperimentEnd::Failed(why) => {
            notes.push(format!("all of it together was not compared with before: {why}"));
            Ok(None)
        }
        ExperimentEnd::Ended(document) => {
            notes.push(
                "ended by hand while all of it together was compared with before: what was kept stays, \
                 for each part was shown to help"
                    .into(),
            );
            // Without a block there is nothing to tell of it.
            let verdict = document.map(|d| d.verdict);
            Ok(verdict.filter(|v| v.effect.is_some()))
        }
        ExperimentEnd::Reported(document) => {
            if document.verdict.outcome != Outcome::Better {
                let said = report::prove::headline(&document);
                notes.push(format!(
                    "each was shown to help by itself; all of it together was not, in the runs of the last \
                     experiment: {said}"
                ));
            }
            Ok(Some(document.verdict))
        }
    }
}
