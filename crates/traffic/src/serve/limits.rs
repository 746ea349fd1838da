//! What a client may cost.

use std::time::Duration;

use model::measure::{Transport, Wait};

use crate::{
    control::message::{Kind, Test},
    stream::datagram::HEADER,
};

/// Bounds on what the far end does for its clients, one and all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Tests at once.
    pub sessions: usize,
    /// Connections that have not asked for anything yet; the oldest goes when one more comes.
    pub waiting: usize,
    /// How long a connection may say nothing before its first test, and between tests.
    pub idle: Duration,
    /// The longest test.
    pub longest: Duration,
    /// Data connections of one test.
    pub flows: u32,
    /// Threads of one test.
    pub threads: u32,
    /// Bytes of one message.
    pub message_bytes: u64,
    /// Bytes of all messages that the threads of one test hold at once.
    pub buffer_bytes: u64,
    /// Threads of one test that never sleep: as many as there are CPUs for them.
    pub spinning: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 64,
            waiting: 16_384,
            idle: Duration::from_secs(30),
            longest: Duration::from_secs(24 * 3600),
            flows: 16_384,
            threads: 256,
            message_bytes: 16 << 20,
            buffer_bytes: 256 << 20,
            spinning: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        }
    }
}

/// The largest UDP payload over IPv4 without options.
pub const LARGEST_DATAGRAM: u64 = 65_507;

/// Addresses that one test's connections come from.
const MOST_ADDRESSES: usize = 256;

/// The longest service time that a client may ask for: a thread that spins does not see its end.
const MOST_SERVICE: model::Nanos = model::Nanos(100_000_000);

impl Limits {
    /// Why a test is refused, if it is.
    pub fn refuse(&self, test: &Test) -> Option<String> {
        let sizes: &[u64] = match &test.kind {
            Kind::Look => return self.too_long(test),
            Kind::Rtt { request_bytes, response_bytes, outstanding } => {
                if *outstanding == 0 || *outstanding > 65_536 {
                    return Some(format!(
                        "{outstanding} requests outstanding; 1 to 65536 are possible"
                    ));
                }
                if *request_bytes == 0 || *response_bytes == 0 {
                    return Some("a request and a response have at least 1 byte".into());
                }
                &[*request_bytes, *response_bytes]
            }
            Kind::Stream { message_bytes: 0, .. } => {
                return Some("a message has at least 1 byte".into());
            }
            Kind::Stream { rate_bps: Some(0), .. } => {
                return Some("a rate of 0 sends nothing".into());
            }
            Kind::Stream { rate_bps: None, .. } if test.transport == Transport::Udp => {
                return Some("UDP streams need a rate".into());
            }
            Kind::Stream { message_bytes, .. }
                if test.transport == Transport::Udp && *message_bytes < HEADER as u64 =>
            {
                return Some(format!("a datagram has at least {HEADER} bytes"));
            }
            Kind::Stream { message_bytes, .. } => &[*message_bytes],
            Kind::Connect { .. } if test.transport == Transport::Udp => {
                return Some("UDP makes no connections".into());
            }
            Kind::Connect { from, .. } if from.len() > MOST_ADDRESSES => {
                return Some(format!(
                    "connections from {} addresses; at most {MOST_ADDRESSES} are possible",
                    from.len()
                ));
            }
            Kind::Connect { request_bytes, response_bytes, .. } => {
                &[*request_bytes, *response_bytes]
            }
        };
        let most = match test.transport {
            Transport::Udp => LARGEST_DATAGRAM,
            _ => self.message_bytes,
        };
        if let Some(n) = sizes.iter().find(|n| **n > most) {
            return Some(format!("a message of {n} bytes; at most {most} are possible"));
        }
        if let Some(asked) = test.service_ns.filter(|ns| *ns > MOST_SERVICE) {
            return Some(format!("a service time of {asked}; at most {MOST_SERVICE} are possible"));
        }
        if test.flows == 0 || test.flows > self.flows {
            return Some(format!(
                "{} flows; 1 to {} are allowed (its --max-flows)",
                test.flows, self.flows
            ));
        }
        if test.threads == 0 || test.threads > self.threads {
            return Some(format!("{} threads; 1 to {} are allowed", test.threads, self.threads));
        }
        let busy = test.threads.min(test.flows);
        let held = sizes.iter().sum::<u64>().saturating_mul(u64::from(busy));
        // Connections are sent and received in pieces, whatever their length.
        if held > self.buffer_bytes && !matches!(test.kind, Kind::Connect { .. }) {
            return Some(format!(
                "{busy} threads with messages of {} bytes; {} bytes in all are possible",
                sizes.iter().sum::<u64>(),
                self.buffer_bytes
            ));
        }
        if test.wait == Wait::Spin && test.threads > self.spinning {
            return Some(format!(
                "{} threads that spin; there are CPUs for {}",
                test.threads, self.spinning
            ));
        }
        if let Some(why) = self.too_long(test) {
            return Some(why);
        }
        if test.transport == Transport::Unix && test.wait == Wait::BusyPoll {
            return Some("a Unix socket has no queue to poll".into());
        }
        None
    }

    fn too_long(&self, test: &Test) -> Option<String> {
        let most = model::Nanos(self.longest.as_nanos() as u64);
        (test.longest_ns > most).then(|| {
            format!(
                "a test of {}; at most {most} are allowed (its --max-duration)",
                test.longest_ns
            )
        })
    }
}
