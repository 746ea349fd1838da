//! The script language of pgbench, as version 15 has it.
//!
//! A script is SQL statements, each ended by a semicolon, and backslash commands, each on a line
//! of its own. Nothing here speaks with a server or reads a file. What differs from pgbench:
//!
//! - `\shell` and `\setshell` are refused.
//! - `debug()` prints nothing.
//! - A quotation or comment without an end, and a bad name after `\set` or `\gset`, are errors in
//!   the script instead of errors of the server or while it runs.
//! - Comments after `--` are not sent: in the extended protocol a variable in one would be a
//!   parameter that the server knows nothing of.

mod expr;
mod fault;
mod function;
mod hash;
mod meta;
mod random;
mod sql;
mod token;
mod value;

pub use expr::Expr;
pub use fault::ScriptError;
pub use random::Rng;
pub use sql::SqlText;
pub use value::{Value, Vars};

use fault::Fault;
use meta::Meta;
use sql::{End, Scanner};

/// What a script does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    Sql(SqlText),
    /// Gives a variable the value of an expression.
    Set {
        name: String,
        expr: Expr,
    },
    /// Waits; the expression's value is in nanoseconds, a whole number that may be negative.
    Sleep(Expr),
    /// `\if` and `\elif`: goes on with the next command where [`Value::is_true`] of the
    /// expression, else with that of this index.
    If {
        condition: Expr,
        /// An index into the commands, or their number for the script's end; always a later one.
        otherwise: usize,
    },
    /// The end of a branch of `\if`: goes on with the command of this index, a later one or the
    /// script's end.
    Jump(usize),
    /// What follows is sent without waiting for answers.
    StartPipeline,
    /// Waits for all answers.
    EndPipeline,
    /// The single row of the statement before this command becomes variables.
    Gset {
        /// What is before each column's name.
        prefix: String,
    },
    /// The last row, if any, of each of the statements before this command becomes variables.
    Aset {
        /// What is before each column's name.
        prefix: String,
    },
}

/// A script, free of what can be known to be wrong before it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    name: String,
    text: String,
    commands: Vec<Command>,
    /// The line of each command.
    lines: Vec<usize>,
}

impl Script {
    /// Reads a script; the name is for people.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        let mut builder =
            Builder { text, commands: vec![], lines: vec![], open: vec![], sql: false };
        builder.build().map_err(|fault| fault.within(text))?;
        let Builder { commands, lines, .. } = builder;
        Ok(Self { name: name.into(), text: text.into(), commands, lines })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it does, in order.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// The line, from 1, in which the command of an index begins.
    pub fn line(&self, index: usize) -> usize {
        self.lines.get(index).copied().unwrap_or(1)
    }

    /// The line and the character in it, from 1, of an offset in bytes.
    pub fn place(&self, at: usize) -> (usize, usize) {
        fault::place(&self.text, at)
    }
}

/// `SCRIPT@WEIGHT`: a name, and how often its script is chosen in relation to others; 1 where
/// nothing is said, 0 for never.
///
/// # Errors
/// The weight is no whole number up to 2^31 - 1.
pub fn weighted(text: &str) -> Result<(&str, u32), String> {
    let Some((name, weight)) = text.rsplit_once('@') else { return Ok((text, 1)) };
    match weight.parse::<u32>() {
        Ok(n) if i32::try_from(n).is_ok() && !weight.starts_with('+') => Ok((name, n)),
        _ => Err(format!(
            "{text}: the weight \"{weight}\" after @ is no whole number from 0 to {}",
            i32::MAX
        )),
    }
}

/// An `\if` without its `\endif` so far.
struct Open {
    at: usize,
    /// The condition that goes on with the next branch.
    condition: Option<usize>,
    /// The ends of branches.
    ends: Vec<usize>,
    has_else: bool,
}

struct Builder<'a> {
    text: &'a str,
    commands: Vec<Command>,
    lines: Vec<usize>,
    open: Vec<Open>,
    /// What came last is a statement whose row nothing took yet.
    sql: bool,
}

impl Builder<'_> {
    fn build(&mut self) -> Result<(), Fault> {
        let mut scanner = Scanner::new(self.text);
        // Lines are counted once, not from the begin for every command.
        let (mut line, mut counted) = (1, 0);
        let mut line_of = |at: usize, text: &str| {
            line += text.get(counted..at).map_or(0, |t| t.matches('\n').count());
            counted = counted.max(at);
            line
        };
        loop {
            let (sql, end) = scanner.next()?;
            if let Some((sql, at)) = sql {
                let line = line_of(at, self.text);
                self.push(Command::Sql(sql), line);
                self.sql = true;
            }
            match end {
                End::Semicolon => {}
                End::Script => break,
                End::Backslash => {
                    let at = scanner.at;
                    if let Some(meta) = meta::read(self.text, at)? {
                        let line = line_of(at, self.text);
                        self.meta(meta, at.saturating_sub(1), line)?;
                    }
                    scanner.at = meta::end_of_line(self.text, at);
                }
            }
        }
        match self.open.pop() {
            Some(open) => Err(Fault::at(open.at, "\\if without matching \\endif")),
            None => Ok(()),
        }
    }

    fn push(&mut self, command: Command, line: usize) {
        self.commands.push(command);
        self.lines.push(line);
    }

    fn meta(&mut self, meta: Meta, at: usize, line: usize) -> Result<(), Fault> {
        let after_sql = std::mem::take(&mut self.sql);
        let row = |name: &str| match after_sql {
            true => Ok(()),
            false => Err(Fault::at(at, format!("\\{name} must follow an SQL command"))),
        };
        match meta {
            Meta::Set { name, expr } => self.push(Command::Set { name, expr }, line),
            Meta::Sleep(expr) => self.push(Command::Sleep(expr), line),
            Meta::StartPipeline => self.push(Command::StartPipeline, line),
            Meta::EndPipeline => self.push(Command::EndPipeline, line),
            Meta::Gset(prefix) => {
                row("gset")?;
                self.push(Command::Gset { prefix }, line);
            }
            Meta::Aset(prefix) => {
                row("aset")?;
                self.push(Command::Aset { prefix }, line);
            }
            Meta::If(condition) => {
                self.open.push(Open { at, condition: None, ends: vec![], has_else: false });
                self.condition(condition, line);
            }
            Meta::Elif(condition) => {
                self.end_branch("elif", at, line)?;
                self.condition(condition, line);
            }
            Meta::Else => {
                self.end_branch("else", at, line)?;
                if let Some(open) = self.open.last_mut() {
                    open.has_else = true;
                }
            }
            Meta::EndIf => {
                let Some(open) = self.open.pop() else {
                    return Err(Fault::at(at, "\\endif without matching \\if"));
                };
                let here = self.commands.len();
                for index in open.ends.into_iter().chain(open.condition) {
                    self.aim(index, here);
                }
            }
        }
        Ok(())
    }

    /// A condition whose other way is not known yet.
    fn condition(&mut self, condition: Expr, line: usize) {
        if let Some(open) = self.open.last_mut() {
            open.condition = Some(self.commands.len());
        }
        self.push(Command::If { condition, otherwise: usize::MAX }, line);
    }

    /// Ends the branch before `\elif` and `\else`.
    fn end_branch(&mut self, name: &str, at: usize, line: usize) -> Result<(), Fault> {
        let end = self.commands.len();
        let Some(open) = self.open.last_mut() else {
            return Err(Fault::at(at, format!("\\{name} without matching \\if")));
        };
        if open.has_else {
            return Err(Fault::at(at, format!("\\{name} after \\else")));
        }
        open.ends.push(end);
        let condition = open.condition.take();
        self.push(Command::Jump(usize::MAX), line);
        if let Some(index) = condition {
            self.aim(index, end + 1);
        }
        Ok(())
    }

    fn aim(&mut self, index: usize, target: usize) {
        match self.commands.get_mut(index) {
            Some(Command::If { otherwise, .. }) => *otherwise = target,
            Some(Command::Jump(to)) => *to = target,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
