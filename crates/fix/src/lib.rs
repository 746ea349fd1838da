//! Tries remedies one by one: diagnose, apply, measure, keep what helps and revert the rest.
//!
//! A [`request`] → `judge` (what limits the host under its workload) → `candidates` → `fix_run`
//! (each compared with the state before it, within the `time_budget`) → `rounds` (again, and at the
//! end all together).

mod attempt;
mod candidate_search;
mod candidates;
mod fix_run;
mod judge;
pub mod request;
mod rounds;
mod time_budget;

use std::{
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use model::{
    SCHEMA_VERSION,
    fix::FixDocument,
    tune::{Plan, Refused, RefusedAs},
};
use prove::ProveError;
use remote::{
    hosts::{self, Hosts},
    peer_end::PeerEnd,
    ssh::SshTarget,
};
use tune::{
    Host, TuneError, change_request::PEER, host_freeze::HostFreeze, operator::Operator, planner,
    trial_setup,
};

use crate::{
    candidate_search::CandidateSearch, fix_run::FixRun, request::Request, time_budget::Pace,
};

type Result<T, E = ProveError> = std::result::Result<T, E>;

/// The caller's callbacks and paths.
pub struct Means<'a> {
    pub operator: &'a dyn Operator,
    /// Asks the operator whether to try a plan.
    pub ask: &'a mut dyn FnMut(&Plan) -> bool,
    /// The path of this program, which runs the measurements.
    pub ours: &'a Path,
}

/// Runs `fix`; a dry run only lists what it would try.
///
/// # Errors
/// The workload fails, a host cannot be changed, or a change cannot be reverted.
pub fn run(request: &Request, means: Means<'_>) -> Result<FixDocument> {
    let began = Instant::now();
    let peer = request.responder.as_deref().map(PeerEnd::connect).transpose()?;
    can_be_tried(request, peer.as_ref(), means.operator)?;
    let mut document = if request.dry_run {
        list(request, peer.as_ref(), &means, began)?
    } else {
        let trial_host = trial_setup::open_local("netwright fix", means.operator)?;
        let hosts = Hosts::open(&trial_host, peer.as_ref())?;
        means.operator.changing();
        fix(request, &hosts, means)?
    };
    name_hosts(&mut document);
    Ok(document)
}

/// Checks the operator's own changes before anything is measured: a missing device or an invalid
/// value is an error. Harmful ones are listed beside the findings' candidates.
fn can_be_tried(
    request: &Request,
    peer: Option<&PeerEnd>,
    operator: &dyn Operator,
) -> Result<(), TuneError> {
    let there = request.also.iter().find(|w| w.knob.starts_with(PEER));
    if let (Some(change_request), None) = (there, peer) {
        return Err(TuneError::Usage(format!(
            "--try {}: is a knob of the server: --responder ssh://[USER@]HOST",
            change_request.knob
        )));
    }
    for change_request in &request.also {
        let own = request.allow_disconnect;
        let (plan, _) = hosts::plan(&Host::live(), peer, own, vec![change_request.clone()])?;
        let harmful = |r: &Refused| {
            use RefusedAs::{Harmful, NoEffect, Postponed};
            matches!(r.kind, Harmful | NoEffect | Postponed)
        };
        if plan.refused.first().is_none_or(harmful) {
            continue;
        }
        if plan.refused.len() > 1 {
            operator.warn(&format!("{} of the changes are refused", plan.refused.len()));
        }
        planner::first_refusal(&plan).and_then(planner::error_of).map_or(Ok(()), Err)?;
    }
    Ok(())
}

fn empty(request: &Request) -> Result<FixDocument> {
    let experiment = request::probe(&request.spec)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let goal = experiment.metrics.iter().find(|m| m.guard.is_none());
    Ok(FixDocument {
        schema_version: SCHEMA_VERSION,
        started_unix_s: now.as_secs(),
        took_s: 0.0,
        workload: experiment.shown(),
        goal: goal.map_or_else(String::new, |m| m.name.clone()),
        candidates: vec![],
        responder: request.responder.clone(),
        kept: None,
        kept_peer: None,
        changes: vec![],
        total: None,
        frozen_host: None,
        dry_run: request.dry_run,
        ended: String::new(),
        notes: vec![],
    })
}

/// Lists the candidates without trying them.
fn list(
    request: &Request,
    peer: Option<&PeerEnd>,
    means: &Means<'_>,
    began: Instant,
) -> Result<FixDocument> {
    let (mut document, host) = (empty(request)?, Host::live());
    let own = request.allow_disconnect;
    let (mut candidate_search, mut also, mut any) =
        (CandidateSearch::new(request.window), request.also.as_slice(), false);
    while let Some(observation) =
        candidate_search.next().filter(|_| !any && !means.operator.wants_end())
    {
        rounds::looks_again(means.operator, &candidate_search, observation);
        let room = Duration::from_nanos(request.budget.0).saturating_sub(began.elapsed());
        let probe = (&request::probe(&request.spec)?, room);
        let look = judge::look((request, observation), probe, (means.operator, means.ours), peer)?;
        let fresh = candidate_search.fresh(observation, &look.findings, also);
        document.notes.extend(candidate_search.late(&fresh));
        also = &[];
        for one in fresh {
            let plan = |change_requests| {
                Ok(hosts::plan(&host, peer, own, change_requests).map(|(plan, _)| plan)?)
            };
            let mut attempt = candidates::planned(plan, own, (one.candidate, one.change_requests))?;
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

/// Waiting for another process that changes this host does not use the budget.
fn fix(request: &Request, hosts: &Hosts<'_>, means: Means<'_>) -> Result<FixDocument> {
    let began = Instant::now();
    let mut document = empty(request)?;
    let Means { operator, ask, ours } = means;
    let mut course = FixRun {
        request,
        hosts,
        operator,
        ask,
        ours,
        began,
        started_unix_s: document.started_unix_s,
        spec: request.spec.clone(),
        pace: Pace::default(),
        looks: Duration::ZERO,
        kept: vec![],
        made: 0,
    };
    let freeze =
        request.freeze_host.then(|| HostFreeze::begin(hosts.local(), &[], operator)).transpose()?;
    let went = rounds::rounds(&mut course, &request.also, &mut document);
    let settled = match &went {
        Ok(()) => rounds::settle(&mut course, &mut document),
        Err(_) => course.undo_kept(),
    };
    let (still, went_on) = freeze.map(|freeze| freeze.end(operator)).unzip();
    document.frozen_host = still;
    settled?;
    went?;
    went_on.unwrap_or(Ok(()))?;
    document.took_s = began.elapsed().as_secs_f64();
    Ok(document)
}

/// Prefixes each change with its host.
fn name_hosts(document: &mut FixDocument) {
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
