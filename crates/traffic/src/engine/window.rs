//! The window of a measurement, and whether an answer counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// The measurement window; set by the conductor while the loops run.
#[derive(Debug)]
pub struct Window {
    start: AtomicU64,
    end: AtomicU64,
}

impl Window {
    /// A window that has not begun.
    pub fn closed() -> Self {
        Self { start: AtomicU64::new(u64::MAX), end: AtomicU64::new(u64::MAX) }
    }

    /// Sets the start of the window, ns on the clock of the run.
    pub fn open_at(&self, ns: u64) {
        self.start.store(ns, Ordering::Relaxed);
    }

    /// Sets the end of the window, ns on the clock of the run.
    pub fn close_at(&self, ns: u64) {
        self.end.store(ns, Ordering::Relaxed);
    }

    /// Start time; `u64::MAX` before it has begun.
    pub fn start_ns(&self) -> u64 {
        self.start.load(Ordering::Relaxed)
    }

    /// End time; `u64::MAX` before it has ended.
    pub fn end_ns(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Whether a time is within the window.
    #[inline]
    pub fn holds(&self, ns: u64) -> bool {
        ns >= self.start.load(Ordering::Relaxed) && ns < self.end.load(Ordering::Relaxed)
    }

    /// Part of the time from `from` to `now` within the window; 0 before it begins.
    pub fn share_ns(&self, from: u64, now: u64) -> u64 {
        now.min(self.end_ns()).saturating_sub(from.max(self.start_ns()))
    }

    /// What an answer at `now` counts for; `due_ns` is its request's scheduled time, if any.
    #[inline]
    pub fn counts(&self, due_ns: Option<u64>, now: u64) -> Inclusion {
        match due_ns {
            _ if self.holds(now) => Inclusion::Full,
            Some(due_ns) if self.holds(due_ns) => Inclusion::LatencyOnly,
            _ => Inclusion::None,
        }
    }
}

/// What an answer counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inclusion {
    /// Nothing: it belongs to the warm-up or the cool-down.
    None,
    /// Its latency only: it was due in the window and came later. Without it, latencies of a stall
    /// at the window's end would be missing.
    LatencyOnly,
    /// Rate and latency: it came within the window, whatever the schedule says. An overloaded
    /// server answers ever older requests, which are its throughput all the same.
    Full,
}
