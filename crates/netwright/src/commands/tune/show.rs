//! `netwright tune status`, `tune log` and `tune profiles`.

use model::{
    Reading,
    tune::{ChangeState, Drift, Profiles, Trouble},
};
use probe::facts::{self, Request};
use remote::peer_end::PeerEnd;
use tune::{profile, status, target::JournalTarget};

use super::args::{LogArgs, ProfilesArgs, StatusArgs};
use crate::{
    failure::{CommandEnd, Failure},
    output::{Answer, Sink},
};

/// Prints the changes in force, and those of their values that changed since.
pub fn status(args: StatusArgs) -> Result<CommandEnd, Failure> {
    let holds = |d: &model::tune::Status| d.values.iter().all(|v| v.drift == Drift::None);
    let document = match &args.peer.responder {
        Some(name) => PeerEnd::connect(name)?.status()?,
        None => {
            let target = JournalTarget::open(args.place.into())?;
            let status = |facts| status::status(&target.host, &target.store, facts);
            let mut document = status(None)?;
            if !holds(&document) {
                // Looking for other tuners is worthwhile only where something drifted.
                let facts = facts::collect(target.host.root(), &Request::default());
                document = status(Some(&facts))?;
            }
            document.sets = document.sets.into_iter().map(|s| target.with_options(s)).collect();
            document
        }
    };
    Answer::of(&args.output).tell(&document, report::tune::status)?;
    all_read(&document.damaged)?;
    // Also where a later change wrote what undoing left, and that holds.
    let is_half =
        |s: ChangeState| matches!(s, ChangeState::Unfinished | ChangeState::PartlyRolledBack);
    let half = document.sets.iter().any(|s| is_half(s.state));
    let overdue = document.sets.iter().any(|s| s.watchdog_running == Reading::Known(false));
    Ok(if holds(&document) && !half && !overdue { CommandEnd::Yes } else { CommandEnd::No })
}

/// Prints every change set in the journal.
pub fn log(args: LogArgs) -> Result<CommandEnd, Failure> {
    let target = JournalTarget::open(args.place.into())?;
    let mut document = status::log(&target.host, &target.store)?;
    document.sets = document.sets.into_iter().map(|s| target.with_options(s)).collect();
    Answer::of(&args.output).tell(&document, report::tune::log)?;
    all_read(&document.damaged)?;
    Ok(CommandEnd::Yes)
}

/// Fails with the journals that could not be read.
fn all_read(damaged: &[Trouble]) -> Result<(), Failure> {
    let all: Vec<String> = damaged.iter().map(ToString::to_string).collect();
    if all.is_empty() { Ok(()) } else { Err(Failure::Environment(all.join("; "))) }
}

pub fn profiles(args: &ProfilesArgs) -> Result<CommandEnd, Failure> {
    let profiles = match &args.name {
        None => profile::all(),
        Some(name) => profile::load(name).map(|p| vec![p]),
    }?;
    let document = Profiles { schema_version: model::SCHEMA_VERSION, profiles };
    let sink = Sink::new(args.output.output.clone());
    if args.output.json {
        sink.json(&document)?;
    } else {
        let look = sink.look(args.output.talk.verbose || args.name.is_some());
        sink.text(&report::tune::profiles(&document, look))?;
    }
    Ok(CommandEnd::Yes)
}
