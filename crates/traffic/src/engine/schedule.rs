//! The schedule of an open loop: when each request is due.

/// The times when a thread's requests are due in open loop.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// Time of the first request, on the monotonic clock.
    pub start_ns: u64,
    /// Gap between requests of this thread, all its flows together.
    pub gap_ns: f64,
}

impl Schedule {
    /// Due time of request `n`.
    pub fn due(&self, n: u64) -> u64 {
        self.start_ns + (n as f64 * self.gap_ns) as u64
    }

    /// Number of requests due before a time.
    pub fn number_at(&self, ns: u64) -> u64 {
        (ns.saturating_sub(self.start_ns) as f64 / self.gap_ns).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_counts_what_is_due_before_a_time() {
        let schedule = Schedule { start_ns: 1_000, gap_ns: 100.0 };
        assert_eq!([0, 1, 2].map(|n| schedule.due(n)), [1_000, 1_100, 1_200]);
        assert_eq!(
            [0, 1_000, 1_001, 1_100, 1_101].map(|at| schedule.number_at(at)),
            [0, 0, 1, 1, 2]
        );
    }
}
