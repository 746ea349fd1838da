//! The requests: everything needed to run a measurement again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BitsPerSec, Bytes, CpuSet, Nanos};

/// The transport protocol under the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    Tcp,
    Udp,
    /// A Unix stream socket.
    Unix,
}

/// Wait mode of a thread: how it waits for the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Sleeps in the kernel until data is available.
    Block,
    /// Busy polling: never sleeps.
    Spin,
    /// Polls for [`SPIN_NS`], then sleeps.
    SpinThenBlock,
    /// Sleeps in the kernel, which polls the NIC's queue meanwhile (`SO_BUSY_POLL`).
    BusyPoll,
}

/// Time that [`Wait::SpinThenBlock`] polls before it sleeps: about the cost of a wake-up.
pub const SPIN_NS: Nanos = Nanos(50_000);

/// Placement of the threads of one end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pin {
    /// Netwright chooses and reports the choice: one core for each thread. It pins no thread where
    /// there are too few cores, or where a server of another program is on the same host.
    #[default]
    Auto,
    /// The same, but it pins threads also where such a server is on the same host.
    Apart,
    No,
    /// Thread n on the n-th CPU of the list, wrapping around.
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

/// Program on the server side.
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

/// Parameters common to all measurements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Common {
    /// The server as it was named: `HOST`, `HOST:PORT`, `[::1]:PORT`, `unix:PATH`.
    pub target: String,
    #[serde(default)]
    pub peer: PeerProgram,
    /// The transport protocol under the messages.
    pub transport: Transport,
    /// Only addresses of this family: 4 or 6.
    pub family: Option<u8>,
    /// Local address to send from.
    pub bind: Option<String>,
    /// The measured window, without warm-up and cool-down.
    pub duration_ns: Nanos,
    /// Traffic before the window, not measured.
    pub warmup_ns: Nanos,
    /// Traffic after the window, not measured, so that neither end stops within the window.
    pub cooldown_ns: Nanos,
    /// Wait mode of the local threads.
    pub wait: Wait,
    /// Wait mode of the server's threads.
    pub peer_wait: Wait,
    /// Placement of the local threads.
    pub pin: Pin,
    /// Placement of the server's threads.
    pub peer_pin: Pin,
    /// Threads at each end, which share the flows.
    pub threads: u32,
    /// Options of the data sockets.
    pub socket: SocketOptions,
    /// Repeat until the confidence interval of the result is this narrow, as a share (0.02 for 2%).
    pub confidence_per_mille: Option<u32>,
    /// The maximum time that `--precision` may take.
    pub max_time_ns: Nanos,
}

impl Common {
    /// One TCP connection of one thread with blocking I/O: nothing pinned, no phase that lasts, no
    /// repetition, no limit on time.
    pub fn plain(target: impl Into<String>, peer: PeerProgram) -> Self {
        Self {
            target: target.into(),
            peer,
            transport: Transport::Tcp,
            family: None,
            bind: None,
            duration_ns: Nanos(0),
            warmup_ns: Nanos(0),
            cooldown_ns: Nanos(0),
            wait: Wait::Block,
            peer_wait: Wait::Block,
            pin: Pin::No,
            peer_pin: Pin::No,
            threads: 1,
            socket: SocketOptions::default(),
            confidence_per_mille: None,
            max_time_ns: Nanos(u64::MAX),
        }
    }
}

/// `measure rtt`: request and response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RttSpec {
    /// Parameters common to all measurements.
    pub common: Common,
    /// Sizes of the request, one run each.
    pub request_bytes: Vec<u64>,
    /// Sizes of the response, one run each; empty means the size of the request.
    pub response_bytes: Vec<u64>,
    /// Connections at once, one run each.
    pub flows: Vec<u32>,
    /// Queue depth: requests outstanding on each flow.
    pub queue_depth: u32,
    /// Requests per second over all flows (open loop). `None` sends the next request after the last
    /// response (closed loop).
    pub rate_per_s: Option<u64>,
    /// Time after which a UDP request counts as lost.
    pub timeout_ns: Nanos,
    /// Run the wait modes and placements that separate the stack from wake-ups.
    pub wait_split: bool,
    /// I/O engine for many streams, for comparisons.
    #[serde(default)]
    pub engine: Engine,
    /// Time that the server spins before each response, instead of its own `--service-time`. Where
    /// it takes longer (another task or the hypervisor has its CPU), the round trips of TCP and Unix
    /// sockets exclude what it takes longer, with responses of 4 bytes or more.
    #[serde(default)]
    pub service_ns: Option<Nanos>,
    /// Closed loop: think time, for which each local thread computes after a response before it
    /// sends the next request. It is no part of the round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_time_ns: Option<Nanos>,
    /// Threads of the server, where their number differs from the local one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_threads: Option<u32>,
}

/// I/O engine where one thread has many streams in closed loop. Other cases are not affected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// The engine that performs best; where several numbers of flows are measured, one for all of
    /// them.
    #[default]
    Auto,
    /// `epoll_wait`, and a `recv` and a `send` for each message; also for one stream.
    Epoll,
    /// As [`Engine::Epoll`], but without `epoll_wait` where a thread has one stream.
    PerMessage,
    /// One `io_uring_enter` for many messages, where the kernel has it.
    IoUring,
}

/// Direction of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the server.
    Forward,
    /// From the server to the client.
    Reverse,
    /// Both directions at once, on separate flows.
    Both,
}

/// How a sender avoids copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ZeroCopy {
    /// `sendfile` from a file in memory.
    Sendfile,
    /// `send` with the flag `MSG_ZEROCOPY`.
    Msg,
}

/// Parameters of `measure stream`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamSpec {
    /// Parameters common to all measurements.
    pub common: Common,
    pub direction: Direction,
    /// Concurrent connections in each direction, one run each.
    pub flows: Vec<u32>,
    /// Bytes of one send or datagram, one run each.
    pub message_bytes: Vec<u64>,
    /// Bits per second over all flows of a direction; required for UDP.
    pub rate: Option<BitsPerSec>,
    /// Interval between lines of output.
    pub interval_ns: Nanos,
    /// How the sender avoids copies.
    pub zerocopy: Option<ZeroCopy>,
    /// Whether the receiver discards bytes within the kernel (`MSG_TRUNC`).
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
    /// The local end resets (`SO_LINGER` 0): no TIME_WAIT at either end.
    Reset,
}

/// Parameters of `measure connect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectSpec {
    /// Parameters common to all measurements.
    pub common: Common,
    /// Concurrent connection attempts, one run each.
    pub flows: Vec<u32>,
    /// Connections per second in all (open loop).
    pub rate_per_s: Option<u64>,
    /// Bytes of the request sent on each connection; 0 for none.
    pub request_bytes: u64,
    /// Bytes of the response awaited; 0 for none.
    pub response_bytes: u64,
    pub close: Close,
    /// Time after which a connection attempt counts as failed.
    pub timeout_ns: Nanos,
}
