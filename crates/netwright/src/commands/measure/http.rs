//! `netwright measure http`: HTTP/1.1 requests to any server.

use std::path::PathBuf;

use clap::Args;
use model::measure::{Common, HttpSpec, Transport};

use super::{
    conduct, each_interval,
    flags::{HeaderArgs, RequestLoadArgs, SecretArgs},
    local::ClientArgs,
    named, secret,
};
use crate::{
    args::OutputArgs,
    failure::{CommandEnd, Failure},
};

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
    /// The URL, `http://`, `https://` or `http+unix://`; in full `http://HOST[:PORT]/PATH`, over a
    /// Unix socket `http+unix://%2Frun%2Fapp.sock/PATH`; several URLs of one server are requested cyclically.
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<String>,
    /// The method [default: GET, with a body POST].
    #[arg(long, short = 'X', value_name = "METHOD", help_heading = "Traffic")]
    pub method: Option<String>,
    #[command(flatten)]
    pub header: HeaderArgs,
    /// The body of each request.
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file", help_heading = "Traffic")]
    pub body: Option<String>,
    /// A file that is the body of each request.
    #[arg(long, value_name = "FILE", help_heading = "Traffic")]
    pub body_file: Option<PathBuf>,
    #[command(flatten)]
    pub load: RequestLoadArgs,
    #[command(flatten)]
    pub local: ClientArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The checked request.
///
/// # Errors
/// The first invalid flag.
pub fn spec(args: &HttpArgs) -> Result<HttpSpec, Failure> {
    let load = &args.load;
    let body_file = named(args.body_file.as_deref())?;
    let has_body = args.body.is_some() || body_file.is_some();
    let method = if has_body { "POST" } else { "GET" };
    let target = args.urls.first().cloned().unwrap_or_default();
    Ok(HttpSpec {
        common: Common {
            transport: transport(&target),
            ..args.local.common(target, load.duration.duration, load.requests.is_some())?
        },
        urls: args.urls.clone(),
        tls: load.trust.spec(load.tls_resume)?,
        responder: args.local.responder.clone(),
        method: args.method.clone().unwrap_or_else(|| method.into()),
        headers: args.header.header.clone(),
        body: args.body.clone(),
        body_file,
        flows: load.flows.flows.0.clone(),
        pipeline: load.pipeline,
        new_connections: load.new_connections,
        rate_per_s: load.rate.per_s(),
        requests: load.requests,
        timeout_ns: load.timeout.timeout,
        interval_ns: args.local.interval,
    })
}

/// The transport of requests to a URL: TCP, TLS or a Unix socket.
fn transport(url: &str) -> Transport {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    match scheme.eq_ignore_ascii_case("http+unix") {
        true => Transport::Unix,
        false => Transport::Tcp,
    }
}

/// Measures and prints the result.
pub fn run(spec: &HttpSpec, from: &SecretArgs, output: &OutputArgs) -> Result<CommandEnd, Failure> {
    let secret = secret(from)?;
    conduct(
        output,
        |run| {
            let on_interval = each_interval(spec.interval_ns, output);
            workloads::measure_http(spec, secret.as_ref(), traffic::Run { on_interval, ..run })
        },
        report::measure::http,
    )
}
