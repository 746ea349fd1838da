//! The clock of the windows, and waiting on it.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::{
    thread::{ClockId, clock_nanosleep_absolute},
    time::Timespec,
};

/// How long a wait may go without looking at `stop`.
const POLL_NS: u64 = 50_000_000;

/// `CLOCK_MONOTONIC`, the clock that other tools stamp with too, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (t.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(t.tv_nsec as u64)
}

/// Sleeps until `deadline` or until `stop` is set. The deadline is absolute, so that what is
/// done between two waits does not add up.
pub fn wait_until(deadline: u64, stop: &AtomicBool, passed: &mut dyn FnMut(u64)) {
    loop {
        let now = monotonic_ns();
        passed(now);
        if now >= deadline || stop.load(Ordering::Relaxed) {
            return;
        }
        let next = deadline.min(now.saturating_add(POLL_NS));
        // A signal ends the sleep early; the loop looks again.
        sleep_until(next);
    }
}

/// Sleeps until [`monotonic_ns`] reaches this value; a signal ends it early.
pub fn sleep_until(ns: u64) {
    let until = Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (ns % 1_000_000_000) as _,
    };
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_until_the_deadline_and_tells_the_time() {
        let start = monotonic_ns();
        let mut heard = Vec::new();
        wait_until(start + 120_000_000, &AtomicBool::new(false), &mut |t| heard.push(t));
        assert!(monotonic_ns() >= start + 120_000_000);
        assert!(heard.len() >= 3 && heard.is_sorted(), "{heard:?}");
    }

    #[test]
    fn a_stop_ends_the_wait_and_a_past_deadline_is_no_wait() {
        let start = monotonic_ns();
        wait_until(u64::MAX, &AtomicBool::new(true), &mut |_| {});
        wait_until(start, &AtomicBool::new(false), &mut |_| {});
        assert!(monotonic_ns() - start < 1_000_000_000);
    }
}
