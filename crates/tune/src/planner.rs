//! A plan for a host as it is now: what the pure [`crate::plan`] needs is read first.

use model::{
    Facts,
    tune::{Plan, PlanNote, Refused, RefusedAs},
};
use probe::facts::{self, Request, Selector};

use crate::{
    Host, TuneError,
    change_request::{self, ChangeRequest, ChangeRequests},
    knob::Case,
    mtu_path, netns, plan, privilege, profile,
    session::Session,
};

/// The plan for what is there now, and the facts that it rests on.
pub fn make(host: &Host, change_requests: ChangeRequests) -> Result<(Plan, Facts), TuneError> {
    let facts = facts(host, &change_requests);
    Ok((of_facts(host, &facts, change_requests)?, facts))
}

/// The plan for what is there now.
pub fn of_facts(
    host: &Host,
    facts: &Facts,
    change_requests: ChangeRequests,
) -> Result<Plan, TuneError> {
    let ssh = std::env::var("SSH_CONNECTION").ok();
    of_session(host, facts, change_requests, ssh.as_deref())
}

/// The same for an operator whose connection is this one: `REMOTE PORT LOCAL PORT`, as ssh says.
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
        // Nothing of the whole host's is changed in passing.
        let why = format!(
            "is the whole host's, not network namespace {name}'s: ask for it without --netns or \
             --container"
        );
        change_requests.only_of_namespace(RefusedAs::Environment, &why);
    }
    let mut session = Session::find(host.root(), facts, connection);
    if host.namespace().is_some() && session.devices.is_empty() {
        // It ends in another namespace.
        session.remote = None;
    }
    let seen = plan::look(host, &change_requests.change_requests);
    let mut plan = plan::make(Case::new(facts, &session), id, &change_requests, &seen);
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

/// Whoever was put into a network namespace is told what reaches beyond it.
fn beyond_namespace(host: &Host, plan: &Plan) -> Option<PlanNote> {
    let apart = host.is_live() && host.namespace().is_none() && !netns::is_first(host.root());
    let is_hosts = |knob: &&str| !netns::is_of_namespace(knob) && !knob.starts_with("process.");
    let knobs: Vec<&str> = plan.changes.iter().map(|c| c.knob.as_str()).filter(is_hosts).collect();
    let first = knobs.first().filter(|_| apart)?;
    Some(PlanNote::BeyondNamespace { knob: (*first).to_owned(), more: knobs.len() - 1 })
}

/// What plans for these change requests rest on.
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

/// The plan for what an experiment tries.
///
/// # Errors
/// As of [`of_facts`].
pub fn of_trial(host: &Host, change_requests: Vec<ChangeRequest>) -> Result<Plan, TuneError> {
    let change_requests =
        ChangeRequests { change_requests, trial: true, ..ChangeRequests::default() };
    let facts = facts(host, &change_requests);
    of_facts(host, &facts, change_requests)
}

/// The refusal that most wants somebody to act.
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

/// Whether a plan can be applied as it is.
pub fn whole(plan: &Plan, of_findings: bool) -> Result<(), TuneError> {
    if of_findings && plan.refused.is_empty() {
        return Ok(());
    }
    if plan.changes.is_empty() && plan.unchanged.is_empty() {
        return Err(TuneError::Usage("nothing of it can be applied: the plan is empty".into()));
    }
    Ok(())
}

/// A refusal as the error that it is; `None` of what is refused because it would do harm or nothing.
pub fn error_of(r: &Refused) -> Option<TuneError> {
    let why = refused(r);
    match r.kind {
        RefusedAs::Usage => Some(TuneError::Usage(why)),
        RefusedAs::Denied => Some(TuneError::Denied(why)),
        RefusedAs::Environment => Some(TuneError::Environment(why)),
        RefusedAs::Harmful | RefusedAs::NoEffect | RefusedAs::Postponed => None,
    }
}

/// A refusal in a line.
pub fn refused(r: &Refused) -> String {
    format!("{}: {}={}: {}", r.asked_by, r.knob, r.new, r.why)
}
