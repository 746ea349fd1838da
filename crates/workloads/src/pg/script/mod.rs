//! The script language of pgbench, as version 15 has it.
//!
//! A script is SQL statements, each ended by a semicolon, and backslash commands, each on its own
//! line. This module does no I/O. Differences from pgbench:
//!
//! - `\shell` and `\setshell` are refused.
//! - `debug()` prints nothing.
//! - An unterminated quotation or comment, and a bad name after `\set` or `\gset`, are errors when
//!   the script is read, not errors of the server or at run time.
//! - Comments after `--` are not sent: in the extended protocol a variable inside one would be an
//!   unknown parameter to the server.
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

/// A command of a script.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    Sql(SqlText),
    /// Sets a variable to the value of an expression.
    Set {
        name: String,
        expr: Expr,
    },
    /// Waits; the expression is in nanoseconds, an integer that may be negative.
    Sleep(Expr),
    /// `\if` and `\elif`: continues with the next command if [`Value::is_true`] of the expression,
    /// else at this index.
    If {
        condition: Expr,
        /// Index of a later command, or the number of commands for the script's end.
        otherwise: usize,
    },
    /// End of an `\if` branch: continues at this index, a later command or the script's end.
    Jump(usize),
    /// Sends the following statements without waiting for answers.
    StartPipeline,
    /// Waits for all outstanding answers.
    EndPipeline,
    /// Stores the single row of the statement before this command in variables.
    Gset {
        /// Prefix of each variable's name, before the column's name.
        prefix: String,
    },
    /// For each statement before this command, stores its last row in variables, if it has one.
    Aset {
        /// Prefix of each variable's name, before the column's name.
        prefix: String,
    },
}

/// A script without errors that can be found before it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    name: String,
    text: String,
    commands: Vec<Command>,
    /// Line number of each command.
    lines: Vec<usize>,
}

impl Script {
    /// Parses a script; the name is for messages.
    ///
    /// # Errors
    /// The first error, with its position.
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

    /// Its commands, in order.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Line number, from 1, at which the command of an index begins.
    pub fn line(&self, index: usize) -> usize {
        self.lines.get(index).copied().unwrap_or(1)
    }

    /// Line and column, from 1, of a byte offset.
    pub fn place(&self, at: usize) -> (usize, usize) {
        fault::place(&self.text, at)
    }
}

/// Splits `SCRIPT@WEIGHT` into a name and its relative frequency; the default is 1, and 0 means
/// never.
///
/// # Errors
/// The weight is not an integer up to 2^31 - 1.
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

/// An `\if` without its `\endif` yet.
struct Open {
    at: usize,
    /// Index of the condition that continues at the next branch.
    condition: Option<usize>,
    /// Indices of the jumps at branch ends.
    ends: Vec<usize>,
    has_else: bool,
}

struct Builder<'a> {
    text: &'a str,
    commands: Vec<Command>,
    lines: Vec<usize>,
    open: Vec<Open>,
    /// Whether the last command is a statement with a row that no `\gset` took yet.
    sql: bool,
}

impl Builder<'_> {
    fn build(&mut self) -> Result<(), Fault> {
        let mut scanner = Scanner::new(self.text);
        // Counts lines once, instead of from the start for every command.
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

    /// Adds a condition with its jump target still open.
    fn condition(&mut self, condition: Expr, line: usize) {
        if let Some(open) = self.open.last_mut() {
            open.condition = Some(self.commands.len());
        }
        self.push(Command::If { condition, otherwise: usize::MAX }, line);
    }

    /// Ends the branch before an `\elif` or `\else`.
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
