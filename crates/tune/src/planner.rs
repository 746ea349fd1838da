//! Reads the host and makes a plan with the pure functions of [`crate::plan`].

use model::{
    Facts,
    tune::{Plan, PlanNote, Refused, RefusedAs},
};
use probe::facts::{self, Request, Selector};

use crate::{
    Host, TuneError,
    change_request::{self, ChangeRequest, ChangeRequests},
    knob::PlanContext,
    mtu_path, netns, plan, privilege, profile,
    session::Session,
};

/// The plan for the host's current state, and the facts it is based on.
///
/// # Errors
/// As [`of_session`].
pub fn make(host: &Host, change_requests: ChangeRequests) -> Result<(Plan, Facts), TuneError> {
    let facts = facts(host, &change_requests);
    Ok((of_facts(host, &facts, change_requests)?, facts))
}

/// The plan for the host's current state, from given facts.
///
/// # Errors
/// As [`of_session`].
pub fn of_facts(
    host: &Host,
    facts: &Facts,
    change_requests: ChangeRequests,
) -> Result<Plan, TuneError> {
    let ssh = std::env::var("SSH_CONNECTION").ok();
    of_session(host, facts, change_requests, ssh.as_deref())
}

/// The same for an operator with this connection: `REMOTE PORT LOCAL PORT`, as in `SSH_CONNECTION`.
///
/// # Errors
/// `/proc` and `/sys` belong to another network namespace than the process; the findings are of
/// another host; a NIC of the profile does not exist. A change that cannot be made is no error, but
/// in the plan as refused.
pub fn of_session(
    host: &Host,
    facts: &Facts,
    mut change_requests: ChangeRequests,
    connection: Option<&str>,
) -> Result<Plan, TuneError> {
    if host.is_live()
        && let Some(why) = facts::elsewhere(host.root())
    {
        return Err(TuneError::Environment(why));
    }
    change_requests.by_one_name();
    let id = host.id();
    if let Some(found) = &change_requests.found_on {
        plan::found_here(found, &id)?;
    }
    if let Some((profile, nics)) = &change_requests.profile {
        profile::there(facts, nics)?;
        let (more, refused) = profile::expand(profile, facts, nics);
        change_requests.change_requests.extend(more);
        change_requests.refused.extend(refused);
    }
    change_request::split(&mut change_requests.change_requests, facts);
    change_request::name_processes(&mut change_requests.change_requests, facts);
    if let Some(name) = host.namespace() {
        // Host-wide settings are not changed as a by-product.
        let why = format!(
            "is the whole host's, not network namespace {name}'s: ask for it without --netns or \
             --container"
        );
        change_requests.only_of_namespace(RefusedAs::Environment, &why);
    }
    let mut session = Session::find(host.root(), facts, connection);
    if host.namespace().is_some() && session.devices.is_empty() {
        // The connection ends in another namespace.
        session.remote = None;
    }
    let seen = plan::look(host, &change_requests.change_requests);
    let mut plan = plan::make(PlanContext::new(facts, &session), id, &change_requests, &seen);
    plan::name_interfaces(host, &mut plan.changes);
    for change in &mut plan.changes {
        change.command = host.line(&change.command);
    }
    if change_requests.found_on.is_some() && plan.changes.is_empty() && plan.refused.is_empty() {
        plan.notes.push(PlanNote::NothingAsked);
    }
    plan.notes.extend(beyond_namespace(host, &plan));
    if host.is_live() {
        plan.notes.extend(mtu_path::notes(host, &plan.changes));
    }
    if let Some(why) = privilege::missing(host, &plan.changes) {
        plan.notes.push(PlanNote::NotPermitted { why });
    }
    if let Some(made) = &change_requests.plan {
        plan::still_fits(host, made, &plan)?;
    }
    Ok(plan)
}

/// A note for an operator in a network namespace on changes that reach beyond it.
fn beyond_namespace(host: &Host, plan: &Plan) -> Option<PlanNote> {
    let apart = host.is_live() && host.namespace().is_none() && !netns::is_first(host.root());
    let is_hosts = |knob: &&str| !netns::is_of_namespace(knob) && !knob.starts_with("process.");
    let knobs: Vec<&str> = plan.changes.iter().map(|c| c.knob.as_str()).filter(is_hosts).collect();
    let first = knobs.first().filter(|_| apart)?;
    Some(PlanNote::BeyondNamespace { knob: (*first).to_owned(), more: knobs.len() - 1 })
}

/// The facts that plans for these change requests need.
pub fn facts(host: &Host, change_requests: &ChangeRequests) -> Facts {
    let selector = |knob: &String| {
        let (who, _) = change_request::who(knob)?;
        Some(who.parse().map_or_else(|_| Selector::Name(who.into()), Selector::Pid))
    };
    let lines = change_requests.profile.iter().flat_map(|(p, _)| &p.lines).map(|l| &l.knob);
    let knobs = change_requests.change_requests.iter().map(|w| &w.knob).chain(lines);
    let processes = knobs.filter_map(selector).collect();
    facts::collect(host.root(), &Request { processes })
}

/// The plan for one trial of an experiment.
///
/// # Errors
/// As of [`of_facts`].
pub fn of_trial(host: &Host, change_requests: Vec<ChangeRequest>) -> Result<Plan, TuneError> {
    let change_requests =
        ChangeRequests { change_requests, trial: true, ..ChangeRequests::default() };
    let facts = facts(host, &change_requests);
    of_facts(host, &facts, change_requests)
}

/// The refusal that most needs the operator to act.
pub fn first_refusal(plan: &Plan) -> Option<&Refused> {
    let order = [
        RefusedAs::Usage,
        RefusedAs::Denied,
        RefusedAs::Environment,
        RefusedAs::Harmful,
        RefusedAs::NoEffect,
        RefusedAs::Postponed,
    ];
    order.iter().find_map(|k| plan.refused.iter().find(|r| r.kind == *k))
}

/// Checks that a plan can be applied as it is.
///
/// # Errors
/// Nothing of the plan can be applied; of findings, only where something of it was refused.
pub fn whole(plan: &Plan, of_findings: bool) -> Result<(), TuneError> {
    if of_findings && plan.refused.is_empty() {
        return Ok(());
    }
    if plan.changes.is_empty() && plan.unchanged.is_empty() {
        return Err(TuneError::Usage("nothing of it can be applied: the plan is empty".into()));
    }
    Ok(())
}

/// A refusal as the matching error; `None` if it was refused as harmful or useless.
pub fn error_of(r: &Refused) -> Option<TuneError> {
    let why = refused(r);
    match r.kind {
        RefusedAs::Usage => Some(TuneError::Usage(why)),
        RefusedAs::Denied => Some(TuneError::Denied(why)),
        RefusedAs::Environment => Some(TuneError::Environment(why)),
        RefusedAs::Harmful | RefusedAs::NoEffect | RefusedAs::Postponed => None,
    }
}

/// A refusal as one line.
pub fn refused(r: &Refused) -> String {
    format!("{}: {}={}: {}", r.asked_by, r.knob, r.new, r.why)
}
