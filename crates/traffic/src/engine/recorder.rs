//! What a thread keeps of its requests, whatever the protocol, in memory that does not grow with
//! them.

use std::collections::BTreeMap;

use model::Nanos;
use stats::{Batches, Histogram};

use super::{
    connection_counts::ConnectionCounts,
    failed::{Failed, Words},
    handshakes::Handshakes,
    ran_on::{RanOn, current_cpu},
    window::{Counts, Window},
};

/// Batches kept for each thread.
const BATCHES: usize = 64;

#[derive(Debug)]
pub struct Recorder {
    /// Latencies of requests within the window.
    pub latency: Histogram,
    /// From the call of `connect` until it is connected; until the server takes requests, where
    /// the protocol begins with a greeting.
    pub connect: Histogram,
    pub handshakes: Handshakes,
    /// Open loop: from the moment of sending.
    pub from_send: Option<Histogram>,
    /// Open loop: how late each was sent.
    pub lag: Option<Histogram>,
    pub batches: Option<Batches>,
    batch_ns: u64,
    /// When the last request was over, well or not.
    pub last_ns: u64,
    /// How long it took until each connection was there for the first time.
    pub connecting_ns: u64,
    /// Requests that failed within the window.
    pub failed: BTreeMap<Failed, u64>,
    /// The first message of each code of the server's errors.
    pub messages: BTreeMap<String, String>,
    /// What became of connections and of the schedule.
    pub fate: ConnectionCounts<Failed>,
    /// Requests that ended well within the window.
    pub answered: u64,
    /// Connections that were there again within the window.
    pub reopened: u64,
    /// Where the thread ran.
    pub ran_on: RanOn,
}

impl Recorder {
    /// For one thread; `batch_ns` is the first length of the batches.
    pub fn new(open_loop: bool, batch_ns: u64) -> Self {
        let more = || open_loop.then(Histogram::new);
        Self {
            latency: Histogram::new(),
            connect: Histogram::new(),
            handshakes: Handshakes::default(),
            from_send: more(),
            lag: more(),
            batches: None,
            batch_ns,
            last_ns: 0,
            connecting_ns: 0,
            failed: BTreeMap::new(),
            messages: BTreeMap::new(),
            fate: ConnectionCounts::default(),
            answered: 0,
            reopened: 0,
            ran_on: RanOn::default(),
        }
    }

    /// What the server's error is called here; its first message is kept.
    pub fn named(&mut self, code: &str, message: &str) -> Failed {
        self.messages.entry(code.into()).or_insert_with(|| message.into());
        Failed::Server(code.into())
    }

    /// Failures of the window, in words.
    pub fn failures_by_text(&self, limit: Nanos, words: Words) -> BTreeMap<String, u64> {
        let mut by_text = BTreeMap::new();
        for (why, n) in &self.failed {
            *by_text.entry(why.text(limit, words, &self.messages)).or_default() += n;
        }
        by_text
    }

    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    /// How many of the window are over, well or not.
    pub fn settled(&self) -> u64 {
        self.answered + self.failures()
    }

    #[inline]
    fn counts(&self, window: &Window, due_ns: u64, now: u64) -> Counts {
        window.counts(self.lag.is_some().then_some(due_ns), now)
    }

    /// A request that went well: due then, sent then, over `now`. What it counts for.
    #[inline]
    pub fn record(&mut self, window: &Window, due_ns: u64, sent_ns: u64, now: u64) -> Counts {
        let counts = self.counts(window, due_ns, now);
        if counts == Counts::Not {
            return counts;
        }
        self.answered += u64::from(counts == Counts::Whole);
        let latency = now.saturating_sub(due_ns);
        self.latency.record(latency);
        if let (Some(from_send), Some(lag)) = (&mut self.from_send, &mut self.lag) {
            from_send.record(now.saturating_sub(sent_ns));
            lag.record(sent_ns.saturating_sub(due_ns));
        }
        self.last_ns = now;
        self.ran_on.on(current_cpu());
        self.batch(window.start_ns(), now, latency);
        counts
    }

    /// Keeps a latency by its time.
    #[inline]
    pub fn batch(&mut self, start_ns: u64, now: u64, latency: u64) {
        match &mut self.batches {
            Some(batches) => batches.record(now, latency),
            None => {
                let mut batches = Batches::new(start_ns, self.batch_ns, BATCHES);
                batches.record(now, latency);
                self.batches = Some(batches);
            }
        }
    }

    /// A request that failed, which counts for the same moment as if it had not; whether it does.
    #[cold]
    pub fn fail(&mut self, window: &Window, due_ns: u64, now: u64, why: Failed) -> bool {
        let counts = self.counts(window, due_ns, now) != Counts::Not;
        if counts {
            *self.failed.entry(why).or_default() += 1;
            self.last_ns = now;
        }
        counts
    }

    /// Adds another's, without its batches.
    pub fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        self.connect.add(&other.connect);
        self.handshakes.add(&other.handshakes);
        for (ours, theirs) in [(&mut self.from_send, &other.from_send), (&mut self.lag, &other.lag)]
        {
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                ours.add(theirs);
            }
        }
        self.last_ns = self.last_ns.max(other.last_ns);
        self.connecting_ns = self.connecting_ns.max(other.connecting_ns);
        for (why, n) in &other.failed {
            *self.failed.entry(why.clone()).or_default() += n;
        }
        // Of all threads the first one's: else one failure would have several names.
        for (code, message) in &other.messages {
            self.messages.entry(code.clone()).or_insert_with(|| message.clone());
        }
        self.fate.add(&other.fate);
        self.answered += other.answered;
        self.reopened += other.reopened;
    }
}
