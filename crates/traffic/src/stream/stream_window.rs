//! The course of one run at the client: warm-up, counters of both ends at every interval,
//! cool-down, quiet, and final counters when all data in transit has arrived.

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
    host::CounterSnapshot,
    net::now_ns,
};

/// How long to wait for datagrams in transit.
const DRAIN: Duration = Duration::from_millis(500);
/// After this long without data, nothing more is expected.
const SILENCE: Duration = Duration::from_millis(100);

/// A completed window: counters of both ends at its start and end.
#[derive(Debug)]
pub struct StreamWindow {
    /// Marks of this end at the start and the end of the window.
    pub snapshots: (CounterSnapshot, CounterSnapshot),
    /// Counters of both ends at the start of the window.
    pub first: StreamCounters,
    /// Counters of both ends at the end of the window.
    pub last: StreamCounters,
    /// The intervals, by direction.
    pub intervals: Vec<(Direction, StreamInterval)>,
    /// Counters after all data had arrived; UDP only.
    pub drained: Option<StreamCounters>,
    /// Bytes that this end received, over time.
    pub series: Series,
    /// Whether it ended early.
    pub interrupted: bool,
    /// Why the server stopped answering.
    pub silent: Option<Error>,
}

/// Counters and intervals so far.
struct WindowCounters {
    first: StreamCounters,
    last: StreamCounters,
    intervals: Vec<(Direction, StreamInterval)>,
}

impl From<StreamCounters> for WindowCounters {
    fn from(first: StreamCounters) -> Self {
        Self { last: first.clone(), first, intervals: vec![] }
    }
}

/// Called with each interval as soon as it is complete.
pub type OnInterval<'a> = &'a (dyn Fn(Direction, &StreamInterval) + Sync);

pub struct Conductor<'a> {
    pub run: Run<'a>,
    pub peer: &'a Peer,
    pub common: &'a Common,
    pub interval_ns: Nanos,
    pub side: &'a Side,
    pub pool: &'a WorkerPool,
    pub what: &'a str,
    pub on_interval: OnInterval<'a>,
}

impl Conductor<'_> {
    /// Conducts one run on running threads.
    ///
    /// # Errors
    /// The server disconnected before the window began.
    pub fn conduct(&self) -> Result<StreamWindow, Error> {
        let root = probe::Root::live();
        let common = self.common;
        let mut series = Series::default();
        let begun = now_ns();
        self.sleep(begun, begun + common.warmup_ns.0, &mut series);
        if let Some(why) = self.pool.broken() {
            return Err(why);
        }
        let first = CounterSnapshot::take(&self.pool.tids(), &root);
        let mut so_far = WindowCounters::from(self.look()?);
        let start = now_ns();
        let end = start + common.duration_ns.0;
        let mut silent = None;
        // A run stopped during warm-up has no window: a fraction of one would be no result.
        let opens = !self.over();
        for n in 1.. {
            let due = start.saturating_add(self.interval_ns.0.saturating_mul(n));
            // Avoids a very short last interval.
            let due = if due.saturating_add(self.interval_ns.0 / 20) > end { end } else { due };
            self.sleep(begun, due, &mut series);
            if due >= end || self.over() {
                break;
            }
            match self.look() {
                Ok(look) => self.add(&mut so_far, look),
                Err(e) => {
                    silent = Some(e);
                    break;
                }
            }
        }
        let ended = now_ns();
        let broke = self.pool.stopping();
        let last = CounterSnapshot::take(&self.pool.tids(), &root);
        if silent.is_none() && opens {
            match self.look() {
                Ok(look) => self.add(&mut so_far, look),
                Err(e) => silent = Some(e),
            }
        }
        let drained = match silent {
            None => self.cool_down(begun, &mut series),
            Some(_) => None,
        };
        Ok(StreamWindow {
            snapshots: (first, last),
            first: so_far.first,
            last: so_far.last,
            intervals: so_far.intervals,
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

    /// Records a reading, and reports the interval that it completes.
    fn add(&self, so_far: &mut WindowCounters, look: StreamCounters) {
        for direction in directions(self.side.shape.direction) {
            let of = StreamPart { shape: &self.side.shape, direction };
            let interval = of.interval(&so_far.first, &so_far.last, &look);
            (self.on_interval)(direction, &interval);
            so_far.intervals.push((direction, interval));
        }
        so_far.last = look;
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

    /// After the window: for UDP both ends stop sending, and datagrams in transit arrive.
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
