//! `netwright tune`: reversible changes of the host.

mod apply;
pub mod args;
mod back;
mod persist;
pub mod plan;
mod show;

use std::sync::atomic::AtomicBool;

use args::{TuneArgs, TuneCommand, WatchdogArgs};
use model::{
    Reading,
    tune::{ChangeNote, ChangeSet, Outcome},
};
use tune::{
    Host,
    target::{JournalTarget, TargetNames},
    trial_setup,
    undo_result::UndoResult,
    watchdog::{self, deadline::Orders, maker::Residue},
};

use crate::{
    args::OutputArgs,
    commands::lab,
    failure::{CommandEnd, Failure},
    interrupt::{self, Window},
    output::{Answer, Sink},
};

pub fn run(args: TuneArgs) -> Result<CommandEnd, Failure> {
    match args.command {
        TuneCommand::Plan(a) => plan::run(a),
        TuneCommand::Apply(a) => apply::run(a),
        TuneCommand::Confirm(a) => back::confirm(a),
        TuneCommand::Rollback(a) => back::rollback(a),
        TuneCommand::Status(a) => show::status(a),
        TuneCommand::Log(a) => show::log(a),
        TuneCommand::Persist(a) => persist::run(&a),
        TuneCommand::Profiles(a) => show::profiles(&a),
        TuneCommand::Watchdog(a) => watchdog(&a),
    }
}

fn tell(
    output: &OutputArgs,
    set: Option<ChangeSet>,
    done: bool,
    notes: Vec<ChangeNote>,
) -> Result<(), Failure> {
    tell_all(output, set.into_iter().collect(), UndoResult { notes, done, ..UndoResult::default() })
}

/// The same for several change sets.
fn tell_all(
    output: &OutputArgs,
    sets: Vec<ChangeSet>,
    reported: UndoResult,
) -> Result<(), Failure> {
    let outcome = outcome(sets, reported);
    let written = Answer::of(output).tell(&outcome, report::tune::outcome);
    // The change is made whether or not the answer was written, so the error includes it.
    written.map_err(|e| match e {
        Failure::Environment(why) => {
            Failure::Environment(format!("{why}; {}", sentences(&outcome.notes)))
        }
        e => e,
    })
}

fn outcome(sets: Vec<ChangeSet>, reported: UndoResult) -> Outcome {
    let nothing = || Reading::absent("nothing was to be done");
    Outcome {
        schema_version: model::SCHEMA_VERSION,
        set: sets.first().cloned().map_or_else(nothing, Reading::Known),
        sets,
        drifted: reported.drifted,
        done: reported.done,
        notes: reported.notes,
    }
}

/// Notes in one line.
fn sentences(notes: &[ChangeNote]) -> String {
    notes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Runs a watchdog until it may end: of one change, or of a process's trials.
fn watchdog(args: &WatchdogArgs) -> Result<CommandEnd, Failure> {
    match args.id.zip(args.deadline_boot_ms) {
        Some((id, deadline_boot_ms)) => watch_deadline(args, id, deadline_boot_ms),
        None => watch_maker((args.maker_pid, args.maker_start)),
    }
}

/// Waits until the process at the other end of our standard input ends, then reverts its trials.
fn watch_maker(maker: (u32, u64)) -> Result<CommandEnd, Failure> {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE] {
        // Stopping a service signals both processes; the maker reverts by itself, and we end after
        // it.
        interrupt::ignore(signal);
    }
    ready()?;
    let mut done = Ok(CommandEnd::Yes);
    watchdog::maker::undo_after_exit(std::io::stdin().lock(), &mut |residue| {
        let put_back = match residue {
            Residue::Trials(state) => trial_setup::undo_lost(state, maker).map_err(Failure::from),
            Residue::Record(path) => prove::start::undo_lost(path).map_err(Failure::from),
            Residue::Labs(folder) => lab::remove_unfinished(folder, maker.0),
        };
        if let Err(e) = put_back {
            done = Err(e);
        }
    });
    done
}

/// Reports that the watchdog is ready, then closes standard output.
fn ready() -> Result<(), Failure> {
    let start = Host::live().start_ticks("self")?;
    Sink::Stdout.text(&format!("ready {} {start}\n", std::process::id()))?;
    close_stdout();
    Ok(())
}

fn watch_deadline(
    args: &WatchdogArgs,
    id: u64,
    deadline_boot_ms: u64,
) -> Result<CommandEnd, Failure> {
    let target = JournalTarget::open(TargetNames {
        state_dir: args.place.state_dir.clone(),
        root: args.place.root.clone(),
        ..TargetNames::default()
    })?;
    let orders = Orders { id, deadline_boot_ms, maker: (args.maker_pid, args.maker_start) };
    interrupt::ignore(libc::SIGHUP);
    // SIGTERM means a shutdown or the end of the session: revert at once.
    let window = Window::open();
    window.changing();
    ready()?;
    let now: &AtomicBool = window.stop();
    watchdog::deadline::undo_unless_confirmed(&target.host, &target.store, &orders, now)?;
    Ok(CommandEnd::Yes)
}

/// Closes standard output, as the process that started us reads it to the end.
fn close_stdout() {
    if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(null);
    }
}
