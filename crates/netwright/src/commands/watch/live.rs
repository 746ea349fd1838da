//! Watches this host and prints each interval.

use std::time::Duration;

use model::watch::WatchHost;
use probe::watch::{Watch, Watcher};
use view::{
    live::Watching,
    recording_file::RecordingFile,
    sampling::{judged, read_facts},
};

use super::{args::WatchArgs, attaching::Attaching, browser::Browser, only, show::Show};
use crate::{
    failure::{CommandEnd, Failure},
    interrupt::Window,
    output::{Sink, note},
};

/// Watches until the time is over or Ctrl-C.
pub fn run(args: &WatchArgs, sink: &Sink) -> Result<CommandEnd, Failure> {
    only::on_this_host(&args.only)?;
    let recording = &args.recording;
    let mut recording = RecordingFile::create(
        recording.record.as_deref(),
        recording.force,
        recording.record_limit,
    )?;
    let window = Window::open();
    if super::on_terminal(args, sink) {
        let filter = only::filter(&args.only);
        let (interval, duration) = (args.interval, args.duration);
        let watching = Watching { watch: watch(args), interval, duration, filter };
        view::live::show(watching, recording, sink.look(false).colour, window.stop())?;
        return Ok(CommandEnd::Yes);
    }
    let browser = Browser::listen(args)?;
    let facts = wants_facts(args).then(|| read_facts(&args.only.pid)).transpose()?;
    let attaching = Attaching::begin(args);
    let mut watcher = Watcher::start(&watch(args));
    attaching.end(&watcher);
    let facts = facts.and_then(|reading| reading.join().ok());
    if facts.is_some() {
        // The facts may have taken longer than attaching; the first interval must have the usual
        // length.
        watcher.begin();
    }
    let host = facts
        .as_ref()
        .map_or_else(|| WatchHost::unknown("the host's facts were not read"), WatchHost::of);
    recording.host(&host)?;
    let mut show = Show::new(args, sink, only::filter(&args.only), &host, browser)?;
    let mut left = args.duration.map(|d| d.0);
    while left != Some(0) && !window.was_interrupted() {
        let each = left.map_or(args.interval.0, |l| l.min(args.interval.0));
        let interval = watcher.next(Duration::from_nanos(each), window.stop());
        left = left.map(|l| l.saturating_sub(each));
        let record = judged(facts.as_ref(), interval);
        if !show.tells_ends() && !args.output.talk.quiet {
            record.interval.ended_processes.iter().for_each(|p| note(&report::watch::ended(p)));
        }
        if let Some(full) = recording.write(&record)? {
            note(full);
        }
        show.tell(record)?;
    }
    recording.finish()?;
    Ok(CommandEnd::Yes)
}

/// Which programs to attach, and which processes to follow.
fn watch(args: &WatchArgs) -> Watch {
    Watch {
        pids: args.only.pid.clone(),
        programs: !args.no_bpf,
        softirqs: args.when.softirq.into(),
        waits: args.when.waits.into(),
        messages: args.when.messages.into(),
        drops: args.when.drops.into(),
        queues: args.when.queues.into(),
    }
}

/// JSON lines need no facts, only the intervals.
fn wants_facts(args: &WatchArgs) -> bool {
    !args.output.json || args.recording.record.is_some() || args.browser.serve.is_some()
}
