//! `netwright watch`: attach, then tell interval by interval.

pub mod args;

use std::time::Duration;

use model::{Nanos, watch::WatchInterval};
use probe::watch::{Watch, Watcher};

use self::args::WatchArgs;
use crate::{
    exit::{Done, Failure},
    interrupt::Window,
    output::Sink,
};

const SHORTEST: Nanos = Nanos(100_000_000);
const LONGEST: Nanos = Nanos(3_600_000_000_000);

/// Watches until the time is over or Ctrl-C.
pub fn run(args: &WatchArgs) -> Result<Done, Failure> {
    check(args)?;
    let sink = Sink::new(args.output.output.clone());
    sink.check()?;
    let window = Window::open();
    let mut watcher = Watcher::start(&Watch { pids: args.pid.clone(), programs: !args.no_bpf });
    let mut lines = sink.lines()?;
    let mut left = args.duration.map(|d| d.0);
    while left != Some(0) && !window.was_cut_short() {
        let each = left.map_or(args.interval.0, |l| l.min(args.interval.0));
        let interval = watcher.next(Duration::from_nanos(each), window.stop());
        left = left.map(|l| l.saturating_sub(each));
        tell(args, &mut lines, &interval)?;
    }
    Ok(Done::Yes)
}

fn tell(
    args: &WatchArgs,
    lines: &mut crate::output::Lines,
    interval: &WatchInterval,
) -> Result<(), Failure> {
    if args.output.json { lines.json(interval) } else { lines.text(&report::watch::text(interval)) }
}

fn check(args: &WatchArgs) -> Result<(), Failure> {
    let usage = |why: String| Err(Failure::Usage(why));
    if !(SHORTEST..=LONGEST).contains(&args.interval) {
        return usage(format!(
            "an interval of {}; from {SHORTEST} to {LONGEST} is possible",
            args.interval
        ));
    }
    if args.duration.is_some_and(|d| d < SHORTEST) {
        return usage(format!("a duration below {SHORTEST}, the shortest interval"));
    }
    Ok(())
}
