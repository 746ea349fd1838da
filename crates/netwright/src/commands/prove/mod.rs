//! `netwright prove`: runs an experiment and prints the verdict.

pub mod args;
pub mod spec;

use std::{path::Path, time::Duration};

use model::prove::{FrozenHost, Limit, Outcome, ProveDocument};
use prove::{
    Experiment, Knobs, ProveError,
    conclude::{self, Ending},
    conduct::{self, Conducted, Means},
    limit, record, record_path, start,
};
use remote::tuned::{Consent, Tuned};
use tune::{
    operator::Operator,
    trial_setup::{self, TrialPlans},
    watchdog::maker::Residue,
};

use self::args::ProveArgs;
use crate::{
    commands::tune::plan::worst,
    failure::{CommandEnd, Failure},
    output::{Answer, note},
    session::Session,
};

/// Runs or resumes an experiment, or prints the state of one (`--status`).
pub fn run(args: &ProveArgs) -> Result<CommandEnd, Failure> {
    let answer = Answer::to(&args.output)?;
    if let Some(path) = args.record.as_ref().filter(|_| args.status) {
        return print_status(path, &answer);
    }
    let Some(experiment) = spec::experiment(args)? else { return Ok(nothing_reported(false)) };
    let path = spec::record(args, &experiment);
    if args.status || args.resume {
        spec::begun(args, &path)?;
    }
    if args.status {
        return print_status(&path, &answer);
    }
    // Checked before the lock is waited for.
    match args.resume {
        true => start::past(&experiment, &path).map(|_| ())?,
        false => record_path::room(&path, args.record.is_some())?,
    }
    let Some(Made { mut conducted, held, put_back }) = make(args, &experiment, &path)? else {
        return Ok(CommandEnd::No);
    };
    if let Some(document) = &mut conducted.document {
        document.frozen_host = held;
        args.limit.iter().for_each(|share| limit::hold(document, *share));
    }
    let done = match &conducted.document {
        Some(document) => show(document, &answer)?,
        None => nothing_reported(conducted.broken.is_some()),
    };
    if conducted.may_go_on && conducted.broken.is_none() && !args.output.talk.quiet {
        note(&format!("`{}` goes on with it", spec::go_on(args, &path)));
    }
    match conducted.broken {
        // Too few blocks is a verdict: the documents call it not proven.
        Some(ProveError::Budget(why)) => {
            note(&why);
            put_back.map(|()| CommandEnd::No)
        }
        Some(why) => Err(why.into()),
        None => put_back.map(|()| done),
    }
}

/// The result of an experiment.
struct Made {
    conducted: Conducted,
    /// The frozen state of the host; `None` where it was not frozen.
    held: Option<FrozenHost>,
    put_back: Result<(), Failure>,
}

/// Runs the experiment and restores the host. `None` where a plan is refused as harmful, which was
/// printed.
fn make(args: &ProveArgs, experiment: &Experiment, path: &Path) -> Result<Option<Made>, Failure> {
    let session = Session::open(&args.output.talk);
    start::undo_before(&session, path, experiment)?;
    let tuned = Tuned::open(consent(args), experiment, &session)?;
    let hosts = tuned.hosts()?;
    let plans = match tuned.plans(experiment, hosts.as_ref(), &session)? {
        TrialPlans::All(plans) => plans,
        TrialPlans::Refused(plan) => return worst(&plan).map(|_| None),
    };
    let (begun, before, mut record) = start::begin(args.resume, experiment, path, &session)?;
    if !experiment.unsets().is_empty() {
        let path = std::path::absolute(path).map_err(|e| Failure::io(path, &e))?;
        trial_setup::register_with_watchdog(Residue::Record(path))?;
    }
    start::warn(&session, experiment);
    session.changing();
    let ours = super::ours()?;
    let means = Means {
        ours: &ours,
        stop: session.stop(),
        knobs: hosts.as_ref().map(|hosts| Knobs { trials: hosts, plans: &plans }),
        progress: &|what: &str, share: f64| session.progress(what, share),
        disruption: Duration::ZERO,
        worked: false,
    };
    let freeze = tuned.freeze(experiment, &plans, &session)?;
    if let Some(freeze) = &freeze {
        record.held(freeze.reported())?;
    }
    let conducted = conduct::conduct(experiment, &begun, before, &mut record, &means);
    let (held, went_on) = freeze.map(|freeze| freeze.end(&session)).unzip();
    let reported = held.as_ref().map_or(Ok(()), |held| record.held(held));
    let put_back = went_on.unwrap_or(Ok(())).map_err(Failure::from);
    Ok(Some(Made { conducted, held, put_back: put_back.and(reported.map_err(Failure::from)) }))
}

fn consent(args: &ProveArgs) -> Consent {
    Consent {
        responder: args.responder.clone(),
        allow_disconnect: args.host.allow_disconnect,
        understood: args.i_understand,
    }
}

/// Interrupted before the first run: everything was restored, and there is no verdict.
fn nothing_reported(broken: bool) -> CommandEnd {
    if !broken {
        note(
            "ended by hand before the first run: there is no result, and every value is as before",
        );
    }
    CommandEnd::No
}

fn show(document: &ProveDocument, answer: &Answer<'_>) -> Result<CommandEnd, Failure> {
    answer.tell(document, report::prove::text)?;
    Ok(match (document.limit, document.verdict.outcome) {
        (Some(Limit { held: true, .. }), _) | (None, Outcome::Better) => CommandEnd::Yes,
        _ => CommandEnd::No,
    })
}

/// Prints the state of an experiment from its record (`--status`).
fn print_status(path: &Path, answer: &Answer<'_>) -> Result<CommandEnd, Failure> {
    let past = record::read(path)?;
    let experiment = Experiment::check(past.begun.spec.clone(), &past.begun.name)
        .map_err(|e| Failure::Environment(format!("{}: {e}", path.display())))?;
    let ending = Ending::until_now(&past);
    let mut document = conclude::conclude(&experiment, &past.begun, &past.runs, &ending);
    document.frozen_host = past.held;
    show(&document, answer)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        prove: ProveArgs,
    }

    /// Parses arguments of `prove`.
    pub(super) fn typed(words: &[&str]) -> ProveArgs {
        Typed::parse_from([&["prove"], words].concat()).prove
    }

    #[test]
    fn an_experiment_by_flags_that_was_never_begun_is_reported_as_that() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prove-0.jsonl");
        let flags = ["--command", "true", "--status"];
        let Err(Failure::Environment(said)) = spec::begun(&typed(&flags), &path) else { panic!() };
        assert!(
            said.starts_with("no experiment with this workload, these levels and metrics"),
            "{said}"
        );
        assert!(said.contains(&folder.path().display().to_string()), "{said}");
        // With a file named, the error is about that file.
        spec::begun(&typed(&["e.toml", "--status"]), &path).unwrap();
        spec::begun(&typed(&[&flags[..], &["--record", "r"]].concat()), &path).unwrap();
        std::fs::write(&path, "").unwrap();
        spec::begun(&typed(&flags), &path).unwrap();
    }
}
