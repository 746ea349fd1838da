//! When the next request or transaction may begin: at once in closed loop, by the schedule in open
//! loop, and with a quota not before the window.

use super::{schedule::Schedule, window::Window};

/// Poll interval of a thread that may not begin yet.
const GATE_NS: u64 = 100_000;

/// Time at which the next request may begin.
#[derive(Debug, Clone, Copy)]
pub enum Due {
    At(u64),
    /// No further request is due in this run.
    Never,
}

#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub schedule: Option<Schedule>,
    /// Number of requests, which begin with the window; the schedule's times then count from there.
    pub quota: Option<u64>,
}

impl Pace {
    /// The pace of thread `n`, where all threads together keep this rate or total. Threads take
    /// turns, and nothing is due before `begin_ns`.
    pub fn of(
        n: usize,
        threads: u32,
        rate_per_s: Option<u64>,
        total: Option<u64>,
        begin_ns: u64,
    ) -> Self {
        let all = u64::from(threads.max(1));
        let schedule = rate_per_s.map(|rate| {
            let threads = f64::from(threads);
            let gap_ns = 1e9 * threads / rate as f64;
            // With a quota, the schedule begins with the window.
            let begin_ns = if total.is_some() { 0 } else { begin_ns };
            Schedule { start_ns: begin_ns + (gap_ns * n as f64 / threads) as u64, gap_ns }
        });
        Self { schedule, quota: total.map(|t| t / all + u64::from((n as u64) < t % all)) }
    }

    /// When the next request may begin, after `next` have begun.
    #[inline]
    pub fn due(&self, window: &Window, next: u64, now: u64) -> Due {
        if let Some(quota) = self.quota {
            if next >= quota {
                return Due::Never;
            }
            let begins = window.start_ns();
            if begins == u64::MAX {
                return Due::At(now + GATE_NS);
            }
            return Due::At(self.schedule.as_ref().map_or(now, |s| begins + s.due(next)));
        }
        Due::At(self.schedule.as_ref().map_or(now, |s| s.due(next)))
    }

    /// The schedule, if the window and not a quota ends it.
    fn endless(&self) -> Option<&Schedule> {
        self.schedule.as_ref().filter(|_| self.quota.is_none())
    }

    /// Requests due before the window's end that never began, after `next` have begun. Includes
    /// those due before the window: a server that cannot keep up gets the oldest first.
    pub fn not_started(&self, window: &Window, next: u64, now: u64) -> u64 {
        let due = |s: &Schedule| s.number_at(window.end_ns().min(now)).saturating_sub(next);
        self.endless().map_or(0, due)
    }

    /// At the end: lag of the first request that has not begun.
    pub fn schedule_lag_ns(&self, next: u64, now: u64) -> u64 {
        self.endless().map_or(0, |s| now.saturating_sub(s.due(next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_keep_up_is_behind_by_what_was_due_and_is_not_begun() {
        let window = Window::closed();
        window.open_at(1_000_000_000);
        window.close_at(2_000_000_000);
        // 1,000 per second since 0, of which 500 had begun at 2.05 s.
        let pace = Pace::of(0, 1, Some(1_000), None, 0);
        assert_eq!(pace.not_started(&window, 500, 2_050_000_000), 1_500);
        assert_eq!(pace.schedule_lag_ns(500, 2_050_000_000), 1_550_000_000);
        // Kept until the window's end, and in the cool-down.
        assert_eq!(pace.not_started(&window, 2_050, 2_050_000_000), 0);
        assert_eq!(pace.schedule_lag_ns(2_050, 2_050_000_000), 0);
        // A quota is always begun completely, however late.
        let pace = Pace::of(0, 1, Some(1_000), Some(600), 0);
        assert_eq!(
            (pace.not_started(&window, 500, u64::MAX), pace.schedule_lag_ns(500, u64::MAX)),
            (0, 0)
        );
    }
}
