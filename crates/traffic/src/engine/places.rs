//! Queues of a thread's connection slots, by slot number.

use std::collections::{BTreeSet, VecDeque};

/// How long a connection rests after it failed without an answer, to avoid flooding a server that
/// refuses.
pub const REST_NS: u64 = 10_000_000;

/// Slots that wait for a time, earliest first.
#[derive(Debug, Default)]
pub struct Until(BTreeSet<(u64, usize)>);

impl Until {
    pub fn add(&mut self, until: u64, key: usize) {
        self.0.insert((until, key));
    }

    /// Removes and returns the first slot whose time has come.
    pub fn come(&mut self, now: u64) -> Option<usize> {
        self.0.first().filter(|(until, _)| *until <= now)?;
        self.0.pop_first().map(|(_, key)| key)
    }

    /// The earliest time; `u64::MAX` if none waits.
    pub fn next(&self) -> u64 {
        self.0.first().map_or(u64::MAX, |(until, _)| *until)
    }
}

/// A FIFO of slots that may begin something, each at most once.
#[derive(Debug)]
pub struct Queue {
    keys: VecDeque<usize>,
    within: Vec<bool>,
}

impl Queue {
    /// A queue for this many slots.
    pub fn new(places: usize) -> Self {
        Self { keys: VecDeque::with_capacity(places), within: vec![false; places] }
    }

    /// Appends a slot unless it is queued already.
    #[inline]
    pub fn add(&mut self, key: usize) {
        if let Some(within) = self.within.get_mut(key).filter(|w| !**w) {
            *within = true;
            self.keys.push_back(key);
        }
    }

    #[inline]
    pub fn first(&self) -> Option<usize> {
        self.keys.front().copied()
    }

    /// Removes the first slot.
    #[inline]
    pub fn take(&mut self) {
        if let Some(within) = self.keys.pop_front().and_then(|key| self.within.get_mut(key)) {
            *within = false;
        }
    }
}
