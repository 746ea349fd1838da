//! `netwright tune plan`, and the planning part of `apply`.

use std::path::Path;

use model::tune::{Plan, Refused, RefusedAs};
use probe::{Root, given};
use tune::{
    Host,
    change_request::{self, ChangeRequests},
    planner, target,
};

use super::args::{PlanArgs, ProfileArgs};
use crate::{
    failure::{CommandEnd, Failure},
    output::{Answer, note},
};

/// Makes a plan and prints it.
pub fn run(args: PlanArgs) -> Result<CommandEnd, Failure> {
    let answer_to = Answer::to(&args.output)?;
    let host = match args.place.root.clone() {
        None => target::live(&args.place.clone().into())?,
        Some(path) if path.is_dir() => Host::tree(&path)?,
        Some(path) => {
            let root = Root::open(&path).map_err(|e| Failure::Environment(e.to_string()))?;
            Host::read_only(root)
        }
    };
    let mut change_requests = change_requests(&args.what, &args.profile)?;
    change_requests.understood = args.i_understand;
    let by_name = change_requests.by_name();
    let (plan, _) = planner::make(&host, change_requests)?;
    answer_to.tell(&plan, report::tune::plan)?;
    answer(&plan, by_name)
}

/// The exit code for a plan. Changes asked for by name decide it. Findings and profiles may ask for
/// changes that are left out, but a harmful profile is `No`.
pub fn answer(plan: &Plan, by_name: bool) -> Result<CommandEnd, Failure> {
    let of_profile = |r: &&Refused| r.asked_by.starts_with("profile ");
    let harm = plan.refused.iter().filter(of_profile).any(|r| r.kind == RefusedAs::Harmful);
    match (by_name, harm) {
        (true, _) => worst(plan),
        (false, true) => Ok(CommandEnd::No),
        (false, false) => Ok(CommandEnd::Yes),
    }
}

/// The change requests of the arguments or the profile.
pub fn change_requests(what: &[String], profile: &ProfileArgs) -> Result<ChangeRequests, Failure> {
    if let Some(name) = &profile.profile {
        return Ok(change_request::profile(name, &profile.nic)?);
    }
    let change_requests = match what {
        [one] if !one.contains('=') => {
            let named = if one == "-" { "standard input" } else { one };
            change_request::document(&document(one)?).map_err(|e| e.of(named))?
        }
        many => change_request::arguments(many)?,
    };
    // Findings and plans without a change are a valid answer; lines without one are a mistake.
    if change_requests.change_requests.is_empty()
        && change_requests.refused.is_empty()
        && change_requests.found_on.is_none()
        && change_requests.plan.is_none()
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
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && tune::profile::load(name).is_ok() => {
            Err(Failure::Usage(format!("{name}: no such file; the profile is --profile {name}")))
        }
        Err(e) => Err(Failure::io(path, &e)),
    }
}

/// The exit code for changes asked for by name. The printed plan has the details.
pub fn worst(plan: &Plan) -> Result<CommandEnd, Failure> {
    let Some(r) = planner::first_refusal(plan) else { return Ok(CommandEnd::Yes) };
    if plan.refused.len() > 1 {
        note(&format!("{} of the changes are refused", plan.refused.len()));
    }
    refusal(r)
}

/// The same where no plan is printed: a line for each refusal, the decisive one last.
pub fn all_refused(plan: &Plan) -> Result<CommandEnd, Failure> {
    let Some(last) = planner::first_refusal(plan) else { return Ok(CommandEnd::Yes) };
    for r in plan.refused.iter().filter(|r| !std::ptr::eq(*r, last)) {
        note(&planner::refused(r));
    }
    refusal(last)
}

/// A refusal as an error, or as a `No` with a note.
fn refusal(r: &Refused) -> Result<CommandEnd, Failure> {
    match planner::error_of(r) {
        Some(e) => Err(e.into()),
        None => {
            note(&planner::refused(r));
            Ok(CommandEnd::No)
        }
    }
}
