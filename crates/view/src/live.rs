//! The view of this host: intervals, keys and facts come in, pictures go out.
//!
//! Sampling, the keyboard and facts each have a thread. This thread draws when one of them
//! delivers, and waits for nothing else.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use model::{
    Facts, Nanos,
    watch::{WatchFilter, WatchHost, WatchInterval, WatchRecord},
};
use probe::watch::{Watch, Watcher};

use crate::{
    Screen,
    error::{Result, ViewError},
    recording_file::RecordingFile,
    sampling,
    state::{KeyAction, ViewState},
    terminal::{self, Input, Tty},
};

/// The first interval is short, so that the first picture appears at once.
const FIRST: Duration = Duration::from_millis(100);
/// How often `stop` is checked.
const LOOK: Duration = Duration::from_millis(200);

/// What to watch, and for how long.
#[derive(Debug)]
pub struct Watching {
    /// Which programs to attach, and which processes to follow.
    pub watch: Watch,
    pub interval: Nanos,
    pub duration: Option<Nanos>,
    /// Shows these processes, NICs and CPUs only.
    pub filter: WatchFilter,
}

enum Event {
    Input(Input),
    Interval(Box<WatchInterval>),
    Facts(Box<Facts>),
    Over,
}

/// Shows this host until the time is over, the operator leaves, or `stop` is set.
///
/// # Errors
/// The terminal cannot be used, a thread does not start, or the recording cannot be written.
pub fn show(
    watching: Watching,
    recording: RecordingFile,
    colour: bool,
    stop: &'static AtomicBool,
) -> Result<()> {
    let mut tty = Tty::take().map_err(terminal::failed)?;
    let (to, events) = mpsc::channel();
    terminal::listen(to.clone(), Event::Input).map_err(ViewError::Thread)?;
    read_facts(&watching, to.clone())?;
    sample(&watching, to, stop)?;
    let mut live = Live {
        state: ViewState::new(watching.filter, None),
        host: WatchHost::unknown("not read yet"),
        facts: None,
        shown: None,
        recording,
        waiting: vec![],
        host_is_recorded: false,
        colour,
    };
    let ended = live.run(&mut tty, &events, stop);
    // The terminal first: an error message must stay visible.
    drop(tty);
    ended?;
    live.record_waiting()?;
    live.recording.finish()
}

fn read_facts(watching: &Watching, to: Sender<Event>) -> Result<()> {
    let reading = sampling::read_facts(&watching.watch.pids)?;
    begin(move || {
        if let Ok(facts) = reading.join() {
            // The receiver is gone: the view is ending.
            let _ = to.send(Event::Facts(Box::new(facts)));
        }
    })
}

/// Runs a function in a detached thread.
fn begin(work: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new().spawn(work).map(drop).map_err(ViewError::Thread)
}

/// Attaches programs and samples until the time is over or the receiver is gone. The process may
/// end while this thread waits for an interval's end; the kernel then detaches every program.
fn sample(watching: &Watching, to: Sender<Event>, stop: &'static AtomicBool) -> Result<()> {
    let (watch, mut left) = (watching.watch.clone(), watching.duration.map(|d| d.0));
    let interval = watching.interval.0;
    begin(move || {
        let mut watcher = Watcher::start(&watch);
        let mut next = u64::try_from(FIRST.as_nanos()).unwrap_or(interval).min(interval);
        while left != Some(0) {
            let each = left.map_or(next, |l| l.min(next));
            let seen = watcher.next(Duration::from_nanos(each), stop);
            left = left.map(|l| l.saturating_sub(each));
            next = interval;
            if to.send(Event::Interval(Box::new(seen))).is_err() {
                return;
            }
        }
        let _ = to.send(Event::Over);
    })
}

struct Live {
    state: ViewState,
    host: WatchHost,
    facts: Option<Facts>,
    shown: Option<WatchRecord>,
    recording: RecordingFile,
    /// Intervals before the host's facts are known: a recording begins with the host.
    waiting: Vec<WatchRecord>,
    host_is_recorded: bool,
    colour: bool,
}

impl Live {
    fn run(&mut self, tty: &mut Tty, events: &Receiver<Event>, stop: &AtomicBool) -> Result<()> {
        self.draw(tty)?;
        while !stop.load(Ordering::Relaxed) {
            match events.recv_timeout(LOOK) {
                Ok(Event::Input(Input::Key(key))) => {
                    if self.state.key(key) == KeyAction::Quit {
                        return Ok(());
                    }
                }
                Ok(Event::Input(Input::Resize)) => {}
                Ok(Event::Interval(interval)) => {
                    self.interval(*interval)?;
                    if self.state.paused {
                        continue;
                    }
                }
                Ok(Event::Facts(facts)) => self.facts(*facts)?,
                Ok(Event::Input(Input::Gone) | Event::Over)
                | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => continue,
            }
            self.draw(tty)?;
        }
        Ok(())
    }

    fn draw(&self, tty: &mut Tty) -> Result<()> {
        let Self { host, shown, state, colour, .. } = self;
        let screen = Screen { host, record: shown.as_ref(), state, colour: *colour };
        tty.draw(&screen).map_err(terminal::failed)
    }

    fn interval(&mut self, interval: WatchInterval) -> Result<()> {
        let record = sampling::judged(self.facts.as_ref(), interval);
        self.state.observe(&record);
        match self.facts {
            None => self.waiting.push(record.clone()),
            Some(_) => self.record(&record)?,
        }
        if !self.state.paused {
            self.shown = Some(record);
        }
        Ok(())
    }

    fn facts(&mut self, facts: Facts) -> Result<()> {
        self.host = WatchHost::of(&facts);
        self.facts = Some(facts);
        self.record_waiting()
    }

    /// Writes the host once, then the intervals that waited for it.
    fn record_waiting(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.host_is_recorded, true) {
            self.recording.host(&self.host)?;
        }
        for record in std::mem::take(&mut self.waiting) {
            self.record(&record)?;
        }
        Ok(())
    }

    fn record(&mut self, record: &WatchRecord) -> Result<()> {
        if let Some(full) = self.recording.write(record)? {
            self.state.note = Some(full.to_owned());
        }
        Ok(())
    }
}
