//! One client: the transaction that it is in, and how far. Without I/O and clock: messages of the
//! server in, messages to it out.

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

/// A transaction under way.
#[derive(Debug, Clone, Copy)]
pub struct Running {
    /// From when it counts: the schedule's time in open loop, else the moment of beginning.
    pub due_ns: u64,
    /// When it was begun.
    pub begun_ns: u64,
    pub script: usize,
    /// How often it was begun.
    pub tries: u32,
    at: usize,
    /// Statements were sent that no `Sync` has ended.
    unsynced: bool,
    /// A pipeline is open.
    pipeline: bool,
    /// The command before was awaited: what comes now is upon its answer.
    answered: bool,
    /// What it moved so far.
    pub moved: Moved,
}

/// What a transaction moved, as its connection counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    pub sum: PgMoved,
    /// What was sent last has no answer yet.
    waits: bool,
}

impl Moved {
    /// The kernel took so many bytes.
    #[inline]
    pub fn sent(&mut self, bytes: usize) {
        self.sum.sends += 1;
        self.sum.sent_bytes += bytes as u64;
        self.sum.round_trips += u64::from(!self.waits);
        self.waits = true;
    }

    /// The kernel gave so many bytes.
    #[inline]
    pub fn received(&mut self, bytes: usize) {
        self.sum.receives += 1;
        self.sum.received_bytes += bytes as u64;
        self.waits = false;
    }
}

#[derive(Debug, PartialEq)]
pub enum Next {
    /// The server's answer, once what was written is sent.
    Await,
    /// This time, by the script's own change request.
    Sleep(u64),
    /// Nothing: the transaction is over.
    Over(Result<(), ServerError>),
    /// It cannot go on, nor can the measurement.
    Broken(Broken),
}

/// Why a measurement cannot go on.
#[derive(Debug, PartialEq)]
pub enum Broken {
    /// By the script's doing.
    Script { script: usize, at: usize, why: String },
    /// What the server said to a statement it will say again.
    /// The line and column of the script that it means are those of the statement's own text.
    Server { statement: Option<usize>, error: ServerError, place: Option<(usize, usize)> },
}

#[derive(Debug)]
pub struct Client {
    pub vars: Vars,
    pub rng: Rng,
    /// Chooses the scripts, so that what they draw does not depend on how many there are.
    choice: SplitMix64,
    /// Both as they were when the transaction began, for another try.
    before: Option<(Vars, Rng)>,
    pub running: Option<Running>,
    /// Statements that the server has prepared, or will have.
    known: Vec<bool>,
    /// Those of them that it has not confirmed.
    parsing: VecDeque<usize>,
    /// Statements sent and not answered, with the time.
    sent: VecDeque<(usize, u64)>,
    /// `ReadyForQuery` messages to come.
    awaiting: u32,
    /// What the server's last `ReadyForQuery` said: idle, in a transaction, in a failed one.
    status: u8,
    error: Option<ServerError>,
    /// Which statement it belongs to.
    wrong: Option<usize>,
    undoing: bool,
    /// The row of the statement that was sent last is wanted.
    wants_row: bool,
    rows: Vec<Row>,
}

/// What `\gset` takes its values from: the last row of a result.
#[derive(Debug, Default)]
struct Row {
    columns: Vec<String>,
    values: Vec<Option<String>>,
    count: u64,
}

impl Client {
    /// One with its own variables and random numbers.
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

    /// As on a new connection, which knows of nothing.
    pub fn forget(&mut self) {
        self.known.fill(false);
        self.parsing.clear();
        self.sent.clear();
        (self.awaiting, self.status, self.undoing) = (0, b'I', false);
        (self.error, self.wrong) = (None, None);
    }

    /// Takes up a transaction; [`Client::advance`] begins it.
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

    /// When the oldest statement without an answer was sent.
    pub fn waits_since(&self) -> Option<u64> {
        self.sent.front().map(|(_, at)| *at).filter(|_| self.awaiting > 0)
    }

    /// What the server said last of what went wrong, where it said something.
    pub fn take_error(&mut self) -> Option<ServerError> {
        self.error.take()
    }

    /// Does what the script says until there is something to wait for.
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

    /// After an error: leaves the transaction at the server; what then, where it is left and not
    /// tried again.
    #[cold]
    fn undo(&mut self, plan: &Plan, out: &mut BytesMut) -> Option<Next> {
        let Some(error) = &self.error else { return None };
        if error.is_lasting() {
            let error = error.clone();
            let statement = self.wrong;
            // Nothing has a new value since it was sent: its answer is waited for.
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

    /// The same transaction once more, with the same random numbers.
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
