//! `netwright prove`: an experiment and its verdict.

pub mod args;
pub mod spec;
mod tuned;

use std::{
    path::Path,
    sync::Mutex,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use model::prove::{Outcome, ProveDocument, Run};
use prove::{
    Experiment, Knobs, ProveError,
    conclude::{self, Ending},
    conduct::{self, Means},
    record::{self, Past, Record, RecordHead},
};
use tune::watchdog::maker::Place;

use self::{args::ProveArgs, tuned::Tuned};
use crate::{
    commands::tune::{hold::Hold, trial},
    exit::{CommandEnd, Failure},
    interrupt::Window,
    output::{Progress, Sink, note},
};

/// Makes the experiment, or looks at one.
pub fn run(args: &ProveArgs) -> Result<CommandEnd, Failure> {
    let sink = Sink::new(args.output.output.clone());
    sink.check()?;
    if let Some(path) = args.record.as_ref().filter(|_| args.peek) {
        return peek(args, path, &sink);
    }
    let experiment = spec::experiment(args)?;
    let path = spec::record(args, &experiment);
    if args.peek || args.resume {
        spec::begun(args, &path)?;
    }
    if args.peek {
        return peek(args, &path, &sink);
    }
    // Before anybody is waited for.
    match args.resume {
        true => past(&experiment, &path).map(|_| ())?,
        false => room(args, &path)?,
    }
    let (mut conducted, still, went_on) = {
        let window = Window::open();
        undo_killed(args, &path, &experiment)?;
        let tuned = Tuned::open(args, &experiment)?;
        let hosts = tuned.hosts()?;
        let Some(plans) = tuned.plans(args, &experiment, hosts.as_ref())? else {
            return Ok(CommandEnd::No);
        };
        let (begun, before, mut record) = begin(args, &experiment, &path)?;
        if !experiment.unsets().is_empty() {
            let path = std::path::absolute(&path).map_err(|e| Failure::io(&path, &e))?;
            trial::watched(Place::Record(path))?;
        }
        warn(args, &experiment);
        window.changing();
        let shown = Mutex::new(Progress::new(args.output.talk.quiet, ""));
        let progress = |what: &str, share: f64| {
            if let Ok(mut line) = shown.lock() {
                line.rename(what);
                line.show(share);
            }
        };
        let ours = std::env::current_exe()
            .map_err(|e| Failure::Environment(format!("our own program is not found: {e}")))?;
        let knobs = hosts.as_ref().map(|bench| Knobs { bench, plans: &plans });
        let means = Means {
            ours: &ours,
            stop: window.stop(),
            knobs,
            progress: &progress,
            disruption: Duration::ZERO,
            worked: false,
        };
        let hold = tuned.hold(&experiment, &plans)?;
        if let Some(hold) = &hold {
            record.held(hold.reported()).map_err(failure)?;
        }
        let conducted = conduct::conduct(&experiment, &begun, before, &mut record, &means);
        let (still, went_on) = hold.map(Hold::end).unzip();
        let reported = still.as_ref().map_or(Ok(()), |still| record.held(still).map_err(failure));
        (conducted, still, went_on.unwrap_or(Ok(())).and(reported))
    };
    if let Some(document) = &mut conducted.document {
        document.frozen_host = still;
    }
    let done = match &conducted.document {
        Some(document) => show(args, document, &sink)?,
        None => nothing_reported(conducted.broken.is_some()),
    };
    if conducted.may_go_on && conducted.broken.is_none() && !args.output.talk.quiet {
        note(&format!("`{}` goes on with it", spec::go_on(args, &path)));
    }
    match conducted.broken {
        // No more than that there are too few blocks, which the documents call not proven.
        Some(ProveError::Budget(why)) => {
            note(&why.to_string());
            went_on.map(|()| CommandEnd::No)
        }
        Some(why) => Err(failure(why)),
        None => went_on.map(|()| done),
    }
}

/// Ended before the first run was: all was put back, and there is no verdict to show.
fn nothing_reported(broken: bool) -> CommandEnd {
    if !broken {
        note(
            "ended by hand before the first run was made: there is nothing to tell, and all is as it was",
        );
    }
    CommandEnd::No
}

fn show(args: &ProveArgs, document: &ProveDocument, sink: &Sink) -> Result<CommandEnd, Failure> {
    match args.output.json {
        true => sink.json(document)?,
        false => sink.text(&report::prove::text(document, sink.look(args.output.talk.verbose)))?,
    }
    Ok(match document.verdict.outcome {
        Outcome::Better => CommandEnd::Yes,
        _ => CommandEnd::No,
    })
}

/// How it stands.
fn peek(args: &ProveArgs, path: &Path, sink: &Sink) -> Result<CommandEnd, Failure> {
    let past = record::read(path).map_err(failure)?;
    let experiment = Experiment::check(past.begun.spec.clone(), &past.begun.name)
        .map_err(|e| Failure::Environment(format!("{}: {e}", path.display())))?;
    let ending = Ending::a_look(&past);
    let mut document = conclude::conclude(&experiment, &past.begun, &past.runs, &ending);
    document.frozen_host = past.held;
    show(args, &document, sink)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Undoes what the experiment of a record left set whose process was killed.
pub fn undo_lost(path: &Path) -> Result<(), Failure> {
    record::undo_killed(folder_of(path), path, &[]).map(drop).map_err(failure)
}

/// What killed experiments left set is undone before anything else.
fn undo_killed(args: &ProveArgs, path: &Path, experiment: &Experiment) -> Result<(), Failure> {
    let unsets = experiment.unsets();
    let cleared = record::undo_killed(folder_of(path), path, &unsets).map_err(failure)?;
    if !args.output.talk.quiet {
        let say = |line: &String| {
            note(&format!("an experiment ended before that was put back; undone: {line}"))
        };
        cleared.undone.iter().for_each(say);
    }
    // The host is not as it was: that is said to the quiet as well.
    cleared.left.iter().for_each(|line| note(&format!("left by an experiment: {line}")));
    Ok(())
}

/// What is to be gone on with.
fn past(experiment: &Experiment, path: &Path) -> Result<Past, Failure> {
    let past = record::read(path).map_err(failure)?;
    let path = path.display();
    if let Some(why) = past.ended {
        return Err(Failure::Usage(format!(
            "{path}: this experiment has ended ({why}); going on after its end would break its \
             promise. Begin a new one without --resume"
        )));
    }
    if past.is_elsewhere() {
        return Err(Failure::Environment(format!(
            "{path}: its runs were made in another network namespace, which is another host to compare: go \
             on with it there, or begin a new one without --resume"
        )));
    }
    if past.begun.spec != experiment.spec {
        let differs = past.begun.spec.differences(&experiment.spec);
        if differs.iter().all(|d| d.starts_with("budget: ") || d.starts_with("runs: ")) {
            return Err(Failure::Usage(format!(
                "{path}: {}: the end is part of the promise, and one that is set when runs have been seen \
                 would call more than one in twenty better or worse that do nothing. --resume with the budget \
                 that it began with, or begin a new experiment without --resume",
                differs.join("; ")
            )));
        }
        let differs = differs.join("; ");
        return Err(Failure::Usage(format!(
            "{path}: is the record of another experiment: {differs}. With what is there it goes on, \
             without --resume it begins anew"
        )));
    }
    Ok(past)
}

/// Whether a new record can be there. Folders are made for the usual place only.
fn room(args: &ProveArgs, path: &Path) -> Result<(), Failure> {
    let named = path.parent().filter(|p| args.record.is_some() && !p.as_os_str().is_empty());
    if let Some(folder) = named {
        match std::fs::metadata(folder) {
            Ok(found) if found.is_dir() => {}
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                return Err(Failure::io(folder, &e));
            }
            _ => {
                return Err(Failure::Usage(format!(
                    "--record {}: there is no folder {}: make it, or name another file",
                    path.display(),
                    folder.display()
                )));
            }
        }
    }
    record::room(path).map_err(failure)
}

/// A new record, or an old one to go on with.
fn begin(
    args: &ProveArgs,
    experiment: &Experiment,
    path: &Path,
) -> Result<(RecordHead, Vec<Run>, Record), Failure> {
    if args.resume {
        let past = past(experiment, path)?;
        if past.rebooted() && !args.output.talk.quiet {
            note("the host was booted since: levels are compared within blocks, each of one boot");
        }
        return Ok((past.begun, past.runs, Record::resume(path).map_err(failure)?));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let begun = RecordHead {
        started_unix_s: now.as_secs(),
        name: experiment.name.clone(),
        spec: experiment.spec.clone(),
        seed: experiment.spec.seed.unwrap_or(now.as_nanos() as u64),
    };
    let kept = record::may_go_on(path).then(|| record::aside(path));
    let record = Record::create(path, &begun).map_err(failure)?;
    if let (Some(kept), false) = (kept, args.output.talk.quiet) {
        note(&format!(
            "the experiment whose record was here had not ended; it is kept: --resume --record {}",
            kept.display()
        ));
    }
    Ok((begun, vec![], record))
}

/// Whoever starts commands that change the host is told before.
fn warn(args: &ProveArgs, experiment: &Experiment) {
    let changes = experiment.changes();
    if let (Some(first), false) = (changes.first(), args.output.talk.quiet) {
        note(&format!(
            "sets {} levels by commands, and puts each back: {}{}",
            changes.len(),
            first.lines().map(str::trim).collect::<Vec<_>>().join("; "),
            if changes.len() > 1 { ", …" } else { "" }
        ));
    }
}

/// The exit code that an error deserves.
pub fn failure(e: ProveError) -> Failure {
    match e {
        ProveError::Spec(why) => Failure::Usage(why),
        ProveError::File { path, source } => Failure::io(Path::new(&path), &source),
        ProveError::Tune(e) => crate::commands::tune::failure(e),
        e => Failure::Environment(e.to_string()),
    }
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

    /// The arguments of so many words after `prove`.
    pub(super) fn typed(words: &[&str]) -> ProveArgs {
        Typed::parse_from([&["prove"], words].concat()).prove
    }

    fn usage(result: Result<(), Failure>) -> String {
        match result {
            Err(Failure::Usage(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn no_folder_is_made_for_a_record_that_is_named_and_no_other_file_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let named = |path: &Path| room(&typed(&["--record", &path.display().to_string()]), path);
        let said = usage(named(&at("a/b/r.jsonl")));
        assert!(
            said.contains("there is no folder") && said.ends_with("name another file"),
            "{said}"
        );
        assert!(!at("a").exists());
        named(&at("r.jsonl")).unwrap();
        room(&typed(&["--record", "r.jsonl"]), Path::new("no-such-record.jsonl")).unwrap();
        room(&typed(&[]), &at("a/b/r.jsonl")).unwrap();
        std::fs::write(at("mine.txt"), "mine").unwrap();
        assert!(usage(named(&at("mine.txt"))).contains("mine.txt: is no record of prove"));
        assert!(usage(named(&at("mine.txt/r.jsonl"))).contains("there is no folder"));
    }

    #[test]
    fn an_experiment_by_flags_that_was_never_begun_is_told_as_that() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prove-0.jsonl");
        let flags = ["--command", "true", "--peek"];
        let Err(Failure::Environment(said)) = spec::begun(&typed(&flags), &path) else { panic!() };
        assert!(
            said.starts_with("no experiment with this workload, these levels and metrics"),
            "{said}"
        );
        assert!(said.contains(&folder.path().display().to_string()), "{said}");
        // Who names a file is told of that one.
        spec::begun(&typed(&["e.toml", "--peek"]), &path).unwrap();
        spec::begun(&typed(&[&flags[..], &["--record", "r"]].concat()), &path).unwrap();
        std::fs::write(&path, "").unwrap();
        spec::begun(&typed(&flags), &path).unwrap();
    }
}
