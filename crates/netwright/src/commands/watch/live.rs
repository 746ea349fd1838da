//! This host, interval by interval.

use std::{thread, time::Duration};

use model::{
    Facts,
    watch::{EndedProcess, WatchHost, WatchInterval, WatchRecord},
};
use probe::{
    Root,
    facts::{Request, Selector},
    watch::{Watch, Watcher},
};

use super::{
    args::{OnlyArgs, WatchArgs},
    attaching::Attaching,
    judge, only, picture,
    recorder::{Recorder, WriteResult},
    show::Show,
};
use crate::{
    exit::{CommandEnd, Failure},
    interrupt::Window,
    output::{Sink, note},
};

/// Watches until the time is over or Ctrl-C.
pub fn run(args: &WatchArgs, sink: &Sink) -> Result<CommandEnd, Failure> {
    only::on_this_host(&args.only)?;
    let mut tape = Tape::create(args)?;
    if picture::wanted(args, sink) {
        return picture::live(args, sink, tape);
    }
    let window = Window::open();
    let facts = wants_facts(args).then(|| read_facts(&args.only)).transpose()?;
    let attaching = Attaching::begin(args);
    let mut watcher = Watcher::start(&watch(args));
    attaching.end(&watcher);
    let facts = facts.and_then(|reading| reading.join().ok());
    if facts.is_some() {
        // They may have taken longer than attaching: the first interval is as long as the others.
        watcher.begin();
    }
    let host = facts
        .as_ref()
        .map_or_else(|| WatchHost::unknown("the host's facts were not read"), WatchHost::of);
    tape.host(&host)?;
    let mut show = Show::new(args, sink, only::filter(&args.only), &host)?;
    let mut left = args.duration.map(|d| d.0);
    while left != Some(0) && !window.was_interrupted() {
        let each = left.map_or(args.interval.0, |l| l.min(args.interval.0));
        let interval = watcher.next(Duration::from_nanos(each), window.stop());
        left = left.map(|l| l.saturating_sub(each));
        let record = judged(facts.as_ref(), interval);
        if !show.tells_ends() && !args.output.talk.quiet {
            record.interval.ended_processes.iter().for_each(|p| note(&said(p)));
        }
        if let Some(full) = tape.write(&record)? {
            note(full);
        }
        show.tell(record)?;
    }
    tape.finish()?;
    Ok(CommandEnd::Yes)
}

/// On standard error: a followed process ended.
fn said(process: &EndedProcess) -> String {
    report::watch::ended(process)
}

/// What to attach, and whom to follow.
pub fn watch(args: &WatchArgs) -> Watch {
    Watch {
        pids: args.only.pid.clone(),
        programs: !args.no_bpf,
        softirqs: args.when.softirq.into(),
        waits: args.when.waits.into(),
        messages: args.when.messages.into(),
        queues: args.when.queues.into(),
    }
}

/// Lines of JSON alone need nothing but the interval.
fn wants_facts(args: &WatchArgs) -> bool {
    !args.output.json || args.recording.record.is_some()
}

/// Reads what the host is, beside attaching: both take their time on a large host.
pub fn read_facts(args: &OnlyArgs) -> Result<thread::JoinHandle<Facts>, Failure> {
    let processes = args.pid.iter().copied().map(Selector::Pid).collect();
    let read = move || probe::facts::collect(&Root::live(), &Request { processes });
    thread::Builder::new().spawn(read).map_err(|e| Failure::thread(&e))
}

/// With what the rules find in it.
pub fn judged(facts: Option<&Facts>, interval: WatchInterval) -> WatchRecord {
    let findings = facts.map(|f| judge::findings(f, &interval)).unwrap_or_default();
    WatchRecord { interval, findings }
}

/// The recording, where one is asked for.
pub struct Tape {
    recorder: Option<Recorder>,
    full: String,
}

impl Tape {
    /// Makes its file.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn create(args: &WatchArgs) -> Result<Self, Failure> {
        let recording = &args.recording;
        let Some(path) = &recording.record else {
            return Ok(Self { recorder: None, full: String::new() });
        };
        let full = format!(
            "{}: the recording is full and ends here, within {} bytes; --record-limit \
             raises that",
            path.display(),
            recording.record_limit
        );
        let recorder = Recorder::create(path, recording.force, recording.record_limit)?;
        Ok(Self { recorder: Some(recorder), full })
    }

    /// Whose intervals will come.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn host(&mut self, host: &WatchHost) -> Result<(), Failure> {
        self.recorder.as_mut().map_or(Ok(()), |r| r.host(host))
    }

    /// One more interval. A full recording is closed, and what to say about it given back;
    /// watching goes on.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, record: &WatchRecord) -> Result<Option<&str>, Failure> {
        let Some(recorder) = &mut self.recorder else { return Ok(None) };
        match recorder.write(record)? {
            WriteResult::In => Ok(None),
            WriteResult::Full => {
                if recorder.intervals() == 0 {
                    self.full.push_str(" (not even one interval fits)");
                }
                self.recorder = None;
                Ok(Some(&self.full))
            }
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.recorder.as_mut().map_or(Ok(()), Recorder::finish)
    }
}
