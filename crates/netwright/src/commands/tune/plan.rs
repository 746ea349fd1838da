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
    knob::Case,
    netns, profile,
    session::Session,
    wish::{self, Wishes},
};

use super::{
    args::{PlanArgs, ProfileArgs},
    failure, refusal,
};
use crate::{
    exit::{Done, Failure},
    output::{Sink, note},
};

/// Makes a plan and shows it.
pub fn run(args: PlanArgs) -> Result<Done, Failure> {
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
    let mut wishes = wishes(&args.what, &args.profile)?;
    wishes.understood = args.i_understand;
    let by_name = wishes.by_name();
    let (plan, _) = make(&host, wishes)?;
    if args.output.json {
        sink.json(&plan)?;
    } else {
        sink.text(&report::tune::plan(&plan, sink.look(args.output.talk.verbose)))?;
    }
    answer(&plan, by_name)
}

/// What a plan says to the one who asked: what findings and profiles ask for may be left out,
/// but a profile that does harm is one to look at again.
pub fn answer(plan: &Plan, by_name: bool) -> Result<Done, Failure> {
    let of_profile = |r: &&Refused| r.asked_by.starts_with("profile ");
    let harm = plan.refused.iter().filter(of_profile).any(|r| r.kind == RefusedAs::Harmful);
    match (by_name, harm) {
        (true, _) => worst(plan),
        (false, true) => Ok(Done::No),
        (false, false) => Ok(Done::Yes),
    }
}

/// What was asked for.
pub fn wishes(what: &[String], profile: &ProfileArgs) -> Result<Wishes, Failure> {
    if let Some(name) = &profile.profile {
        return wish::profile(name, &profile.nic).map_err(failure);
    }
    let wishes = match what {
        [one] if !one.contains('=') => {
            let named = if one == "-" { "standard input" } else { one };
            wish::document(&document(one)?).map_err(|e| failure(e.of(named)))?
        }
        many => wish::arguments(many).map_err(failure)?,
    };
    // Findings that ask for nothing are an answer; a document without a line is a mistake.
    if wishes.wishes.is_empty() && wishes.refused.is_empty() && wishes.found_on.is_none() {
        return Err(Failure::Usage("nothing is asked for: the plan is empty".into()));
    }
    Ok(wishes)
}

fn document(name: &str) -> Result<String, Failure> {
    let path = Path::new(name);
    let read = match name {
        "-" => given::stdin(wish::MAX_BYTES),
        _ => given::text(path, wish::MAX_BYTES),
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
pub fn make(host: &Host, wishes: Wishes) -> Result<(Plan, Facts), Failure> {
    let facts = facts(host, &wishes);
    Ok((of_facts(host, &facts, wishes)?, facts))
}

/// The plan for what is there now.
pub fn of_facts(host: &Host, facts: &Facts, wishes: Wishes) -> Result<Plan, Failure> {
    let ssh = std::env::var("SSH_CONNECTION").ok();
    of_session(host, facts, wishes, ssh.as_deref())
}

/// The same for an operator whose connection is this one: `REMOTE PORT LOCAL PORT`, as ssh says.
pub fn of_session(
    host: &Host,
    facts: &Facts,
    mut wishes: Wishes,
    connection: Option<&str>,
) -> Result<Plan, Failure> {
    if host.is_live()
        && let Some(why) = facts::elsewhere(host.root())
    {
        return Err(Failure::Environment(why));
    }
    wishes.by_one_name();
    let id = host.id();
    if let Some(found) = &wishes.found_on {
        tune::plan::found_here(found, &id).map_err(failure)?;
    }
    if let Some((profile, nics)) = &wishes.profile {
        profile::there(facts, nics).map_err(failure)?;
        let (more, refused) = profile::expand(profile, facts, nics);
        wishes.wishes.extend(more);
        wishes.refused.extend(refused);
    }
    wish::split(&mut wishes.wishes, facts);
    wish::name_processes(&mut wishes.wishes, facts);
    if let Some(name) = host.namespace() {
        // Nothing of the whole host's is changed in passing.
        let why = format!(
            "is the whole host's, not network namespace {name}'s: ask for it without --netns or \
             --container"
        );
        wishes.only_of_namespace(RefusedAs::Environment, &why);
    }
    let mut session = Session::find(host.root(), facts, connection);
    if host.namespace().is_some() && session.devices.is_empty() {
        // It ends in another namespace.
        session.remote = None;
    }
    let seen = tune::plan::look(host, &wishes.wishes);
    let mut plan = tune::plan::make(Case::new(facts, &session), id, &wishes, &seen);
    tune::plan::name_interfaces(host, &mut plan.changes);
    for change in &mut plan.changes {
        change.command = host.line(&change.command);
    }
    if wishes.found_on.is_some() && plan.changes.is_empty() && plan.refused.is_empty() {
        plan.notes.push("the findings ask for no change: nothing to change".into());
    }
    plan.notes.extend(beyond_namespace(host, &plan));
    if host.is_live() {
        plan.notes.extend(tune::mtu_path::notes(host, &plan.changes));
    }
    if let Some(why) = tune::privilege::missing(host, &plan.changes) {
        plan.notes.push(format!("this process could not apply it: {why}"));
    }
    if let Some(made) = &wishes.plan {
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

/// What plans for these wishes rest on.
pub fn facts(host: &Host, wishes: &Wishes) -> Facts {
    let selector = |knob: &String| {
        let (who, _) = wish::who(knob)?;
        Some(who.parse().map_or_else(|_| Selector::Name(who.into()), Selector::Pid))
    };
    let lines = wishes.profile.iter().flat_map(|(p, _)| &p.lines).map(|l| &l.knob);
    let knobs = wishes.wishes.iter().map(|w| &w.knob).chain(lines);
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
pub fn worst(plan: &Plan) -> Result<Done, Failure> {
    let Some(r) = first(plan) else { return Ok(Done::Yes) };
    if plan.refused.len() > 1 {
        note(&format!("netwright: {} of the changes are refused", plan.refused.len()));
    }
    refusal(r.kind, told(r))
}

/// The same where no plan is shown: a line for each, the one that the exit code is of at the end.
pub fn all_refused(plan: &Plan) -> Result<Done, Failure> {
    let Some(last) = first(plan) else { return Ok(Done::Yes) };
    for r in plan.refused.iter().filter(|r| !std::ptr::eq(*r, last)) {
        note(&format!("netwright: {}", told(r)));
    }
    refusal(last.kind, told(last))
}

fn told(r: &Refused) -> String {
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
