//! Counters of each flow, written by the thread that has the flow and read by whoever looks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use model::measure::{Datagrams, ZeroCopyCount};

use crate::control::message::Counters;

/// One flow's counters, apart in memory from its neighbours': hot loops write them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct SharedCounts {
    /// Payload received, each datagram once.
    pub received_bytes: AtomicU64,
    /// Payload handed to the kernel.
    pub sent_bytes: AtomicU64,
    /// UDP, where it is sent: the number that the next datagram gets.
    pub next_sequence: AtomicU64,
    /// UDP: what came, in two versions of which the last one is whole.
    versions: [Version; 2],
    version: AtomicU64,
    /// UDP: came after a later one.
    pub reordered: AtomicU64,
    pub duplicates: AtomicU64,
    /// UDP: smoothed change of the transit time.
    pub jitter_ns: AtomicU64,
    /// UDP: the kernel had no room for it.
    pub refused: AtomicU64,
    /// Zero copy: sends whose completion was read.
    pub completed: AtomicU64,
    /// Zero copy: those that the kernel copied.
    pub copied: AtomicU64,
}

/// The UDP datagrams that came on a flow until one moment. The numbers belong together: read one
/// by one, a receiver that is preempted between two of them would show a loss that never was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceivedCounts {
    /// One more than the highest number.
    pub next_sequence: u64,
    pub datagrams: u64,
    pub bytes: u64,
}

#[derive(Debug, Default)]
struct Version {
    next_sequence: AtomicU64,
    datagrams: AtomicU64,
    bytes: AtomicU64,
}

impl SharedCounts {
    /// What came until now; by the flow's own thread alone.
    #[inline]
    pub fn put_came(&self, came: ReceivedCounts) {
        let turn = self.version.load(Ordering::Relaxed).wrapping_add(1);
        let [even, odd] = &self.versions;
        let version = if turn & 1 == 0 { even } else { odd };
        // Who reads this version while it is written again sees that the turn went on.
        fence(Ordering::Release);
        put(&version.next_sequence, came.next_sequence);
        put(&version.datagrams, came.datagrams);
        put(&version.bytes, came.bytes);
        self.version.store(turn, Ordering::Release);
        put(&self.received_bytes, came.bytes);
    }

    /// What came, as of one moment. Never waits for the writer, who may be preempted.
    pub fn came(&self) -> ReceivedCounts {
        loop {
            let turn = self.version.load(Ordering::Acquire);
            let [even, odd] = &self.versions;
            let version = if turn & 1 == 0 { even } else { odd };
            let came = ReceivedCounts {
                next_sequence: version.next_sequence.load(Ordering::Relaxed),
                datagrams: version.datagrams.load(Ordering::Relaxed),
                bytes: version.bytes.load(Ordering::Relaxed),
            };
            fence(Ordering::Acquire);
            if self.version.load(Ordering::Relaxed) == turn {
                return came;
            }
        }
    }
}

/// A plain store: no other thread writes.
#[inline]
pub fn put(counter: &AtomicU64, value: u64) {
    counter.store(value, Ordering::Relaxed);
}

/// One more; no other thread writes.
#[inline]
pub fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// All flows of one end.
#[derive(Debug)]
pub struct Ledger {
    /// By the flow's number.
    pub flows: Vec<SharedCounts>,
    quiet: AtomicBool,
}

impl Ledger {
    pub fn new(flows: u32) -> Self {
        let flows = (0..flows).map(|_| SharedCounts::default()).collect();
        Self { flows, quiet: AtomicBool::new(false) }
    }

    /// Whether nothing more is to be sent.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    /// From now on nothing is sent, only received.
    pub fn be_quiet(&self) {
        self.quiet.store(true, Ordering::Relaxed);
    }

    fn sum(&self, of: fn(&SharedCounts) -> &AtomicU64) -> u64 {
        self.flows.iter().map(|t| of(t).load(Ordering::Relaxed)).sum()
    }

    /// Payload received by all.
    pub fn received(&self) -> u64 {
        self.sum(|t| &t.received_bytes)
    }

    /// What the flows' own counters say.
    pub fn counters(&self, udp: bool, receives: bool, zerocopy: bool) -> Counters {
        let each = |of: fn(&SharedCounts) -> &AtomicU64| -> Vec<u64> {
            self.flows.iter().map(|t| of(t).load(Ordering::Relaxed)).collect()
        };
        let came: Vec<ReceivedCounts> = self.flows.iter().map(SharedCounts::came).collect();
        let sequence = |(t, c): (&SharedCounts, &ReceivedCounts)| {
            c.next_sequence.max(t.next_sequence.load(Ordering::Relaxed))
        };
        Counters {
            received_bytes: match udp {
                true => came.iter().map(|c| c.bytes).collect(),
                false => each(|t| &t.received_bytes),
            },
            sent_bytes: self.sum(|t| &t.sent_bytes),
            next_sequence: match udp {
                true => self.flows.iter().zip(&came).map(sequence).collect(),
                false => vec![],
            },
            datagrams: udp.then(|| self.datagrams(&came, receives)),
            zerocopy: zerocopy.then(|| ZeroCopyCount {
                completed: self.sum(|t| &t.completed),
                copied: self.sum(|t| &t.copied),
            }),
            ..Counters::default()
        }
    }

    fn datagrams(&self, came: &[ReceivedCounts], receives: bool) -> Datagrams {
        let heard = || self.flows.iter().zip(came).filter(|(_, c)| c.datagrams > 0);
        let jitter: u64 = heard().map(|(t, _)| t.jitter_ns.load(Ordering::Relaxed)).sum();
        Datagrams {
            received: if receives { came.iter().map(|c| c.datagrams).sum() } else { 0 },
            reordered: self.sum(|t| &t.reordered).into(),
            duplicates: self.sum(|t| &t.duplicates).into(),
            jitter_ns: (jitter / (heard().count() as u64).max(1)).into(),
            send_refused: self.sum(|t| &t.refused),
            ..Datagrams::default()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::thread;

    use super::*;

    #[test]
    fn what_came_is_read_whole_while_it_grows() {
        let tally = SharedCounts::default();
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for n in 1..=300_000u64 {
                    tally.put_came(ReceivedCounts {
                        next_sequence: n,
                        datagrams: n,
                        bytes: n * 1400,
                    });
                }
            });
            let mut last = 0;
            while !writer.is_finished() {
                let came = tally.came();
                assert_eq!(came.datagrams, came.next_sequence);
                assert_eq!(came.bytes, came.datagrams * 1400);
                assert!(came.datagrams >= last, "it went back");
                last = came.datagrams;
            }
        });
        assert_eq!(tally.came().datagrams, 300_000);
    }
}
