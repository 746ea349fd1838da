//! The view of this host: what comes (intervals, keys, facts) in, pictures out.
//!
//! Sampling, reading the keyboard and reading facts have threads of their own; this one draws
//! when something came, and waits for nothing else.

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
    sampling,
    state::{Act, ViewState},
    tape::Tape,
    terminal::{self, Input, Tty},
};

/// The first picture should be there at once.
const FIRST: Duration = Duration::from_millis(100);
/// How long a signal may wait to be seen.
const LOOK: Duration = Duration::from_millis(200);

/// What is watched, and for how long.
#[derive(Debug)]
pub struct Watching {
    /// What to attach, and whom to follow.
    pub watch: Watch,
    pub interval: Nanos,
    pub duration: Option<Nanos>,
    /// Which part to show.
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
/// The terminal cannot be had, a thread does not start, or the recording cannot be written.
pub fn show(watching: Watching, tape: Tape, colour: bool, stop: &'static AtomicBool) -> Result<()> {
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
        tape,
        waiting: vec![],
        host_is_recorded: false,
        colour,
    };
    let ended = live.run(&mut tty, &events, stop);
    // The terminal first: what is said of a failure is to be seen.
    drop(tty);
    ended?;
    live.record_waiting()?;
    live.tape.finish()
}

fn read_facts(watching: &Watching, to: Sender<Event>) -> Result<()> {
    let reading = sampling::read_facts(&watching.watch.pids)?;
    begin(move || {
        if let Ok(facts) = reading.join() {
            // Nobody listens any more: we are leaving.
            let _ = to.send(Event::Facts(Box::new(facts)));
        }
    })
}

/// Does something in a thread that nobody waits for.
fn begin(work: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new().spawn(work).map(drop).map_err(ViewError::Thread)
}

/// Attaches and samples until the time is over or nobody listens any more. The process ends
/// while it still waits for an interval's end; the kernel then detaches every program.
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
    tape: Tape,
    /// Intervals that came before the host was known, for the recording begins with it.
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
                    if self.state.key(key) == Act::Quit {
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

    /// The host, once, and the intervals that waited for it.
    fn record_waiting(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.host_is_recorded, true) {
            self.tape.host(&self.host)?;
        }
        for record in std::mem::take(&mut self.waiting) {
            self.record(&record)?;
        }
        Ok(())
    }

    fn record(&mut self, record: &WatchRecord) -> Result<()> {
        if let Some(full) = self.tape.write(record)? {
            self.state.note = Some(full.to_owned());
        }
        Ok(())
    }
}
