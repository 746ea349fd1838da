//! What a thread keeps of its transactions, in memory that does not grow with them.

use std::collections::BTreeMap;

use model::measure::PgMoved;
use stats::{Batches, Histogram};

use super::{client::Running, wire::ServerError};
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

/// Why a transaction failed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failed {
    /// The kernel said so, before a connection was established.
    Connecting(i32),
    /// No session in time.
    NoConnection,
    /// The kernel said so, afterwards.
    Talking(i32),
    /// No whole response in time.
    NoAnswer,
    /// The server closed before its response was whole.
    Closed,
    /// The answer is none of PostgreSQL's.
    Bad(&'static str),
    Tls(&'static str),
    /// The server said so: its SQLSTATE.
    Server(String),
}

#[derive(Debug)]
pub struct Recorder {
    /// Latencies of transactions within the window.
    pub latency: Histogram,
    /// From the call of `connect` until the server takes queries.
    pub connect: Histogram,
    pub handshakes: Handshakes,
    /// Open loop: from the moment of beginning.
    pub from_send: Option<Histogram>,
    /// Open loop: how late each was begun.
    pub lag: Option<Histogram>,
    pub batches: Option<Batches>,
    batch_ns: u64,
    pub scripts: Vec<ScriptRecord>,
    /// By statement, where that is asked for.
    pub by_statement: Vec<Histogram>,
    /// Statements answered within the window.
    pub statements: u64,
    /// Transactions of the window that ended well and sent nothing.
    pub unsent: u64,
    /// What the transactions of the window moved.
    pub moved: PgMoved,
    /// When the last transaction was over, well or not.
    pub last_ns: u64,
    /// How long it took until each place had its first connection.
    pub connecting_ns: u64,
    /// Transactions that failed within the window.
    pub failed: BTreeMap<Failed, u64>,
    /// The first message of each SQLSTATE.
    pub messages: BTreeMap<String, String>,
    /// Transactions of the window tried more than once.
    pub retried: u64,
    /// Their tries beyond the first.
    pub retries: u64,
    /// What became of connections and of the schedule.
    pub fate: ConnectionCounts<Failed>,
    /// Transactions that ended well within the window.
    pub answered: u64,
    /// Where the thread ran.
    pub ran_on: Ran,
}

/// Adds what another transaction, or another thread's, moved.
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
    /// Latencies, where there are several scripts: of one alone they are those of all.
    pub latency: Histogram,
    /// How many ended well within the window.
    pub answered: u64,
    pub failed: u64,
}

/// A transaction as another program logged it.
#[derive(Debug, Clone, Copy)]
pub struct Logged {
    /// When the window began.
    pub start_ns: u64,
    /// When the transaction ended.
    pub now_ns: u64,
    pub script: usize,
    /// Open loop: how late it was begun.
    pub lag_ns: Option<u64>,
    /// Tries beyond the first.
    pub retries: u32,
}

/// What a recorder has to keep.
#[derive(Debug, Clone, Copy)]
pub struct RecorderSpec {
    pub open_loop: bool,
    pub scripts: usize,
    /// 0 where they are not reported apart.
    pub statements: usize,
}

impl Recorder {
    /// For one thread; `batch_ns` is the first length of the batches.
    pub fn new(kept: RecorderSpec, batch_ns: u64) -> Self {
        let more = || kept.open_loop.then(Histogram::new);
        Self {
            latency: Histogram::new(),
            connect: Histogram::new(),
            handshakes: Handshakes::new(),
            from_send: more(),
            lag: more(),
            batches: None,
            batch_ns,
            scripts: (0..kept.scripts).map(|_| ScriptRecord::default()).collect(),
            by_statement: (0..kept.statements).map(|_| Histogram::new()).collect(),
            statements: 0,
            unsent: 0,
            moved: PgMoved::default(),
            last_ns: 0,
            connecting_ns: 0,
            failed: BTreeMap::new(),
            messages: BTreeMap::new(),
            retried: 0,
            retries: 0,
            fate: ConnectionCounts::default(),
            answered: 0,
            ran_on: Ran::default(),
        }
    }

    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    #[inline]
    fn counts(&self, window: &Window, due_ns: u64, now: u64) -> Counts {
        window.counts(self.lag.is_some().then_some(due_ns), now)
    }

    /// A statement that was answered.
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

    /// A transaction that went well.
    #[inline]
    pub fn record(&mut self, window: &Window, done: &Running, now: u64) {
        match self.counts(window, done.due_ns, now) {
            Counts::Not => return,
            Counts::Time => {}
            Counts::Whole => {
                self.answered(done.script);
                add(&mut self.moved, &done.moved.sum);
                self.unsent += u64::from(done.moved.sum.sends == 0);
            }
        }
        let latency = now.saturating_sub(done.due_ns);
        self.latency.record(latency);
        if self.scripts.len() > 1
            && let Some(script) = self.scripts.get_mut(done.script)
        {
            script.latency.record(latency);
        }
        if let (Some(from_send), Some(lag)) = (&mut self.from_send, &mut self.lag) {
            from_send.record(now.saturating_sub(done.begun_ns));
            lag.record(done.begun_ns.saturating_sub(done.due_ns));
        }
        if done.tries > 1 {
            self.tries(done);
        }
        self.last_ns = now;
        self.ran_on.on(current_cpu());
        self.batch(window.start_ns(), now, latency);
    }

    #[inline]
    fn answered(&mut self, script: usize) {
        self.answered += 1;
        if let Some(script) = self.scripts.get_mut(script) {
            script.answered += 1;
        }
    }

    #[inline]
    fn batch(&mut self, start_ns: u64, now: u64, latency: u64) {
        match &mut self.batches {
            Some(batches) => batches.record(now, latency),
            None => {
                let mut batches = Batches::new(start_ns, self.batch_ns, BATCHES);
                batches.record(now, latency);
                self.batches = Some(batches);
            }
        }
    }

    /// A transaction that went well, as another program logged it.
    pub fn logged(&mut self, done: &Logged, latency_ns: u64) {
        self.answered(done.script);
        self.latency.record(latency_ns);
        if self.scripts.len() > 1
            && let Some(script) = self.scripts.get_mut(done.script)
        {
            script.latency.record(latency_ns);
        }
        if let (Some(from_send), Some(lag), Some(lag_ns)) =
            (&mut self.from_send, &mut self.lag, done.lag_ns)
        {
            from_send.record(latency_ns.saturating_sub(lag_ns));
            lag.record(lag_ns);
        }
        self.logged_tries(done);
        self.batch(done.start_ns, done.now_ns, latency_ns);
    }

    pub fn logged_failure(&mut self, done: &Logged, why: Failed) {
        *self.failed.entry(why).or_default() += 1;
        if let Some(script) = self.scripts.get_mut(done.script) {
            script.failed += 1;
        }
        self.logged_tries(done);
    }

    fn logged_tries(&mut self, done: &Logged) {
        self.last_ns = self.last_ns.max(done.now_ns);
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

    /// What the server's error is called here; its first message is kept.
    pub fn named(&mut self, error: &ServerError) -> Failed {
        self.messages.entry(error.code.clone()).or_insert_with(|| error.message.clone());
        Failed::Server(error.code.clone())
    }

    /// A transaction that failed, which counts for the same moment as if it had not; `running`
    /// where it had begun.
    #[cold]
    pub fn fail(
        &mut self,
        window: &Window,
        running: Option<&Running>,
        due_ns: u64,
        now: u64,
        why: Failed,
    ) {
        if self.counts(window, due_ns, now) == Counts::Not {
            return;
        }
        *self.failed.entry(why).or_default() += 1;
        self.last_ns = now;
        if let Some(running) = running {
            if let Some(script) = self.scripts.get_mut(running.script) {
                script.failed += 1;
            }
            if running.tries > 1 {
                self.tries(running);
            }
        }
    }
}

impl Record for Recorder {
    fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        self.connect.add(&other.connect);
        self.handshakes.add(&other.handshakes);
        for (ours, theirs) in [(&mut self.from_send, &other.from_send), (&mut self.lag, &other.lag)]
        {
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                ours.add(theirs);
            }
        }
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
        self.last_ns = self.last_ns.max(other.last_ns);
        self.connecting_ns = self.connecting_ns.max(other.connecting_ns);
        for (why, n) in &other.failed {
            *self.failed.entry(why.clone()).or_default() += n;
        }
        // Of all threads the first one's: else one failure would have several names.
        for (code, message) in &other.messages {
            self.messages.entry(code.clone()).or_insert_with(|| message.clone());
        }
        self.retried += other.retried;
        self.retries += other.retries;
        self.fate.add(&other.fate);
        self.answered += other.answered;
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
