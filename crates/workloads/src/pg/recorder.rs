//! PostgreSQL part of a thread's record.

use model::measure::PgMoved;
use stats::Histogram;
use traffic::engine::{
    failed::Failed,
    protocol::Record,
    recorder::Recorder,
    window::{Inclusion, Window},
};

use super::{client::Running, wire::ServerError};

#[derive(Debug)]
pub struct PgRecorder {
    pub requests: Recorder,
    pub scripts: Vec<ScriptRecord>,
    /// Latencies by statement, if requested.
    pub by_statement: Vec<Histogram>,
    /// Statements answered within the window.
    pub statements: u64,
    /// Successful transactions of the window that sent nothing.
    pub unsent: u64,
    /// Bytes and round trips of the window's transactions.
    pub moved: PgMoved,
    /// Transactions of the window that were tried more than once.
    pub retried: u64,
    /// Their tries beyond the first.
    pub retries: u64,
}

/// Adds the bytes and round trips of another transaction or thread.
#[inline]
pub fn add(sum: &mut PgMoved, more: &PgMoved) {
    sum.round_trips += more.round_trips;
    sum.sends += more.sends;
    sum.receives += more.receives;
    sum.sent_bytes += more.sent_bytes;
    sum.received_bytes += more.received_bytes;
}

#[derive(Debug, Default)]
pub struct ScriptRecord {
    /// Latencies by script, with several scripts; one script's are those of all.
    pub latency: Histogram,
    /// Transactions that succeeded within the window.
    pub answered: u64,
    pub failed: u64,
}

/// A transaction from another program's log.
#[derive(Debug, Clone, Copy)]
pub struct Logged {
    /// Start of the window.
    pub start_ns: u64,
    /// End of the transaction.
    pub now_ns: u64,
    pub script: usize,
    /// Open loop: how late it began (schedule lag).
    pub lag_ns: Option<u64>,
    /// Tries beyond the first one.
    pub retries: u32,
}

/// What a recorder records.
#[derive(Debug, Clone, Copy)]
pub struct RecorderSpec {
    pub open_loop: bool,
    pub scripts: usize,
    /// Number of statements; 0 if they are not reported separately.
    pub statements: usize,
}

impl PgRecorder {
    /// The record of one thread; `batch_ns` is the initial batch length.
    pub fn new(kept: RecorderSpec, batch_ns: u64) -> Self {
        Self {
            requests: Recorder::new(kept.open_loop, batch_ns),
            scripts: (0..kept.scripts).map(|_| ScriptRecord::default()).collect(),
            by_statement: (0..kept.statements).map(|_| Histogram::new()).collect(),
            statements: 0,
            unsent: 0,
            moved: PgMoved::default(),
            retried: 0,
            retries: 0,
        }
    }

    /// Records an answered statement.
    #[inline]
    pub fn statement(&mut self, window: &Window, number: usize, sent_ns: u64, now: u64) {
        if !window.holds(now) {
            return;
        }
        self.statements += 1;
        if let Some(histogram) = self.by_statement.get_mut(number) {
            histogram.record(now.saturating_sub(sent_ns));
        }
    }

    /// Records a successful transaction.
    #[inline]
    pub fn record(&mut self, window: &Window, done: &Running, now: u64) {
        match self.requests.record(window, done.due_ns, done.begun_ns, now) {
            Inclusion::None => return,
            Inclusion::LatencyOnly => {}
            Inclusion::Full => {
                add(&mut self.moved, &done.moved.sum);
                self.unsent += u64::from(done.moved.sum.sends == 0);
                if let Some(script) = self.scripts.get_mut(done.script) {
                    script.answered += 1;
                }
            }
        }
        self.script_latency(done.script, now.saturating_sub(done.due_ns));
        if done.tries > 1 {
            self.tries(done);
        }
    }

    #[inline]
    fn script_latency(&mut self, script: usize, latency_ns: u64) {
        if self.scripts.len() > 1
            && let Some(script) = self.scripts.get_mut(script)
        {
            script.latency.record(latency_ns);
        }
    }

    /// Records a successful transaction from another program's log.
    pub fn logged(&mut self, done: &Logged, latency_ns: u64) {
        if let Some(script) = self.scripts.get_mut(done.script) {
            script.answered += 1;
        }
        self.script_latency(done.script, latency_ns);
        let requests = &mut self.requests;
        requests.answered += 1;
        requests.latency.record(latency_ns);
        if let (Some(from_send), Some(lag), Some(lag_ns)) =
            (&mut requests.from_send, &mut requests.lag, done.lag_ns)
        {
            from_send.record(latency_ns.saturating_sub(lag_ns));
            lag.record(lag_ns);
        }
        requests.batch(done.start_ns, done.now_ns, latency_ns);
        self.logged_tries(done);
    }

    pub fn logged_failure(&mut self, done: &Logged, why: Failed) {
        *self.requests.failed.entry(why).or_default() += 1;
        if let Some(script) = self.scripts.get_mut(done.script) {
            script.failed += 1;
        }
        self.logged_tries(done);
    }

    fn logged_tries(&mut self, done: &Logged) {
        self.requests.last_ns = self.requests.last_ns.max(done.now_ns);
        if done.retries > 0 {
            self.retried += 1;
            self.retries += u64::from(done.retries);
        }
    }

    #[cold]
    fn tries(&mut self, done: &Running) {
        self.retried += 1;
        self.retries += u64::from(done.tries - 1);
    }

    /// The failure for a server error; keeps its first message.
    pub fn named(&mut self, error: &ServerError) -> Failed {
        self.requests.named(&error.code, &error.message)
    }

    /// Records a failed transaction; it counts at the time a success would.
    #[cold]
    pub fn fail(&mut self, window: &Window, running: &Running, now: u64, why: Failed) {
        if !self.requests.fail(window, running.due_ns, now, why) {
            return;
        }
        if let Some(script) = self.scripts.get_mut(running.script) {
            script.failed += 1;
        }
        if running.tries > 1 {
            self.tries(running);
        }
    }
}

impl Record for PgRecorder {
    fn requests(&self) -> &Recorder {
        &self.requests
    }

    fn requests_mut(&mut self) -> &mut Recorder {
        &mut self.requests
    }

    fn add(&mut self, other: &Self) {
        self.requests.add(&other.requests);
        for (ours, theirs) in self.scripts.iter_mut().zip(&other.scripts) {
            ours.latency.add(&theirs.latency);
            ours.answered += theirs.answered;
            ours.failed += theirs.failed;
        }
        for (ours, theirs) in self.by_statement.iter_mut().zip(&other.by_statement) {
            ours.add(theirs);
        }
        self.statements += other.statements;
        self.unsent += other.unsent;
        add(&mut self.moved, &other.moved);
        self.retried += other.retried;
        self.retries += other.retries;
    }
}
