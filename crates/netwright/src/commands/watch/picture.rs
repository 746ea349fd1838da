//! The view on a terminal: what comes (intervals, keys, facts) in, pictures out.
//!
//! Sampling, reading the keyboard and reading facts have threads of their own; this one draws
//! when something came, and waits for nothing else.

use std::{
    io::IsTerminal,
    path::Path,
    sync::{
        atomic::AtomicBool,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use model::{
    Facts,
    watch::{WatchHost, WatchInterval, WatchRecord},
};
use probe::watch::{Watcher, recording::Recording};

use super::{
    args::WatchArgs,
    live::{self, Tape},
    only,
};
use crate::{
    exit::{CommandEnd, Failure},
    interrupt::Window,
    output::Sink,
    view::{
        Act, Screen, Seek, ViewState,
        state::ViewPosition,
        terminal::{self, Input, Tty},
    },
};

/// The first picture should be there at once.
const FIRST: Duration = Duration::from_millis(100);
/// How long a signal may wait to be seen.
const LOOK: Duration = Duration::from_millis(200);
/// A recording is not played faster than this.
const FASTEST: Duration = Duration::from_millis(100);

enum Event {
    Input(Input),
    Interval(Box<WatchInterval>),
    Facts(Box<Facts>),
    Over,
}

/// Whether there is somebody to look, and he did not ask for something else.
pub fn wanted(args: &WatchArgs, sink: &Sink) -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|t| t == "dumb" || t.is_empty());
    let other = args.output.json || args.plain || args.output.talk.quiet;
    sink.is_terminal() && std::io::stdin().is_terminal() && !dumb && !other
}

pub fn live(args: &WatchArgs, sink: &Sink, tape: Tape) -> Result<CommandEnd, Failure> {
    let window = Window::open();
    let mut tty = take()?;
    let (to, events) = mpsc::channel();
    terminal::listen(to.clone(), Event::Input).map_err(|e| Failure::thread(&e))?;
    read_facts(args, to.clone())?;
    sample(args, to, window.stop())?;
    let mut live = Live {
        state: ViewState::new(only::filter(&args.only), None),
        host: WatchHost::unknown("not read yet"),
        facts: None,
        shown: None,
        tape,
        waiting: vec![],
        host_is_recorded: false,
        colour: sink.look(false).colour,
    };
    let ended = live.run(&mut tty, &events, &window);
    // The terminal first: what is said of a failure is to be seen.
    drop(tty);
    ended?;
    live.record_waiting()?;
    live.tape.finish()?;
    Ok(CommandEnd::Yes)
}

fn take() -> Result<Tty, Failure> {
    Tty::take().map_err(|e| Failure::io(Path::new("the terminal"), &e))
}

fn read_facts(args: &WatchArgs, to: Sender<Event>) -> Result<(), Failure> {
    let reading = live::read_facts(&args.only)?;
    begin(move || {
        if let Ok(facts) = reading.join() {
            // Nobody listens any more: we are leaving.
            let _ = to.send(Event::Facts(Box::new(facts)));
        }
    })
}

/// Does something in a thread that nobody waits for.
fn begin(work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    thread::Builder::new().spawn(work).map(drop).map_err(|e| Failure::thread(&e))
}

/// Attaches and samples until the time is over or nobody listens any more. The process ends
/// while it still waits for an interval's end; the kernel then detaches every program.
fn sample(args: &WatchArgs, to: Sender<Event>, stop: &'static AtomicBool) -> Result<(), Failure> {
    let (watch, mut left) = (live::watch(args), args.duration.map(|d| d.0));
    let interval = args.interval.0;
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
    fn run(
        &mut self,
        tty: &mut Tty,
        events: &Receiver<Event>,
        window: &Window,
    ) -> Result<(), Failure> {
        self.draw(tty)?;
        while !window.was_interrupted() {
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

    fn draw(&self, tty: &mut Tty) -> Result<(), Failure> {
        show(tty, &self.host, self.shown.as_ref(), &self.state, self.colour)
    }

    fn interval(&mut self, interval: WatchInterval) -> Result<(), Failure> {
        let record = live::judged(self.facts.as_ref(), interval);
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

    fn facts(&mut self, facts: Facts) -> Result<(), Failure> {
        self.host = WatchHost::of(&facts);
        self.facts = Some(facts);
        self.record_waiting()
    }

    /// The host, once, and the intervals that waited for it.
    fn record_waiting(&mut self) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.host_is_recorded, true) {
            self.tape.host(&self.host)?;
        }
        for record in std::mem::take(&mut self.waiting) {
            self.record(&record)?;
        }
        Ok(())
    }

    fn record(&mut self, record: &WatchRecord) -> Result<(), Failure> {
        if let Some(full) = self.tape.write(record)? {
            self.state.note = Some(full.to_owned());
        }
        Ok(())
    }
}

pub fn replay(args: &WatchArgs, sink: &Sink, recording: Recording) -> Result<CommandEnd, Failure> {
    let window = Window::open();
    let mut tty = take()?;
    let (to, events) = mpsc::channel();
    terminal::listen(to, Event::Input).map_err(|e| Failure::thread(&e))?;
    let place = ViewPosition { at: 0, of: recording.len() };
    let mut replay = Replay {
        state: ViewState::new(only::filter(&args.only), Some(place)),
        damage: recording.damage(),
        recording,
        colour: sink.look(false).colour,
        at: 0,
    };
    replay.state.note.clone_from(&replay.damage);
    let ended = replay.run(&mut tty, &events, &window);
    drop(tty);
    ended?;
    replay.damage.map_or(Ok(CommandEnd::Yes), |why| Err(Failure::Environment(why)))
}

struct Replay {
    state: ViewState,
    recording: Recording,
    damage: Option<String>,
    colour: bool,
    at: usize,
}

impl Replay {
    fn run(
        &mut self,
        tty: &mut Tty,
        events: &Receiver<Event>,
        window: &Window,
    ) -> Result<(), Failure> {
        let mut record = self.read()?;
        let mut since = Instant::now();
        self.draw(tty, &record)?;
        while !window.was_interrupted() {
            let before = self.at;
            match events.recv_timeout(self.wait(&record, since)) {
                Ok(Event::Input(Input::Key(key))) => match self.state.key(key) {
                    Act::Quit => return Ok(()),
                    Act::Go(seek) => self.go(seek),
                    Act::Draw => {}
                },
                Ok(Event::Input(Input::Gone)) | Err(RecvTimeoutError::Disconnected) => {
                    return Ok(());
                }
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if self.due(&record, since) => {
                    self.go(Seek::By(1));
                }
                Err(RecvTimeoutError::Timeout) => continue,
            }
            if self.at != before {
                record = self.read()?;
                since = Instant::now();
            }
            self.draw(tty, &record)?;
        }
        Ok(())
    }

    /// How long an interval is shown while the recording plays: as long as it took.
    fn shown_for(record: &WatchRecord) -> Duration {
        Duration::try_from_secs_f64(record.interval.interval_s).unwrap_or(FASTEST).max(FASTEST)
    }

    fn plays(&self) -> bool {
        !self.state.paused && self.at + 1 < self.recording.len()
    }

    fn due(&self, record: &WatchRecord, since: Instant) -> bool {
        self.plays() && since.elapsed() >= Self::shown_for(record)
    }

    fn wait(&self, record: &WatchRecord, since: Instant) -> Duration {
        if !self.plays() {
            return LOOK;
        }
        Self::shown_for(record)
            .saturating_sub(since.elapsed())
            .clamp(Duration::from_millis(1), LOOK)
    }

    fn go(&mut self, seek: Seek) {
        let last = self.recording.len().saturating_sub(1);
        self.at = match seek {
            Seek::First => 0,
            Seek::Last => last,
            Seek::By(n) => {
                let to = i64::try_from(self.at).unwrap_or(0).saturating_add(n);
                usize::try_from(to).unwrap_or(0).min(last)
            }
        };
    }

    fn read(&mut self) -> Result<WatchRecord, Failure> {
        let record = self.recording.get(self.at).map_err(Failure::Environment)?;
        self.state.place = Some(ViewPosition { at: self.at, of: self.recording.len() });
        self.state.observe(&record);
        Ok(record)
    }

    fn draw(&self, tty: &mut Tty, record: &WatchRecord) -> Result<(), Failure> {
        show(tty, &self.recording.host, Some(record), &self.state, self.colour)
    }
}

fn show(
    tty: &mut Tty,
    host: &WatchHost,
    record: Option<&WatchRecord>,
    state: &ViewState,
    colour: bool,
) -> Result<(), Failure> {
    let drawn = tty.draw(&Screen { host, record, state, colour });
    drawn.map_err(|e| Failure::io(Path::new("the terminal"), &e))
}
