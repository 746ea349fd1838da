//! Translates the request into pgbench's options.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use model::measure::{Common, PgProtocol, PgSpec, SocketOptions, Wait};
use traffic::{Error, ErrorContext, Result, temp_folder::TempFolder};

use super::Tool;
use crate::pg::builtin;

/// The default statement timeout, which counts as not set.
const USUAL_TIMEOUT_NS: u64 = 60_000_000_000;
/// The first version that retries transactions and distinguishes failures.
const TRIES: u32 = 15;

/// Checks that pgbench supports the request.
///
/// # Errors
/// [`Error::Usage`] naming the options that pgbench lacks.
pub fn check(spec: &PgSpec, tool: &Tool) -> Result<()> {
    let Common { socket, family, bind, wait, warmup_ns, cooldown_ns, .. } = &spec.common;
    let cannot: Vec<&str> = [
        ("--pipeline (a script's \\startpipeline does)", spec.pipeline),
        ("--per-statement (it tells means alone)", spec.per_statement),
        ("--timeout", spec.timeout_ns.0 != USUAL_TIMEOUT_NS),
        ("--interval (its own -P 1 does)", spec.interval_ns.is_some()),
        ("--precision", spec.common.confidence_per_mille.is_some()),
        ("--warmup", warmup_ns.0 > 0),
        ("--cooldown", cooldown_ns.0 > 0),
        ("--wait", *wait != Wait::Block),
        ("-4, -6 (hostaddr= does)", family.is_some()),
        ("--bind", bind.is_some()),
        ("options of the sockets", *socket != SocketOptions::default()),
        ("--max-tries (from version 15 on)", spec.max_tries != 1 && tool.major < TRIES),
    ]
    .into_iter()
    .filter_map(|(name, asked)| asked.then_some(name))
    .collect();
    let usage = |why: String| Err(Error::Usage(why));
    if !cannot.is_empty() {
        return usage(format!("pgbench cannot take {}: leave it out", cannot.join(", ")));
    }
    if spec.transactions.is_none() && !spec.common.duration_ns.0.is_multiple_of(1_000_000_000) {
        let s = spec.common.duration_ns.0.div_ceil(1_000_000_000);
        return usage(format!("pgbench runs for whole seconds: give it --duration {s}s"));
    }
    if spec.transactions.is_some() && spec.max_tries == 0 {
        return usage("pgbench tries without a limit only for a --duration".into());
    }
    match (spec.transactions, spec.clients.iter().find(|c| !spec.shares(**c))) {
        (Some(n), Some(clients)) => usage(format!(
            "pgbench gives each client as many transactions: {n} cannot be shared by {clients}"
        )),
        _ => Ok(()),
    }
}

/// Whether the transactions divide evenly among the clients.
trait Shares {
    fn shares(&self, clients: u32) -> bool;
}

impl Shares for PgSpec {
    fn shares(&self, clients: u32) -> bool {
        self.transactions.is_none_or(|n| n.is_multiple_of(u64::from(clients.max(1))))
    }
}

/// The command of one run; its log and output go into the directory.
///
/// # Errors
/// A script cannot be written there.
pub fn command(
    spec: &PgSpec,
    tool: &Tool,
    clients: u32,
    seed: u64,
    folder: &Logs,
) -> Result<Command> {
    let mut command = Command::new(&tool.path);
    // Does not vacuum first, like the built-in driver.
    command.args(["--no-vacuum", "--log"]);
    command.arg(format!("--log-prefix={}", folder.log().display()));
    command.arg(format!("--client={clients}")).arg(format!("--jobs={}", spec.common.threads));
    match spec.transactions {
        Some(n) => command.arg(format!("--transactions={}", n / u64::from(clients.max(1)))),
        None => command.arg(format!("--time={}", spec.common.duration_ns.0 / 1_000_000_000)),
    };
    command.arg(match spec.protocol {
        PgProtocol::Simple => "--protocol=simple",
        PgProtocol::Extended => "--protocol=extended",
        PgProtocol::Prepared => "--protocol=prepared",
    });
    if spec.connect_each {
        command.arg("--connect");
    }
    if let Some(rate) = spec.rate_per_s {
        command.arg(format!("--rate={rate}"));
    }
    if let Some(scale) = spec.scale {
        command.arg(format!("--scale={scale}"));
    }
    if tool.major >= TRIES {
        command.arg("--failures-detailed");
    }
    if spec.max_tries != 1 {
        command.arg(format!("--max-tries={}", spec.max_tries));
    }
    command.arg(format!("--random-seed={seed}"));
    for (name, value) in &spec.variables {
        command.arg(format!("--define={name}={value}"));
    }
    for script in &spec.scripts {
        let weight = script.weight;
        match (script.name.as_str(), builtin::text(&script.name)) {
            ("select1", Some(text)) => {
                let path = folder.select1(text)?;
                command.arg(format!("--file={}@{weight}", path.display()));
            }
            (name, Some(_)) => {
                command.arg(format!("--builtin={name}@{weight}"));
            }
            (name, None) => {
                command.arg(format!("--file={name}@{weight}"));
            }
        }
    }
    command.arg(target(&spec.common.target));
    Ok(command)
}

/// The connection string in libpq's form: libpq has only two URL schemes.
fn target(text: &str) -> String {
    text.strip_prefix("pg://").map_or_else(|| text.to_owned(), |rest| format!("postgres://{rest}"))
}

/// Directory for pgbench's files; removed when dropped.
#[derive(Debug)]
pub struct Logs(TempFolder);

impl Logs {
    /// A new private directory.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn new() -> Result<Self> {
        let place = std::env::temp_dir();
        let what = || format!("no folder in {} for pgbench's log", place.display());
        Ok(Self(TempFolder::new("pgbench").doing(what)?))
    }

    /// Path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn log(&self) -> PathBuf {
        self.file("log")
    }

    fn select1(&self, text: &str) -> Result<PathBuf> {
        // The path appears in no result: the plan shows the script's name.
        let path = self.file("select1.sql");
        fs::write(&path, text).map_err(|e| Error::io(path.display().to_string(), &e))?;
        Ok(path)
    }

    /// The log files, one for each thread that wrote.
    pub fn logs(&self) -> Vec<PathBuf> {
        let is_log = |p: &Path| {
            p.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with("log."))
        };
        let entries = fs::read_dir(self.0.path()).into_iter().flatten().flatten().map(|e| e.path());
        let mut all: Vec<PathBuf> = entries.filter(|p| is_log(p)).collect();
        all.sort();
        all
    }
}
