//! `tune plan`, and the making of plans for `apply`.

use std::path::Path;

use model::{
    Facts,
    tune::{Plan, Refused, RefusedAs},
};
use probe::{
    Root,
    facts::{self, Request, Selector},
    given,
};
use tune::{
    Host, TuneError,
    change_request::{self, ChangeRequests},
    knob::Case,
    netns, profile,
    session::Session,
};

use super::{
    args::{PlanArgs, ProfileArgs},
    failure, refusal,
};
use crate::{
    exit::{CommandEnd, Failure},
    output::{Sink, note},
};

/// Makes a plan and shows it.
pub fn run(args: PlanArgs) -> Result<CommandEnd, Failure> {
    let sink = Sink::new(args.output.output.clone());
    sink.check()?;
    let host = match args.place.root {
        None => super::live(&args.place)?,
        Some(path) if path.is_dir() => Host::tree(&path).map_err(failure)?,
        Some(path) => {
            let root = Root::open(&path).map_err(|e| Failure::Environment(e.to_string()))?;
            Host::read_only(root)
        }
    };
    let mut change_requests = change_requests(&args.what, &args.profile)?;
    change_requests.understood = args.i_understand;
    let by_name = change_requests.by_name();
    let (plan, _) = make(&host, change_requests)?;
    if args.output.json {
        sink.json(&plan)?;
    } else {
        sink.text(&report::tune::plan(&plan, sink.look(args.output.talk.verbose)))?;
    }
    answer(&plan, by_name)
}

/// What a plan says to the one who asked: what findings and profiles ask for may be left out,
/// but a profile that does harm is one to look at again.
pub fn answer(plan: &Plan, by_name: bool) -> Result<CommandEnd, Failure> {
    let of_profile = |r: &&Refused| r.asked_by.starts_with("profile ");
    let harm = plan.refused.iter().filter(of_profile).any(|r| r.kind == RefusedAs::Harmful);
    match (by_name, harm) {
        (true, _) => worst(plan),
        (false, true) => Ok(CommandEnd::No),
        (false, false) => Ok(CommandEnd::Yes),
    }
}

/// What was asked for.
pub fn change_requests(what: &[String], profile: &ProfileArgs) -> Result<ChangeRequests, Failure> {
    if let Some(name) = &profile.profile {
        return change_request::profile(name, &profile.nic).map_err(failure);
    }
    let change_requests = match what {
        [one] if !one.contains('=') => {
            let named = if one == "-" { "standard input" } else { one };
            change_request::document(&document(one)?).map_err(|e| failure(e.of(named)))?
        }
        many => change_request::arguments(many).map_err(failure)?,
    };
    // Findings that ask for nothing are an answer; a document without a line is a mistake.
    if change_requests.change_requests.is_empty()
        && change_requests.refused.is_empty()
        && change_requests.found_on.is_none()
    {
        return Err(Failure::Usage("nothing is asked for: the plan is empty".into()));
    }
    Ok(change_requests)
}

fn document(name: &str) -> Result<String, Failure> {
    let path = Path::new(name);
    let read = match name {
        "-" => given::stdin(change_request::MAX_BYTES),
        _ => given::text(path, change_request::MAX_BYTES),
    };
    match read {
        Ok(text) => Ok(text),
        Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
            Err(Failure::Usage(format!("{name}: holds no text")))
        }
        Err(e) => Err(Failure::io(path, &e)),
    }
}

/// The plan for what is there now, and the facts that it rests on.
pub fn make(host: &Host, change_requests: ChangeRequests) -> Result<(Plan, Facts), Failure> {
    let facts = facts(host, &change_requests);
    Ok((of_facts(host, &facts, change_requests)?, facts))
}

/// The plan for what is there now.
pub fn of_facts(
    host: &Host,
    facts: &Facts,
    change_requests: ChangeRequests,
) -> Result<Plan, Failure> {
    let ssh = std::env::var("SSH_CONNECTION").ok();
    of_session(host, facts, change_requests, ssh.as_deref())
}

/// The same for an operator whose connection is this one: `REMOTE PORT LOCAL PORT`, as ssh says.
pub fn of_session(
    host: &Host,
    facts: &Facts,
    mut change_requests: ChangeRequests,
    connection: Option<&str>,
) -> Result<Plan, Failure> {
    if host.is_live()
        && let Some(why) = facts::elsewhere(host.root())
    {
        return Err(Failure::Environment(why));
    }
    change_requests.by_one_name();
    let id = host.id();
    if let Some(found) = &change_requests.found_on {
        tune::plan::found_here(found, &id).map_err(failure)?;
    }
    if let Some((profile, nics)) = &change_requests.profile {
        profile::there(facts, nics).map_err(failure)?;
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
    let seen = tune::plan::look(host, &change_requests.change_requests);
    let mut plan = tune::plan::make(Case::new(facts, &session), id, &change_requests, &seen);
    tune::plan::name_interfaces(host, &mut plan.changes);
    for change in &mut plan.changes {
        change.command = host.line(&change.command);
    }
    if change_requests.found_on.is_some() && plan.changes.is_empty() && plan.refused.is_empty() {
        plan.notes.push("the findings ask for no change: nothing to change".into());
    }
    plan.notes.extend(beyond_namespace(host, &plan));
    if host.is_live() {
        plan.notes.extend(tune::mtu_path::notes(host, &plan.changes));
    }
    if let Some(why) = tune::privilege::missing(host, &plan.changes) {
        plan.notes.push(format!("this process could not apply it: {why}"));
    }
    if let Some(made) = &change_requests.plan {
        tune::plan::still_fits(host, made, &plan).map_err(failure)?;
    }
    Ok(plan)
}

/// Whoever was put into a network namespace is told what reaches beyond it.
fn beyond_namespace(host: &Host, plan: &Plan) -> Option<String> {
    let apart = host.is_live() && host.namespace().is_none() && !netns::is_first(host.root());
    let is_hosts = |knob: &&str| !netns::is_of_namespace(knob) && !knob.starts_with("process.");
    let knobs: Vec<&str> = plan.changes.iter().map(|c| c.knob.as_str()).filter(is_hosts).collect();
    let first = knobs.first().filter(|_| apart)?;
    let more = match knobs.len() {
        1 => "is".to_owned(),
        n => format!("and {} more are", n - 1),
    };
    Some(format!("{first} {more} the whole host's, not only this network namespace's"))
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

/// The reason that most wants somebody to act.
fn first(plan: &Plan) -> Option<&Refused> {
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

/// The answer to what was asked for by name, beside a plan that tells of all.
pub fn worst(plan: &Plan) -> Result<CommandEnd, Failure> {
    let Some(r) = first(plan) else { return Ok(CommandEnd::Yes) };
    if plan.refused.len() > 1 {
        note(&format!("{} of the changes are refused", plan.refused.len()));
    }
    refusal(r.kind, reported(r))
}

/// The same where no plan is shown: a line for each, the one that the exit code is of at the end.
pub fn all_refused(plan: &Plan) -> Result<CommandEnd, Failure> {
    let Some(last) = first(plan) else { return Ok(CommandEnd::Yes) };
    for r in plan.refused.iter().filter(|r| !std::ptr::eq(*r, last)) {
        note(&reported(r));
    }
    refusal(last.kind, reported(last))
}

fn reported(r: &Refused) -> String {
    format!("{}: {}={}: {}", r.asked_by, r.knob, r.new, r.why)
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
