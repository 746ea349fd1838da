//! Counters of each flow: written by the flow's thread, read by others.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use model::measure::{Datagrams, ZeroCopyCount};

use crate::control::message::Counters;

/// One flow's counters, on their own cache line: hot loops write them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct SharedCounts {
    /// Payload bytes received, each datagram once.
    pub received_bytes: AtomicU64,
    /// Payload bytes handed to the kernel.
    pub sent_bytes: AtomicU64,
    /// UDP sender: the next sequence number.
    pub next_sequence: AtomicU64,
    /// UDP receiver: counts in two versions, of which the last one is complete.
    versions: [Version; 2],
    version: AtomicU64,
    /// UDP: datagrams that arrived after a later one.
    pub reordered: AtomicU64,
    pub duplicates: AtomicU64,
    /// UDP: smoothed jitter of the transit time.
    pub jitter_ns: AtomicU64,
    /// UDP: datagrams that the kernel had no room for.
    pub refused: AtomicU64,
    /// Zero copy: sends with their completion read.
    pub completed: AtomicU64,
    /// Zero copy: completions that report a copy.
    pub copied: AtomicU64,
}

/// Consistent counts of a flow's received UDP datagrams. Read one by one, they could show a loss
/// that never was, if the receiver is preempted between two writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceivedCounts {
    /// Highest sequence number plus one.
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
    /// Publishes the counts; only the flow's own thread may call this.
    #[inline]
    pub fn put_came(&self, came: ReceivedCounts) {
        let turn = self.version.load(Ordering::Relaxed).wrapping_add(1);
        let [even, odd] = &self.versions;
        let version = if turn & 1 == 0 { even } else { odd };
        // A reader of a version that is overwritten meanwhile sees that the turn has changed.
        fence(Ordering::Release);
        put(&version.next_sequence, came.next_sequence);
        put(&version.datagrams, came.datagrams);
        put(&version.bytes, came.bytes);
        self.version.store(turn, Ordering::Release);
        put(&self.received_bytes, came.bytes);
    }

    /// The counts as of one time. Never waits for the writer, which may be preempted.
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

/// Adds to a counter; no other thread writes it.
#[inline]
pub fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// Counters of all flows of one end.
#[derive(Debug)]
pub struct Ledger {
    /// Indexed by flow number.
    pub flows: Vec<SharedCounts>,
    quiet: AtomicBool,
}

impl Ledger {
    pub fn new(flows: u32) -> Self {
        let flows = (0..flows).map(|_| SharedCounts::default()).collect();
        Self { flows, quiet: AtomicBool::new(false) }
    }

    /// Whether sending has stopped.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    /// Stops sending; receiving continues.
    pub fn be_quiet(&self) {
        self.quiet.store(true, Ordering::Relaxed);
    }

    fn sum(&self, of: fn(&SharedCounts) -> &AtomicU64) -> u64 {
        self.flows.iter().map(|t| of(t).load(Ordering::Relaxed)).sum()
    }

    /// Payload bytes received on all flows.
    pub fn received(&self) -> u64 {
        self.sum(|t| &t.received_bytes)
    }

    /// Sums of the flows' counters.
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
        let counts = SharedCounts::default();
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for n in 1..=300_000u64 {
                    counts.put_came(ReceivedCounts {
                        next_sequence: n,
                        datagrams: n,
                        bytes: n * 1400,
                    });
                }
            });
            let mut last = 0;
            while !writer.is_finished() {
                let came = counts.came();
                assert_eq!(came.datagrams, came.next_sequence);
                assert_eq!(came.bytes, came.datagrams * 1400);
                assert!(came.datagrams >= last, "it went back");
                last = came.datagrams;
            }
        });
        assert_eq!(counts.came().datagrams, 300_000);
    }
}
