//! One client and its current transaction. No I/O and no clock: it takes server messages and writes
//! messages to a buffer.

mod answers;
mod commands;

use std::collections::VecDeque;

use bytes::BytesMut;
use model::measure::PgMoved;
use postgres_protocol::message::frontend;
use stats::random::SplitMix64;

use super::{
    plan::Plan,
    script::{Rng, Vars},
    wire::ServerError,
};

/// The transaction that a client runs now.
#[derive(Debug, Clone, Copy)]
pub struct Running {
    /// Start of its latency: the schedule's time in open loop, else the time it began.
    pub due_ns: u64,
    /// Its beginning, ns on the clock of the window.
    pub begun_ns: u64,
    pub script: usize,
    /// Tries of this transaction so far, the present one included.
    pub tries: u32,
    at: usize,
    /// Whether statements were sent without a `Sync` so far.
    unsynced: bool,
    /// Whether a pipeline is open.
    pipeline: bool,
    /// Whether the previous command was awaited, so that this one follows its answer.
    answered: bool,
    /// Bytes and round trips so far.
    pub moved: Moved,
}

/// Bytes and round trips of a transaction, counted at the connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    pub sum: PgMoved,
    /// Whether the last bytes sent have no answer yet.
    waits: bool,
}

impl Moved {
    /// Counts bytes that the kernel took.
    #[inline]
    pub fn sent(&mut self, bytes: usize) {
        self.sum.sends += 1;
        self.sum.sent_bytes += bytes as u64;
        self.sum.round_trips += u64::from(!self.waits);
        self.waits = true;
    }

    /// Counts bytes that the kernel delivered.
    #[inline]
    pub fn received(&mut self, bytes: usize) {
        self.sum.receives += 1;
        self.sum.received_bytes += bytes as u64;
        self.waits = false;
    }
}

#[derive(Debug, PartialEq)]
pub enum Next {
    /// Wait for the server's answer, after the buffer is sent.
    Await,
    /// Wait until this time, by the script's `\sleep`.
    Sleep(u64),
    /// The transaction has ended.
    Over(Result<(), ServerError>),
    /// The measurement cannot continue.
    Broken(Broken),
}

/// Why a measurement cannot continue.
#[derive(Debug, PartialEq)]
pub enum Broken {
    /// An error of the script.
    Script { script: usize, at: usize, why: String },
    /// A server error that each try would repeat. The place is line and column in the script, for
    /// errors within a statement's own text.
    Server { statement: Option<usize>, error: ServerError, place: Option<(usize, usize)> },
}

#[derive(Debug)]
pub struct Client {
    pub vars: Vars,
    pub rng: Rng,
    /// Generator that chooses scripts, separate so that the scripts' random numbers do not depend
    /// on their number.
    choice: SplitMix64,
    /// Variables and random generator at the start of the transaction, for a retry.
    before: Option<(Vars, Rng)>,
    pub running: Option<Running>,
    /// Statements prepared at the server, or being prepared.
    known: Vec<bool>,
    /// Statements whose preparation is not confirmed yet.
    parsing: VecDeque<usize>,
    /// Statements sent and not answered, with their send times.
    sent: VecDeque<(usize, u64)>,
    /// Number of `ReadyForQuery` messages still to come.
    awaiting: u32,
    /// Transaction status of the last `ReadyForQuery`: idle, in a transaction, or in a failed one.
    status: u8,
    error: Option<ServerError>,
    /// The statement that the error belongs to.
    wrong: Option<usize>,
    undoing: bool,
    /// Whether the row of the last statement is wanted.
    wants_row: bool,
    rows: Vec<Row>,
}

/// Source of `\gset`'s values: the last row of a result.
#[derive(Debug, Default)]
struct Row {
    columns: Vec<String>,
    values: Vec<Option<String>>,
    count: u64,
}

impl Client {
    /// A client with its own variables and random numbers.
    pub fn new(vars: Vars, rng: Rng, choice: u64, statements: usize) -> Self {
        Self {
            vars,
            rng,
            choice: SplitMix64::new(choice),
            before: None,
            running: None,
            known: vec![false; statements],
            parsing: VecDeque::new(),
            sent: VecDeque::new(),
            awaiting: 0,
            status: b'I',
            error: None,
            wrong: None,
            undoing: false,
            wants_row: false,
            rows: vec![],
        }
    }

    /// Resets the state for a new connection.
    pub fn forget(&mut self) {
        self.known.fill(false);
        self.parsing.clear();
        self.sent.clear();
        (self.awaiting, self.status, self.undoing) = (0, b'I', false);
        (self.error, self.wrong) = (None, None);
    }

    /// Sets up a transaction; [`Client::advance`] begins it.
    pub fn begin(&mut self, plan: &Plan, due_ns: u64, now: u64) {
        let script = match plan.scripts.len() {
            1 => 0,
            _ => plan.choose(self.choice.bits()),
        };
        if plan.max_tries != 1 {
            self.before = Some((self.vars.clone(), self.rng.clone()));
        }
        let running = Running {
            due_ns,
            begun_ns: now,
            script,
            tries: 1,
            at: 0,
            unsynced: false,
            pipeline: plan.pipeline,
            answered: false,
            moved: Moved::default(),
        };
        self.running = Some(running);
    }

    /// Send time of the oldest statement without an answer.
    pub fn waits_since(&self) -> Option<u64> {
        self.sent.front().map(|(_, at)| *at).filter(|_| self.awaiting > 0)
    }

    /// Takes the server's last error, if there was one.
    pub fn take_error(&mut self) -> Option<ServerError> {
        self.error.take()
    }

    /// Runs the script until it must wait.
    pub fn advance(&mut self, plan: &Plan, now: u64, out: &mut BytesMut) -> Next {
        if self.awaiting > 0 {
            return Next::Await;
        }
        if self.error.is_some() || self.undoing {
            match self.undo(plan, out) {
                Some(next) => return next,
                None => return self.again(now, plan, out),
            }
        }
        self.script(plan, now, out)
    }

    /// After an error: leaves the transaction at the server. Returns the next step if the
    /// transaction is given up instead of retried.
    #[cold]
    fn undo(&mut self, plan: &Plan, out: &mut BytesMut) -> Option<Next> {
        let Some(error) = &self.error else { return None };
        if error.is_lasting() {
            let error = error.clone();
            let statement = self.wrong;
            // No variable has changed since the statement was sent: its answer is still
            // outstanding.
            let place = statement.and_then(|n| plan.statements.get(n));
            let place = place.and_then(|s| plan.place(s, error.position, &self.vars));
            return Some(Next::Broken(Broken::Server { statement, error, place }));
        }
        if self.status != b'I' && !self.undoing {
            self.undoing = true;
            let _ = frontend::query("ROLLBACK", out);
            self.awaiting += 1;
            return Some(Next::Await);
        }
        self.undoing = false;
        let tries = self.running.as_ref().map_or(1, |r| r.tries);
        let again = error.is_passing() && (plan.max_tries == 0 || tries < plan.max_tries);
        let error = self.error.take()?;
        (!again).then_some(Next::Over(Err(error)))
    }

    /// Retries the transaction with the same random numbers.
    #[cold]
    fn again(&mut self, now: u64, plan: &Plan, out: &mut BytesMut) -> Next {
        if let Some((vars, rng)) = &self.before {
            (self.vars, self.rng) = (vars.clone(), rng.clone());
        }
        if let Some(running) = &mut self.running {
            running.tries += 1;
            (running.at, running.unsynced, running.pipeline) = (0, false, plan.pipeline);
        }
        self.script(plan, now, out)
    }
}
