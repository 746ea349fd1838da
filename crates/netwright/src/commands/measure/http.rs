//! `netwright measure http`.

use std::path::{Path, PathBuf};

use clap::Args;
use model::{
    Nanos,
    measure::{Common, HttpSpec, ServedInterval, TlsSpec, Transport},
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
    output::rows_wanted,
};

/// `netwright measure http`.
#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  # one connection, one request at a time
  netwright measure http http://web1/
  # a sweep of connections
  netwright measure http http://web1/ --flows 1..64*4
  # by schedule, and timed from it
  netwright measure http http://web1/ --flows 32 --rate 5000
  netwright measure http http://web1/ --requests 10000 --flows 8
  netwright measure http http://web1/a http://web1/b     # in turn
  # and the server's CPU
  netwright measure http http://web1/ --responder web1 --precision 2%
  # a connection for each request
  netwright measure http http://web1/ --new-connections
  # over the Unix socket /run/app.sock
  netwright measure http http+unix://%2Frun%2Fapp.sock/health
  # TLS, with an authority of one's own
  netwright measure http https://web1/ --ca ours.pem
  netwright measure http http://web1/api --body '{}' \\
      --header 'Content-Type: application/json'"
))]
pub struct HttpArgs {
    /// What to ask for: `http://HOST[:PORT]/PATH`, `https://…`, or `http+unix://%2Frun%2Fapp.sock/PATH`
    /// over a Unix socket; several of one server in turn.
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<String>,
    /// The method [default: GET, with a body POST].
    #[arg(long, short = 'X', value_name = "METHOD", help_heading = "Traffic")]
    pub method: Option<String>,
    /// A header line of each request: 'Name: value'; again for more.
    #[arg(long, short = 'H', value_name = "HEADER", help_heading = "Traffic")]
    pub header: Vec<String>,
    /// The body of each request.
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file", help_heading = "Traffic")]
    pub body: Option<String>,
    /// A file that is the body of each request.
    #[arg(long, value_name = "FILE", help_heading = "Traffic")]
    pub body_file: Option<PathBuf>,
    /// Connections at once: 1, a list, or a sweep like 1..64*2.
    #[arg(long, value_name = "COUNTS", default_value = "1", help_heading = "Traffic")]
    pub flows: Counts,
    /// Requests outstanding on each connection; few servers answer more than one at a time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within::<1, 1024>, help_heading = "Traffic")]
    pub pipeline: u32,
    /// A connection of its own for each request.
    #[arg(long, conflicts_with = "pipeline", help_heading = "Traffic")]
    pub new_connections: bool,
    /// Requests a second over all connections, by schedule and timed from it (open loop).
    #[arg(long, value_name = "PER_SECOND", help_heading = "Traffic")]
    pub rate: Option<PerSecond>,
    /// When a request counts as failed.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "10s", help_heading = "Traffic")]
    pub timeout: Nanos,
    /// The measured window of each run [default: 5s; with --requests its limit, 10m].
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", help_heading = "Time")]
    pub duration: Option<Nanos>,
    /// So many requests instead; they begin with the window.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Time")]
    pub requests: Option<u64>,
    /// With https: trust the certificates in this PEM file instead of the system's.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure", help_heading = "TLS")]
    pub ca: Option<PathBuf>,
    /// With https: do not check the server's certificate.
    #[arg(long, help_heading = "TLS")]
    pub insecure: bool,
    /// With https: connections take up the session of an earlier one where the server lets them
    /// [default: every handshake is whole].
    #[arg(long, help_heading = "TLS")]
    pub tls_resume: bool,
    #[command(flatten)]
    pub local: ClientArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The request that says everything.
///
/// # Errors
/// Something asked for cannot be.
pub fn spec(args: &HttpArgs) -> Result<HttpSpec, Failure> {
    let body_file = named(args.body_file.as_deref())?;
    let has_body = args.body.is_some() || body_file.is_some();
    let method = if has_body { "POST" } else { "GET" };
    let target = args.urls.first().cloned().unwrap_or_default();
    Ok(HttpSpec {
        common: Common {
            transport: transport(&target),
            ..args.local.common(target, args.duration, args.requests.is_some())?
        },
        urls: args.urls.clone(),
        tls: TlsSpec {
            ca: named(args.ca.as_deref())?,
            insecure: args.insecure,
            resume: args.tls_resume,
        },
        responder: args.local.responder.clone(),
        method: args.method.clone().unwrap_or_else(|| method.into()),
        headers: args.header.clone(),
        body: args.body.clone(),
        body_file,
        flows: args.flows.0.clone(),
        pipeline: args.pipeline,
        new_connections: args.new_connections,
        rate_per_s: args.rate.map(|r| r.0),
        requests: args.requests,
        timeout_ns: args.timeout,
        interval_ns: args.local.interval,
    })
}

/// What carries requests to a URL.
pub fn transport(url: &str) -> Transport {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    match scheme.eq_ignore_ascii_case("http+unix") {
        true => Transport::Unix,
        false => Transport::Tcp,
    }
}

/// A file by its name, as a request keeps it.
pub fn named(path: Option<&Path>) -> Result<Option<String>, Failure> {
    let name = |p: &Path| {
        p.to_str().map(str::to_owned).ok_or_else(|| {
            Failure::Usage(format!("{}: the name is not UTF-8; rename it", p.display()))
        })
    };
    path.map(name).transpose()
}

/// Measures and prints.
pub fn run(spec: &HttpSpec, from: &SecretArgs, output: &OutputArgs) -> Result<CommandEnd, Failure> {
    let secret = secret(from)?;
    conduct(
        output,
        |run| {
            let hear: &(dyn Fn(&ServedInterval) + Sync) = &interval;
            let asked_for = spec.interval_ns.is_some() && !output.talk.quiet;
            let heard = (asked_for || rows_wanted(output.talk.quiet)).then_some(hear);
            workloads::measure_http(spec, secret.as_ref(), traffic::Run { heard, ..run })
        },
        |document, look| report::measure::http(document, *look),
    )
}
