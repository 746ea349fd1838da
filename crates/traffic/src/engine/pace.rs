//! When the next request or transaction may begin: at once in closed loop, by the schedule in
//! open loop, not before the window where there is a number of them.

use super::{schedule::Schedule, window::Window};

/// How often a thread that must not begin yet looks whether it may.
const GATE_NS: u64 = 100_000;

/// When the next may begin.
#[derive(Debug, Clone, Copy)]
pub enum Due {
    At(u64),
    /// There is none.
    Never,
}

#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub schedule: Option<Schedule>,
    /// So many, which begin with the window: so does the schedule, whose times are then counted
    /// from there.
    pub quota: Option<u64>,
}

impl Pace {
    /// Of thread `n` of so many, where all threads together keep this rate or have this number;
    /// they take turns, and none is due before `begin_ns`.
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
            // With a number of them the beginning is that of the window.
            let begin_ns = if total.is_some() { 0 } else { begin_ns };
            Schedule { start_ns: begin_ns + (gap_ns * n as f64 / threads) as u64, gap_ns }
        });
        Self { schedule, quota: total.map(|t| t / all + u64::from((n as u64) < t % all)) }
    }

    /// When the next may begin, `next` having been begun before.
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

    /// A schedule whose end the window decides and not a number.
    fn endless(&self) -> Option<&Schedule> {
        self.schedule.as_ref().filter(|_| self.quota.is_none())
    }

    /// At the end: how many that were due before the window's end no connection was free for,
    /// `next` having been begun. Those due before its beginning are among them: who cannot keep
    /// up begins the oldest first.
    pub fn not_started(&self, window: &Window, next: u64, now: u64) -> u64 {
        let due = |s: &Schedule| s.number_at(window.end_ns().min(now)).saturating_sub(next);
        self.endless().map_or(0, due)
    }

    /// At the end: how long ago the first was due that is not begun.
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
        // 1,000 a second since 0, of which 500 were begun until 2.05 s.
        let pace = Pace::of(0, 1, Some(1_000), None, 0);
        assert_eq!(pace.not_started(&window, 500, 2_050_000_000), 1_500);
        assert_eq!(pace.schedule_lag_ns(500, 2_050_000_000), 1_550_000_000);
        // Kept until the window's end, and in the cool-down.
        assert_eq!(pace.not_started(&window, 2_050, 2_050_000_000), 0);
        assert_eq!(pace.schedule_lag_ns(2_050, 2_050_000_000), 0);
        // A number of them is begun whole, however late.
        let pace = Pace::of(0, 1, Some(1_000), Some(600), 0);
        assert_eq!(
            (pace.not_started(&window, 500, u64::MAX), pace.schedule_lag_ns(500, u64::MAX)),
            (0, 0)
        );
    }
}
