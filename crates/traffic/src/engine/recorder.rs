//! A thread's record of its requests, for any protocol, in bounded memory.

use std::collections::BTreeMap;

use model::Nanos;
use stats::{Batches, Histogram};

use super::{
    connection_counts::ConnectionCounts,
    failed::{Failed, Words},
    handshakes::Handshakes,
    ran_on::{RanOn, current_cpu},
    window::{Inclusion, Window},
};

/// Number of batches kept for each thread.
const BATCHES: usize = 64;

#[derive(Debug)]
pub struct Recorder {
    /// Latencies of requests within the window.
    pub latency: Histogram,
    /// Time from the call of `connect` until connected; with a greeting, until the server takes
    /// requests.
    pub connect: Histogram,
    pub handshakes: Handshakes,
    /// Open loop: latency from the time of sending.
    pub from_send: Option<Histogram>,
    /// Open loop: how late each request was sent (schedule lag).
    pub lag: Option<Histogram>,
    pub batches: Option<Batches>,
    batch_ns: u64,
    /// Time when the last request ended, with or without success.
    pub last_ns: u64,
    /// Time until every connection was open for the first time.
    pub connecting_ns: u64,
    /// Requests that failed within the window.
    pub failed: BTreeMap<Failed, u64>,
    /// First message for each server error code.
    pub messages: BTreeMap<String, String>,
    /// Results of connections and of the schedule.
    pub connections: ConnectionCounts<Failed>,
    /// Requests that succeeded within the window.
    pub answered: u64,
    /// Reconnects completed within the window.
    pub reopened: u64,
    /// CPUs that the thread ran on.
    pub ran_on: RanOn,
}

impl Recorder {
    /// The record of one thread; `batch_ns` is the initial batch length.
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
            connections: ConnectionCounts::default(),
            answered: 0,
            reopened: 0,
            ran_on: RanOn::default(),
        }
    }

    /// The failure for a server error code; keeps its first message.
    pub fn named(&mut self, code: &str, message: &str) -> Failed {
        self.messages.entry(code.into()).or_insert_with(|| message.into());
        Failed::Server(code.into())
    }

    /// Failures of the window, by text.
    pub fn failures_by_text(&self, limit: Nanos, words: Words) -> BTreeMap<String, u64> {
        self.by_text(&self.failed, limit, words)
    }

    /// Connections that served no request, warm-up included, by text.
    pub fn refused_by_text(&self, limit: Nanos, words: Words) -> BTreeMap<String, u64> {
        self.by_text(&self.connections.refused, limit, words)
    }

    fn by_text(
        &self,
        counts: &BTreeMap<Failed, u64>,
        limit: Nanos,
        words: Words,
    ) -> BTreeMap<String, u64> {
        let mut by_text = BTreeMap::new();
        for (why, n) in counts {
            *by_text.entry(why.text(limit, words, &self.messages)).or_default() += n;
        }
        by_text
    }

    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Requests of the window that ended, with or without success.
    pub fn settled(&self) -> u64 {
        self.answered + self.failures()
    }

    #[inline]
    fn counts(&self, window: &Window, due_ns: u64, now: u64) -> Inclusion {
        window.counts(self.lag.is_some().then_some(due_ns), now)
    }

    /// Records a success: due and sent at these times, ended at `now`. Returns what it counts for.
    #[inline]
    pub fn record(&mut self, window: &Window, due_ns: u64, sent_ns: u64, now: u64) -> Inclusion {
        let counts = self.counts(window, due_ns, now);
        if counts == Inclusion::None {
            return counts;
        }
        self.answered += u64::from(counts == Inclusion::Full);
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

    /// Adds a latency to the batch of its time.
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

    /// Records a failure; it counts at the time a success would. Returns whether it counts.
    #[cold]
    pub fn fail(&mut self, window: &Window, due_ns: u64, now: u64, why: Failed) -> bool {
        let counts = self.counts(window, due_ns, now) != Inclusion::None;
        if counts {
            *self.failed.entry(why).or_default() += 1;
            self.last_ns = now;
        }
        counts
    }

    /// Adds another record, without its batches.
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
        // The first thread's message wins, so that a failure has one text.
        for (code, message) in &other.messages {
            self.messages.entry(code.clone()).or_insert_with(|| message.clone());
        }
        self.connections.add(&other.connections);
        self.answered += other.answered;
        self.reopened += other.reopened;
    }
}
