//! A bounded resource shared by all clients: memory, connections, streams.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Total amount, and the amount taken.
#[derive(Debug)]
pub struct Budget {
    taken: AtomicUsize,
    limit: usize,
}

impl Budget {
    pub const fn new(limit: usize) -> Self {
        Self { taken: AtomicUsize::new(0), limit }
    }

    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// The amount still free.
    pub fn left(&self) -> usize {
        self.limit.saturating_sub(self.taken.load(SeqCst))
    }

    /// Takes a part; `None` if less than `n` is free.
    pub fn take(&self, n: usize) -> Option<Share<'_>> {
        let more = |taken: usize| taken.checked_add(n).filter(|t| *t <= self.limit);
        self.taken.fetch_update(SeqCst, SeqCst, more).ok()?;
        Some(Share { of: self, n })
    }
}

/// A part of a [`Budget`], returned when dropped.
#[derive(Debug)]
#[must_use = "dropping it gives it back"]
pub struct Share<'a> {
    of: &'a Budget,
    n: usize,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.of.taken.fetch_sub(self.n, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back() {
        let budget = Budget::new(3);
        let two = budget.take(2);
        assert!(two.is_some() && budget.take(2).is_none() && budget.take(1).is_some());
        assert_eq!(budget.left(), 1);
        drop(two);
        assert!(budget.take(3).is_some());
        assert!(budget.take(usize::MAX).is_none());
    }
}
