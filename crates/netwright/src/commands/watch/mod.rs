//! `netwright watch`: intervals of this host, or of a recording.

pub mod args;
mod attaching;
mod browser;
mod live;
mod only;
mod replay;
mod show;

use std::io::IsTerminal;

use model::Nanos;

use self::args::WatchArgs;
use crate::{
    failure::{CommandEnd, Failure},
    output::Sink,
};

const SHORTEST: Nanos = Nanos(100_000_000);
const LONGEST: Nanos = Nanos(3_600_000_000_000);

/// Watches until the time is over or Ctrl-C; a replay ends with the recording.
pub fn run(args: &WatchArgs) -> Result<CommandEnd, Failure> {
    check(args)?;
    let sink = Sink::new(args.output.output.clone());
    sink.check()?;
    match &args.recording.replay {
        Some(path) => replay::run(args, path, &sink),
        None => live::run(args, &sink),
    }
}

fn check(args: &WatchArgs) -> Result<(), Failure> {
    let usage = |why: String| Err(Failure::Usage(why));
    check_interval(args.interval)?;
    let (recording, out) = (&args.recording.record, &args.output.output);
    if recording.is_some() && recording == out {
        return usage("--record and --output name the same file; give each its own".into());
    }
    if args.duration.is_some_and(|d| d < SHORTEST) {
        return usage(format!("a duration below {SHORTEST}, the shortest interval"));
    }
    Ok(())
}

/// Refuses an interval that is too short or too long.
///
/// # Errors
/// Exit code 2, with the possible lengths.
pub fn check_interval(interval: Nanos) -> Result<(), Failure> {
    if (SHORTEST..=LONGEST).contains(&interval) {
        return Ok(());
    }
    let why = format!("an interval of {interval}; from {SHORTEST} to {LONGEST} is possible");
    Err(Failure::Usage(why))
}

/// Whether to show the live view: on a terminal, unless another output was asked for.
fn on_terminal(args: &WatchArgs, sink: &Sink) -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|t| t == "dumb" || t.is_empty());
    let other =
        args.output.json || args.plain || args.output.talk.quiet || args.browser.serve.is_some();
    sink.is_terminal() && std::io::stdin().is_terminal() && !dumb && !other
}

/// Whether browsers alone are shown the intervals: no other output was asked for.
fn only_browser(args: &WatchArgs) -> bool {
    let other = args.output.json || args.plain || args.output.output.is_some();
    args.browser.serve.is_some() && !other
}
