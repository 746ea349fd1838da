//! Sending at a rate: each message has its time, found from what was sent so far, so that what
//! a sleep is late by is made up for and nothing adds up.

use model::measure::{SPIN_NS, Wait};
use probe::samples::clock::sleep_until;

use super::shared_counts::Ledger;
use crate::{engine::worker_pool::WorkerPool, net::now_ns};

/// A sleep costs as much CPU as some ten sends, so none is shorter: at high rates the messages
/// that became due meanwhile follow each other at once.
const SHORTEST_SLEEP_NS: u64 = 50_000;

/// A sender that is so far behind cannot hold the rate, or was held up; what it missed before
/// is not made up for, as it would only be a burst.
const MOST_BEHIND_NS: f64 = 100e6;

/// How much of a stream without messages is sent at once: a millisecond's worth.
const PIECE_S: f64 = 1e-3;
/// And at least about a segment.
const SMALLEST_PIECE: usize = 1400;

/// The schedule of one thread.
#[derive(Debug)]
pub struct Pacer {
    begin_ns: f64,
    bytes: u64,
    ns_per_byte: f64,
    wait: Wait,
}

/// How much to send at once of a message, where a rate is given: a whole message of 128 KiB
/// would be more than a second's worth at 1 Mbit/s.
pub fn piece(message: usize, bits_per_s: f64) -> usize {
    let worth = (bits_per_s / 8.0 * PIECE_S) as usize;
    message.min(worth.max(SMALLEST_PIECE))
}

impl Pacer {
    /// Begins now, at a thread's share of a rate.
    pub fn new(bits_per_s: f64, wait: Wait) -> Self {
        // The kernel rounds sleeps up by 50 µs to save on timers; here they shall be exact.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1_000));
        let ns_per_byte = 8e9 / bits_per_s.max(1e-3);
        Self { begin_ns: now_ns() as f64, bytes: 0, ns_per_byte, wait }
    }

    /// When the next message is due.
    #[inline]
    pub fn due_ns(&self) -> u64 {
        (self.begin_ns + self.bytes as f64 * self.ns_per_byte) as u64
    }

    /// So much was sent.
    #[inline]
    pub fn sent(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Forgives what cannot be made up for.
    #[inline]
    pub fn forgive(&mut self, now: u64) {
        let behind = now as f64 - (self.begin_ns + self.bytes as f64 * self.ns_per_byte);
        if behind > MOST_BEHIND_NS {
            self.begin_ns += behind - MOST_BEHIND_NS;
        }
    }

    /// When to wake for the next message that is due at `due`.
    pub fn wake_ns(&self, now: u64, due: u64) -> u64 {
        match self.wait {
            Wait::Spin => due,
            Wait::SpinThenBlock => due.saturating_sub(SPIN_NS.0 / 2),
            Wait::Block | Wait::BusyPoll => due.max(now + SHORTEST_SLEEP_NS),
        }
    }

    /// Waits until the next message is due and gives the time; `None` when it is over.
    #[inline]
    pub fn turn(&mut self, pool: &WorkerPool, ledger: &Ledger) -> Option<u64> {
        let due = self.due_ns();
        let mut now = now_ns();
        while now < due {
            let wake = self.wake_ns(now, due);
            if self.wait == Wait::Spin || wake <= now {
                std::hint::spin_loop();
            } else {
                sleep_until(wake);
            }
            if pool.stopping() || ledger.is_quiet() {
                return None;
            }
            now = now_ns();
        }
        self.forgive(now);
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_follow_from_what_was_sent() {
        let mut p = Pacer::new(8e6, Wait::Block);
        let begin = p.due_ns();
        p.sent(1000);
        assert_eq!(p.due_ns() - begin, 1_000_000);
        (0..999).for_each(|_| p.sent(1000));
        assert!((p.due_ns() - begin).abs_diff(1_000_000_000) <= 1_000, "nothing adds up");
        // Half a second behind: all but a tenth is forgiven.
        let now = begin + 1_500_000_000;
        p.forgive(now);
        assert!((now - p.due_ns()).abs_diff(100_000_000) <= 1_000);
        p.forgive(now);
        assert!((now - p.due_ns()).abs_diff(100_000_000) <= 1_000);
    }

    #[test]
    fn pieces_are_a_millisecond_or_a_segment() {
        assert_eq!(piece(128 << 10, 1e6), 1400);
        assert_eq!(piece(128 << 10, 100e6), 12_500);
        assert_eq!(piece(128 << 10, 10e9), 128 << 10);
        assert_eq!(piece(64, 10e9), 64);
    }

    #[test]
    fn the_turn_comes_on_time_and_ends() {
        let (pool, ledger) = (WorkerPool::new(1), Ledger::new(1));
        for wait in [Wait::Block, Wait::Spin, Wait::SpinThenBlock] {
            let begin = now_ns();
            let mut p = Pacer::new(80e6, wait);
            for _ in 0..100 {
                let due = p.due_ns();
                assert!(p.turn(&pool, &ledger).unwrap() >= due);
                p.sent(1000);
            }
            assert!(now_ns() - begin >= 9_900_000, "100 at 100 µs each");
        }
        ledger.be_quiet();
        let mut p = Pacer::new(1.0, Wait::Spin);
        p.sent(1);
        assert_eq!(p.turn(&pool, &ledger), None);
    }
}
