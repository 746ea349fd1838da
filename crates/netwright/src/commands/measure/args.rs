//! Flags of `netwright measure`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use model::{BitsPerSec, CpuSet, Nanos};

use super::{
    counts::{OneSize, Sizes, within},
    flags::{
        AddressArgs, AroundArgs, FlowsArgs, PlacementArgs, RateArgs, RepeatArgs, SecretArgs,
        SocketArgs, SoftirqArgs, TimeoutArgs, WaitArg,
    },
    http::HttpArgs,
    offload::OffloadArgs,
    pg::PgArgs,
    redis::RedisArgs,
};
use crate::{args::OutputArgs, record_args::RecordArgs};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = examples!(
    "  netwright serve --bind 10.0.0.5                    # at the server, first
  netwright measure rtt db1                          # round trips of 64 bytes
  netwright measure stream db1 --direction both --flows 4
  netwright measure connect db1
  netwright measure http http://web1/index.html --flows 16
  netwright measure pg postgres://db1/bench --script select-only --flows 8
  netwright measure --rerun result.json              # the same again"
))]
pub struct MeasureArgs {
    /// The kind of measurement.
    #[command(subcommand)]
    pub kind: Option<MeasureKind>,
    /// Repeat the measurement of this result.
    #[arg(long, value_name = "FILE.json")]
    pub rerun: Option<PathBuf>,
    #[command(flatten)]
    pub secret: SecretArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub keep: RecordArgs,
}

/// The kinds of measurements.
#[derive(Debug, Subcommand)]
pub enum MeasureKind {
    /// Request and response: the round trip's whole distribution.
    Rtt(Box<RttArgs>),
    /// Bytes in one or both directions: bits per second, retransmits, loss.
    Stream(Box<StreamArgs>),
    /// Connections per second, the time to connect and to the first byte.
    Connect(Box<ConnectArgs>),
    /// Which offload damages, merges or loses packets, in both directions.
    Offload(Box<OffloadArgs>),
    /// HTTP/1.1 requests to any server: latency, time to first byte, status codes.
    Http(Box<HttpArgs>),
    /// PostgreSQL transactions, pgbench's or from script files: rates, latencies, failures.
    Pg(Box<PgArgs>),
    /// Redis commands to any server with the Redis protocol: rates, latencies, errors.
    Redis(Box<RedisArgs>),
}

impl MeasureKind {
    /// Whether the client measures softirq time by eBPF.
    pub fn softirq(&self) -> bool {
        match self {
            Self::Rtt(a) => a.common.kernel.softirq,
            Self::Stream(a) => a.common.kernel.softirq,
            Self::Connect(a) => a.common.kernel.softirq,
            Self::Offload(_) => false,
            Self::Http(a) => a.local.kernel.softirq,
            Self::Pg(a) => a.local.kernel.softirq,
            Self::Redis(a) => a.local.kernel.softirq,
        }
    }
}

/// Options of all kinds.
#[derive(Debug, Args)]
#[command(
    mut_arg("no_pin", |a| a.help("Let the scheduler place the threads at both ends")),
    mut_arg("threads", |a| a.help("Threads at each end, which share the flows")),
    mut_arg("softirq", |a| a.help(SOFTIRQ)),
)]
pub struct CommonArgs {
    /// The server: HOST, HOST:PORT, `[::1]:PORT` or unix:PATH.
    pub target: String,
    /// The server's port; used when the target names none [default: 7471; iperf3 5201, qperf 19765].
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Server")]
    pub port: Option<u16>,
    #[command(flatten)]
    pub address: AddressArgs,
    #[command(flatten)]
    pub secret: SecretArgs,
    /// Transport; a target unix:PATH implies unix.
    #[arg(long, value_enum, value_name = "TRANSPORT", help_heading = "Traffic")]
    pub transport: Option<TransportArg>,
    /// Short for --transport udp.
    #[arg(long, conflicts_with = "transport", help_heading = "Traffic")]
    pub udp: bool,
    /// The measured window of each run.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "5s", help_heading = "Time")]
    pub duration: Nanos,
    #[command(flatten)]
    pub around: AroundArgs,
    #[command(flatten)]
    pub repeat: RepeatArgs,
    #[command(flatten)]
    pub placement: PlacementArgs,
    /// Wait mode of the server's threads [default: as the client's].
    #[arg(long, value_enum, value_name = "WAIT", help_heading = "Placement and waiting")]
    pub peer_wait: Option<WaitArg>,
    /// Pin the threads of the server to these of its CPUs.
    #[arg(
        long,
        value_name = "LIST",
        conflicts_with = "no_pin",
        help_heading = "Placement and waiting"
    )]
    pub peer_cpu: Option<CpuSet>,
    #[command(flatten)]
    pub socket: SocketArgs,
    #[command(flatten)]
    pub kernel: SoftirqArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// System calls that send and receive where a thread has many streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineArg {
    /// io_uring from 8 streams on a thread; epoll for all points of a sweep that has fewer.
    Auto,
    /// One call for each message.
    Epoll,
    /// One call for many messages (Linux 6.1).
    #[value(name = "io_uring")]
    IoUring,
}

const SOFTIRQ: &str = "Add softirq time by context to the evidence, by eBPF (needs root; about 100 ns \
                       a softirq). `serve --softirq` does so at the server";

/// The last line of the help: what `-v` adds to the output.
const RTT_MORE: &str =
    "Print every placement of a mode; the CPUs that each end may use, the measurement noise";
const STREAM_MORE: &str =
    "Print every interval; the CPUs that each end may use, the measurement noise";
const RTT_RATE: &str = "Requests per second over all flows; 20000 or 20k, open loop, timed from \
                        the schedule";
const STREAM_FLOWS: &str = "Connections in each direction; 1, a list, or a sweep like 1..16*2";
const CONNECT_MORE: &str = "Print the CPUs that each end may use and the measurement noise";

#[derive(Debug, Args)]
#[command(
    mut_arg("verbose", |a| a.help(RTT_MORE)),
    mut_arg("rate", |a| a.help(RTT_RATE)),
    mut_arg("timeout", |a| a.default_value("1s").help("Time after which a UDP request counts as \
                                                       lost")),
    after_help = examples!(
    "  # 64 bytes each way, one flow
  netwright measure rtt db1
  netwright measure rtt db1 --request '8..64k*2'         # a sweep of sizes
  netwright measure rtt db1 --flows 1,8,64 --threads 1   # a sweep of flows
  # by schedule (open loop)
  netwright measure rtt db1 --rate 20000 --flows 64
  # so much stack, so much waking up
  netwright measure rtt db1 --wait-split
  netwright measure rtt db1 --precision 2% --json > rtt.json
  netwright measure rtt unix:/run/nw.sock                # a Unix socket
  netwright measure rtt db1 --peer qperf                 # a stock qperf server"
)
)]
pub struct RttArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    /// Request size in bytes; 64, a list, or a sweep like 8..64k*2.
    #[arg(long, value_name = "SIZES", default_value = "64", help_heading = "Traffic")]
    pub request: Sizes,
    /// Response size in bytes [default: as the request].
    #[arg(long, value_name = "SIZES", help_heading = "Traffic")]
    pub response: Option<Sizes>,
    #[command(flatten)]
    pub flows: FlowsArgs,
    /// Queue depth: requests outstanding on each flow.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within::<1, 65_536>, help_heading = "Traffic")]
    pub queue_depth: u32,
    #[command(flatten)]
    pub rate: RateArgs,
    /// Closed loop: a thread computes this long after each response before its next request.
    #[arg(long, value_name = "DURATION", conflicts_with = "rate", help_heading = "Traffic")]
    pub think_time: Option<Nanos>,
    /// Threads of the server [default: as many as the client's].
    #[arg(long, value_name = "N", value_parser = within::<1, 256>, help_heading = "Traffic")]
    pub peer_threads: Option<u32>,
    #[command(flatten)]
    pub timeout: TimeoutArgs,
    /// Run the variants that separate stack from wake-up latency: two CPUs blocking, two spinning,
    /// one CPU.
    #[arg(long, conflicts_with_all = ["wait", "peer_wait", "no_pin", "rate"], help_heading = "Placement and waiting")]
    pub wait_split: bool,
    /// System calls of many streams on a thread, in closed loop.
    #[arg(
        long,
        value_enum,
        value_name = "ENGINE",
        default_value = "auto",
        hide_short_help = true,
        help_heading = "Traffic"
    )]
    pub engine: EngineArg,
    /// Program of the server.
    #[arg(
        long,
        value_enum,
        value_name = "PROGRAM",
        default_value = "netwright",
        help_heading = "Server"
    )]
    pub peer: RttPeer,
}

#[derive(Debug, Args)]
#[command(
    mut_arg("verbose", |a| a.help(STREAM_MORE)),
    mut_arg("flows", |a| a.help(STREAM_FLOWS)),
    after_help = examples!(
    "  # one flow, from here to there
  netwright measure stream db1
  netwright measure stream db1 --direction reverse --flows 4
  netwright measure stream db1 --direction both
  netwright measure stream db1 --udp --rate 500Mbit --message 1400
  netwright measure stream db1 --congestion bbr --buffer 4M
  netwright measure stream db1 --peer iperf3          # a stock iperf3 server"
)
)]
pub struct StreamArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    /// Direction of the bytes.
    #[arg(
        long,
        value_enum,
        value_name = "WAY",
        default_value = "forward",
        help_heading = "Traffic"
    )]
    pub direction: DirectionArg,
    #[command(flatten)]
    pub flows: FlowsArgs,
    /// Bytes of one send or datagram; a size, a list, or a sweep [default: 128k, UDP 1400].
    #[arg(long, value_name = "SIZES", help_heading = "Traffic")]
    pub message: Option<Sizes>,
    /// Bits per second each way; over all flows of a direction, 500Mbit, 10Gbit [default:
    /// unlimited, UDP 100Mbit].
    #[arg(long, value_name = "RATE", help_heading = "Traffic")]
    pub rate: Option<BitsPerSec>,
    /// Print a line at this interval, as iperf3's -i does.
    #[arg(value_parser = model::seconds, long, short, value_name = "DURATION", default_value = "1s", help_heading = "Time")]
    pub interval: Nanos,
    /// Avoid the copy at the sender.
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, default_missing_value = "sendfile", help_heading = "Traffic")]
    pub zerocopy: Option<ZeroCopyArg>,
    /// Discard the bytes within the receiver's kernel (MSG_TRUNC).
    #[arg(long, help_heading = "Traffic")]
    pub skip_receive_copy: bool,
    /// Program of the server.
    #[arg(
        long,
        value_enum,
        value_name = "PROGRAM",
        default_value = "netwright",
        help_heading = "Server"
    )]
    pub peer: StreamPeer,
}

/// Several addresses have more local ports.
const CONNECT_BIND: &str =
    "Send from this local address, or in turn from several: 10.0.0.5,10.0.0.6 (each has its ports)";

#[derive(Debug, Args)]
#[command(
    mut_arg("verbose", |a| a.help(CONNECT_MORE)),
    mut_arg("flows", |a| a.help("Concurrent connection attempts; 1, a list, or a sweep")),
    mut_arg("rate", |a| a.help("Connections per second in all; 2000 or 2k, open loop")),
    mut_arg("timeout", |a| a.default_value("3s").help("Time after which an attempt counts as \
                                                       failed")),
    mut_arg("bind", |a| a.help(CONNECT_BIND).value_name("ADDRESS[,ADDRESS]")),
    mut_arg("transport", |a| a.help("tcp, or unix, implied by a target unix:PATH; UDP makes no \
                                     connections").hide_possible_values(true)),
    mut_arg("udp", |a| a.hide(true)),
    after_help = examples!(
    "  # connect and close, one after the other
  netwright measure connect db1
  netwright measure connect db1 --flows 32 --request 64 --response 1024
  netwright measure connect db1 --rate 2000           # by schedule
  netwright measure connect db1 --close reset         # no TIME_WAIT
  # more local ports
  netwright measure connect db1 --close local --bind 10.0.0.5,10.0.0.6"
))]
pub struct ConnectArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub flows: FlowsArgs,
    #[command(flatten)]
    pub rate: RateArgs,
    /// Bytes of a request on each connection; 0 for none.
    #[arg(long, value_name = "SIZE", default_value = "0", help_heading = "Traffic")]
    pub request: OneSize,
    /// Bytes of the response to it [default: as the request].
    #[arg(long, value_name = "SIZE", help_heading = "Traffic")]
    pub response: Option<OneSize>,
    /// The end that closes.
    #[arg(long, value_enum, value_name = "HOW", default_value = "peer", help_heading = "Traffic")]
    pub close: CloseArg,
    #[command(flatten)]
    pub timeout: TimeoutArgs,
}

/// The transport under the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TransportArg {
    /// A connection for each flow.
    Tcp,
    /// Datagrams; lost ones are counted.
    Udp,
    /// A Unix stream socket.
    Unix,
}

/// The direction in which data flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DirectionArg {
    /// From the client to the server.
    Forward,
    /// From the server to the client.
    Reverse,
    /// Both directions at once.
    Both,
}

/// How to avoid the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ZeroCopyArg {
    /// sendfile from a file in memory.
    Sendfile,
    /// MSG_ZEROCOPY: the kernel sends from the program's memory.
    Msg,
}

/// The end that closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CloseArg {
    /// The client: each connection leaves a TIME_WAIT of 60 s on the client.
    Local,
    /// The server: the TIME_WAIT is on the server.
    Peer,
    /// The client, by reset: no TIME_WAIT.
    Reset,
}

/// The server of `rtt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RttPeer {
    /// A running `netwright serve`.
    Netwright,
    /// A stock qperf 0.4.
    Qperf,
}

/// The server of `stream`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StreamPeer {
    /// A running `netwright serve`.
    Netwright,
    /// A stock `iperf3 -s`.
    Iperf3,
    /// A stock qperf 0.4.
    Qperf,
}
