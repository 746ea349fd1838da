//! Intervals of a window, computed from the threads' counters: for progress output and for the
//! result.

use model::{Reading, measure::ServedInterval};

use super::worker_pool::AskedUntilNow;

/// The intervals of one round.
#[derive(Debug)]
pub struct Intervals {
    every_ns: u64,
    window_ns: u64,
    /// Start of the current interval since the window began, and the counters then.
    before: Option<(u64, AskedUntilNow)>,
    /// Completed intervals, in order of time.
    pub all: Vec<ServedInterval>,
}

impl Intervals {
    /// Intervals of `every_ns` in a window of `window_ns`.
    pub fn new(every_ns: u64, window_ns: u64) -> Self {
        Self { every_ns: every_ns.max(1), window_ns, before: None, all: vec![] }
    }

    /// Reads the counters at a time since the window began (0: before it); returns an interval that
    /// this completes. The interval spans the two reads, so that its rate matches its counts.
    pub fn look(&mut self, since_ns: u64, now: AskedUntilNow) -> Option<&ServedInterval> {
        if since_ns == 0 {
            return None;
        }
        let Some((from_ns, before)) = self.before else {
            self.before = Some((since_ns, now));
            return None;
        };
        let end_ns = (from_ns / self.every_ns + 1) * self.every_ns;
        // Counts after the window do not belong to it.
        if since_ns < end_ns || from_ns >= self.window_ns {
            return None;
        }
        self.before = Some((since_ns, now));
        let transactions = now.answered.wrapping_sub(before.answered);
        let latency_ns = now.latency_ns.wrapping_sub(before.latency_ns);
        self.all.push(ServedInterval {
            start_s: from_ns as f64 / 1e9,
            end_s: since_ns as f64 / 1e9,
            transactions,
            transactions_per_s: transactions as f64 * 1e9 / (since_ns - from_ns).max(1) as f64,
            latency_mean_ns: match transactions {
                0 => Reading::absent("nothing was answered"),
                n => Reading::Known(latency_ns / n),
            },
            failed: now.failed.wrapping_sub(before.failed),
        });
        self.all.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_what_was_counted_between_two_looks() {
        let mut intervals = Intervals::new(1_000_000_000, 3_000_000_000);
        let at =
            |ms: u64| AskedUntilNow { answered: ms, failed: ms / 1000, latency_ns: ms * 5_000 };
        assert!(intervals.look(0, at(70)).is_none(), "warming up");
        for ms in (1..=3_500).step_by(40) {
            let _ = intervals.look(ms * 1_000_000, at(100 + ms));
        }
        let all = &intervals.all;
        assert_eq!(all.len(), 3, "{all:?}");
        assert_eq!(all.iter().map(|i| i.transactions).sum::<u64>(), 3_000, "{all:?}");
        for (n, i) in all.iter().enumerate() {
            assert!(i.start_s >= n as f64 && i.start_s < n as f64 + 0.05, "{i:?}");
            assert!((i.transactions_per_s - 1000.0).abs() < 1.0, "{i:?}");
            assert_eq!(i.latency_mean_ns, Reading::Known(5_000));
        }
        let mut idle = Intervals::new(1, 10);
        let _ = idle.look(1, at(1));
        let found = idle.look(5, at(1)).cloned().unwrap();
        assert_eq!((found.transactions, found.transactions_per_s), (0, 0.0));
        assert!(found.latency_mean_ns.why_not().is_some());
    }
}
