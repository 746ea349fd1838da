//! What a thread keeps of its requests, in memory that does not grow with them.

use std::collections::BTreeMap;

use stats::{Batches, Histogram};

use super::conn::PendingRequest;
use crate::{
    rtt::{
        exchange::current_cpu,
        recorder::{Counts, Window},
        single::Ran,
    },
    served::{connection_counts::ConnectionCounts, handshakes::Handshakes, sums::Record},
};

/// Batches kept for each thread.
const BATCHES: usize = 64;
/// Status codes have three digits.
const STATUSES: usize = 1000;

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failed {
    /// The kernel said so, before a connection was established.
    Connecting(i32),
    /// No connection in time.
    NoConnection,
    /// The kernel said so, afterwards.
    Talking(i32),
    /// No whole response in time.
    NoAnswer,
    /// The server closed before the response's first byte.
    ClosedBefore,
    /// The server closed within the response.
    ClosedWithin,
    /// The answer is no HTTP/1 response.
    Bad(&'static str),
    Tls(&'static str),
}

#[derive(Debug)]
pub struct Recorder {
    /// Latencies of requests within the window.
    pub latency: Histogram,
    /// Times to the first byte.
    pub first_byte: Histogram,
    pub connect: Histogram,
    pub handshakes: Handshakes,
    /// Open loop: from the moment of sending.
    pub from_send: Option<Histogram>,
    /// Open loop: how late each was sent.
    pub lag: Option<Histogram>,
    pub batches: Option<Batches>,
    batch_ns: u64,
    pub statuses: Vec<u64>,
    /// Bytes of the responses.
    pub bytes: u64,
    /// Calls of the window that received something.
    pub receives: u64,
    /// When the last request was over, well or not.
    pub last_ns: u64,
    /// Requests that failed within the window.
    pub failed: BTreeMap<Failed, u64>,
    /// What became of connections and of the schedule.
    pub fate: ConnectionCounts<Failed>,
    /// Responses that came within the window.
    pub answered: u64,
    /// Connections that were there again within the window.
    pub reopened: u64,
    /// Where the thread ran.
    pub ran_on: Ran,
    /// What the server calls itself.
    pub server: Option<String>,
}

impl Recorder {
    /// For one thread; `batch_ns` is the first length of the batches.
    pub fn new(open_loop: bool, batch_ns: u64) -> Self {
        let more = || open_loop.then(Histogram::new);
        Self {
            latency: Histogram::new(),
            first_byte: Histogram::new(),
            connect: Histogram::new(),
            handshakes: Handshakes::new(),
            from_send: more(),
            lag: more(),
            batches: None,
            batch_ns,
            statuses: vec![0; STATUSES],
            bytes: 0,
            receives: 0,
            last_ns: 0,
            failed: BTreeMap::new(),
            fate: ConnectionCounts::default(),
            answered: 0,
            reopened: 0,
            ran_on: Ran::default(),
            server: None,
        }
    }

    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    #[inline]
    fn counts(&self, window: &Window, due_ns: u64, now: u64) -> Counts {
        window.counts(self.lag.is_some().then_some(due_ns), now)
    }

    #[inline]
    pub fn record(
        &mut self,
        window: &Window,
        asked: &PendingRequest,
        now: u64,
        status: u16,
        bytes: u64,
    ) {
        match self.counts(window, asked.due_ns, now) {
            Counts::Not => return,
            Counts::Time => {}
            Counts::Whole => self.answered(status, bytes),
        }
        let latency = now.saturating_sub(asked.due_ns);
        self.latency.record(latency);
        self.first_byte.record(asked.first_ns.saturating_sub(asked.due_ns));
        if let (Some(from_send), Some(lag)) = (&mut self.from_send, &mut self.lag) {
            from_send.record(now.saturating_sub(asked.sent_ns));
            lag.record(asked.sent_ns.saturating_sub(asked.due_ns));
        }
        self.last_ns = now;
        self.ran_on.on(current_cpu());
        match &mut self.batches {
            Some(batches) => batches.record(now, latency),
            None => {
                let mut batches = Batches::new(window.start_ns(), self.batch_ns, BATCHES);
                batches.record(now, latency);
                self.batches = Some(batches);
            }
        }
    }

    #[inline]
    fn answered(&mut self, status: u16, bytes: u64) {
        self.answered += 1;
        if let Some(n) = self.statuses.get_mut(usize::from(status)) {
            *n += 1;
        }
        self.bytes += bytes;
    }

    /// A request that failed, which counts for the same moment as if it had not.
    #[cold]
    pub fn fail(&mut self, window: &Window, due_ns: u64, now: u64, why: Failed) {
        if self.counts(window, due_ns, now) != Counts::Not {
            *self.failed.entry(why).or_default() += 1;
            self.last_ns = now;
        }
    }
}

impl Record for Recorder {
    fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        self.first_byte.add(&other.first_byte);
        self.connect.add(&other.connect);
        self.handshakes.add(&other.handshakes);
        for (ours, theirs) in [(&mut self.from_send, &other.from_send), (&mut self.lag, &other.lag)]
        {
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                ours.add(theirs);
            }
        }
        self.statuses.iter_mut().zip(&other.statuses).for_each(|(n, more)| *n += more);
        self.bytes += other.bytes;
        self.receives += other.receives;
        self.last_ns = self.last_ns.max(other.last_ns);
        for (why, n) in &other.failed {
            *self.failed.entry(*why).or_default() += n;
        }
        self.fate.add(&other.fate);
        self.answered += other.answered;
        self.reopened += other.reopened;
        if self.server.is_none() {
            self.server.clone_from(&other.server);
        }
    }

    fn settled(&self) -> u64 {
        self.answered + self.failures()
    }

    fn last_ns(&self) -> u64 {
        self.last_ns
    }

    fn batches(&self) -> Option<&Batches> {
        self.batches.as_ref()
    }

    fn latency(&self) -> &Histogram {
        &self.latency
    }
}
