//! Paces a sender at a rate. Each message's due time follows from the bytes sent so far, so that
//! late wake-ups are made up for and do not accumulate.

use model::measure::{SPIN_NS, Wait};
use probe::samples::clock::sleep_until;

use super::shared_counts::Ledger;
use crate::{engine::worker_pool::WorkerPool, net::now_ns};

/// Shortest sleep: a sleep costs as much CPU as about ten sends. At high rates, messages that
/// became due meanwhile are sent back to back.
const SHORTEST_SLEEP_NS: u64 = 50_000;

/// Largest lag to make up for. A sender further behind cannot hold the rate, or was held up; making
/// up for more would only cause a burst.
const MOST_BEHIND_NS: f64 = 100e6;

/// Part of a second's bytes sent at once on a stream without messages: a millisecond's worth.
const PIECE_S: f64 = 1e-3;
/// Smallest such piece in bytes: about a segment.
const SMALLEST_PIECE: usize = 1400;

/// The schedule of one thread.
#[derive(Debug)]
pub struct Pacer {
    begin_ns: f64,
    bytes: u64,
    ns_per_byte: f64,
    wait: Wait,
}

/// Bytes to send at once of a message at a rate: a whole message of 128 KiB would exceed a second's
/// worth at 1 Mbit/s.
pub fn piece(message: usize, bits_per_s: f64) -> usize {
    let worth = (bits_per_s / 8.0 * PIECE_S) as usize;
    message.min(worth.max(SMALLEST_PIECE))
}

impl Pacer {
    /// Starts the schedule now, with a thread's share of the rate.
    pub fn new(bits_per_s: f64, wait: Wait) -> Self {
        // The kernel delays sleeps by up to 50 µs to combine timers; here they must be exact.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1_000));
        let ns_per_byte = 8e9 / bits_per_s.max(1e-3);
        Self { begin_ns: now_ns() as f64, bytes: 0, ns_per_byte, wait }
    }

    /// Due time of the next message.
    #[inline]
    pub fn due_ns(&self) -> u64 {
        (self.begin_ns + self.bytes as f64 * self.ns_per_byte) as u64
    }

    /// Accounts for sent bytes.
    #[inline]
    pub fn sent(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Drops lag beyond the limit.
    #[inline]
    pub fn forgive(&mut self, now: u64) {
        let behind = now as f64 - (self.begin_ns + self.bytes as f64 * self.ns_per_byte);
        if behind > MOST_BEHIND_NS {
            self.begin_ns += behind - MOST_BEHIND_NS;
        }
    }

    /// Wake-up time for the next message, due at `due`.
    pub fn wake_ns(&self, now: u64, due: u64) -> u64 {
        match self.wait {
            Wait::Spin => due,
            Wait::SpinThenBlock => due.saturating_sub(SPIN_NS.0 / 2),
            Wait::Block | Wait::BusyPoll => due.max(now + SHORTEST_SLEEP_NS),
        }
    }

    /// Waits until the next message is due; returns the time, or `None` when the test is over.
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
        // Half a second behind: all lag but a tenth of a second is dropped.
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
