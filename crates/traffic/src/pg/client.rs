//! One client: the transaction that it is in, and how far. Without I/O and clock: messages of the
//! server in, messages to it out.

use std::collections::VecDeque;

use bytes::BytesMut;
use model::measure::PgProtocol;
use postgres_protocol::message::frontend;
use stats::random::SplitMix64;

use super::{
    plan::Plan,
    script::{Command, Rng, Value, Vars},
    wire::{self, ServerError},
};

/// A transaction under way.
#[derive(Debug, Clone, Copy)]
pub struct Running {
    /// From when it counts: the schedule's time in open loop, else the moment of beginning.
    pub due_ns: u64,
    /// When it was begun.
    pub begun_ns: u64,
    /// Which script.
    pub script: usize,
    /// How often it was begun.
    pub tries: u32,
    /// The next command.
    at: usize,
    /// Statements were sent that no `Sync` has ended.
    unsynced: bool,
    /// A pipeline is open.
    pipeline: bool,
}

/// What is next.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// The server's answer, once what was written is sent.
    Await,
    /// This time, by the script's own wish.
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
    Server { statement: Option<usize>, error: ServerError },
}

/// A client.
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
            return Some(Next::Broken(Broken::Server { statement: self.wrong, error }));
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

    fn script(&mut self, plan: &Plan, now: u64, out: &mut BytesMut) -> Next {
        let Some(mut running) = self.running else { return Next::Over(Ok(())) };
        let next = self.commands(&mut running, plan, now, out);
        self.running = Some(running);
        next
    }

    fn commands(
        &mut self,
        running: &mut Running,
        plan: &Plan,
        now: u64,
        out: &mut BytesMut,
    ) -> Next {
        let Some(planned) = plan.scripts.get(running.script) else { return Next::Over(Ok(())) };
        let script = running.script;
        while let Some(command) = planned.script.commands().get(running.at) {
            let at = running.at;
            running.at += 1;
            let broken = |why: String| Next::Broken(Broken::Script { script, at, why });
            match command {
                Command::Set { name, expr } => match expr.eval(&self.vars, &mut self.rng) {
                    Ok(value) => self.vars.set(name, value),
                    Err(why) => return broken(format!("\\set {name}: {why}")),
                },
                Command::Sleep(expr) => match expr.eval(&self.vars, &mut self.rng) {
                    Ok(Value::Int(ns)) => {
                        return Next::Sleep(now.saturating_add(u64::try_from(ns).unwrap_or(0)));
                    }
                    Ok(other) => return broken(format!("\\sleep: {other:?} is no time")),
                    Err(why) => return broken(format!("\\sleep: {why}")),
                },
                Command::Sql(sql) => {
                    let Some(number) = planned.numbers.get(at).copied().flatten() else { continue };
                    let Some(statement) = plan.statements.get(number) else { continue };
                    let known = self.known.get(number).copied().unwrap_or(false);
                    if let Err(why) = plan.write(statement, sql, &self.vars, known, out) {
                        return broken(format!("{}: {why}", statement.shown));
                    }
                    if plan.protocol == PgProtocol::Prepared && !known {
                        if let Some(known) = self.known.get_mut(number) {
                            *known = true;
                        }
                        self.parsing.push_back(number);
                    }
                    self.sent.push_back((number, now));
                    self.wants_row = statement.wanted;
                    self.rows.clear();
                    if running.pipeline {
                        running.unsynced = true;
                        continue;
                    }
                    if plan.protocol != PgProtocol::Simple {
                        frontend::sync(out);
                    }
                    self.awaiting += 1;
                    return Next::Await;
                }
                Command::StartPipeline => running.pipeline = true,
                Command::EndPipeline => {
                    running.pipeline = false;
                    if self.sync(running, out) {
                        return Next::Await;
                    }
                }
                Command::Gset { prefix } => {
                    if let Err(why) = self.gset(prefix) {
                        return broken(why);
                    }
                }
                Command::Aset { prefix } => self.aset(prefix),
                Command::If { condition, otherwise } => {
                    match condition.eval(&self.vars, &mut self.rng).and_then(|v| v.is_true()) {
                        Ok(true) => {}
                        Ok(false) => running.at = *otherwise,
                        Err(why) => return broken(why),
                    }
                }
                Command::Jump(to) => running.at = *to,
            }
        }
        if self.sync(running, out) {
            return Next::Await;
        }
        match self.status {
            b'I' => Next::Over(Ok(())),
            _ => {
                let why = "it ends within a transaction; END or COMMIT is missing".into();
                Next::Broken(Broken::Script { script, at: running.at.saturating_sub(1), why })
            }
        }
    }

    /// Ends what was sent without waiting; whether there is an answer to wait for.
    fn sync(&mut self, running: &mut Running, out: &mut BytesMut) -> bool {
        if !running.unsynced {
            return false;
        }
        running.unsynced = false;
        frontend::sync(out);
        self.awaiting += 1;
        true
    }

    fn gset(&mut self, prefix: &str) -> Result<(), String> {
        let last = self.rows.pop().unwrap_or_default();
        self.rows.clear();
        if last.count != 1 {
            return Err(format!("\\gset: the statement gave {} rows; one is needed", last.count));
        }
        self.set(prefix, last);
        Ok(())
    }

    fn aset(&mut self, prefix: &str) {
        for row in std::mem::take(&mut self.rows).into_iter().filter(|r| r.count > 0) {
            self.set(prefix, row);
        }
    }

    fn set(&mut self, prefix: &str, row: Row) {
        for (column, value) in row.columns.into_iter().zip(row.values) {
            self.vars.set(&format!("{prefix}{column}"), value.map_or(Value::Null, Value::Text));
        }
    }

    /// Whether a message's body is looked at.
    #[inline]
    pub fn wants(&self, kind: u8) -> bool {
        matches!(kind, b'Z' | b'E') || (matches!(kind, b'T' | b'D') && self.wants_row)
    }

    /// Takes a message of the server; tells of each statement that is answered, with the time it
    /// was sent.
    ///
    /// # Errors
    /// What a client cannot be told.
    #[inline]
    pub fn take(
        &mut self,
        kind: u8,
        body: &[u8],
        plan: &Plan,
        mut answered: impl FnMut(usize, u64),
    ) -> Result<(), &'static str> {
        match kind {
            // Of a statement that returns rows, in the order that they mostly come.
            b'2' | b'n' | b'N' | b'S' | b'A' | b'K' | b't' | b'3' => {}
            b'1' => {
                self.parsing.pop_front();
            }
            b'T' | b'D' if self.wants_row => self.row(kind, body),
            b'T' | b'D' => {}
            b'C' | b'I' | b's' => {
                if plan.protocol != PgProtocol::Simple && !self.undoing {
                    self.sent.pop_front().into_iter().for_each(|(n, at)| answered(n, at));
                }
            }
            b'Z' => {
                let Some(left) = self.awaiting.checked_sub(1) else {
                    return Err("it answered what was not asked");
                };
                self.awaiting = left;
                self.status = body.first().copied().unwrap_or(b'I');
                if plan.protocol == PgProtocol::Simple && self.error.is_none() {
                    self.sent.pop_front().into_iter().for_each(|(n, at)| answered(n, at));
                }
                self.sent.clear();
                // What it had no mind to parse after an error.
                for number in self.parsing.drain(..) {
                    if let Some(known) = self.known.get_mut(number) {
                        *known = false;
                    }
                }
            }
            b'E' => self.wrong(body),
            b'G' | b'H' | b'W' => return Err("COPY is not possible in a script"),
            _ => return Err("the answer is none of PostgreSQL's protocol"),
        }
        Ok(())
    }

    #[cold]
    fn wrong(&mut self, body: &[u8]) {
        if self.error.is_none() {
            self.error = Some(ServerError::read(body));
            self.wrong = self.sent.front().map(|(n, _)| *n);
        }
    }

    fn row(&mut self, kind: u8, body: &[u8]) {
        match kind {
            b'T' => {
                let columns = wire::columns(body).unwrap_or_default();
                self.rows.push(Row { columns, ..Row::default() });
            }
            _ => {
                if let Some(row) = self.rows.last_mut() {
                    row.count += 1;
                    row.values = wire::values(body).unwrap_or_default();
                }
            }
        }
    }
}
