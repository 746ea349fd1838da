//! The course of one run at the client: warm-up, a look at both ends at every interval,
//! cool-down, silence, and a last look when everything has arrived that will.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use model::{
    Nanos,
    measure::{Common, Direction, StreamInterval, Transport},
};

use super::{
    part::{StreamCounters, StreamPart, directions},
    series::Series,
    side::Side,
};
use crate::{
    Error,
    client::Peer,
    control::message::Counters,
    engine::{
        conduct::{Run, sleep_until},
        worker_pool::WorkerPool,
    },
    host::Mark,
    net::now_ns,
};

/// How long to wait for datagrams that are still on their way.
const DRAIN: Duration = Duration::from_millis(500);
/// When nothing more came for so long, nothing will.
const SILENCE: Duration = Duration::from_millis(100);

/// A window that is over.
#[derive(Debug)]
pub struct StreamWindow {
    /// This end's CPU and kernel counters at the window's ends.
    pub marks: (Mark, Mark),
    /// Both ends when the window began and ended.
    pub first: StreamCounters,
    /// See `first`.
    pub last: StreamCounters,
    /// What happened in between, by direction.
    pub intervals: Vec<(Direction, StreamInterval)>,
    /// When everything had arrived; UDP only.
    pub drained: Option<StreamCounters>,
    /// What this end received by time.
    pub series: Series,
    /// Whether it ended before its time.
    pub interrupted: bool,
    /// Why the server fell silent.
    pub silent: Option<Error>,
}

/// What has been seen so far.
struct Looks {
    first: StreamCounters,
    last: StreamCounters,
    intervals: Vec<(Direction, StreamInterval)>,
}

impl From<StreamCounters> for Looks {
    fn from(first: StreamCounters) -> Self {
        Self { last: first.clone(), first, intervals: vec![] }
    }
}

/// Hears each interval as soon as it is over.
pub type Heard<'a> = &'a (dyn Fn(Direction, &StreamInterval) + Sync);

pub struct Conductor<'a> {
    pub run: Run<'a>,
    pub peer: &'a Peer,
    pub common: &'a Common,
    pub interval_ns: Nanos,
    pub side: &'a Side,
    pub pool: &'a WorkerPool,
    pub what: &'a str,
    pub heard: Heard<'a>,
}

impl Conductor<'_> {
    /// Conducts one run whose threads run already.
    ///
    /// # Errors
    /// The server is gone before the window began.
    pub fn conduct(&self) -> Result<StreamWindow, Error> {
        let root = probe::Root::live();
        let common = self.common;
        let mut series = Series::default();
        let begun = now_ns();
        self.sleep(begun, begun + common.warmup_ns.0, &mut series);
        if let Some(why) = self.pool.broken() {
            return Err(why);
        }
        let first = Mark::take(&self.pool.tids(), &root);
        let mut looks = Looks::from(self.look()?);
        let start = now_ns();
        let end = start + common.duration_ns.0;
        let mut silent = None;
        // Ended while it warmed up there is no window: a sliver of one would be no result.
        let opens = !self.over();
        for n in 1.. {
            let due = start.saturating_add(self.interval_ns.0.saturating_mul(n));
            // No sliver of an interval at the end.
            let due = if due.saturating_add(self.interval_ns.0 / 20) > end { end } else { due };
            self.sleep(begun, due, &mut series);
            if due >= end || self.over() {
                break;
            }
            match self.look() {
                Ok(look) => self.add(&mut looks, look),
                Err(e) => {
                    silent = Some(e);
                    break;
                }
            }
        }
        let ended = now_ns();
        let broke = self.pool.stopping();
        let last = Mark::take(&self.pool.tids(), &root);
        if silent.is_none() && opens {
            match self.look() {
                Ok(look) => self.add(&mut looks, look),
                Err(e) => silent = Some(e),
            }
        }
        let drained = match silent {
            None => self.cool_down(begun, &mut series),
            Some(_) => None,
        };
        Ok(StreamWindow {
            marks: (first, last),
            first: looks.first,
            last: looks.last,
            intervals: looks.intervals,
            drained,
            series,
            interrupted: broke || silent.is_some() || ended < end,
            silent,
        })
    }

    fn over(&self) -> bool {
        self.run.stop.load(Ordering::Relaxed) || self.pool.stopping()
    }

    fn look(&self) -> Result<StreamCounters, Error> {
        let peer = self.peer.mark()?;
        Ok(StreamCounters { local: self.side.counters(self.pool), peer })
    }

    /// Notes a look, and tells of the interval that it ends.
    fn add(&self, looks: &mut Looks, look: StreamCounters) {
        for direction in directions(self.side.shape.direction) {
            let of = StreamPart { shape: &self.side.shape, direction };
            let interval = of.interval(&looks.first, &looks.last, &look);
            (self.heard)(direction, &interval);
            looks.intervals.push((direction, interval));
        }
        looks.last = look;
    }

    fn sleep(&self, begun: u64, until: u64, series: &mut Series) {
        let common = self.common;
        let whole = common.warmup_ns.0 + common.duration_ns.0 + common.cooldown_ns.0;
        let over = || self.over();
        sleep_until(until, &over, &mut || {
            let now = now_ns();
            series.note(now, self.side.ledger.received());
            (self.run.progress)(self.what, (now - begun) as f64 / whole.max(1) as f64);
        });
        series.note(now_ns(), self.side.ledger.received());
    }

    /// After the window: for UDP both ends fall silent, and what is on its way arrives.
    fn cool_down(&self, begun: u64, series: &mut Series) -> Option<StreamCounters> {
        self.sleep(begun, now_ns() + self.common.cooldown_ns.0, series);
        if self.common.transport != Transport::Udp {
            return None;
        }
        self.side.ledger.be_quiet();
        let mut peer = self.peer.quiet().ok()?;
        let until = Instant::now() + DRAIN;
        let (mut came, mut since) = (self.came(&peer), Instant::now());
        while Instant::now() < until && since.elapsed() < SILENCE {
            std::thread::sleep(Duration::from_millis(20));
            peer = self.peer.quiet().ok()?;
            let now = self.came(&peer);
            if now != came {
                (came, since) = (now, Instant::now());
            }
        }
        Some(StreamCounters { local: self.side.counters(self.pool), peer })
    }

    fn came(&self, peer: &Counters) -> u64 {
        self.side.ledger.received() + peer.received_bytes.iter().sum::<u64>()
    }
}
