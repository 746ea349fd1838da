//! The messages.

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

/// Version of the protocol; the ends must agree.
pub const PROTOCOL: u32 = 1;

/// What begins a data connection: [`DATA_MAGIC`], the session's token, the flow's number.
pub const PREAMBLE: usize = 4 + 16 + 4;
/// See [`PREAMBLE`].
pub const DATA_MAGIC: [u8; 4] = *b"NWD1";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToClient {
    Hello {
        /// See [`PROTOCOL`].
        protocol: u32,
        program: String,
        nonce: String,
        /// Whether a proof is demanded.
        secret: bool,
    },
    /// The client may ask.
    Welcome {
        /// The server's own proof, where a secret is used.
        proof: Option<String>,
        end: End,
        /// Tells whether both ends are one host.
        boot_id: String,
    },
    /// Not with this secret.
    Denied { why: String },
    /// Not this test.
    Refused {
        why: String,
        /// Who can do something about it.
        #[serde(default)]
        kind: RefusalKind,
    },
    /// Data connections are awaited.
    Ready(Ready),
    /// All data connections are there.
    Connected {
        /// What could not be set up as asked.
        warnings: Vec<Warning>,
    },
    /// The answer to a mark.
    Marked(Box<Counters>),
    /// The answer to `Finish`.
    Report(Box<PeerReport>),
    /// The test broke off.
    Failed { why: String },
}

/// Who can do something about a refusal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The one who typed: it makes no sense, or is beyond this server's limits.
    Usage,
    /// The server may not.
    Denied,
    /// The server cannot now.
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

/// Where the data goes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// Names the session on its data connections, in hex.
    pub token: String,
    /// TCP: one port. UDP: one for each server's thread.
    pub ports: Vec<u16>,
    pub path: Option<String>,
    /// Where the far threads are pinned, in thread order; empty when they are not.
    pub pinned: Vec<CpuId>,
    pub why: String,
    /// The CPUs that the far process may use.
    pub allowed: CpuSet,
    /// What the server adds to every response on purpose.
    pub service_ns: Nanos,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToServer {
    Hello {
        /// See [`PROTOCOL`].
        protocol: u32,
        program: String,
        nonce: String,
        /// Proof of the secret, where one is demanded.
        proof: Option<String>,
        /// Tells whether both ends are one host.
        boot_id: String,
    },
    Test(Box<Test>),
    /// Look at yourself now.
    Mark,
    /// Streams: send nothing more, and say what the counters are; the window does not reach
    /// until here.
    Quiet,
    /// The test is over.
    Finish,
}

/// What the server must know of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Test {
    pub kind: TestKind,
    /// What carries the bytes.
    pub transport: Transport,
    pub flows: u32,
    pub threads: u32,
    pub wait: Wait,
    pub pin: Pin,
    /// CPUs that the client's threads use, where both are on one host.
    pub local_cpus: CpuSet,
    /// Options of the data sockets.
    pub socket: SocketOptions,
    /// The longest it may take, all in all.
    pub max_time_ns: Nanos,
    /// What shall move the bytes of many streams.
    #[serde(default)]
    pub engine: Engine,
    /// Spin so long before each response, instead of what the server was told.
    #[serde(default)]
    pub service_ns: Option<Nanos>,
}

impl Test {
    /// Data connections of both directions.
    pub fn total_flows(&self) -> u32 {
        match &self.kind {
            TestKind::Stream { direction: Direction::Both, .. } => self.flows * 2,
            _ => self.flows,
        }
    }

    /// Small messages shall not wait for others; bulk may.
    pub fn nodelay(&self) -> bool {
        !matches!(self.kind, TestKind::Stream { .. })
    }
}

/// The kind of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestKind {
    /// A response to every request.
    Rtt {
        /// Bytes of a request.
        request_bytes: u64,
        /// Bytes of a response.
        response_bytes: u64,
        /// Requests outstanding on one flow at most.
        queue_depth: u32,
    },
    /// Bytes one way or both.
    Stream {
        /// Seen from the client. `Both` has twice `flows` connections: the even ones go
        /// forward, the odd ones reverse.
        direction: Direction,
        /// Bytes of one send or datagram.
        message_bytes: u64,
        /// Bits a second over all flows of a direction.
        rate_bps: Option<u64>,
        /// How a sender spares copies.
        zerocopy: Option<ZeroCopy>,
        /// Throw bytes away within the kernel.
        skip_receive_copy: bool,
    },
    /// Connections made and ended.
    Connect {
        /// Bytes of the request on each; 0 for none.
        request_bytes: u64,
        /// Bytes of the response on each; 0 for none.
        response_bytes: u64,
        close: Close,
        /// Addresses that connections come from beside the control connection's.
        #[serde(default)]
        from: Vec<IpAddr>,
    },
    /// Nothing is sent: the server only looks at its host. No flows, no threads.
    Look,
}

/// The server at one moment. Counters only grow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// On the server's clock.
    pub at_ns: u64,
    /// Requests answered, or connections accepted.
    pub transactions: u64,
    /// Payload bytes received, by flow (streams).
    pub received_bytes: Vec<u64>,
    /// UDP streams, by flow: the number that the next datagram gets where this end sends, else
    /// one more than the highest that came.
    #[serde(default)]
    pub next_sequence: Vec<u64>,
    /// Payload bytes sent.
    pub sent_bytes: u64,
    /// Segments retransmitted, summed over flows.
    pub retransmits: Reading<u64>,
    /// Congestion windows of the flows it sends on, summed.
    pub cwnd_bytes: Reading<u64>,
    /// Smoothed round-trip times of those flows, their mean.
    pub rtt_ns: Reading<u64>,
    /// Moves of its threads to other CPUs.
    pub migrations: Reading<u64>,
    /// UDP: what came, and what did not.
    pub datagrams: Option<Datagrams>,
    /// `MSG_ZEROCOPY` completions.
    pub zerocopy: Option<ZeroCopyCount>,
}

/// The server over the window between the first and the last mark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerReport {
    pub cpu: Reading<EndCpu>,
    /// Its counters that moved.
    pub moved: Moved,
    /// Messages or bytes handled by the CPU that the thread ran on.
    pub ran_on: BTreeMap<CpuId, u64>,
    /// Looks at the CPU that received, by CPU.
    pub received_on: BTreeMap<CpuId, u64>,
    /// Looks at the NAPI id that received, by id.
    pub napi_ids: BTreeMap<u32, u64>,
    /// Moves of its threads to other CPUs.
    pub migrations: Reading<u64>,
    /// The congestion control it sent with.
    pub congestion: Reading<String>,
    pub mss_bytes: Reading<u64>,
    /// Connections accepted in all, within the window and outside (connections).
    #[serde(default)]
    pub accepted: Option<u64>,
    /// Streams: times on its clock within the window, and all bytes received until then.
    #[serde(default)]
    pub received: Vec<(u64, u64)>,
    /// What threads, its own and others', ran on each CPU that its own are pinned to.
    #[serde(default)]
    pub busy_ns: BTreeMap<CpuId, u64>,
    /// What moved the bytes of request and response; empty where it was not reported.
    #[serde(default)]
    pub engine: String,
    /// How long it spun before a response on purpose, in the mean over the whole test.
    #[serde(default)]
    pub service_ns: Option<f64>,
    /// What to know before trusting the figures.
    pub warnings: Vec<Warning>,
}
