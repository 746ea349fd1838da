//! A client thread's record of round trips, in bounded memory.

use std::collections::BTreeMap;

use model::CpuId;
use stats::{Batches, Histogram};

use super::{
    ran_on::{UNKNOWN_CPU, current_cpu},
    window::{Inclusion, Window},
};

/// Most placements recorded; further ones count as the last.
const MOST_PLACEMENTS: usize = 64;

/// Number of batches kept for each thread.
const BATCHES: usize = 64;

/// CPUs of both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placed {
    pub local: u16,
    /// CPU of the server's thread; [`UNKNOWN_CPU`] if not reported.
    pub peer: u16,
}

/// The record of one client thread.
#[derive(Debug)]
pub struct RttRecorder {
    /// Round-trip times by placement.
    pub by_placement: Vec<(Placed, Histogram)>,
    last: usize,
    /// Round-trip times in batches over time.
    pub batches: Option<Batches>,
    batch_ns: u64,
    /// Open loop: latency from the time of sending.
    pub from_send: Option<Histogram>,
    /// Open loop: how late each request was sent (send lag).
    pub lag: Option<Histogram>,
    /// Round trips that ended within the window.
    pub answered: u64,
    /// Open loop: the thread's schedule lag at its end.
    pub schedule_lag_ns: u64,
    /// Open loop: requests due within the window but never sent.
    pub not_started: u64,
    /// UDP requests without an answer in time.
    pub lost: u64,
    /// UDP answers after the timeout, or without a request.
    pub late: u64,
    /// Changes of the thread's CPU between two samples.
    pub moves: u64,
}

impl RttRecorder {
    /// The record of one thread; `batch_ns` is the initial batch length.
    pub fn new(open_loop: bool, batch_ns: u64) -> Self {
        let more = || open_loop.then(Histogram::new);
        Self {
            by_placement: Vec::with_capacity(MOST_PLACEMENTS),
            last: 0,
            batches: None,
            batch_ns,
            from_send: more(),
            lag: more(),
            answered: 0,
            schedule_lag_ns: 0,
            not_started: 0,
            lost: 0,
            late: 0,
            moves: 0,
        }
    }

    /// Records a round trip that ended `now`; `due_ns` is its scheduled time in open loop.
    #[inline]
    pub fn record(&mut self, window: &Window, due_ns: Option<u64>, now: u64, rtt: u64, peer: u16) {
        match window.counts(due_ns, now) {
            Inclusion::None => return,
            Inclusion::LatencyOnly => {}
            Inclusion::Full => self.answered += 1,
        }
        let placed = Placed { local: current_cpu(), peer };
        match self.by_placement.get_mut(self.last) {
            Some((at, histogram)) if *at == placed => histogram.record(rtt),
            _ => self.elsewhere(placed, rtt),
        }
        match &mut self.batches {
            Some(batches) => batches.record(now, rtt),
            None => self.first_batch(window, now, rtt),
        }
    }

    /// Open loop: records the round trip from its sending, and the lag of the sending.
    #[inline]
    pub fn record_open(&mut self, window: &Window, due_ns: u64, sent_ns: u64, rtt: u64, now: u64) {
        if window.counts(Some(due_ns), now) == Inclusion::None {
            return;
        }
        if let (Some(s), Some(l)) = (&mut self.from_send, &mut self.lag) {
            s.record(rtt);
            l.record(sent_ns.saturating_sub(due_ns));
        }
    }

    #[cold]
    fn first_batch(&mut self, window: &Window, now: u64, rtt: u64) {
        let mut batches = Batches::new(window.start_ns(), self.batch_ns, BATCHES);
        batches.record(now, rtt);
        self.batches = Some(batches);
    }

    #[cold]
    fn elsewhere(&mut self, placed: Placed, rtt: u64) {
        if let Some((before, _)) = self.by_placement.get(self.last) {
            self.moves += u64::from(before.local != placed.local);
        }
        let at = self.by_placement.iter().position(|(p, _)| *p == placed);
        self.last = at.unwrap_or_else(|| {
            if self.by_placement.len() < MOST_PLACEMENTS {
                self.by_placement.push((placed, Histogram::new()));
            }
            self.by_placement.len() - 1
        });
        if let Some((_, histogram)) = self.by_placement.get_mut(self.last) {
            histogram.record(rtt);
        }
    }

    /// Samples by CPU of the client thread.
    pub fn ran_on(&self) -> BTreeMap<CpuId, u64> {
        let mut out = BTreeMap::new();
        for (p, h) in self.by_placement.iter().filter(|(p, _)| p.local != UNKNOWN_CPU) {
            *out.entry(CpuId(p.local.into())).or_default() += h.count();
        }
        out
    }
}
