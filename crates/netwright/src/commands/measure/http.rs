//! `netwright measure http`.

use std::path::{Path, PathBuf};

use clap::Args;
use model::{
    CpuSet, Nanos,
    measure::{Common, FarProgram, HttpSpec, Pin, SocketOptions, TlsSpec, Transport},
};

use super::{
    args::{SecretArgs, SocketArgs, WaitArg},
    conduct,
    counts::{Counts, PerSecond, Percent, within},
    secret, spec,
};
use crate::{
    args::OutputArgs,
    exit::{Done, Failure},
};

/// The window when nothing is asked for.
const WINDOW: Nanos = Nanos(5_000_000_000);
/// The longest that a number of requests may take when nothing is asked for.
const LONGEST: Nanos = Nanos(600_000_000_000);

/// `netwright measure http`.
#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright measure http http://web1/                    # one connection, one request at a time
  netwright measure http http://web1/ --flows 1..64*4    # a sweep of connections
  netwright measure http http://web1/ --flows 32 --rate 5000   # by schedule, and timed from it
  netwright measure http http://web1/ --requests 10000 --flows 8
  netwright measure http http://web1/a http://web1/b     # in turn
  netwright measure http http://web1/ --responder web1 --confidence 2%   # and the server's CPU
  netwright measure http http://web1/ --new-connections  # a connection for each request
  netwright measure http https://web1/ --ca ours.pem     # TLS, with an authority of one's own
  netwright measure http http://web1/api --body '{}' --header 'Content-Type: application/json'"
))]
pub struct HttpArgs {
    /// What to ask for: `http://HOST[:PORT]/PATH` or `https://…`; several of one server in turn.
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
    #[arg(long, value_name = "DURATION", default_value = "10s", help_heading = "Traffic")]
    pub timeout: Nanos,
    /// The measured window of each run [default: 5s; with --requests its limit, 10m].
    #[arg(long, value_name = "DURATION", help_heading = "Time")]
    pub duration: Option<Nanos>,
    /// So many requests instead; they begin with the window.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Time")]
    pub requests: Option<u64>,
    /// Repeat until the 95% interval of the median latency is this narrow, in percent: 2%.
    #[arg(long, value_name = "PERCENT", conflicts_with = "requests", help_heading = "Time")]
    pub confidence: Option<Percent>,
    /// The longest that --confidence may take for each run.
    #[arg(long, value_name = "DURATION", default_value = "2m", help_heading = "Time")]
    pub longest: Nanos,
    /// Traffic before the window, not measured; with --requests time to connect.
    #[arg(long, value_name = "DURATION", default_value = "200ms", help_heading = "Time")]
    pub warmup: Nanos,
    /// Traffic after the window, not measured.
    #[arg(long, value_name = "DURATION", default_value = "50ms", help_heading = "Time")]
    pub cooldown: Nanos,
    /// Only IPv4 addresses of the server.
    #[arg(long, short = '4', conflicts_with = "ipv6", help_heading = "Server")]
    pub ipv4: bool,
    /// Only IPv6 addresses of the server.
    #[arg(long, short = '6', help_heading = "Server")]
    pub ipv6: bool,
    /// A `netwright serve` on the server's host, HOST:PORT, that tells what its CPUs did.
    #[arg(long, value_name = "TARGET", help_heading = "Server")]
    pub responder: Option<String>,
    #[command(flatten)]
    pub secret: SecretArgs,
    /// Send from this local address.
    #[arg(long, value_name = "ADDRESS", help_heading = "Server")]
    pub bind: Option<String>,
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
    /// How the threads wait for responses.
    #[arg(
        long,
        value_enum,
        value_name = "WAIT",
        default_value = "block",
        help_heading = "Placement and waiting"
    )]
    pub wait: WaitArg,
    /// Pin the threads to these CPUs: 0, 2-3 [default: chosen, and printed].
    #[arg(
        long,
        value_name = "LIST",
        conflicts_with = "no_pin",
        help_heading = "Placement and waiting"
    )]
    pub cpu: Option<CpuSet>,
    /// Let the scheduler place the threads.
    #[arg(long, help_heading = "Placement and waiting")]
    pub no_pin: bool,
    /// Threads, which share the connections.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within::<1, 256>, help_heading = "Placement and waiting")]
    pub threads: u32,
    #[command(flatten)]
    pub socket: SocketArgs,
    /// Add softirq time by context to the evidence, by eBPF (needs root; about 100 ns a softirq).
    #[arg(long, help_heading = "Output")]
    pub softirq: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The request that says everything.
///
/// # Errors
/// Something asked for cannot be.
pub fn spec(args: &HttpArgs) -> Result<HttpSpec, Failure> {
    let most = if args.requests.is_some() { LONGEST } else { WINDOW };
    let duration_ns = args.duration.unwrap_or(most);
    if duration_ns.0 < 10_000_000 {
        return Err(Failure::Usage("--duration: at least 10ms".into()));
    }
    let body_file = named(args.body_file.as_deref())?;
    let has_body = args.body.is_some() || body_file.is_some();
    let method = if has_body { "POST" } else { "GET" };
    Ok(HttpSpec {
        common: Common {
            target: args.urls.first().cloned().unwrap_or_default(),
            far: FarProgram::Server,
            transport: Transport::Tcp,
            family: if args.ipv4 { Some(4) } else { args.ipv6.then_some(6) },
            bind: args.bind.clone(),
            duration_ns,
            warmup_ns: args.warmup,
            cooldown_ns: if args.requests.is_some() { Nanos(0) } else { args.cooldown },
            wait: spec::wait(args.wait),
            peer_wait: spec::wait(args.wait),
            pin: spec::pin(&args.cpu, args.no_pin),
            peer_pin: Pin::No,
            threads: args.threads,
            socket: SocketOptions {
                nodelay: args.socket.nodelay,
                buffer_bytes: args.socket.buffer,
                mss_bytes: args.socket.mss,
                dscp: args.socket.dscp.and_then(|n| u8::try_from(n).ok()),
                congestion: args.socket.congestion.clone(),
            },
            confidence_per_mille: args.confidence.map(|p| p.0),
            longest_ns: args.longest,
        },
        urls: args.urls.clone(),
        tls: TlsSpec {
            ca: named(args.ca.as_deref())?,
            insecure: args.insecure,
            resume: args.tls_resume,
        },
        responder: args.responder.clone(),
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
    })
}

/// A file by its name, as a request keeps it.
fn named(path: Option<&Path>) -> Result<Option<String>, Failure> {
    let name = |p: &Path| {
        p.to_str().map(str::to_owned).ok_or_else(|| {
            Failure::Usage(format!("{}: the name is not UTF-8; rename it", p.display()))
        })
    };
    path.map(name).transpose()
}

/// Measures and prints.
pub fn run(spec: &HttpSpec, from: &SecretArgs, output: &OutputArgs) -> Result<Done, Failure> {
    let secret = secret(from)?;
    conduct(
        output,
        |run| traffic::measure_http(spec, secret.as_ref(), run),
        |document, look| report::measure::http(document, *look),
    )
}
