//! `netwright measure redis`: Redis commands to any server with its protocol.

use clap::{Arg, Args};
use model::measure::{Common, RedisSpec, Transport};
use workloads::RedisUrl;

use super::{
    conduct,
    counts::OneSize,
    each_interval,
    flags::{RequestLoadArgs, SecretArgs},
    local::ClientArgs,
    secret,
};
use crate::{
    args::OutputArgs,
    failure::{CommandEnd, Failure},
};

/// The environment variable with the password, as for `redis-cli`.
const PASSWORD: &str = "REDISCLI_AUTH";

/// The default command, which changes nothing.
pub const COMMAND: &str = "GET key:{key}";
/// The default number of keys.
pub const KEYS: u64 = 100_000;
/// The default length of a value, bytes.
pub const DATA_BYTES: u64 = 3;

/// Adapts the shared flags to Redis. They are changed in place: removing and adding a flag would
/// reorder the help's headings.
fn of_commands(arg: Arg) -> Arg {
    let help = match arg.get_id().as_str() {
        "pipeline" => "Commands outstanding on each connection",
        "new_connections" => "Use a new connection for each command",
        "rate" => "Commands per second over all connections; open loop, timed from the schedule",
        "timeout" => "Time after which a command counts as failed",
        "requests" => "Measure this number of commands instead; they begin with the window",
        "ca" => "With rediss: trust the certificates in this PEM file instead of the system's",
        "insecure" => "With rediss: do not check the server's certificate",
        "tls_resume" => {
            "With rediss: connections resume the session of an earlier one where the server \
             permits it [default: every handshake is full]"
        }
        _ => return arg,
    };
    arg.help(help)
}

#[derive(Debug, Args)]
#[command(
    mut_args(of_commands),
    after_help = examples!(
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
)
)]
pub struct RedisArgs {
    /// The server, `redis://HOST`, `rediss://HOST` or `unix:PATH`; in full
    /// `redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]`. A password is better in REDISCLI_AUTH.
    #[arg(value_name = "URL", required = true)]
    pub url: String,
    /// The command; repeat for more, which are sent cyclically. `{key}` is a number of 12 digits
    /// below --keys, drawn for each; `{data}` a value of --data bytes.
    #[arg(long, value_name = "COMMAND", default_value = COMMAND, help_heading = "Traffic")]
    pub command: Vec<String>,
    /// Number of keys; `{key}` draws from them.
    #[arg(long, value_name = "N", default_value_t = KEYS, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000), help_heading = "Traffic")]
    pub keys: u64,
    /// The length of `{data}`.
    #[arg(long, value_name = "SIZE", default_value = "3", help_heading = "Traffic")]
    pub data: OneSize,
    #[command(flatten)]
    pub load: RequestLoadArgs,
    #[command(flatten)]
    pub local: ClientArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The checked request without a password, and the URL, which may have one.
///
/// # Errors
/// The first invalid flag.
pub fn spec(args: &RedisArgs) -> Result<(RedisSpec, RedisUrl), Failure> {
    let url = RedisUrl::of(&args.url)?;
    let transport = if args.url.starts_with("unix:") { Transport::Unix } else { Transport::Tcp };
    let load = &args.load;
    let common =
        args.local.common(url.shown.clone(), load.duration.duration, load.requests.is_some())?;
    let spec = RedisSpec {
        common: Common { transport, ..common },
        commands: args.command.clone(),
        keys: args.keys,
        data_bytes: args.data.0,
        tls: load.trust.spec(load.tls_resume)?,
        responder: args.local.responder.clone(),
        flows: load.flows.flows.0.clone(),
        pipeline: load.pipeline,
        new_connections: load.new_connections,
        rate_per_s: load.rate.per_s(),
        requests: load.requests,
        timeout_ns: load.timeout.timeout,
        interval_ns: args.local.interval,
    };
    Ok((spec, url))
}

/// The password for a URL without one.
pub fn password() -> Option<String> {
    std::env::var(PASSWORD).ok().filter(|p| !p.is_empty())
}

/// Measures and prints the result.
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
            let on_interval = each_interval(spec.interval_ns, output);
            let run = traffic::Run { on_interval, ..run };
            workloads::measure_redis(spec, url, password.as_deref(), secret.as_ref(), run)
        },
        report::measure::redis,
    )
}
