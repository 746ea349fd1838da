//! The view of a recording.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use model::watch::{WatchFilter, WatchRecord};
use probe::watch::recording::Recording;

use crate::{
    Screen,
    error::{Result, ViewError},
    state::{KeyAction, Seek, ViewPosition, ViewState},
    terminal::{self, Input, Tty},
};

/// How often `stop` is checked.
const LOOK: Duration = Duration::from_millis(200);
/// The shortest time that an interval is shown while playing.
const FASTEST: Duration = Duration::from_millis(100);

/// Shows a recording until the operator leaves, or `stop` is set. A damaged recording is shown up
/// to the damage, with a note.
///
/// # Errors
/// The terminal cannot be used, or the recording is damaged.
pub fn show(
    recording: Recording,
    filter: WatchFilter,
    colour: bool,
    stop: &AtomicBool,
) -> Result<()> {
    let mut tty = Tty::take().map_err(terminal::failed)?;
    let (to, events) = mpsc::channel();
    terminal::listen(to, |input| input).map_err(ViewError::Thread)?;
    let place = ViewPosition { at: 0, of: recording.len() };
    let mut replay = Replay {
        state: ViewState::new(filter, Some(place)),
        damage: recording.damage(),
        recording,
        colour,
        at: 0,
    };
    replay.state.note.clone_from(&replay.damage);
    let ended = replay.run(&mut tty, &events, stop);
    drop(tty);
    ended?;
    replay.damage.map_or(Ok(()), |why| Err(ViewError::Recording(why)))
}

struct Replay {
    state: ViewState,
    recording: Recording,
    damage: Option<String>,
    colour: bool,
    at: usize,
}

impl Replay {
    fn run(&mut self, tty: &mut Tty, events: &Receiver<Input>, stop: &AtomicBool) -> Result<()> {
        let mut record = self.read()?;
        let mut since = Instant::now();
        self.draw(tty, &record)?;
        while !stop.load(Ordering::Relaxed) {
            let before = self.at;
            match events.recv_timeout(self.wait(&record, since)) {
                Ok(Input::Key(key)) => match self.state.key(key) {
                    KeyAction::Quit => return Ok(()),
                    KeyAction::Go(seek) => self.go(seek),
                    KeyAction::Draw => {}
                },
                Ok(Input::Gone) | Err(RecvTimeoutError::Disconnected) => {
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

    /// How long an interval is shown while playing: as long as it took.
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

    fn read(&mut self) -> Result<WatchRecord> {
        let record = self.recording.get(self.at).map_err(ViewError::Recording)?;
        self.state.place = Some(ViewPosition { at: self.at, of: self.recording.len() });
        self.state.observe(&record);
        Ok(record)
    }

    fn draw(&self, tty: &mut Tty, record: &WatchRecord) -> Result<()> {
        let Self { recording, state, colour, .. } = self;
        let screen = Screen { host: &recording.host, record: Some(record), state, colour: *colour };
        tty.draw(&screen).map_err(terminal::failed)
    }
}
