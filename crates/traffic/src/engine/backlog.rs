//! Warns of a schedule that was not kept.

use model::{Nanos, Warning};

/// Lag of a schedule at the end of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScheduleLeft {
    /// Schedule lag of the slowest thread.
    pub schedule_lag_ns: u64,
    /// Requests due within the window that never began.
    pub not_started: u64,
}

impl ScheduleLeft {
    /// Adds another thread or round.
    pub fn add(&mut self, other: Self) {
        self.schedule_lag_ns = self.schedule_lag_ns.max(other.schedule_lag_ns);
        self.not_started += other.not_started;
    }
}

/// A run by schedule, at its end.
#[derive(Debug, Clone, Copy)]
pub struct Backlog {
    /// Word for the scheduled items, in the plural.
    pub what: &'static str,
    /// The setting that allows more of them at once.
    pub places: &'static str,
    pub rate_per_s: u64,
    /// Rate of answers within the window, per second.
    pub per_s: f64,
    /// Most requests under way at once.
    pub at_once: u64,
    pub left: ScheduleLeft,
    pub window_ns: u64,
}

/// Missing share of the rate from which a server counts as overloaded; less is the end of a stall.
const MISSING: f64 = 0.02;

impl Backlog {
    /// A warning if requests due in the window were left, or the final lag exceeded a hundredth of
    /// the window.
    pub fn warning(&self) -> Option<Warning> {
        let Self { what, places, rate_per_s, per_s, at_once, .. } = *self;
        let ScheduleLeft { schedule_lag_ns, not_started } = self.left;
        if not_started == 0 && schedule_lag_ns <= self.window_ns / 100 {
            return None;
        }
        let (lag_ns, what) = (Nanos(schedule_lag_ns), what.to_owned());
        Some(match per_s < rate_per_s as f64 * (1.0 - MISSING) {
            true => Warning::RateNotKept {
                rate_per_s,
                per_s,
                at_once,
                lag_ns,
                not_started,
                what,
                places: places.into(),
            },
            false => Warning::ScheduleBehindAtEnd { lag_ns, not_started, what },
        })
    }
}

/// A run on another program's schedule, which reports how late requests began but not how many were
/// left.
#[derive(Debug, Clone, Copy)]
pub struct Late {
    /// The setting that allows more of them at once.
    pub places: &'static str,
    pub rate_per_s: u64,
    /// Rate of answers within the window, per second.
    pub per_s: f64,
    /// Most requests under way at once.
    pub at_once: u64,
    /// Mean and maximum lag, if the program reports them.
    pub lag_ns: Option<(f64, f64)>,
    pub window_ns: u64,
}

impl Late {
    /// A warning if part of the rate is missing beyond the chance of random gaps. An overloaded
    /// server's final lag is as large a share of the window as its missing rate; half of that is
    /// enough.
    pub fn warning(&self, who: &str) -> Option<Warning> {
        let Self { places, rate_per_s, per_s, at_once, lag_ns, window_ns } = *self;
        let missing = 1.0 - per_s / rate_per_s as f64;
        let late = |(_, most): (f64, f64)| most > missing * window_ns as f64 / 2.0;
        if missing <= MISSING || !lag_ns.is_none_or(late) {
            return None;
        }
        let ns = |ns: f64| Nanos(ns as u64);
        Some(Warning::RateNotKeptByProgram {
            program: who.into(),
            rate_per_s,
            per_s,
            at_once,
            lag_ns: lag_ns.map(|(mean, most)| (ns(mean), ns(most))),
            places: places.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_that_is_not_kept_says_what_is_and_what_is_left() {
        let kept = Backlog {
            what: "requests",
            places: "--flows",
            rate_per_s: 200_000,
            per_s: 199_900.0,
            at_once: 16,
            left: ScheduleLeft { schedule_lag_ns: 20_000, not_started: 0 },
            window_ns: 1_000_000_000,
        };
        assert_eq!(kept.warning(), None);
        let left = |schedule_lag_ns, not_started| ScheduleLeft { schedule_lag_ns, not_started };
        let over = Backlog { per_s: 51_834.4, left: left(800_000_000, 148_000), ..kept };
        let text = |warning: Option<Warning>| warning.map_or_else(String::new, |w| w.to_string());
        let said = text(over.warning());
        for part in [
            "51,834/s",
            "16 at once",
            "schedule lag 800 ms",
            "148,000 requests",
            "--rate below 51,000",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let stalled = Backlog { left: left(50_000_000, 3), ..kept };
        assert!(text(stalled.warning()).contains("kept on average"));
        let late = Late {
            places: "--flows",
            rate_per_s: 100_000,
            per_s: 51_834.4,
            at_once: 16,
            lag_ns: Some((1.2e9, 2.4e9)),
            window_ns: 5_000_000_000,
        };
        let said = text(late.warning("pgbench"));
        for part in ["51,834/s", "mean 1.20 s", "max 2.40 s", "below 51,000"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(Late { per_s: 98_500.0, ..late }.warning("pgbench"), None);
        let chance = Late { lag_ns: Some((1e6, 100e6)), ..late };
        assert_eq!(chance.warning("pgbench"), None, "few came, and each in time");
    }
}
