//! Flags that several kinds of traffic share, each declared once. A kind that needs other words or
//! a short letter changes them by `mut_arg`.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use model::{
    Bytes, CpuSet, Nanos,
    measure::{PgProtocol, Pin, SocketOptions, TlsSpec, Wait},
};

use super::counts::{Counts, PerSecond, Percent, within};
use crate::failure::Failure;

/// The secret that a server requires.
#[derive(Debug, Args, Clone)]
pub struct SecretArgs {
    /// Read the server's secret from this file [default: from NETWRIGHT_SECRET].
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub secret_file: Option<PathBuf>,
}

/// Addresses of both ends.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub struct AddressArgs {
    /// Only IPv4 addresses of the server.
    #[arg(long, short = '4', conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Only IPv6 addresses of the server.
    #[arg(long, short = '6')]
    pub ipv6: bool,
    /// Send from this local address.
    #[arg(long, value_name = "ADDRESS")]
    pub bind: Option<String>,
}

impl AddressArgs {
    /// 4 or 6, where only one family is requested.
    pub fn family(&self) -> Option<u8> {
        if self.ipv4 { Some(4) } else { self.ipv6.then_some(6) }
    }
}

/// The option `--flows`, of several commands.
#[derive(Debug, Args)]
pub struct FlowsArgs {
    /// Concurrent connections; 1, a list, or a sweep like 1..64*2.
    #[arg(long, value_name = "COUNTS", default_value = "1", help_heading = "Traffic")]
    pub flows: Counts,
}

/// The option `--rate` for requests, of several commands.
#[derive(Debug, Args)]
pub struct RateArgs {
    /// Requests per second over all connections; open loop, timed from the schedule.
    #[arg(long, value_name = "PER_SECOND", help_heading = "Traffic")]
    pub rate: Option<PerSecond>,
}

impl RateArgs {
    pub fn per_s(&self) -> Option<u64> {
        self.rate.map(|r| r.0)
    }
}

/// The option `--timeout`, of several commands.
#[derive(Debug, Args)]
pub struct TimeoutArgs {
    /// Time after which a request counts as failed.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "10s", help_heading = "Traffic")]
    pub timeout: Nanos,
}

/// Length of the window.
#[derive(Debug, Args)]
pub struct DurationArgs {
    /// The measured window of each run; with --requests an upper limit [default: 5s; with --requests
    /// 10m].
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", help_heading = "Time")]
    pub duration: Option<Nanos>,
}

/// The options that say which certificates are trusted.
#[derive(Debug, Args)]
pub struct TrustArgs {
    /// With https: trust the certificates in this PEM file instead of the system's.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure", help_heading = "TLS")]
    pub ca: Option<PathBuf>,
    /// With https: do not check the server's certificate.
    #[arg(long, help_heading = "TLS")]
    pub insecure: bool,
}

impl TrustArgs {
    /// The TLS part of a request. `resume`: whether connections may resume a session.
    ///
    /// # Errors
    /// A path that is not UTF-8.
    pub fn spec(&self, resume: bool) -> Result<TlsSpec, Failure> {
        Ok(TlsSpec { ca: super::named(self.ca.as_deref())?, insecure: self.insecure, resume })
    }
}

/// Requests to a server that answers them one after the other on each connection.
#[derive(Debug, Args)]
pub struct RequestLoadArgs {
    #[command(flatten)]
    pub flows: FlowsArgs,
    /// Requests outstanding on each connection; few servers answer more than one at a time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within::<1, 1024>, help_heading = "Traffic")]
    pub pipeline: u32,
    /// Use a new connection for each request.
    #[arg(long, conflicts_with = "pipeline", help_heading = "Traffic")]
    pub new_connections: bool,
    #[command(flatten)]
    pub rate: RateArgs,
    #[command(flatten)]
    pub timeout: TimeoutArgs,
    #[command(flatten)]
    pub duration: DurationArgs,
    /// Measure this number of requests instead; they begin with the window.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Time")]
    pub requests: Option<u64>,
    #[command(flatten)]
    pub trust: TrustArgs,
    /// With https: connections resume the session of an earlier one where the server permits it
    /// [default: every handshake is full].
    #[arg(long, help_heading = "TLS")]
    pub tls_resume: bool,
}

/// A header line of HTTP.
#[derive(Debug, Args)]
pub struct HeaderArgs {
    /// A header line of each request: 'Name: value'; repeat for more.
    #[arg(long, short = 'H', value_name = "HEADER", help_heading = "Traffic")]
    pub header: Vec<String>,
}

/// The transactions of PostgreSQL.
#[derive(Debug, Args)]
pub struct ScriptArgs {
    /// The transaction: tpcb-like, simple-update, select-only, select1, or a script file; NAME@3
    /// for a weight; repeat for more [default: select-only, which changes nothing].
    #[arg(long, short = 'f', value_name = "SCRIPT", help_heading = "Traffic")]
    pub script: Vec<String>,
    /// Protocol mode, as pgbench's -M.
    #[arg(
        long,
        short = 'M',
        value_enum,
        value_name = "PROTOCOL",
        default_value = "simple",
        help_heading = "Traffic"
    )]
    pub protocol: ProtocolArg,
}

/// The variables of its scripts.
#[derive(Debug, Args)]
pub struct VariableArgs {
    /// The scripts' :scale; tables are made for it [default: the rows of pgbench_branches; with --init 1].
    #[arg(long, short = 's', value_name = "N", value_parser = within::<1, 100_000>, help_heading = "Traffic")]
    pub scale: Option<u32>,
    /// A variable for the scripts: NAME=VALUE; repeat for more.
    #[arg(long, short = 'D', value_name = "NAME=VALUE", value_parser = variable, help_heading = "Traffic")]
    pub define: Vec<(String, String)>,
}

/// Protocol mode of the statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProtocolArg {
    /// As text, values included.
    Simple,
    /// Parsed each time; values are sent separately.
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

/// Parses `NAME=VALUE`.
///
/// # Errors
/// Text without `=`, or an invalid name.
fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    let letters = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    match letters && !name.is_empty() {
        true => Ok((name.into(), value.into())),
        false => Err("a name is of letters, digits and _".into()),
    }
}

/// Traffic around the window, which is not measured.
#[derive(Debug, Args)]
#[command(next_help_heading = "Time")]
pub struct AroundArgs {
    /// Traffic before the window, not measured [default: 200ms].
    #[arg(value_parser = model::seconds, long, value_name = "DURATION")]
    pub warmup: Option<Nanos>,
    /// Traffic after the window, not measured [default: 50ms].
    #[arg(value_parser = model::seconds, long, value_name = "DURATION")]
    pub cooldown: Option<Nanos>,
}

impl AroundArgs {
    /// The time before the window.
    pub fn before(&self) -> Nanos {
        self.warmup.unwrap_or(Nanos(200_000_000))
    }

    /// The time after the window.
    pub fn after(&self) -> Nanos {
        self.cooldown.unwrap_or(Nanos(50_000_000))
    }
}

/// Softirq time in the evidence.
#[derive(Debug, Args)]
pub struct SoftirqArgs {
    /// Add softirq time by context to the evidence, by eBPF (needs root; about 100 ns a softirq).
    #[arg(long, help_heading = "Output")]
    pub softirq: bool,
}

/// Repetition of a run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Time")]
pub struct RepeatArgs {
    /// Repeat until the 95% CI is this narrow, such as 2%; in percent of the result.
    #[arg(long, value_name = "PERCENT")]
    pub precision: Option<Percent>,
    /// Maximum time of --precision for each run.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "2m")]
    pub max_time: Nanos,
}

/// Placement and wait mode of the client's threads.
#[derive(Debug, Args)]
#[command(next_help_heading = "Placement and waiting")]
pub struct PlacementArgs {
    /// Wait mode of the client's threads.
    #[arg(long, value_enum, value_name = "WAIT", default_value = "block")]
    pub wait: WaitArg,
    /// Pin the client's threads to these CPUs; 0, 2-3 [default: chosen, and printed].
    #[arg(long, value_name = "LIST", conflicts_with = "no_pin")]
    pub cpu: Option<CpuSet>,
    /// Let the scheduler place the threads.
    #[arg(long)]
    pub no_pin: bool,
    /// Threads, which share the connections.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within::<1, 256>)]
    pub threads: u32,
}

impl PlacementArgs {
    /// Placement of the client's threads.
    pub fn pin(&self) -> Pin {
        pin(&self.cpu, self.no_pin)
    }
}

/// Options of the data sockets.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sockets")]
pub struct SocketArgs {
    /// Send and receive buffers at both ends (SO_SNDBUF, SO_RCVBUF).
    #[arg(long, value_name = "SIZE")]
    pub buffer: Option<Bytes>,
    /// TCP_NODELAY on or off [default: on, for stream off].
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub nodelay: Option<bool>,
    /// Largest TCP segment, bytes (TCP_MAXSEG).
    #[arg(long, value_name = "BYTES", value_parser = within::<88, 65_495>)]
    pub mss: Option<u32>,
    /// Differentiated services code point, 0 to 63.
    #[arg(long, value_name = "N", value_parser = within::<0, 63>)]
    pub dscp: Option<u32>,
    /// TCP congestion control: cubic, bbr, …
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
}

impl SocketArgs {
    /// The socket options as the request stores them.
    pub fn options(&self) -> SocketOptions {
        SocketOptions {
            nodelay: self.nodelay,
            buffer_bytes: self.buffer,
            mss_bytes: self.mss,
            dscp: self.dscp.and_then(|n| u8::try_from(n).ok()),
            congestion: self.congestion.clone(),
        }
    }
}

/// Wait mode of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WaitArg {
    /// Sleep in the kernel (blocking I/O).
    Block,
    /// Poll all the time; uses a whole CPU.
    Spin,
    /// Poll for 50 µs, then sleep.
    SpinThenBlock,
    /// Sleep while the kernel polls the NIC's queue.
    BusyPoll,
}

impl From<WaitArg> for Wait {
    fn from(arg: WaitArg) -> Self {
        match arg {
            WaitArg::Block => Self::Block,
            WaitArg::Spin => Self::Spin,
            WaitArg::SpinThenBlock => Self::SpinThenBlock,
            WaitArg::BusyPoll => Self::BusyPoll,
        }
    }
}

/// The placement of threads that `--cpu` and `--no-pin` ask for.
pub fn pin(list: &Option<CpuSet>, no: bool) -> Pin {
    match list {
        _ if no => Pin::No,
        Some(list) => Pin::List(list.clone()),
        None => Pin::Auto,
    }
}
