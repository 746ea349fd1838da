//! Tracks received datagrams: new, duplicate, late or missing.

/// Distance within which a duplicate is recognized.
const WINDOW: u64 = 4096;

/// Sequence numbers received, counted from 1.
#[derive(Debug)]
pub struct Sequence {
    /// The highest number that was received; 0 before the first.
    pub highest: u64,
    /// Datagrams received, duplicates not counted.
    pub received: u64,
    /// Datagrams that arrived after a later one.
    pub reordered: u64,
    pub duplicates: u64,
    /// Bitmap of the last [`WINDOW`] numbers.
    seen: [u64; (WINDOW / 64) as usize],
    /// Smoothed jitter of the transit time, RFC 3550 section 6.4.1.
    pub jitter_ns: f64,
    transit_ns: Option<i64>,
}

impl Default for Sequence {
    fn default() -> Self {
        Self {
            highest: 0,
            received: 0,
            reordered: 0,
            duplicates: 0,
            seen: [0; (WINDOW / 64) as usize],
            jitter_ns: 0.0,
            transit_ns: None,
        }
    }
}

impl Sequence {
    /// The full number of a datagram that holds only its low 32 bits.
    #[inline]
    pub fn widen(&self, low: u32) -> u64 {
        let ahead = low.wrapping_sub(self.highest as u32).cast_signed();
        self.highest.saturating_add_signed(i64::from(ahead))
    }

    /// Counts a datagram. The ends' clocks need not agree: only changes are used.
    #[inline]
    pub fn record(&mut self, number: u64, sent_ns: u64, arrived_ns: u64) {
        if number > self.highest {
            self.forget(number - self.highest);
            self.highest = number;
            self.received += 1;
        } else {
            // A number older than the window cannot be recognized as a duplicate.
            if self.highest - number < WINDOW && self.was_seen(number) {
                self.duplicates += 1;
                return;
            }
            self.received += 1;
            self.reordered += 1;
        }
        self.mark(number);
        let transit = arrived_ns.wrapping_sub(sent_ns).cast_signed();
        if let Some(before) = self.transit_ns.replace(transit) {
            let change = transit.wrapping_sub(before).unsigned_abs() as f64;
            self.jitter_ns += (change - self.jitter_ns) / 16.0;
        }
    }

    /// Clears the bits for the next `steps` numbers.
    #[inline]
    fn forget(&mut self, steps: u64) {
        if steps >= WINDOW {
            self.seen = [0; (WINDOW / 64) as usize];
            return;
        }
        for number in self.highest + 1..=self.highest.saturating_add(steps) {
            let (word, bit) = place(number);
            if let Some(w) = self.seen.get_mut(word) {
                *w &= !bit;
            }
        }
    }

    #[inline]
    fn was_seen(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.seen.get(word).is_some_and(|w| w & bit != 0)
    }

    #[inline]
    fn mark(&mut self, number: u64) {
        let (word, bit) = place(number);
        if let Some(w) = self.seen.get_mut(word) {
            *w |= bit;
        }
    }
}

#[inline]
fn place(number: u64) -> (usize, u64) {
    ((number % WINDOW / 64) as usize, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn fed(numbers: &[u64]) -> Sequence {
        let mut s = Sequence::default();
        numbers.iter().for_each(|n| s.record(*n, 0, 0));
        s
    }

    #[test]
    fn late_retransmitted_and_lost_are_distinguished() {
        let s = fed(&[1, 2, 4, 3, 3, 7, 7]);
        assert_eq!((s.highest, s.received, s.reordered, s.duplicates), (7, 5, 1, 2));
    }

    #[test]
    fn a_jump_beyond_the_window_forgets_all_and_the_last_number_is_no_trap() {
        let mut s = fed(&[1, 2, 100_000, u64::MAX, u64::MAX]);
        s.record(0, 0, 0);
        assert_eq!((s.highest, s.duplicates), (u64::MAX, 1));
    }

    #[test]
    fn numbers_of_32_bits_go_on_beyond_them() {
        let mut s = fed(&[u64::from(u32::MAX)]);
        assert_eq!(s.widen(u32::MAX - 1), u64::from(u32::MAX) - 1);
        assert_eq!(s.widen(5), (1 << 32) + 5);
        s.record(s.widen(0), 0, 0);
        assert_eq!(s.highest, 1 << 32);
    }

    #[test]
    fn jitter_is_the_smoothed_change_of_transit() {
        let mut s = Sequence::default();
        // Transit times 100, 116, 100: two changes of 16.
        for (n, sent, arrived) in [(1, 0, 100), (2, 1000, 1116), (3, 2000, 2100)] {
            s.record(n, sent, arrived);
        }
        assert!((s.jitter_ns - (1.0 + 15.0 / 16.0)).abs() < 1e-9, "{}", s.jitter_ns);
        // A clock offset has no effect.
        let mut peer = Sequence::default();
        for (n, sent, arrived) in [(1, 5, 100), (2, 1005, 1116), (3, 2005, 2100)] {
            peer.record(n, u64::MAX - 10_000 + sent, arrived);
        }
        assert!((peer.jitter_ns - s.jitter_ns).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_set(numbers in proptest::collection::vec(1u64..3000, 0..400)) {
            let s = fed(&numbers);
            let set: HashSet<_> = numbers.iter().collect();
            prop_assert_eq!(s.received, set.len() as u64);
            prop_assert_eq!(s.duplicates, (numbers.len() - set.len()) as u64);
            prop_assert_eq!(s.highest, numbers.iter().copied().max().unwrap_or(0));
        }
    }
}
