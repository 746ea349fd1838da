//! The window of a measurement, and what an answer counts for.

use std::sync::atomic::{AtomicU64, Ordering};

/// The window of the measurement; set from outside while the loops run.
#[derive(Debug)]
pub struct Window {
    start: AtomicU64,
    end: AtomicU64,
}

impl Window {
    /// Not begun.
    pub fn closed() -> Self {
        Self { start: AtomicU64::new(u64::MAX), end: AtomicU64::new(u64::MAX) }
    }

    /// Begins at a time.
    pub fn open_at(&self, ns: u64) {
        self.start.store(ns, Ordering::Relaxed);
    }

    /// Ends at a time.
    pub fn close_at(&self, ns: u64) {
        self.end.store(ns, Ordering::Relaxed);
    }

    /// When it began; `u64::MAX` when it has not.
    pub fn start_ns(&self) -> u64 {
        self.start.load(Ordering::Relaxed)
    }

    /// When it ended; `u64::MAX` when it has not.
    pub fn end_ns(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Whether a moment is within.
    #[inline]
    pub fn holds(&self, ns: u64) -> bool {
        ns >= self.start.load(Ordering::Relaxed) && ns < self.end.load(Ordering::Relaxed)
    }

    /// How much of the time from then to `now` is within; nothing before it has begun.
    pub fn share_ns(&self, from: u64, now: u64) -> u64 {
        now.min(self.end_ns()).saturating_sub(from.max(self.start_ns()))
    }

    /// What an answer that came `now` counts for, `due_ns` being the time that a schedule gave
    /// its request, where there is one.
    #[inline]
    pub fn counts(&self, due_ns: Option<u64>, now: u64) -> Counts {
        match due_ns {
            _ if self.holds(now) => Counts::Whole,
            Some(due_ns) if self.holds(due_ns) => Counts::Time,
            _ => Counts::Not,
        }
    }
}

/// What an answer counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Nothing: it is of the warm-up or of the cool-down.
    Not,
    /// Its time alone: the schedule had it in the window, and it came later. Else what a stall
    /// keeps beyond the window would be missing among the times.
    Time,
    /// Rate and time: it came within the window, whatever the schedule says. Beyond the capacity
    /// of a server its answers are to ever older requests, and are its throughput all the same.
    Whole,
}
