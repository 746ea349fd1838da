//! `netwright measure pg`.

use std::{collections::BTreeMap, sync::Mutex};

use clap::{Args, ValueEnum};
use model::{
    Nanos,
    measure::{PgDriver, PgInitDocument, PgProtocol, PgScript, PgSpec, ServedInterval},
    units::grouped,
};

use super::{
    args::SecretArgs,
    conduct,
    counts::{Counts, PerSecond, within},
    local::{ClientArgs, interval},
    secret,
};
use crate::{
    args::OutputArgs,
    exit::{CommandEnd, Failure},
    interrupt::Window,
    output::{Progress, Sink, rows_wanted},
};

/// `netwright measure pg`.
#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  # the least that a query costs
  netwright measure pg postgres://db1/shop --script select1
  # pgbench's tables
  netwright measure pg postgres://db1/bench --init --scale 50
  # a sweep of clients
  netwright measure pg postgres://db1/bench --protocol prepared \\
      --flows 1..64*2
  # by schedule, timed from it
  netwright measure pg postgres://db1/bench --script tpcb-like --flows 8 \\
      --rate 500
  # and the server's CPU
  netwright measure pg postgres://db1/bench --responder db1 --precision 2%
  # by the real one
  netwright measure pg postgres://db1/bench --driver pgbench --flows 8
  netwright measure pg 'host=/var/run/postgresql dbname=bench' \\
      --transactions 10000
  # a connection for each transaction
  netwright measure pg postgres://db1/bench --connect-each
  # or ~/.pgpass; never asked for
  PGPASSWORD=… netwright measure pg postgres://app@db1/bench"
))]
pub struct PgArgs {
    /// The server: `postgres://USER@HOST:PORT/DATABASE` or 'host=… user=…'; what is missing is
    /// taken from the environment (PGHOST, PGUSER…), as libpq does.
    #[arg(value_name = "URL", default_value = "postgres://", hide_default_value = true)]
    pub url: String,
    /// Make pgbench's tables of the size that --scale says, as `pgbench -i`, and measure nothing.
    /// Tables of these names are dropped first.
    #[arg(
        long,
        short = 'i',
        conflicts_with_all = [
            "script", "transactions", "duration", "rate", "precision", "responder", "flows",
            "protocol", "pipeline", "connect_each", "max_tries", "define", "per_statement",
        ],
        help_heading = "Traffic"
    )]
    pub init: bool,
    /// The transaction: tpcb-like, simple-update, select-only, select1, or a script file; NAME@3
    /// for a weight, again for more [default: select-only,
    /// which changes nothing].
    #[arg(long, short = 'f', value_name = "SCRIPT", help_heading = "Traffic")]
    pub script: Vec<String>,
    /// How statements are sent, as pgbench's -M.
    #[arg(
        long,
        short = 'M',
        value_enum,
        value_name = "PROTOCOL",
        default_value = "simple",
        help_heading = "Traffic"
    )]
    pub protocol: ProtocolArg,
    /// What makes the transactions: this program, or the real pgbench, whose report and log
    /// become the same result.
    #[arg(
        long,
        value_enum,
        value_name = "PROGRAM",
        default_value = "netwright",
        conflicts_with = "init",
        help_heading = "Traffic"
    )]
    pub driver: DriverArg,
    /// Send all statements of a transaction before awaiting the first answer.
    #[arg(long, help_heading = "Traffic")]
    pub pipeline: bool,
    /// Connections at once: 1, a list, or a sweep like 1..64*2.
    #[arg(
        long,
        short = 'c',
        visible_alias = "clients",
        value_name = "COUNTS",
        default_value = "1",
        help_heading = "Traffic"
    )]
    pub flows: Counts,
    /// A connection of its own for each transaction. Latencies include making it; with --driver
    /// pgbench they do so only by a --rate.
    #[arg(long, short = 'C', help_heading = "Traffic")]
    pub connect_each: bool,
    /// Transactions a second over all connections, by schedule and timed from it (open loop).
    #[arg(long, short = 'R', value_name = "PER_SECOND", help_heading = "Traffic")]
    pub rate: Option<PerSecond>,
    /// How often a transaction is tried that fails by serialization or deadlock; 0 is no limit.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Traffic")]
    pub max_tries: u32,
    /// The scripts' :scale [default: the rows of pgbench_branches; with --init 1].
    #[arg(long, short = 's', value_name = "N", value_parser = within::<1, 100_000>, help_heading = "Traffic")]
    pub scale: Option<u32>,
    /// A variable for the scripts: NAME=VALUE; again for more.
    #[arg(long, short = 'D', value_name = "NAME=VALUE", value_parser = variable, help_heading = "Traffic")]
    pub define: Vec<(String, String)>,
    /// Begins the scripts' random numbers [default: another each time, and told].
    #[arg(long, value_name = "N", help_heading = "Traffic")]
    pub seed: Option<u64>,
    /// When a statement counts as failed.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "60s", help_heading = "Traffic")]
    pub timeout: Nanos,
    /// Tell each statement's latency.
    #[arg(long, short = 'r', help_heading = "Output")]
    pub per_statement: bool,
    /// The measured window of each run [default: 5s; with --transactions its limit, 10m].
    #[arg(value_parser = model::seconds, long, short = 'T', value_name = "DURATION", help_heading = "Time")]
    pub duration: Option<Nanos>,
    /// So many transactions in all instead (pgbench's -t is for each client); they begin with the
    /// window.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Time")]
    pub transactions: Option<u64>,
    #[command(flatten)]
    pub local: ClientArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProtocolArg {
    /// As text, values and all.
    Simple,
    /// Parsed anew each time, values beside the text.
    Extended,
    /// Parsed once on each connection.
    Prepared,
}

impl From<ProtocolArg> for PgProtocol {
    fn from(arg: ProtocolArg) -> Self {
        match arg {
            ProtocolArg::Simple => Self::Simple,
            ProtocolArg::Extended => Self::Extended,
            ProtocolArg::Prepared => Self::Prepared,
        }
    }
}

/// What makes the transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DriverArg {
    /// This program.
    Netwright,
    /// The real pgbench.
    Pgbench,
}

impl From<DriverArg> for PgDriver {
    fn from(arg: DriverArg) -> Self {
        match arg {
            DriverArg::Netwright => Self::Netwright,
            DriverArg::Pgbench => Self::Pgbench,
        }
    }
}

/// `NAME=VALUE`.
///
/// # Errors
/// It is no such pair.
pub fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    let letters = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    match letters && !name.is_empty() {
        true => Ok((name.into(), value.into())),
        false => Err("a name is of letters, digits and _".into()),
    }
}

/// `select-only@3`.
///
/// # Errors
/// Its weight is none.
pub fn script(text: &str) -> Result<PgScript, Failure> {
    let (name, weight) = workloads::pg::script::weighted(text).map_err(Failure::Usage)?;
    Ok(PgScript { name: name.into(), weight })
}

/// The request that says everything, and the password that stood in the connection string.
///
/// # Errors
/// Something asked for cannot be.
pub fn spec(args: &PgArgs) -> Result<(PgSpec, Option<String>), Failure> {
    let (target, password) = workloads::pg::without_password(&args.url)?;
    let mut scripts = args.script.iter().map(|s| script(s)).collect::<Result<Vec<_>, _>>()?;
    if scripts.is_empty() {
        scripts.push(PgScript { name: "select-only".into(), weight: 1 });
    }
    let mut common = args.local.common(target, args.duration, args.transactions.is_some())?;
    if args.driver == DriverArg::Pgbench {
        // It has neither: none where none was asked for.
        common.warmup_ns = args.local.warmup.unwrap_or_default();
        common.cooldown_ns = args.local.cooldown.unwrap_or_default();
    }
    let spec = PgSpec {
        common,
        scripts,
        protocol: args.protocol.into(),
        clients: args.flows.0.clone(),
        pipeline: args.pipeline,
        connect_each: args.connect_each,
        rate_per_s: args.rate.map(|r| r.0),
        transactions: args.transactions,
        max_tries: args.max_tries,
        per_statement: args.per_statement,
        scale: args.scale,
        seed: args.seed,
        variables: args.define.iter().cloned().collect::<BTreeMap<_, _>>(),
        timeout_ns: args.timeout,
        interval_ns: args.local.interval,
        responder: args.local.responder.clone(),
        driver: args.driver.into(),
        answer_delay_ns: Nanos(0),
    };
    Ok((spec, password))
}

/// Makes pgbench's tables, and says what was made.
pub fn init(args: &PgArgs) -> Result<CommandEnd, Failure> {
    let (spec, password) = spec(args)?;
    let sink = Sink::new(args.output.output.clone());
    sink.check()?;
    let window = Window::open();
    let shown = Mutex::new(Progress::new(args.output.talk.quiet, ""));
    let progress = |what: &str, share: f64| {
        if let Ok(mut line) = shown.lock() {
            line.rename(what);
            line.show(share);
        }
    };
    let run = traffic::Run::new(window.stop(), &progress);
    let made = workloads::pg::init::init(&spec, password.as_deref(), run);
    drop(shown);
    let made = made?;
    match args.output.json {
        true => sink.json(&made)?,
        false => sink.text(&reported(&made))?,
    }
    Ok(CommandEnd::Yes)
}

/// The tables in words.
fn reported(made: &PgInitDocument) -> String {
    let mut text = format!(
        "Made pgbench's tables of scale {}: {} accounts, in {}, of which {} filling and {} keys.\n",
        made.scale,
        grouped(made.accounts),
        made.took_ns,
        made.copy_ns,
        made.keys_ns,
    );
    for warning in &made.warnings {
        text.push_str(&format!("Warning: {warning}.\n"));
    }
    text
}

/// Measures and prints.
pub fn run(
    spec: &PgSpec,
    password: Option<&str>,
    from: &SecretArgs,
    output: &OutputArgs,
) -> Result<CommandEnd, Failure> {
    let secret = secret(from)?;
    conduct(
        output,
        |run| {
            let hear: &(dyn Fn(&ServedInterval) + Sync) = &interval;
            let asked_for = spec.interval_ns.is_some() && !output.talk.quiet;
            let heard = (asked_for || rows_wanted(output.talk.quiet)).then_some(hear);
            workloads::measure_pg(spec, password, secret.as_ref(), traffic::Run { heard, ..run })
        },
        |document, look| report::measure::pg(document, *look),
    )
}
