//! `netwright measure redis`.

use std::path::PathBuf;

use clap::Args;
use model::{
    Nanos,
    measure::{Common, RedisSpec, ServedInterval, TlsSpec, Transport},
};
use workloads::RedisUrl;

use super::{
    args::SecretArgs,
    conduct,
    counts::{Counts, OneSize, PerSecond, within},
    http::named,
    local::{ClientArgs, interval},
    secret,
};
use crate::{
    args::OutputArgs,
    exit::{CommandEnd, Failure},
    output::rows_wanted,
};

/// Where `redis-cli` and `redis-benchmark` take a password from.
const PASSWORD: &str = "REDISCLI_AUTH";

/// What is sent where nothing is asked for: it changes nothing.
pub const COMMAND: &str = "GET key:{key}";
/// The keys that it draws from.
pub const KEYS: u64 = 100_000;
/// The length of a value.
pub const DATA_BYTES: u64 = 3;

/// `netwright measure redis`.
#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  # GET of 100,000 keys, one connection, one command at a time
  netwright measure redis redis://cache1
  # 1 to 64 connections, 16 commands outstanding on each
  netwright measure redis redis://cache1 --flows 1..64*4 --pipeline 16
  # writes, which change the server's data
  netwright measure redis redis://cache1/9 --data 1k \\
      --command 'SET key:{key} {data}'
  # two in turn, by schedule
  netwright measure redis redis://cache1 --rate 5000 \\
      --command 'GET key:{key}' --command 'HGETALL h'
  # an ACL user, over TLS
  REDISCLI_AUTH=… netwright measure redis rediss://app@cache1 --ca ours.pem
  netwright measure redis unix:/run/redis/redis-server.sock"
))]
pub struct RedisArgs {
    /// The server: `redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]`, `rediss://…` over TLS, or
    /// `unix:PATH`. A password is better in REDISCLI_AUTH.
    #[arg(value_name = "URL", required = true)]
    pub url: String,
    /// The command; again for more, which are sent in turn. `{key}` is a number of 12 digits below
    /// --keys, drawn for each; `{data}` a value of --data bytes.
    #[arg(long, value_name = "COMMAND", default_value = COMMAND, help_heading = "Traffic")]
    pub command: Vec<String>,
    /// How many keys `{key}` draws from.
    #[arg(long, value_name = "N", default_value_t = KEYS, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000), help_heading = "Traffic")]
    pub keys: u64,
    /// The length of `{data}`.
    #[arg(long, value_name = "SIZE", default_value = "3", help_heading = "Traffic")]
    pub data: OneSize,
    /// Connections at once: 1, a list, or a sweep like 1..64*2.
    #[arg(long, value_name = "COUNTS", default_value = "1", help_heading = "Traffic")]
    pub flows: Counts,
    /// Commands outstanding on each connection.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within::<1, 1024>, help_heading = "Traffic")]
    pub pipeline: u32,
    /// A connection of its own for each command.
    #[arg(long, conflicts_with = "pipeline", help_heading = "Traffic")]
    pub new_connections: bool,
    /// Commands a second over all connections, by schedule and timed from it (open loop).
    #[arg(long, value_name = "PER_SECOND", help_heading = "Traffic")]
    pub rate: Option<PerSecond>,
    /// When a command counts as failed.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "10s", help_heading = "Traffic")]
    pub timeout: Nanos,
    /// The measured window of each run [default: 5s; with --requests its limit, 10m].
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", help_heading = "Time")]
    pub duration: Option<Nanos>,
    /// So many commands instead; they begin with the window.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Time")]
    pub requests: Option<u64>,
    /// With rediss: trust the certificates in this PEM file instead of the system's.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure", help_heading = "TLS")]
    pub ca: Option<PathBuf>,
    /// With rediss: do not check the server's certificate.
    #[arg(long, help_heading = "TLS")]
    pub insecure: bool,
    /// With rediss: connections take up the session of an earlier one where the server lets them
    /// [default: every handshake is whole].
    #[arg(long, help_heading = "TLS")]
    pub tls_resume: bool,
    #[command(flatten)]
    pub local: ClientArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The request that says everything but a password, and the URL that may have one.
///
/// # Errors
/// Something asked for cannot be.
pub fn spec(args: &RedisArgs) -> Result<(RedisSpec, RedisUrl), Failure> {
    let url = RedisUrl::of(&args.url)?;
    let transport = if args.url.starts_with("unix:") { Transport::Unix } else { Transport::Tcp };
    let common = args.local.common(url.shown.clone(), args.duration, args.requests.is_some())?;
    let spec = RedisSpec {
        common: Common { transport, ..common },
        commands: args.command.clone(),
        keys: args.keys,
        data_bytes: args.data.0,
        tls: TlsSpec {
            ca: named(args.ca.as_deref())?,
            insecure: args.insecure,
            resume: args.tls_resume,
        },
        responder: args.local.responder.clone(),
        flows: args.flows.0.clone(),
        pipeline: args.pipeline,
        new_connections: args.new_connections,
        rate_per_s: args.rate.map(|r| r.0),
        requests: args.requests,
        timeout_ns: args.timeout,
        interval_ns: args.local.interval,
    };
    Ok((spec, url))
}

/// The password for a URL that has none.
pub fn password() -> Option<String> {
    std::env::var(PASSWORD).ok().filter(|p| !p.is_empty())
}

/// Measures and prints.
pub fn run(
    spec: &RedisSpec,
    url: &RedisUrl,
    from: &SecretArgs,
    output: &OutputArgs,
) -> Result<CommandEnd, Failure> {
    let secret = secret(from)?;
    let password = password();
    conduct(
        output,
        |run| {
            let hear: &(dyn Fn(&ServedInterval) + Sync) = &interval;
            let asked_for = spec.interval_ns.is_some() && !output.talk.quiet;
            let heard = (asked_for || rows_wanted(output.talk.quiet)).then_some(hear);
            let run = traffic::Run { heard, ..run };
            workloads::measure_redis(spec, url, password.as_deref(), secret.as_ref(), run)
        },
        |document, look| report::measure::redis(document, *look),
    )
}
