//! Whether one group's values lie above another's, and by how much: the rank-sum test (Wilcoxon,
//! Biometrics Bulletin 1, 1945; Mann and Whitney, Annals of Mathematical Statistics 18, 1947).
//!
//! The estimate is the median of all differences between a value of one group and a value of the
//! other (Hodges and Lehmann, Annals of Mathematical Statistics 34, 1963). Its interval holds the
//! shifts that the test would not refuse (Hollander and Wolfe, Nonparametric Statistical Methods,
//! 1999, section 4.3).

use crate::trial::signed_rank::Shift;

/// The sum of ranks of so many values, in both groups together, is counted exactly, ties included;
/// of more it is as good as normal.
const MOST_EXACT: usize = 50;

/// The share of pairs in which the first group's value is the larger (ties are half), and how
/// likely a share as far from a half is by chance, two-sided, by the normal approximation. `None`
/// where a group is empty.
pub fn above(first: &[f64], second: &[f64]) -> Option<(f64, f64)> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let ranked = Ranked::of(first, second);
    Some((ranked.share(), ranked.p_normal()))
}

/// How likely groups as far apart are by chance, two-sided, where all values come from one source.
/// Exact for up to 50 values, ties included; 1 where a group is empty.
pub fn p_value(first: &[f64], second: &[f64]) -> f64 {
    let ranked = Ranked::of(first, second);
    match first.len() + second.len() {
        _ if first.is_empty() || second.is_empty() => 1.0,
        n if n <= MOST_EXACT => ranked.p_exact(),
        _ => ranked.p_normal(),
    }
}

/// By how much the second group lies above the first, with the interval of this level. `None` where
/// so few values cannot support it: 95% needs 4 in each group.
pub fn shift(first: &[f64], second: &[f64], level: f64) -> Option<Shift> {
    let left_out = left_out(first.len(), second.len(), (1.0 - level) / 2.0)?;
    let differences = Differences::of(first, second);
    let last = differences.count().checked_sub(left_out + 1)?;
    let (low, high) = (differences.nth(left_out), differences.nth(last));
    Some(Shift { value: differences.median(), low, high })
}

/// The Hodges–Lehmann estimate alone, of any number; 0 where a group is empty.
pub fn estimate(first: &[f64], second: &[f64]) -> f64 {
    Differences::of(first, second).median()
}

/// The smallest p-value that groups of these sizes can reach.
pub fn least_p(first: usize, second: usize) -> f64 {
    (0..first.min(second)).fold(2.0, |p, i| p * (i + 1) as f64 / (first.max(second) + i + 1) as f64)
}

/// The ranks of both groups together.
struct Ranked {
    /// Twice each rank (so that the mean rank of ties is whole), ascending.
    doubled: Vec<usize>,
    /// The number of values in the first group, and the sum of their doubled ranks.
    first: usize,
    sum: usize,
    /// The sum over ties of their number cubed less their number.
    tied: f64,
}

impl Ranked {
    fn of(first: &[f64], second: &[f64]) -> Self {
        let own = |v: &f64| (*v, true);
        let mut all: Vec<(f64, bool)> =
            first.iter().map(own).chain(second.iter().map(|v| (*v, false))).collect();
        all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut ranked =
            Self { doubled: Vec::with_capacity(all.len()), first: first.len(), sum: 0, tied: 0.0 };
        for ties in all.chunk_by(|a, b| a.0 == b.0) {
            let rank = 2 * ranked.doubled.len() + ties.len() + 1;
            ranked.sum += rank * ties.iter().filter(|(_, own)| *own).count();
            ranked.doubled.extend(std::iter::repeat_n(rank, ties.len()));
            ranked.tied += (ties.len() as f64).powi(3) - ties.len() as f64;
        }
        ranked
    }

    /// The number of pairs in which the first group's value is the larger; ties are half.
    fn pairs_above(&self) -> f64 {
        self.sum as f64 / 2.0 - (self.first * (self.first + 1)) as f64 / 2.0
    }

    fn sizes(&self) -> (f64, f64) {
        (self.first as f64, (self.doubled.len() - self.first) as f64)
    }

    fn share(&self) -> f64 {
        let (n, m) = self.sizes();
        self.pairs_above() / (n * m)
    }

    /// By the normal approximation with the correction for ties.
    fn p_normal(&self) -> f64 {
        let (n, m) = self.sizes();
        let total = n + m;
        let variance = n * m / 12.0 * (total + 1.0 - self.tied / (total * (total - 1.0).max(1.0)));
        if variance <= 0.0 {
            return 1.0;
        }
        // Half a step towards the middle: the statistic is discrete.
        let off = ((self.pairs_above() - n * m / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
        (2.0 * upper_tail(off)).min(1.0)
    }

    /// By the distribution over all ways to choose the first group from these ranks.
    fn p_exact(&self) -> f64 {
        let ways = ways(&self.doubled, self.first);
        let all: f64 = ways.iter().sum();
        let at_most: f64 = ways.iter().take(self.sum + 1).sum();
        let at_least: f64 = ways.iter().skip(self.sum).sum();
        (2.0 * at_most.min(at_least) / all).min(1.0)
    }
}

/// In how many ways so many of the ranks add up to each sum.
///
/// **Shape**: by the sum, from 0.
fn ways(ranks: &[usize], chosen: usize) -> Vec<f64> {
    let most: usize = ranks.iter().rev().take(chosen).sum();
    let mut ways = vec![vec![0.0; most + 1]; chosen + 1];
    if let Some(none) = ways.first_mut().and_then(|w| w.first_mut()) {
        *none = 1.0;
    }
    for rank in ranks {
        for count in (1..=chosen).rev() {
            let (fewer, own) = ways.split_at_mut(count);
            let (Some(fewer), Some(own)) = (fewer.last(), own.first_mut()) else { continue };
            own.iter_mut().skip(*rank).zip(fewer).for_each(|(to, from)| *to += from);
        }
    }
    ways.pop().unwrap_or_default()
}

/// How many differences lie outside the interval at each side: the most for which the chance of so
/// many, or fewer, stays within `tail`.
fn left_out(n: usize, m: usize, tail: f64) -> Option<usize> {
    if n == 0 || m == 0 || least_p(n, m) / 2.0 > tail {
        return None;
    }
    if n + m > MOST_EXACT {
        let (mean, total) = ((n * m) as f64 / 2.0, (n + m + 1) as f64);
        let deviation = ((n * m) as f64 * total / 12.0).sqrt();
        return Some((mean - quantile(tail) * deviation - 0.5).floor().max(0.0) as usize);
    }
    let ranks: Vec<usize> = (1..=n + m).collect();
    let ways = ways(&ranks, n);
    let all: f64 = ways.iter().sum();
    let chances = ways.iter().skip(n * (n + 1) / 2).scan(0.0, |sum, w| {
        *sum += w / all;
        Some(*sum)
    });
    chances.take_while(|chance| *chance <= tail).count().checked_sub(1)
}

/// All differences of a value of the second group less a value of the first. They are not listed,
/// for there may be too many.
struct Differences {
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Differences {
    fn of(first: &[f64], second: &[f64]) -> Self {
        let sorted = |values: &[f64]| {
            let mut sorted = values.to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            sorted
        };
        Self { first: sorted(first), second: sorted(second) }
    }

    fn count(&self) -> usize {
        self.first.len() * self.second.len()
    }

    /// How many are at most this.
    fn at_most(&self, limit: f64) -> usize {
        let mut above = 0;
        let mut sum = 0;
        for value in &self.first {
            let more = self.second.iter().skip(above).take_while(|s| **s - value <= limit);
            above += more.count();
            sum += above;
        }
        sum
    }

    /// The one with so many before it, in ascending order: by halving the range of all numbers.
    fn nth(&self, before: usize) -> f64 {
        let (mut low, mut high) = (key(f64::MIN), key(f64::MAX));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.at_most(number(middle)) > before { high = middle } else { low = middle + 1 }
        }
        number(low)
    }

    fn median(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            n if n.is_multiple_of(2) => f64::midpoint(self.nth(n / 2 - 1), self.nth(n / 2)),
            n => self.nth(n / 2),
        }
    }
}

/// Half of the range of numbers, so that their order is that of these keys.
const SIGN: u64 = 1 << 63;

fn key(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn number(key: u64) -> f64 {
    f64::from_bits(if key & SIGN == 0 { !key } else { key & !SIGN })
}

/// The value above which the normal distribution has this share, up to a half.
fn quantile(share: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if upper_tail(middle) > share { low = middle } else { high = middle }
    }
    low
}

/// The normal distribution's share above, by Abramowitz and Stegun, Handbook of Mathematical
/// Functions, 1964, 26.2.17: off by less than 1e-7.
fn upper_tail(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x);
    let by = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = by.iter().rev().fold(0.0, |sum, b| (sum + b) * t);
    (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    #[test]
    fn it_is_what_the_tables_say() {
        assert!((upper_tail(1.959_964) - 0.025).abs() < 1e-6);
        // R: wilcox.test(1:8, 6:13, exact = FALSE): W = 4.5, p = 0.004534
        let (a, b): (Vec<f64>, Vec<f64>) =
            ((1..=8).map(f64::from).collect(), (6..=13).map(f64::from).collect());
        let (share, p) = above(&a, &b).unwrap();
        assert!((share - 4.5 / 64.0).abs() < 1e-12, "{share}");
        assert!((p - 0.004_534).abs() < 3e-4, "{p}");
        assert_eq!(above(&[1.0; 9], &[1.0; 9]), Some((0.5, 1.0)));
        assert_eq!(above(&[], &a), None);
    }

    #[test]
    fn exact_chances_and_intervals_are_the_published_ones() {
        // Hollander and Wolfe, example 4.1; R: wilcox.test(x, y, conf.int = TRUE): W = 35,
        // p = 0.2544, interval -0.15 to 0.76, estimate 0.305.
        let x = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let y = [1.15, 0.88, 0.90, 0.74, 1.21];
        assert!((p_value(&x, &y) - 0.254_412).abs() < 1e-6, "{}", p_value(&x, &y));
        let found = shift(&y, &x, 0.95).unwrap();
        for (found, expected) in [(found.value, 0.305), (found.low, -0.15), (found.high, 0.76)] {
            assert!((found - expected).abs() < 1e-12, "{found}");
        }
        assert_eq!(p_value(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]), 2.0 / 70.0);
        assert_eq!(p_value(&[1.0; 4], &[1.0; 9]), 1.0);
        assert_eq!(p_value(&[], &[1.0]), 1.0);
    }

    /// Every way to choose the first group, as often as its sum of ranks is as far off.
    fn counted(first: &[f64], second: &[f64]) -> f64 {
        let all: Vec<f64> = first.iter().chain(second).copied().collect();
        let rank = |x: &f64| {
            let below = all.iter().filter(|y| *y < x).count();
            2 * below + all.iter().filter(|y| *y == x).count() + 1
        };
        let ranks: Vec<usize> = all.iter().map(rank).collect();
        let sum: usize = ranks.iter().take(first.len()).sum();
        let (mut low, mut high, mut ways) = (0, 0, 0);
        for chosen in 0u32..1 << all.len() {
            if chosen.count_ones() as usize == first.len() {
                let other: usize =
                    (0..all.len()).filter(|i| chosen >> i & 1 == 1).map(|i| ranks[i]).sum();
                ways += 1;
                low += usize::from(other <= sum);
                high += usize::from(other >= sum);
            }
        }
        (2.0 * low.min(high) as f64 / f64::from(ways)).min(1.0)
    }

    #[test]
    fn ties_are_counted_exactly() {
        let mut random = SplitMix64::new(5);
        for (n, m) in [(1, 1), (3, 4), (5, 5), (2, 9), (6, 7)] {
            let mut draw =
                |n: usize| -> Vec<f64> { (0..n).map(|_| random.below(6) as f64).collect() };
            let (a, b) = (draw(n), draw(m));
            assert!((p_value(&a, &b) - counted(&a, &b)).abs() < 1e-12, "{a:?} {b:?}");
        }
    }

    #[test]
    fn the_interval_holds_what_the_test_does_not_refuse() {
        let mut random = SplitMix64::new(3);
        for (n, m) in [(4, 4), (5, 8), (12, 9), (30, 40)] {
            let mut draw = |n: usize| (0..n).map(|_| random.normal()).collect::<Vec<_>>();
            let (a, b) = (draw(n), draw(m));
            let found = shift(&a, &b, 0.95).unwrap();
            assert!(found.low <= found.value && found.value <= found.high, "{found:?}");
            for (at, refused) in [
                (found.low - 1e-9, true),
                (found.low + 1e-9, false),
                (found.high - 1e-9, false),
                (found.high + 1e-9, true),
            ] {
                let moved: Vec<f64> = b.iter().map(|x| x - at).collect();
                assert_eq!(p_value(&a, &moved) <= 0.05, refused, "{n} {m} {at}");
            }
        }
        assert_eq!(shift(&[1.0; 3], &[2.0; 3], 0.95), None);
        assert!(shift(&[1.0; 4], &[2.0; 4], 0.95).is_some());
        assert!(
            (least_p(4, 4) - 2.0 / 70.0).abs() < 1e-15
                && (least_p(3, 5) - 2.0 / 56.0).abs() < 1e-15
        );
    }

    #[test]
    fn every_difference_is_found_in_order() {
        let (a, b) = ([3.0, -1.0, 0.5, 3.0], [0.0, 1e-300, -7.25, 2.0, 1e9]);
        let mut all: Vec<f64> = a.iter().flat_map(|a| b.iter().map(move |b| b - a)).collect();
        all.sort_unstable_by(f64::total_cmp);
        let differences = Differences::of(&a, &b);
        for (n, expected) in all.iter().enumerate() {
            assert_eq!(differences.nth(n), *expected, "{n}");
        }
        assert_eq!(estimate(&a, &b), crate::paired::median(&all));
        assert_eq!(estimate(&[], &b), 0.0);
    }

    #[test]
    fn chance_is_seen_as_often_as_it_says() {
        let mut random = SplitMix64::new(11);
        let mut draw = |n: usize| (0..n).map(|_| random.normal()).collect::<Vec<_>>();
        let rare = (0..2_000).filter(|_| above(&draw(12), &draw(30)).unwrap().1 < 0.05).count();
        assert!((60..140).contains(&rare), "{rare} of 2,000");
    }
}
