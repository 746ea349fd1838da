//! When the next request or transaction may begin: at once in closed loop, by the schedule in
//! open loop, not before the window where there is a number of them.

use crate::{
    net::now_ns,
    rtt::{many::Schedule, recorder::Window},
};

/// How often a thread that must not begin yet looks whether it may.
const GATE_NS: u64 = 100_000;

/// When the next may begin.
#[derive(Debug, Clone, Copy)]
pub enum Due {
    At(u64),
    /// There is none.
    Never,
}

/// One thread's pace.
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

    /// At the end: how many of the window no connection was free for.
    pub fn not_begun(&self, window: &Window, next: u64) -> u64 {
        let Some(schedule) = self.schedule.as_ref().filter(|_| self.quota.is_none()) else {
            return 0;
        };
        let until = window.end_ns().min(now_ns());
        let first = schedule.number_at(window.start_ns()).max(next);
        schedule.number_at(until).saturating_sub(first)
    }
}
