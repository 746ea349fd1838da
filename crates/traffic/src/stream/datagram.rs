//! The header of each datagram, and what the receiver derives from it.
//!
//! A datagram begins with its sequence number in its flow, from 0, and its send time on the
//! sender's clock in nanoseconds; both 64 bits, big-endian. The rest is padding.

use super::shared_counts::{ReceivedCounts, SharedCounts, add, put};

/// Length of the header in bytes.
pub const HEADER: usize = 16;

/// Sequence numbers from here on are invalid: `DATA_MAGIC` in front, or noise.
const MOST: u64 = 1 << 48;

/// Size of the window of remembered sequence numbers.
const REMEMBERED: u64 = 4096;

/// Writes number and time of sending, 8 bytes each, big-endian.
#[inline]
pub fn stamp(datagram: &mut [u8], number: u64, sent_ns: u64) {
    if let Some((a, rest)) = datagram.split_first_chunk_mut::<8>() {
        *a = number.to_be_bytes();
        if let Some((b, _)) = rest.split_first_chunk_mut::<8>() {
            *b = sent_ns.to_be_bytes();
        }
    }
}

/// Sequence number and send time, if this may be one of our datagrams.
#[inline]
pub fn read(datagram: &[u8]) -> Option<(u64, u64)> {
    let (a, rest) = datagram.split_first_chunk::<8>()?;
    let (b, _) = rest.split_first_chunk::<8>()?;
    let number = u64::from_be_bytes(*a);
    (number < MOST).then_some((number, u64::from_be_bytes(*b)))
}

/// Datagrams received on one flow.
#[derive(Debug)]
pub struct Arrivals {
    /// Highest sequence number received, plus one.
    next: u64,
    /// Bitmap of the last [`REMEMBERED`] sequence numbers received, indexed modulo that.
    came: Box<[u64; REMEMBERED as usize / 64]>,
    received: u64,
    bytes: u64,
    /// Last transit time, from two unsynchronized clocks: only changes are meaningful.
    transit: Option<i64>,
    /// Jitter times sixteen, as in RFC 3550 appendix A.8.
    jitter_16: u64,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self {
            next: 0,
            came: Box::new([0; REMEMBERED as usize / 64]),
            received: 0,
            bytes: 0,
            transit: None,
            jitter_16: 0,
        }
    }
}

impl Arrivals {
    /// Records a datagram of `bytes` received at `now`.
    #[inline]
    pub fn take(&mut self, number: u64, sent_ns: u64, now: u64, bytes: u64, counts: &SharedCounts) {
        if number >= self.next {
            self.forget(number - self.next);
            self.next = number + 1;
        } else if self.next - number > REMEMBERED {
            // Too old to know whether it is a duplicate, which is less likely this late.
            add(&counts.reordered, 1);
        } else if self.marked(number) {
            add(&counts.duplicates, 1);
            return;
        } else {
            add(&counts.reordered, 1);
        }
        self.mark(number);
        self.received += 1;
        self.bytes += bytes;
        counts.put_came(ReceivedCounts {
            next_sequence: self.next,
            datagrams: self.received,
            bytes: self.bytes,
        });
        self.smooth(sent_ns, now, counts);
    }

    /// RFC 3550 section 6.4.1, in the integer form of its appendix A.8.
    #[inline]
    fn smooth(&mut self, sent_ns: u64, now: u64, counts: &SharedCounts) {
        let transit = now.wrapping_sub(sent_ns) as i64;
        if let Some(before) = self.transit.replace(transit) {
            // A sender with a false clock must not cause an overflow.
            let change = transit.wrapping_sub(before).unsigned_abs().min(1 << 56);
            self.jitter_16 = self.jitter_16 + change - ((self.jitter_16 + 8) >> 4);
            put(&counts.jitter_ns, self.jitter_16 >> 4);
        }
    }

    fn place(number: u64) -> (usize, u64) {
        let at = number % REMEMBERED;
        ((at / 64) as usize, 1 << (at % 64))
    }

    #[inline]
    fn marked(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        self.came.get(word).is_some_and(|w| w & bit != 0)
    }

    #[inline]
    fn mark(&mut self, number: u64) {
        let (word, bit) = Self::place(number);
        if let Some(w) = self.came.get_mut(word) {
            *w |= bit;
        }
    }

    /// Clears the bitmap for the next number and the skipped ones.
    #[inline]
    fn forget(&mut self, skipped: u64) {
        if skipped >= REMEMBERED {
            self.came.fill(0);
            return;
        }
        for number in self.next..=self.next + skipped {
            let (word, bit) = Self::place(number);
            if let Some(w) = self.came.get_mut(word) {
                *w &= !bit;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use proptest::prelude::*;

    use super::*;

    fn after(numbers: &[u64]) -> SharedCounts {
        let (mut arrivals, counts) = (Arrivals::default(), SharedCounts::default());
        numbers.iter().for_each(|n| arrivals.take(*n, n * 10, n * 10 + 5, 100, &counts));
        counts
    }

    fn counts(t: &SharedCounts) -> [u64; 4] {
        let came = t.came();
        let [reordered, duplicates] = [&t.reordered, &t.duplicates].map(|c| c.load(Relaxed));
        [came.next_sequence, came.datagrams, reordered, duplicates]
    }

    #[test]
    fn loss_order_and_duplicates_are_distinguished() {
        assert_eq!(counts(&after(&[0, 1, 2, 3])), [4, 4, 0, 0]);
        assert_eq!(counts(&after(&[0, 3, 1, 1, 3, 4])), [5, 4, 1, 2]);
        // A jump ahead, then one number too old to be remembered, and one that is not.
        assert_eq!(counts(&after(&[0, 100_000, 0, 99_999, 99_999])), [100_001, 4, 2, 1]);
        assert_eq!(after(&[0, 3, 1, 1]).received_bytes.load(Relaxed), 300);
    }

    #[test]
    fn jitter_is_that_of_the_rfc() {
        let (mut arrivals, counts) = (Arrivals::default(), SharedCounts::default());
        // Transit times 100, 116, 100, 116, … ns on clocks 7 s apart: |D| is always 16.
        let mut j = 0.0f64;
        for n in 0..200u64 {
            let sent = 7_000_000_000 + n * 1000;
            let now = n * 1000 + 100 + if n % 2 == 1 { 16 } else { 0 };
            arrivals.take(n, sent, now, 1, &counts);
            if n > 0 {
                j += (16.0 - j) / 16.0;
            }
        }
        let got = counts.jitter_ns.load(Relaxed) as f64;
        assert!((got - j).abs() <= 1.5, "{got} {j}");
    }

    #[test]
    fn noise_and_greetings_are_no_datagrams() {
        let mut d = [0u8; 20];
        stamp(&mut d, 77, 123_456_789_012);
        assert_eq!(read(&d), Some((77, 123_456_789_012)));
        assert_eq!(read(&d[..15]), None);
        d[..4].copy_from_slice(&crate::control::message::DATA_MAGIC);
        assert_eq!(read(&d), None);
        stamp(&mut d[..10], 1, 1);
    }

    proptest! {
        #[test]
        fn received_are_the_different_ones(numbers in prop::collection::vec(0u64..3000, 0..500)) {
            let t = after(&numbers);
            let different: std::collections::BTreeSet<_> = numbers.iter().collect();
            let [next, received, _, duplicates] = counts(&t);
            prop_assert_eq!(received, different.len() as u64);
            prop_assert_eq!(received + duplicates, numbers.len() as u64);
            prop_assert_eq!(next, numbers.iter().max().map_or(0, |m| m + 1));
        }

        #[test]
        fn a_hostile_sender_makes_nothing_overflow(
            all in prop::collection::vec((0u64..MOST, any::<u64>(), any::<u64>()), 0..50),
        ) {
            let (mut arrivals, counts) = (Arrivals::default(), SharedCounts::default());
            for (number, sent, now) in all {
                arrivals.take(number, sent, now, 1, &counts);
            }
        }
    }
}
