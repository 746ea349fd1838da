//! `netwright prove`: an experiment and its verdict.

pub mod args;
pub mod spec;

use std::{
    path::{Path, PathBuf},
    sync::Mutex,
    time::{SystemTime, UNIX_EPOCH},
};

use model::{
    prove::{Outcome, ProveDocument, Run},
    tune::Plan,
};
use prove::{
    Experiment, Knobs, ProveError,
    conclude::{self, Ending},
    conduct::{self, Means},
    record::{self, Begun, Record},
};

use tune::trial::Bench;

use self::args::ProveArgs;
use crate::{
    commands::tune::trial,
    exit::{Done, Failure},
    interrupt::Window,
    output::{Progress, Sink, note},
};

/// Makes the experiment, or looks at one.
pub fn run(args: &ProveArgs) -> Result<Done, Failure> {
    let experiment = spec::experiment(args)?;
    let path = spec::record(args, &experiment.name);
    let sink = Sink::new(args.output.output.clone());
    sink.check()?;
    if args.peek {
        return peek(args, &path, &sink);
    }
    let conducted = {
        let window = Window::open();
        undo_killed(args, &path)?;
        let Some(tuned) = Tuned::of(args, &experiment)? else { return Ok(Done::No) };
        let (begun, before, mut record) = begin(args, &experiment, &path)?;
        warn(args, &experiment);
        let shown = Mutex::new(Progress::new(args.output.talk.quiet, ""));
        let progress = |what: &str, share: f64| {
            if let Ok(mut line) = shown.lock() {
                line.rename(what);
                line.show(share);
            }
        };
        let ours = std::env::current_exe()
            .map_err(|e| Failure::Environment(format!("our own program is not found: {e}")))?;
        let knobs = tuned.bench.as_ref().map(|bench| Knobs { bench, plans: &tuned.plans });
        let means = Means { ours: &ours, stop: window.stop(), knobs, progress: &progress };
        conduct::conduct(&experiment, &begun, before, &mut record, &means)
    };
    let done = match &conducted.document {
        Some(document) => show(args, document, &sink)?,
        None => Done::No,
    };
    match conducted.broken {
        Some(why) => Err(failure(why)),
        None => Ok(done),
    }
}

fn show(args: &ProveArgs, document: &ProveDocument, sink: &Sink) -> Result<Done, Failure> {
    match args.output.json {
        true => sink.json(document)?,
        false => sink.text(&report::prove::text(document, sink.look(args.output.talk.verbose)))?,
    }
    Ok(match document.verdict.outcome {
        Outcome::Better => Done::Yes,
        _ => Done::No,
    })
}

/// The host's knobs, where the experiment sets some.
struct Tuned {
    bench: Option<Bench>,
    plans: Vec<Plan>,
}

impl Tuned {
    /// Plans every combination before anything runs. `None` where one would do harm, which was
    /// told.
    fn of(args: &ProveArgs, experiment: &Experiment) -> Result<Option<Self>, Failure> {
        let wishes = experiment.wishes();
        if wishes.iter().all(Vec::is_empty) {
            return Ok(Some(Self { bench: None, plans: vec![] }));
        }
        let quiet = args.output.talk.quiet;
        let bench = trial::bench(&format!("the experiment {}", experiment.name), quiet)?;
        let Ok(plans) = trial::plans(bench.host(), wishes, args.own_connection)? else {
            return Ok(None);
        };
        let changes = || plans.iter().flat_map(|p| &p.changes);
        if changes().next().is_none() {
            return Err(Failure::Usage("all levels are what is there already".into()));
        }
        if !quiet {
            let mut names: Vec<&str> = changes().map(|c| c.knob.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            note(&format!("changes this host and puts everything back: {}", names.join(", ")));
        }
        Ok(Some(Self { bench: Some(bench), plans }))
    }
}

/// How it stands.
fn peek(args: &ProveArgs, path: &Path, sink: &Sink) -> Result<Done, Failure> {
    let past = record::read(path).map_err(failure)?;
    let experiment = Experiment::check(past.begun.spec.clone(), &past.begun.name)
        .map_err(|e| Failure::Environment(format!("{}: {e}", path.display())))?;
    let ending = past.ended.map_or_else(Ending::a_look, |why| Ending::as_recorded(&why));
    show(args, &conclude::conclude(&experiment, &past.begun, &past.runs, &ending), sink)
}

/// What killed experiments left set is undone before anything else.
fn undo_killed(args: &ProveArgs, path: &Path) -> Result<(), Failure> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = parent.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let undone = record::undo_killed(&folder).map_err(failure)?;
    if !args.output.talk.quiet {
        undone.iter().for_each(|line| note(&format!("an experiment was killed; undone: {line}")));
    }
    Ok(())
}

/// A new record, or an old one to go on with.
fn begin(
    args: &ProveArgs,
    experiment: &Experiment,
    path: &Path,
) -> Result<(Begun, Vec<Run>, Record), Failure> {
    if args.resume {
        let past = record::read(path).map_err(failure)?;
        if let Some(why) = past.ended {
            let path = path.display();
            return Err(Failure::Usage(format!(
                "{path}: this experiment has ended ({why}); going on after its end would break its \
                 promise. Begin a new one without --resume"
            )));
        }
        if past.begun.spec != experiment.spec {
            let path = path.display();
            return Err(Failure::Usage(format!("{path}: is the record of another experiment")));
        }
        if past.rebooted() && !args.output.talk.quiet {
            note("the host was booted since: levels are compared within blocks, each of one boot");
        }
        return Ok((past.begun, past.runs, Record::resume(path).map_err(failure)?));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let begun = Begun {
        started_unix_s: now.as_secs(),
        name: experiment.name.clone(),
        spec: experiment.spec.clone(),
        seed: experiment.spec.seed.unwrap_or(now.as_nanos() as u64),
    };
    let record = Record::create(path, &begun).map_err(failure)?;
    Ok((begun, vec![], record))
}

/// Whoever starts commands that change the host is told before.
fn warn(args: &ProveArgs, experiment: &Experiment) {
    let changes = experiment.changes();
    if let (Some(first), false) = (changes.first(), args.output.talk.quiet) {
        note(&format!(
            "sets {} levels by commands, and puts each back: {first}{}",
            changes.len(),
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
