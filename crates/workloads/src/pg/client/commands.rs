//! Runs a script's commands until one must wait.

use bytes::BytesMut;
use model::measure::PgProtocol;
use postgres_protocol::message::frontend;

use super::{Broken, Client, Next, Row, Running};
use crate::pg::{
    plan::Plan,
    script::{Command, SqlText, Value},
};

impl Client {
    pub(super) fn script(&mut self, plan: &Plan, now: u64, out: &mut BytesMut) -> Next {
        let Some(mut running) = self.running else { return Next::Over(Ok(())) };
        if std::mem::take(&mut running.answered) && plan.answer_delay_ns > 0 {
            self.running = Some(running);
            return Next::Sleep(now.saturating_add(plan.answer_delay_ns));
        }
        let next = self.commands(&mut running, plan, now, out);
        running.answered = matches!(next, Next::Await);
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
                    match self.statement(running, plan, (number, sql), now, out) {
                        Ok(true) => return Next::Await,
                        Ok(false) => {}
                        Err(why) => return broken(why),
                    }
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

    /// Sends a statement; returns whether to wait for its answer.
    fn statement(
        &mut self,
        running: &mut Running,
        plan: &Plan,
        (number, sql): (usize, &SqlText),
        now: u64,
        out: &mut BytesMut,
    ) -> Result<bool, String> {
        let Some(statement) = plan.statements.get(number) else { return Ok(false) };
        let known = self.known.get(number).copied().unwrap_or(false);
        plan.write(statement, sql, &self.vars, known, out)
            .map_err(|why| format!("{}: {why}", statement.shown))?;
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
            return Ok(false);
        }
        if plan.protocol != PgProtocol::Simple {
            frontend::sync(out);
        }
        self.awaiting += 1;
        Ok(true)
    }

    /// Ends a group of statements sent without waiting; returns whether an answer is due.
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
}
