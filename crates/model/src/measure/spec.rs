//! The requests: everything needed to run a measurement again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BitsPerSec, Bytes, CpuSet, Nanos};

/// What carries the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    Tcp,
    Udp,
    /// A Unix stream socket.
    Unix,
}

/// How a thread waits for the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Sleeps in the kernel until data is there.
    Block,
    /// Asks again and again, never sleeps.
    Spin,
    /// Asks for [`SPIN_NS`], then sleeps.
    SpinThenBlock,
    /// Sleeps in the kernel, which polls the NIC's queue meanwhile (`SO_BUSY_POLL`).
    BusyPoll,
}

/// How long [`Wait::SpinThenBlock`] asks before it sleeps: about the price of waking up.
pub const SPIN_NS: Nanos = Nanos(50_000);

/// Where the threads of one end run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pin {
    /// The tool chooses and says what it chose: a core for each thread, or none pinned where there
    /// are not so many, or where a server of another program is on the same host.
    #[default]
    Auto,
    /// The same, but also where such a server is on the same host.
    Apart,
    No,
    /// Thread n on the n-th CPU of the list, round and round.
    List(CpuSet),
}

/// Options of the data sockets; `None` leaves the kernel's default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketOptions {
    /// `TCP_NODELAY`. The default is on for request/response and off for streams.
    pub nodelay: Option<bool>,
    /// `SO_SNDBUF` and `SO_RCVBUF` at both ends (the kernel doubles them).
    pub buffer_bytes: Option<Bytes>,
    /// Largest TCP segment, set by `TCP_MAXSEG`.
    pub mss_bytes: Option<u32>,
    /// Differentiated services code point, 0 to 63.
    pub dscp: Option<u8>,
    /// Name of the algorithm, set by `TCP_CONGESTION`.
    pub congestion: Option<String>,
}

/// What runs at the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeerProgram {
    /// The server is `netwright serve`.
    #[default]
    Netwright,
    /// The server is a stock iperf3.
    Iperf3,
    Qperf,
    /// A server of another kind: HTTP, PostgreSQL.
    Server,
}

/// What every kind of measurement is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Common {
    /// The server as it was named: `HOST`, `HOST:PORT`, `[::1]:PORT`, `unix:PATH`.
    pub target: String,
    #[serde(default)]
    pub peer: PeerProgram,
    /// What carries the bytes.
    pub transport: Transport,
    /// Only addresses of this family: 4 or 6.
    pub family: Option<u8>,
    /// Local address to send from.
    pub bind: Option<String>,
    /// The measured window, without warm-up and cool-down.
    pub duration_ns: Nanos,
    /// Traffic before the window, not measured.
    pub warmup_ns: Nanos,
    /// Traffic after the window, not measured, so that no end stops within it.
    pub cooldown_ns: Nanos,
    /// How the local threads wait.
    pub wait: Wait,
    /// How the server's threads wait.
    pub peer_wait: Wait,
    /// Where the local threads run.
    pub pin: Pin,
    /// Where the server's threads run.
    pub peer_pin: Pin,
    /// Threads at each end, which share the flows.
    pub threads: u32,
    /// Options of the data sockets.
    pub socket: SocketOptions,
    /// Repeat until the interval of the result is this narrow, as a share (0.02 for 2%).
    pub confidence_per_mille: Option<u32>,
    /// The longest that `--precision` may take.
    pub max_time_ns: Nanos,
}

/// `measure rtt`: request and response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RttSpec {
    /// What every kind is asked.
    pub common: Common,
    /// Sizes of the request, one run each.
    pub request_bytes: Vec<u64>,
    /// Sizes of the response, one run each; empty is: as the request.
    pub response_bytes: Vec<u64>,
    /// Connections at once, one run each.
    pub flows: Vec<u32>,
    /// Requests outstanding on each flow.
    pub queue_depth: u32,
    /// Requests a second over all flows, by schedule (open loop); `None` sends the next request
    /// on the last one's response (closed loop).
    pub rate_per_s: Option<u64>,
    /// After how long a UDP request counts as lost.
    pub timeout_ns: Nanos,
    /// Run the wait modes and placements that tell the stack from waking up.
    pub wait_split: bool,
    /// What moves the bytes of many streams, for comparisons.
    #[serde(default)]
    pub engine: Engine,
    /// The server spins so long before each response, instead of its own `--service-time`.
    #[serde(default)]
    pub service_ns: Option<Nanos>,
    /// Closed loop: each thread here computes so long upon a response before it sends the next
    /// request. No part of the round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_time_ns: Option<Nanos>,
    /// Threads at the server, where those are not as many as here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_threads: Option<u32>,
}

/// What moves the bytes where one thread has many streams in closed loop. All else is not
/// affected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// The one that does best; where several numbers of flows are measured, one for all of them.
    #[default]
    Auto,
    /// `epoll_wait`, and a `recv` and a `send` for each message; also for one stream.
    Epoll,
    /// As [`Engine::Epoll`], and without `epoll_wait` where a thread has one stream.
    PerMessage,
    /// One `io_uring_enter` for many messages, where the kernel has it.
    IoUring,
}

/// Which way a stream goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From here to the server.
    Forward,
    /// From the server to here.
    Reverse,
    /// Both at once, on flows of their own.
    Both,
}

/// How a sender spares copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ZeroCopy {
    /// `sendfile` from a file in memory.
    Sendfile,
    /// Sends with the flag `MSG_ZEROCOPY`.
    Msg,
}

/// What `measure stream` was asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamSpec {
    /// What every kind is asked.
    pub common: Common,
    pub direction: Direction,
    /// Connections at once in each direction, one run each.
    pub flows: Vec<u32>,
    /// Bytes of one send or datagram, one run each.
    pub message_bytes: Vec<u64>,
    /// Bits a second over all flows of a direction; for UDP needed.
    pub rate: Option<BitsPerSec>,
    /// A line every so often.
    pub interval_ns: Nanos,
    /// How the sender spares copies.
    pub zerocopy: Option<ZeroCopy>,
    /// The receiver throws bytes away within the kernel (`MSG_TRUNC`).
    pub skip_receive_copy: bool,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Close {
    /// The local end closes first and keeps the port in TIME_WAIT for 60 s.
    Local,
    /// The server closes first.
    Peer,
    /// The local end resets (`SO_LINGER` 0): no TIME_WAIT anywhere.
    Reset,
}

/// What `measure connect` was asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectSpec {
    /// What every kind is asked.
    pub common: Common,
    /// Connections being made at once, one run each.
    pub flows: Vec<u32>,
    /// Connections a second over all, by schedule.
    pub rate_per_s: Option<u64>,
    /// Bytes of the request sent on each connection; 0 for none.
    pub request_bytes: u64,
    /// Bytes of the response awaited; 0 for none.
    pub response_bytes: u64,
    pub close: Close,
    /// After how long a connection attempt counts as failed.
    pub timeout_ns: Nanos,
}
