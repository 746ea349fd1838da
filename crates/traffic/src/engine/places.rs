//! Which of a thread's connections, by their numbers, waits for what.

use std::collections::{BTreeSet, VecDeque};

/// How long a connection rests after it failed without an answer: whoever refuses shall not be
/// flooded.
pub const REST_NS: u64 = 10_000_000;

/// Those that wait for a time, the earliest first.
#[derive(Debug, Default)]
pub struct Until(BTreeSet<(u64, usize)>);

impl Until {
    pub fn add(&mut self, until: u64, key: usize) {
        self.0.insert((until, key));
    }

    /// The first of those whose time has come, which waits no more.
    pub fn come(&mut self, now: u64) -> Option<usize> {
        self.0.first().filter(|(until, _)| *until <= now)?;
        self.0.pop_first().map(|(_, key)| key)
    }

    /// When the next one's time comes; `u64::MAX` where none waits.
    pub fn next(&self) -> u64 {
        self.0.first().map_or(u64::MAX, |(until, _)| *until)
    }
}

/// Those that may begin something, in their order, each once.
#[derive(Debug)]
pub struct Queue {
    keys: VecDeque<usize>,
    within: Vec<bool>,
}

impl Queue {
    /// For so many connections.
    pub fn new(places: usize) -> Self {
        Self { keys: VecDeque::with_capacity(places), within: vec![false; places] }
    }

    /// Puts one at the end, if it is not in it.
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

    /// Takes the first out.
    #[inline]
    pub fn take(&mut self) {
        if let Some(within) = self.keys.pop_front().and_then(|key| self.within.get_mut(key)) {
            *within = false;
        }
    }
}
