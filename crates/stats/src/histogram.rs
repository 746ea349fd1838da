//! A distribution of durations in fixed memory, cheap enough for every sample.

use model::measure::Quantiles;

use crate::scale;

/// Each power of two is cut into 2^7 buckets, so a bucket is at most 1/128 of its value.
const PART_BITS: u32 = 7;
/// Values from here on share the last bucket: 2^40 ns is 18 minutes.
const LIMIT_BITS: u32 = 40;
const LIMIT: u64 = 1 << LIMIT_BITS;
const BUCKETS: usize = scale::buckets::<PART_BITS>(LIMIT_BITS);

/// Counts of values in buckets whose width grows with the value.
///
/// **Shape**: values below 256 exactly, above that 128 buckets for each power of two, 2^40 and
/// more in one, each with its count and its sum; 68 KiB. Minimum, maximum and sum are exact.
/// **Unit**: the caller's, by custom nanoseconds. Recording costs a few instructions and never
/// allocates.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    buckets: Box<[Bucket]>,
    count: u64,
    sum: u128,
    /// Of the squares. Stops at the greatest number.
    squares: u128,
    min: u64,
    max: u64,
}

/// Where values of about one size are counted. The sum tells where within the bucket they lie: two
/// distributions that are narrower than a bucket (32 µs at 5 ms) can be told apart.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Bucket {
    count: u64,
    /// Stops at the greatest number, which only values beyond all buckets reach.
    sum: u64,
}

impl Bucket {
    fn add(&mut self, count: u64, sum: u64) {
        self.count += count;
        self.sum = self.sum.saturating_add(sum);
    }

    /// Where the one of this rank (from 0.5) lies in a bucket from `low` to `high`: they are taken
    /// to spread evenly around their mean, as far as the nearer edge.
    fn place(&self, rank: f64, low: u64, high: u64) -> f64 {
        let mean = self.sum as f64 / self.count as f64;
        let reach = (mean - low as f64).min(high as f64 - mean).max(0.0);
        mean + reach * (2.0 * rank / self.count as f64 - 1.0)
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

#[inline]
fn index(value: u64) -> usize {
    scale::index::<PART_BITS>(value.min(LIMIT - 1))
}

/// The smallest value of a bucket.
fn bucket_low(index: usize) -> u64 {
    scale::low::<PART_BITS>(index)
}

/// The rank of a quantile among `count` values, from 1: the smallest whole number that is at
/// least their product. Binary fractions put 0.55 × 100 a hair above 55, which is not meant.
pub(crate) fn rank(q: f64, count: u64) -> u64 {
    let exact = q.clamp(0.0, 1.0) * count as f64;
    ((exact * (1.0 - 4.0 * f64::EPSILON)).ceil() as u64).clamp(1, count.max(1))
}

impl Histogram {
    pub fn new() -> Self {
        // Written to here, so that no page of it is first touched while measuring.
        let mut buckets = vec![Bucket::default(); BUCKETS].into_boxed_slice();
        std::hint::black_box(&mut buckets).fill(Bucket::default());
        Self { buckets, count: 0, sum: 0, squares: 0, min: u64::MAX, max: 0 }
    }

    #[inline]
    pub fn record(&mut self, value: u64) {
        if let Some(bucket) = self.buckets.get_mut(index(value)) {
            bucket.add(1, value);
        }
        self.count += 1;
        self.sum += u128::from(value);
        self.squares = self.squares.saturating_add(u128::from(value) * u128::from(value));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all of another.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            mine.add(theirs.count, theirs.sum);
        }
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    pub fn clear(&mut self) {
        self.buckets.fill(Bucket::default());
        (self.count, self.sum, self.squares) = (0, 0, 0);
        (self.min, self.max) = (u64::MAX, 0);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The exact mean; `None` of nothing.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The sample standard deviation, exact but for rounding; `None` of fewer than two values.
    pub fn sd(&self) -> Option<f64> {
        let n = u128::from(self.count);
        // n Σx² - (Σx)² has no cancellation while it is whole.
        let whole = n.checked_mul(self.squares).zip(self.sum.checked_mul(self.sum));
        let spread = match whole {
            Some((squares, square)) => squares.saturating_sub(square) as f64,
            None => (n as f64 * self.squares as f64 - (self.sum as f64).powi(2)).max(0.0),
        };
        (n > 1).then(|| (spread / (n as f64 * (n - 1) as f64)).sqrt())
    }

    /// The smallest value, exact; `None` of nothing.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value, exact; `None` of nothing.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The value below or at which a share `q` (0 to 1) of all lies: the smallest value whose
    /// rank is at least `q` times the count, placed within its bucket by its rank there and the
    /// bucket's mean (so at most a bucket's width off) and kept within the exact ends. `None` of
    /// nothing.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = rank(q, self.count);
        if rank == self.count {
            return Some(self.max);
        }
        let mut before = 0;
        for (i, bucket) in self.filled() {
            if before + bucket.count >= rank {
                let within = (rank - before) as f64 - 0.5;
                let at = bucket.place(within, bucket_low(i), bucket_low(i + 1));
                return Some((at.round() as u64).clamp(self.min, self.max));
            }
            before += bucket.count;
        }
        Some(self.max)
    }

    /// The buckets that hold something, ascending: smallest value, first value beyond, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.filled().map(|(i, bucket)| (bucket_low(i), bucket_low(i + 1), bucket.count))
    }

    fn filled(&self) -> impl Iterator<Item = (usize, &Bucket)> {
        self.buckets.iter().enumerate().filter(|(_, bucket)| bucket.count > 0)
    }

    /// How many values are in buckets that begin below `value`.
    pub fn count_below(&self, value: u64) -> u64 {
        self.buckets().take_while(|(low, _, _)| *low < value).map(|(_, _, n)| n).sum()
    }

    /// Where the bucket of a value begins.
    pub(crate) fn bucket_begin(value: u64) -> u64 {
        bucket_low(index(value))
    }

    /// The usual quantiles; all zero of nothing.
    pub fn quantiles(&self) -> Quantiles {
        let q = |share| self.quantile(share).unwrap_or(0);
        Quantiles {
            count: self.count,
            min: self.min().unwrap_or(0),
            p50: q(0.5),
            p75: q(0.75),
            p90: q(0.9),
            p99: q(0.99),
            p999: q(0.999),
            p9999: q(0.9999),
            max: self.max().unwrap_or(0),
            mean: self.mean().unwrap_or(0.0),
            sd: self.sd().unwrap_or(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_standard_deviation_is_that_of_the_samples() {
        let of = |values: &[u64]| {
            let mut h = Histogram::new();
            values.iter().for_each(|v| h.record(*v));
            h.sd()
        };
        assert_eq!((of(&[]), of(&[7])), (None, None));
        assert_eq!(of(&[5, 5, 5]), Some(0.0));
        // Σ(x - 5)² = 9 + 1 + 1 + 1 + 0 + 0 + 4 + 16 = 32 over 8 - 1.
        assert_eq!(of(&[2, 4, 4, 4, 5, 5, 7, 9]), Some((32.0f64 / 7.0).sqrt()));
        // Far narrower than a bucket, which is 2^33 wide there.
        assert_eq!(of(&[(1 << 40) - 1, 1 << 40, (1 << 40) + 1]), Some(1.0));
        let wide = of(&[0, u64::MAX]).unwrap();
        assert!((wide / (u64::MAX as f64 / 2f64.sqrt()) - 1.0).abs() < 1e-6, "{wide}");
    }

    #[test]
    fn nothing_has_no_quantile() {
        let h = Histogram::new();
        assert_eq!((h.quantile(0.5), h.mean(), h.min(), h.max()), (None, None, None, None));
        assert_eq!(h.quantiles().count, 0);
    }

    #[test]
    fn small_values_are_exact() {
        let mut h = Histogram::new();
        (1..=100).for_each(|v| h.record(v));
        let q = h.quantiles();
        assert_eq!((q.min, q.p50, q.p90, q.p99, q.max), (1, 50, 90, 99, 100));
        assert!((q.mean - 50.5).abs() < 1e-9);
    }

    #[test]
    fn a_round_share_of_a_round_count_has_that_very_rank() {
        for count in [100u64, 1_000, 10_000] {
            for k in 1..=100 {
                assert_eq!(rank(k as f64 / 100.0, count), k * count / 100, "{k}% of {count}");
            }
        }
        assert_eq!((rank(0.0, 7), rank(1.0, 7), rank(0.5, 7), rank(f64::NAN, 7)), (1, 7, 4, 1));
    }

    #[test]
    fn a_few_values_beyond_all_buckets_do_not_bend_the_rest() {
        let mut h = Histogram::new();
        (0..99).for_each(|_| h.record(20_000));
        h.record(u64::MAX);
        assert!(h.quantile(0.99).unwrap().abs_diff(20_000) <= 20_000 / 128);
        assert_eq!((h.quantile(1.0), h.max()), (Some(u64::MAX), Some(u64::MAX)));
    }

    #[test]
    fn what_is_narrower_than_a_bucket_is_distinguished() {
        // All within a bucket of 32.8 µs, 10 µs apart.
        let median = |from: u64| {
            let mut h = Histogram::new();
            (0..1000).for_each(|i| h.record(from + i));
            h.quantile(0.5).unwrap()
        };
        let (local, peer) = (median(4_210_000), median(4_220_000));
        assert_eq!(index(4_210_000), index(4_220_999));
        assert!(
            local.abs_diff(4_210_500) < 100 && peer.abs_diff(4_220_500) < 100,
            "{local} {peer}"
        );
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_bucket_of_the_sorted_truth(
            mut values in prop::collection::vec(0u64..1 << 39, 1..300),
            q in 0.0f64..=1.0,
        ) {
            let mut h = Histogram::new();
            values.iter().for_each(|v| h.record(*v));
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let truth = values[rank - 1];
            let got = h.quantile(q).unwrap();
            prop_assert!(got.abs_diff(truth) <= truth / 128 + 1, "{got} for {truth}");
        }

        #[test]
        fn parts_add_up(a in prop::collection::vec(any::<u64>(), 0..50), b in prop::collection::vec(any::<u64>(), 0..50)) {
            let of = |v: &[u64]| { let mut h = Histogram::new(); v.iter().for_each(|v| h.record(*v)); h };
            let mut sum = of(&a);
            sum.add(&of(&b));
            let all: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(sum, of(&all));
        }
    }
}
