//! Prepares the scripts for sending: the parts that do not change between transactions are built
//! once.

use std::{fmt::Write as _, path::Path};

use bytes::BytesMut;
use model::measure::{PgProtocol, PgScript, PgSpec};
use postgres_protocol::{IsNull, message::frontend};
use traffic::{Error, Result};

use super::{
    builtin,
    script::{Command, Script, SqlText, Value, Vars},
};

/// Size limit of a script file in bytes.
const MOST_BYTES: u64 = 16 << 20;

#[derive(Debug)]
pub struct Plan {
    pub scripts: Vec<Planned>,
    /// The statements of all scripts.
    pub statements: Vec<Statement>,
    pub protocol: PgProtocol,
    /// Whether each transaction is sent as one pipeline.
    pub pipeline: bool,
    pub max_tries: u32,
    /// Time during which an answer is ignored, to simulate a delay.
    pub answer_delay_ns: u64,
    /// Sum of the scripts' weights.
    weights: u64,
}

#[derive(Debug)]
pub struct Planned {
    pub asked: PgScript,
    pub script: Script,
    /// Statement index of each command; `None` for other commands.
    pub numbers: Vec<Option<usize>>,
}

#[derive(Debug)]
pub struct Statement {
    /// Index of its script, and its line there.
    pub script: usize,
    pub line: usize,
    /// Index of its command.
    at: usize,
    /// Its text, for messages.
    pub shown: String,
    /// Whether `\gset` needs its row.
    pub wanted: bool,
    /// Name of the prepared statement.
    name: String,
    /// Its text with `$1` for the first variable, and the variables.
    text: String,
    pub variables: Vec<String>,
}

impl Plan {
    /// Reads the scripts.
    ///
    /// # Errors
    /// [`Error::Usage`] with file, line and column of an invalid script.
    pub fn of(spec: &PgSpec) -> Result<Self> {
        let mut plan = Self {
            scripts: vec![],
            statements: vec![],
            protocol: spec.protocol,
            pipeline: spec.pipeline,
            max_tries: spec.max_tries,
            answer_delay_ns: spec.answer_delay_ns.0,
            weights: spec.scripts.iter().map(|s| u64::from(s.weight)).sum(),
        };
        if plan.weights == 0 {
            return Err(Error::Usage("no script is given, or all have the weight 0".into()));
        }
        for asked in &spec.scripts {
            let text = text_of(&asked.name)?;
            let script = Script::parse(&asked.name, &text)
                .map_err(|e| Error::Usage(format!("{}:{e}", asked.name)))?;
            plan.add(asked, script)?;
        }
        Ok(plan)
    }

    /// From one script's text, for fuzzing.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn of_text(text: &str, protocol: PgProtocol, max_tries: u32) -> Result<Self> {
        let asked = PgScript { name: "fuzzed".into(), weight: 1 };
        let script = Script::parse(&asked.name, text).map_err(|e| Error::Usage(e.to_string()))?;
        let (scripts, statements) = (vec![], vec![]);
        let mut plan = Self {
            scripts,
            statements,
            protocol,
            pipeline: false,
            max_tries,
            answer_delay_ns: 0,
            weights: 1,
        };
        plan.add(&asked, script)?;
        Ok(plan)
    }

    fn add(&mut self, asked: &PgScript, script: Script) -> Result<()> {
        let name = &asked.name;
        let usage = |why: &str| Err(Error::Usage(format!("{name}: {why}")));
        if script.commands().is_empty() {
            return usage("there is no command in it");
        }
        let (number, mut numbers) = (self.scripts.len(), vec![]);
        for (at, command) in script.commands().iter().enumerate() {
            let statement = match command {
                Command::Sql(sql) => {
                    let next = script.commands().get(at + 1);
                    let wanted = matches!(next, Some(Command::Gset { .. } | Command::Aset { .. }));
                    self.statements.push(Statement::new(
                        sql,
                        number,
                        at,
                        (script.line(at), wanted),
                    ));
                    Some(self.statements.len() - 1)
                }
                Command::Gset { .. } | Command::Aset { .. } if self.pipeline => {
                    return usage("\\gset waits for a row, which --pipeline does not");
                }
                Command::StartPipeline | Command::EndPipeline if self.pipeline => {
                    return usage("it makes pipelines itself; leave out --pipeline");
                }
                Command::StartPipeline if self.protocol == PgProtocol::Simple => {
                    return usage(
                        "\\startpipeline needs the extended protocol; add --protocol prepared",
                    );
                }
                _ => None,
            };
            numbers.push(statement);
        }
        self.scripts.push(Planned { asked: asked.clone(), script, numbers });
        Ok(())
    }

    /// Chooses a script by a random number and the weights.
    pub fn choose(&self, random: u64) -> usize {
        if self.scripts.len() == 1 {
            return 0;
        }
        let mut left = random % self.weights.max(1);
        for (n, script) in self.scripts.iter().enumerate() {
            match left.checked_sub(u64::from(script.asked.weight)) {
                Some(rest) => left = rest,
                None => return n,
            }
        }
        0
    }

    /// Line and column in the script, from 1, for a position in a statement that the server
    /// reports, with these variable values. `None` without a position.
    pub fn place(
        &self,
        statement: &Statement,
        character: Option<usize>,
        vars: &Vars,
    ) -> Option<(usize, usize)> {
        let script = &self.scripts.get(statement.script)?.script;
        let Some(Command::Sql(sql)) = script.commands().get(statement.at) else { return None };
        let at = match self.protocol {
            PgProtocol::Simple => sql.place_with_values(character?, vars),
            PgProtocol::Extended | PgProtocol::Prepared => sql.place_with_parameters(character?),
        };
        Some(script.place(at?))
    }

    /// Writes a statement's messages, without the final `Sync`; `known` if it is prepared at the
    /// server.
    ///
    /// # Errors
    /// A variable has no value, or holds a zero byte.
    pub fn write(
        &self,
        statement: &Statement,
        sql: &SqlText,
        vars: &Vars,
        known: bool,
        out: &mut BytesMut,
    ) -> Result<(), String> {
        let name = match self.protocol {
            PgProtocol::Simple => {
                let bytes = sql.render_simple(vars);
                let text = std::str::from_utf8(&bytes).map_err(|_| "it is no UTF-8".to_owned())?;
                return frontend::query(text, out).map_err(|e| e.to_string());
            }
            PgProtocol::Extended => "",
            PgProtocol::Prepared => &statement.name,
        };
        if !known {
            frontend::parse(name, &statement.text, [], out).map_err(|e| e.to_string())?;
        }
        let values = statement.variables.iter().map(|v| vars.get(v));
        // A variable without a value becomes null, as with pgbench.
        let write = |value: Option<&Value>, out: &mut BytesMut| {
            Ok(value.map_or(IsNull::Yes, |value| value_text(value, out)))
        };
        // Text format in both directions, as pgbench.
        if let Err(frontend::BindError::Conversion(e)) =
            frontend::bind("", name, [0], values, write, [0], out)
        {
            return Err(e.to_string());
        }
        if statement.wanted {
            frontend::describe(b'P', "", out).map_err(|e| e.to_string())?;
        }
        frontend::execute("", 0, out).map_err(|e| e.to_string())
    }
}

/// Writes a value in the server's text format.
fn value_text(value: &Value, out: &mut BytesMut) -> IsNull {
    if *value == Value::Null {
        return IsNull::Yes;
    }
    // Writing to growing memory does not fail.
    let _ = write!(out, "{value}");
    IsNull::No
}

impl Statement {
    fn new(sql: &SqlText, script: usize, at: usize, (line, wanted): (usize, bool)) -> Self {
        let (text, variables) = sql.render_parameters();
        let shown = sql.text().split_whitespace().collect::<Vec<_>>().join(" ");
        Self { script, line, at, shown, wanted, name: format!("P{script}_{at}"), text, variables }
    }
}

fn text_of(name: &str) -> Result<String> {
    if let Some(text) = builtin::text(name) {
        return Ok(text.into());
    }
    let failed = |e: &std::io::Error| match e.kind() {
        std::io::ErrorKind::NotFound => {
            let all: Vec<&str> = builtin::ALL.iter().map(|(n, ..)| *n).collect();
            Error::Environment(format!(
                "{name}: no such script file, nor a built-in ({})",
                all.join(", ")
            ))
        }
        std::io::ErrorKind::InvalidData => Error::Usage(format!("{name}: it is no UTF-8 text")),
        _ => Error::io(format!("cannot read {name}"), e),
    };
    probe::given::text(Path::new(name), MOST_BYTES).map_err(|e| failed(&e))
}
