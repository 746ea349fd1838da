//! Limits on a client's resource use.

use std::{sync::Arc, time::Duration};

use model::{
    Bytes, Nanos,
    measure::{Direction, Transport, Wait},
};

use super::cost::memory_bytes;
use crate::{
    Error, Result,
    budget::{Budget, Share},
    control::message::{Test, TestKind},
    net::LARGEST_DATAGRAM,
    offload,
    stream::datagram::HEADER,
};

/// Limits of the server, for each client and for all together.
#[derive(Debug, Clone)]
pub struct Limits {
    pub sessions: usize,
    /// Most connections without a request; a further one replaces the oldest.
    pub waiting: usize,
    /// Idle timeout before the first test and between tests.
    pub idle: Duration,
    pub longest: Duration,
    /// Most data connections of one test.
    pub flows: u32,
    /// Most threads of one test.
    pub threads: u32,
    /// Largest message in bytes.
    pub message_bytes: u64,
    /// Memory of all tests together, shared with other protocols' tests if configured.
    pub memory: Arc<Budget>,
    /// Most spinning threads of one test: the number of CPUs for them.
    pub spinning: u32,
}

/// Default memory limit of all tests, in bytes.
pub const MEMORY_BYTES: usize = 512 << 20;

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
            memory: Arc::new(Budget::new(MEMORY_BYTES)),
            spinning: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        }
    }
}

/// Most client addresses of one test.
const MOST_ADDRESSES: usize = 256;

/// Longest service time that a client may request.
const MOST_SERVICE: Nanos = Nanos(100_000_000);

/// Most requests outstanding on one flow.
const MOST_OUTSTANDING: u32 = 65_536;

/// Longest congestion control name (`TCP_CA_NAME_MAX` with its NUL is 16).
const LONGEST_NAME: usize = 15;

/// Fails with a line unless `holds` is true.
fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

impl Limits {
    /// Reserves a test's memory from the shared budget; dropping it returns the memory. Checks
    /// every number of the request, for any kind of test, before anything is sized by it.
    ///
    /// # Errors
    /// The reason for refusing the test, in one line.
    pub fn admit(&self, test: &Test) -> Result<Share<'_>> {
        self.check(test).map_err(Error::Usage)?;
        self.memory(test)
    }

    fn check(&self, test: &Test) -> Result<(), String> {
        self.counts(test)?;
        self.sizes(test)?;
        self.times(test)?;
        self.ways(test)
    }

    fn counts(&self, test: &Test) -> Result<(), String> {
        let Test { flows, threads, .. } = test;
        if test.kind == TestKind::Look {
            return ensure((*flows, *threads) == (0, 0), || {
                format!("{flows} flows and {threads} threads of a test that has none of either")
            });
        }
        ensure((1..=self.flows).contains(flows), || {
            format!("{flows} flows; 1 to {} are allowed (its --max-flows)", self.flows)
        })?;
        ensure((1..=self.threads).contains(threads), || {
            format!("{threads} threads; 1 to {} are allowed", self.threads)
        })?;
        match &test.kind {
            TestKind::Rtt { queue_depth, .. } => {
                ensure((1..=MOST_OUTSTANDING).contains(queue_depth), || {
                    format!(
                        "{queue_depth} requests outstanding; 1 to {MOST_OUTSTANDING} are possible"
                    )
                })
            }
            TestKind::Connect { from, .. } => ensure(from.len() <= MOST_ADDRESSES, || {
                let n = from.len();
                format!("connections from {n} addresses; at most {MOST_ADDRESSES} are possible")
            }),
            TestKind::Offload(_) => ensure((*flows, *threads) == (1, 1), || {
                format!("{flows} flows and {threads} threads of a probe that has one of each")
            }),
            TestKind::Stream { .. } | TestKind::Look => Ok(()),
        }
    }

    fn sizes(&self, test: &Test) -> Result<(), String> {
        let udp = test.transport == Transport::Udp;
        let sizes: &[u64] = match &test.kind {
            TestKind::Look => &[],
            TestKind::Offload(probe) => &[probe.large_bytes],
            TestKind::Rtt { request_bytes, response_bytes, .. } => {
                ensure(*request_bytes > 0 && *response_bytes > 0, || {
                    "a request and a response have at least 1 byte".into()
                })?;
                &[*request_bytes, *response_bytes]
            }
            TestKind::Stream { message_bytes, .. } => {
                ensure(*message_bytes > 0, || "a message has at least 1 byte".into())?;
                ensure(!udp || *message_bytes >= HEADER as u64, || {
                    format!("a datagram has at least {HEADER} bytes")
                })?;
                &[*message_bytes]
            }
            TestKind::Connect { request_bytes, response_bytes, .. } => {
                &[*request_bytes, *response_bytes]
            }
        };
        let most = if udp { LARGEST_DATAGRAM } else { self.message_bytes };
        match sizes.iter().find(|n| **n > most) {
            Some(n) => Err(format!("a message of {n} bytes; at most {most} are possible")),
            None => Ok(()),
        }
    }

    fn times(&self, test: &Test) -> Result<(), String> {
        let most = Nanos(u64::try_from(self.longest.as_nanos()).unwrap_or(u64::MAX));
        ensure(test.max_time_ns <= most, || {
            let asked = test.max_time_ns;
            format!("a test of {asked}; at most {most} are allowed (its --max-duration)")
        })?;
        let service = test.service_ns.unwrap_or_default();
        ensure(service <= MOST_SERVICE, || {
            format!("a service time of {service}; at most {MOST_SERVICE} are possible")
        })
    }

    /// Checks for options that contradict each other.
    fn ways(&self, test: &Test) -> Result<(), String> {
        match (&test.kind, test.transport) {
            (TestKind::Stream { rate_bps: Some(0), .. }, _) => {
                return Err("a rate of 0 sends nothing".into());
            }
            (TestKind::Stream { rate_bps: None, .. }, Transport::Udp) => {
                return Err("UDP streams need a rate".into());
            }
            (TestKind::Connect { .. }, Transport::Udp) => {
                return Err("UDP makes no connections".into());
            }
            (TestKind::Offload(probe), transport)
                if probe.probe.transport() != transport
                    || probe.direction == Direction::Both
                    || !offload::LARGE.contains(&probe.large_bytes) =>
            {
                return Err("a probe of offloads over another transport, size or direction".into());
            }
            _ => {}
        }
        ensure(test.wait != Wait::Spin || test.threads <= self.spinning, || {
            format!("{} threads that spin; there are CPUs for {}", test.threads, self.spinning)
        })?;
        ensure(test.transport != Transport::Unix || test.wait != Wait::BusyPoll, || {
            "a Unix socket has no queue to poll".into()
        })?;
        let name = test.socket.congestion.as_deref().unwrap_or_default();
        ensure(name.len() <= LONGEST_NAME, || {
            format!("the name of a congestion control has at most {LONGEST_NAME} characters")
        })
    }

    fn memory(&self, test: &Test) -> Result<Share<'_>> {
        let (needs, all) = (memory_bytes(test), self.memory.limit());
        let room = usize::try_from(needs).ok().and_then(|n| self.memory.take(n));
        room.ok_or_else(|| match needs > all as u64 {
            true => Error::Usage(format!(
                "the test needs {} of memory and the server has {} for all tests (its \
                 --max-memory); ask for smaller messages, fewer threads or fewer flows",
                Bytes(needs),
                Bytes(all as u64)
            )),
            false => Error::Environment(format!(
                "the test needs {} of memory and the server has {} left of {} for all tests (its \
                 --max-memory); try again when others have ended",
                Bytes(needs),
                Bytes(self.memory.left() as u64),
                Bytes(all as u64)
            )),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn test(kind: TestKind) -> Test {
        Test {
            kind,
            transport: Transport::Tcp,
            flows: 1,
            threads: 1,
            wait: Wait::Block,
            pin: model::measure::Pin::No,
            local_cpus: Default::default(),
            socket: Default::default(),
            max_time_ns: Nanos(1_000_000_000),
            engine: Default::default(),
            service_ns: None,
        }
    }

    fn rtt(bytes: u64, queue_depth: u32) -> TestKind {
        TestKind::Rtt { request_bytes: bytes, response_bytes: bytes, queue_depth }
    }

    #[test]
    fn a_test_without_threads_is_checked_like_every_other() {
        let limits = Limits::default();
        let look = Test { flows: 0, threads: 0, ..test(TestKind::Look) };
        assert!(limits.admit(&look).is_ok());
        for (flows, threads) in [(0, u32::MAX), (u32::MAX, 0), (1, 1)] {
            let refused = limits.admit(&Test { flows, threads, ..look.clone() });
            assert!(matches!(refused, Err(Error::Usage(_))), "{flows} {threads}: {refused:?}");
        }
    }

    #[test]
    fn all_tests_share_one_memory() {
        let memory = Arc::new(Budget::new(90 << 20));
        let limits = Limits { memory, ..Limits::default() };
        let large = test(rtt(16 << 20, 1));
        let two: Vec<_> = (0..2).map(|_| limits.admit(&large).unwrap()).collect();
        let e = limits.admit(&test(rtt(20 << 19, 1))).map(drop);
        assert!(e.is_ok(), "{e:?}");
        let e = limits.admit(&large).unwrap_err();
        assert!(matches!(&e, Error::Environment(t) if t.contains("try again")), "{e}");
        drop(two);
        assert!(limits.admit(&large).is_ok());
        let e = limits.admit(&Test { threads: 9, flows: 9, ..large }).unwrap_err();
        assert!(matches!(&e, Error::Usage(t) if t.contains("--max-memory")), "{e}");
    }

    proptest! {
        /// For any request, an admitted test stays within the memory budget, and every size derived
        /// from it within its limit.
        #[test]
        fn what_is_let_in_is_bounded(
            kind in prop_oneof![
                Just(TestKind::Look),
                (any::<u64>(), any::<u32>()).prop_map(|(bytes, n)| rtt(bytes, n)),
                (any::<u64>(), any::<Option<u64>>()).prop_map(|(message_bytes, rate_bps)| {
                    TestKind::Stream {
                        direction: model::measure::Direction::Both, message_bytes, rate_bps,
                        zerocopy: None, skip_receive_copy: false,
                    }
                }),
                (any::<u64>(), any::<u64>()).prop_map(|(request_bytes, response_bytes)| {
                    TestKind::Connect {
                        request_bytes, response_bytes, close: model::measure::Close::Peer,
                        from: vec![],
                    }
                }),
            ],
            udp: bool,
            flows in prop_oneof![0u32..40_000, any::<u32>()],
            threads in prop_oneof![0u32..300, any::<u32>()],
            longest: u64,
            service in any::<Option<u64>>(),
        ) {
            let limits = Limits::default();
            let transport = if udp { Transport::Udp } else { Transport::Tcp };
            let (max_time_ns, service_ns) = (Nanos(longest), service.map(Nanos));
            let test = Test { transport, flows, threads, max_time_ns, service_ns, ..test(kind) };
            let needs = memory_bytes(&test);
            if let Ok(share) = limits.admit(&test) {
                prop_assert!(test.flows <= limits.flows && test.threads <= limits.threads);
                prop_assert!(needs <= limits.memory.limit() as u64);
                prop_assert_eq!(limits.memory.left() as u64, limits.memory.limit() as u64 - needs);
                drop(share);
            }
            prop_assert_eq!(limits.memory.left(), limits.memory.limit());
        }
    }
}
