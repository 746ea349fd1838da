//! Counters of each flow, written by the thread that has the flow and read by whoever looks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use model::measure::{Datagrams, ZeroCopyCount};

use crate::control::message::Counters;

/// One flow's counters, apart in memory from its neighbours': hot loops write them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Tally {
    /// Payload received, each datagram once.
    pub received_bytes: AtomicU64,
    /// Payload handed to the kernel.
    pub sent_bytes: AtomicU64,
    /// UDP: the number that the next datagram gets, or one more than the highest that came.
    pub next_sequence: AtomicU64,
    /// UDP: came, each once.
    pub datagrams: AtomicU64,
    /// UDP: came after a later one.
    pub reordered: AtomicU64,
    /// UDP: came again.
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
    pub flows: Vec<Tally>,
    quiet: AtomicBool,
}

impl Ledger {
    /// For so many.
    pub fn new(flows: u32) -> Self {
        let flows = (0..flows).map(|_| Tally::default()).collect();
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

    fn sum(&self, of: fn(&Tally) -> &AtomicU64) -> u64 {
        self.flows.iter().map(|t| of(t).load(Ordering::Relaxed)).sum()
    }

    /// Payload received by all.
    pub fn received(&self) -> u64 {
        self.sum(|t| &t.received_bytes)
    }

    /// What the flows' own counters say.
    pub fn counters(&self, udp: bool, receives: bool, zerocopy: bool) -> Counters {
        let each = |of: fn(&Tally) -> &AtomicU64| -> Vec<u64> {
            self.flows.iter().map(|t| of(t).load(Ordering::Relaxed)).collect()
        };
        Counters {
            received_bytes: each(|t| &t.received_bytes),
            sent_bytes: self.sum(|t| &t.sent_bytes),
            next_sequence: if udp { each(|t| &t.next_sequence) } else { vec![] },
            datagrams: udp.then(|| self.datagrams(receives)),
            zerocopy: zerocopy.then(|| ZeroCopyCount {
                completed: self.sum(|t| &t.completed),
                copied: self.sum(|t| &t.copied),
            }),
            ..Counters::default()
        }
    }

    fn datagrams(&self, receives: bool) -> Datagrams {
        let heard = || self.flows.iter().filter(|t| t.datagrams.load(Ordering::Relaxed) > 0);
        let jitter: u64 = heard().map(|t| t.jitter_ns.load(Ordering::Relaxed)).sum();
        Datagrams {
            received: if receives { self.sum(|t| &t.datagrams) } else { 0 },
            reordered: self.sum(|t| &t.reordered).into(),
            duplicates: self.sum(|t| &t.duplicates).into(),
            jitter_ns: (jitter / (heard().count() as u64).max(1)).into(),
            send_refused: self.sum(|t| &t.refused),
            ..Datagrams::default()
        }
    }
}
