//! Prints the intervals of a recording.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use view::recording;

use super::{args::WatchArgs, browser::Browser, only, show::Show};
use crate::{
    failure::{CommandEnd, Failure},
    interrupt::Window,
    output::Sink,
};

/// How often a signal is looked for while a browser shows an interval.
const LOOK: Duration = Duration::from_millis(50);

/// Prints a recording; browsers see it as fast as it was recorded, and then its last interval. A damaged one is printed up to the damage, which is then reported.
pub fn run(args: &WatchArgs, path: &Path, sink: &Sink) -> Result<CommandEnd, Failure> {
    let mut recording = recording::open(path)?;
    only::nics(&args.only, &recording.host.nics, "in this recording")?;
    let host = recording.host.clone();
    let cpus = host.cpus.iter().map(|c| c.id).collect();
    only::cpus(&args.only, &cpus, "in this recording")?;
    only::pids_of(&args.only, &mut recording)?;
    let window = Window::open();
    if super::on_terminal(args, sink) {
        let (filter, colour) = (only::filter(&args.only), sink.look(false).colour);
        view::replay::show(recording, filter, colour, window.stop())?;
        return Ok(CommandEnd::Yes);
    }
    let browser = Browser::listen(args)?;
    let serves = browser.is_some();
    let mut show = Show::new(args, sink, only::filter(&args.only), &host, browser)?;
    for number in 0..recording.len() {
        if window.was_interrupted() {
            break;
        }
        let record = recording.get(number).map_err(Failure::Environment)?;
        let last = number + 1 == recording.len();
        let shown_s = if last { f64::INFINITY } else { record.interval.interval_s };
        show.tell(record)?;
        if serves {
            stay(&window, shown_s);
        }
    }
    recording.damage().map_or(Ok(CommandEnd::Yes), |why| Err(Failure::Environment(why)))
}

/// Waits this many seconds, or until a signal comes.
fn stay(window: &Window, seconds: f64) {
    let since = Instant::now();
    while since.elapsed().as_secs_f64() < seconds && !window.was_interrupted() {
        thread::sleep(LOOK);
    }
}
