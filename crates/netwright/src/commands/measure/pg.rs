//! `netwright measure pg`: PostgreSQL transactions, by this program or by pgbench.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use model::{
    Nanos,
    measure::{PgDriver, PgScript, PgSpec},
};
use tune::operator::Operator;

use super::{
    conduct, each_interval,
    flags::{DurationArgs, FlowsArgs, RateArgs, ScriptArgs, SecretArgs, TimeoutArgs, VariableArgs},
    local::ClientArgs,
    secret,
};
use crate::{
    args::OutputArgs,
    failure::{CommandEnd, Failure},
    output::Answer,
    session::Session,
};

const RATE: &str =
    "Transactions per second over all connections; open loop, timed from the schedule";
const DURATION: &str = "The measured window of each run; with --transactions an upper limit [default: 5s; with \
     --transactions 10m]";

#[derive(Debug, Args)]
#[command(
    mut_arg("flows", |a| a.short('c').visible_alias("clients")),
    mut_arg("rate", |a| a.short('R').help(RATE)),
    mut_arg("timeout", |a| a.default_value("60s").help("Time after which a statement counts as \
                                                        failed")),
    mut_arg("duration", |a| a.short('T').help(DURATION)),
    after_help = examples!(
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
)
)]
pub struct PgArgs {
    /// The server: `postgres://USER@HOST:PORT/DATABASE` or 'host=… user=…'; missing parts are taken
    /// from the environment (PGHOST, PGUSER…), as libpq does.
    #[arg(value_name = "URL", default_value = "postgres://", hide_default_value = true)]
    pub url: String,
    /// Make pgbench's tables, and measure nothing; as `pgbench -i`, for this --scale. Tables of
    /// these names are dropped first.
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
    #[command(flatten)]
    pub script: ScriptArgs,
    /// Driver of the transactions; netwright, or pgbench itself; its report and log are converted
    /// to the same result.
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
    #[command(flatten)]
    pub flows: FlowsArgs,
    /// Use a new connection for each transaction. Latencies include connecting; with --driver
    /// pgbench only with a --rate.
    #[arg(long, short = 'C', help_heading = "Traffic")]
    pub connect_each: bool,
    #[command(flatten)]
    pub rate: RateArgs,
    /// Maximum number of tries of a transaction that fails by serialization or deadlock; 0 is no
    /// limit.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Traffic")]
    pub max_tries: u32,
    #[command(flatten)]
    pub variables: VariableArgs,
    /// Seed of the scripts' random numbers [default: different each time, and reported].
    #[arg(long, value_name = "N", help_heading = "Traffic")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub timeout: TimeoutArgs,
    /// Report the latency of each statement.
    #[arg(long, short = 'r', help_heading = "Output")]
    pub per_statement: bool,
    #[command(flatten)]
    pub duration: DurationArgs,
    /// Measure this number of transactions in all instead (pgbench's -t is per client); they begin
    /// with the window.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Time")]
    pub transactions: Option<u64>,
    #[command(flatten)]
    pub local: ClientArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Driver of the transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DriverArg {
    /// Netwright sends the transactions itself.
    Netwright,
    /// The installed pgbench sends them.
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

/// The transactions asked for, `select-only@3` for a weight; select-only by default, which changes
/// nothing.
///
/// # Errors
/// An invalid weight.
pub fn scripts(asked: &[String]) -> Result<Vec<PgScript>, Failure> {
    if asked.is_empty() {
        return Ok(vec![PgScript { name: "select-only".into(), weight: 1 }]);
    }
    let script = |text: &String| {
        let (name, weight) = workloads::pg::script::weighted(text).map_err(Failure::Usage)?;
        Ok(PgScript { name: name.into(), weight })
    };
    asked.iter().map(script).collect()
}

/// The checked request, and the password from the connection string.
///
/// # Errors
/// The first invalid flag.
pub fn spec(args: &PgArgs) -> Result<(PgSpec, Option<String>), Failure> {
    let (target, password) = workloads::pg::without_password(&args.url)?;
    let mut common =
        args.local.common(target, args.duration.duration, args.transactions.is_some())?;
    if args.driver == DriverArg::Pgbench {
        // pgbench has neither warm-up nor cool-down, so the defaults do not apply.
        common.warmup_ns = args.local.around.warmup.unwrap_or_default();
        common.cooldown_ns = args.local.around.cooldown.unwrap_or_default();
    }
    let spec = PgSpec {
        common,
        scripts: scripts(&args.script.script)?,
        protocol: args.script.protocol.into(),
        clients: args.flows.flows.0.clone(),
        pipeline: args.pipeline,
        connect_each: args.connect_each,
        rate_per_s: args.rate.per_s(),
        transactions: args.transactions,
        max_tries: args.max_tries,
        per_statement: args.per_statement,
        scale: args.variables.scale,
        seed: args.seed,
        variables: args.variables.define.iter().cloned().collect::<BTreeMap<_, _>>(),
        timeout_ns: args.timeout.timeout,
        interval_ns: args.local.interval,
        responder: args.local.responder.clone(),
        driver: args.driver.into(),
        answer_delay_ns: Nanos(0),
    };
    Ok((spec, password))
}

/// Creates pgbench's tables, and prints their sizes.
pub fn init(args: &PgArgs) -> Result<CommandEnd, Failure> {
    let (spec, password) = spec(args)?;
    let answer = Answer::to(&args.output)?;
    let session = Session::open(&args.output.talk);
    let progress = |what: &str, share: f64| session.progress(what, share);
    let run = traffic::Run::new(session.stop(), &progress);
    let made = workloads::pg::init::init(&spec, password.as_deref(), run)?;
    drop(session);
    answer.tell(&made, |made, _| report::measure::pg_init(made))?;
    Ok(CommandEnd::Yes)
}

/// Measures and prints the result.
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
            let on_interval = each_interval(spec.interval_ns, output);
            workloads::measure_pg(
                spec,
                password,
                secret.as_ref(),
                traffic::Run { on_interval, ..run },
            )
        },
        report::measure::pg,
    )
}
