//! Messages of the control connection.

use std::{collections::BTreeMap, net::IpAddr};

use model::{
    CpuId, CpuSet, Nanos, Reading, Warning,
    measure::{
        Close, Datagrams, Direction, End, EndCpu, Engine, Moved, Pin, SocketOptions, Transport,
        Wait, ZeroCopy, ZeroCopyCount,
    },
};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Protocol version; both ends must have the same one.
pub const PROTOCOL: u32 = 1;

/// Length in bytes of a data connection's greeting: [`DATA_MAGIC`], session token, flow number.
pub const PREAMBLE: usize = 4 + 16 + 4;
/// First four bytes of a data connection, see [`PREAMBLE`].
pub const DATA_MAGIC: [u8; 4] = *b"NWD1";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToClient {
    Hello {
        /// The server's protocol version, [`PROTOCOL`].
        protocol: u32,
        program: String,
        nonce: String,
        /// Whether the client must prove that it has the secret.
        secret: bool,
    },
    /// The client may request tests.
    Welcome {
        /// The server's proof, if a secret is used.
        proof: Option<String>,
        end: End,
        /// Boot id of the server: shows whether both ends run on one host.
        boot_id: String,
    },
    /// The secret is wrong.
    Denied { why: String },
    /// The server refuses this test.
    Refused {
        why: String,
        /// Who can resolve the refusal.
        #[serde(default)]
        kind: RefusalKind,
    },
    /// The server waits for the data connections.
    Ready(Ready),
    /// All data connections have arrived.
    Connected {
        /// Settings that could not be applied.
        warnings: Vec<Warning>,
    },
    /// The answer to a mark.
    Marked(Box<Counters>),
    /// The answer to `Finish`.
    Report(Box<PeerReport>),
    /// The test failed while running.
    Failed { why: String },
}

/// Who can resolve a refusal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The user: the request is invalid, or exceeds this server's limits.
    Usage,
    /// The server lacks a permission.
    Denied,
    /// The server's host: resources are short at the moment.
    #[default]
    Environment,
}

impl RefusalKind {
    /// The kind of an error.
    pub fn of(e: &Error) -> Self {
        match e {
            Error::Usage(_) => Self::Usage,
            Error::Denied(_) => Self::Denied,
            Error::Environment(_) | Error::Silent(_) => Self::Environment,
        }
    }

    /// The error of this kind.
    pub fn error(self, why: String) -> Error {
        match self {
            Self::Usage => Error::Usage(why),
            Self::Denied => Error::Denied(why),
            Self::Environment => Error::Environment(why),
        }
    }
}

/// Where the client's data connections go.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// Session token for the data connections, in hex.
    pub token: String,
    /// One port for TCP; for UDP one for each server thread.
    pub ports: Vec<u16>,
    pub path: Option<String>,
    /// CPUs of the server's threads, in thread order; empty if not pinned.
    pub pinned: Vec<CpuId>,
    pub why: String,
    /// CPUs that the server process may use.
    pub allowed: CpuSet,
    /// Service time that the server adds to each response.
    pub service_ns: Nanos,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToServer {
    Hello {
        /// The client's protocol version, [`PROTOCOL`].
        protocol: u32,
        program: String,
        nonce: String,
        /// The client's proof of the secret, if required.
        proof: Option<String>,
        /// Boot id of the client: shows whether both ends run on one host.
        boot_id: String,
    },
    Test(Box<Test>),
    /// Take a mark and return the counters.
    Mark,
    /// Streams: stop sending and return the counters; the window ended before.
    Quiet,
    /// The test is over.
    Finish,
}

/// Parameters of a test that the server needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Test {
    pub kind: TestKind,
    /// Transport of the data connections.
    pub transport: Transport,
    pub flows: u32,
    pub threads: u32,
    pub wait: Wait,
    pub pin: Pin,
    /// CPUs of the client's threads, if both ends are on one host.
    pub local_cpus: CpuSet,
    /// Options of the data sockets.
    pub socket: SocketOptions,
    /// Longest duration of the whole test.
    pub max_time_ns: Nanos,
    /// I/O engine for many streams.
    #[serde(default)]
    pub engine: Engine,
    /// Service time before each response; `None` for the server's own setting.
    #[serde(default)]
    pub service_ns: Option<Nanos>,
}

impl Test {
    /// Number of data connections of both directions.
    pub fn total_flows(&self) -> u32 {
        match &self.kind {
            TestKind::Stream { direction: Direction::Both, .. } => self.flows * 2,
            _ => self.flows,
        }
    }

    /// Whether to set `TCP_NODELAY`: small messages must not wait, bulk data may.
    pub fn nodelay(&self) -> bool {
        !matches!(self.kind, TestKind::Stream { .. })
    }
}

/// The kind of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestKind {
    /// One request and one response at a time.
    Rtt {
        /// Request size in bytes.
        request_bytes: u64,
        /// Response size in bytes.
        response_bytes: u64,
        /// Most requests outstanding on one flow.
        queue_depth: u32,
    },
    /// Bulk data in one direction or both.
    Stream {
        /// As seen from the client. `Both` has twice `flows` connections: even ones are forward,
        /// odd ones reverse.
        direction: Direction,
        /// Bytes per send call or datagram.
        message_bytes: u64,
        /// Bits per second over all flows of one direction.
        rate_bps: Option<u64>,
        /// How a sender avoids copies.
        zerocopy: Option<ZeroCopy>,
        /// Discard received bytes in the kernel (`MSG_TRUNC`).
        skip_receive_copy: bool,
    },
    /// Connections made and closed.
    Connect {
        /// Request size in bytes on each; 0 for none.
        request_bytes: u64,
        /// Response size in bytes on each; 0 for none.
        response_bytes: u64,
        close: Close,
        /// Client addresses besides that of the control connection.
        #[serde(default)]
        from: Vec<IpAddr>,
    },
    /// No data: the server only observes its host. No flows, no threads.
    Look,
}

/// The server's counters at one time; they only grow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Time on the server's clock.
    pub at_ns: u64,
    /// Requests answered, or connections accepted.
    pub transactions: u64,
    /// Payload bytes received, for each flow (streams).
    pub received_bytes: Vec<u64>,
    /// UDP streams, for each flow: the next sequence number if this end sends, else the highest
    /// received plus one.
    #[serde(default)]
    pub next_sequence: Vec<u64>,
    /// Payload bytes sent, summed over flows.
    pub sent_bytes: u64,
    /// Segments retransmitted, summed over flows.
    pub retransmits: Reading<u64>,
    /// Congestion windows in bytes, summed over the flows it sends on.
    pub cwnd_bytes: Reading<u64>,
    /// Mean smoothed RTT of those flows.
    pub rtt_ns: Reading<u64>,
    /// Migrations of its threads between CPUs.
    pub migrations: Reading<u64>,
    /// UDP: datagrams received, lost, reordered.
    pub datagrams: Option<Datagrams>,
    /// `MSG_ZEROCOPY` completions; `None` without zero copy.
    pub zerocopy: Option<ZeroCopyCount>,
}

/// The server's report on the window between its first and last mark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerReport {
    pub cpu: Reading<EndCpu>,
    /// Kernel counters that changed.
    pub moved: Moved,
    /// Messages or bytes handled, by the CPU that the thread ran on.
    pub ran_on: BTreeMap<CpuId, u64>,
    /// Samples of the receiving CPU, by CPU.
    pub received_on: BTreeMap<CpuId, u64>,
    /// Samples of the receiving NAPI instance, by NAPI id.
    pub napi_ids: BTreeMap<u32, u64>,
    /// Migrations of its threads between CPUs.
    pub migrations: Reading<u64>,
    /// Congestion control algorithm of its sockets.
    pub congestion: Reading<String>,
    pub mss_bytes: Reading<u64>,
    /// Connections accepted, in the window and outside (`connect`).
    #[serde(default)]
    pub accepted: Option<u64>,
    /// Streams: time on its clock within the window, and total bytes received until then.
    #[serde(default)]
    pub received: Vec<(u64, u64)>,
    /// CPU time of all threads, its own and others, on each CPU that its threads are pinned to.
    #[serde(default)]
    pub busy_ns: BTreeMap<CpuId, u64>,
    /// I/O engine of request and response; empty if not reported.
    #[serde(default)]
    pub engine: String,
    /// Mean time spun before a response, over the whole test; `None` without a service time.
    #[serde(default)]
    pub service_ns: Option<f64>,
    /// Warnings on these figures.
    pub warnings: Vec<Warning>,
}
