//! Wilcoxon's signed ranks over blocks: a test, and the estimate and interval that belong to it.
//!
//! The test is Wilcoxon's (Biometrics Bulletin 1, 1945), by the exact distribution over all signs
//! given the ranks that were seen, ties included. The estimate is the median of the averages of
//! all pairs (Hodges and Lehmann, Annals of Mathematical Statistics 34, 1963), and the interval
//! holds those shifts which the test would not refuse (Hollander and Wolfe, Nonparametric
//! Statistical Methods, 1999, section 3.3). One bad block moves neither far.

use std::f64::consts::SQRT_2;

/// So many blocks are counted exactly; of more the sum of ranks is as good as normal.
const MOST_EXACT: usize = 60;

/// An estimate with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// The chance of signs as one-sided as these, or more, on either side, when each is a coin's.
/// Zeros say nothing and are left out; 1 of nothing.
pub fn p_value(effects: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = effects.iter().copied().filter(|d| *d != 0.0).collect();
    sizes.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_ranks(&sizes);
    let all: usize = ranks.iter().sum();
    let up: usize = sizes.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, r)| r).sum();
    let least = up.min(all - up);
    (2.0 * at_most(&ranks, least)).min(1.0)
}

/// Twice each rank (so that the mean rank of ties is whole), of sizes in ascending order.
fn doubled_ranks(sizes: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sizes.len());
    for tied in sizes.chunk_by(|a, b| a.abs() == b.abs()) {
        let before = ranks.len();
        ranks.extend(std::iter::repeat_n(2 * before + tied.len() + 1, tied.len()));
    }
    ranks
}

/// The chance that the doubled ranks of the positive ones sum to `sum` or less.
fn at_most(ranks: &[usize], sum: usize) -> f64 {
    if ranks.len() > MOST_EXACT {
        let mean = ranks.iter().sum::<usize>() as f64 / 2.0;
        let deviation = (ranks.iter().map(|r| (r * r) as f64).sum::<f64>() / 4.0).sqrt();
        return normal_below((sum as f64 + 1.0 - mean) / deviation);
    }
    let mut chance = vec![0.0; sum + 1];
    if let Some(none) = chance.first_mut() {
        *none = 1.0;
    }
    for rank in ranks {
        for to in (0..=sum).rev() {
            let from = to.checked_sub(*rank).and_then(|from| chance.get(from)).copied();
            if let Some(c) = chance.get_mut(to) {
                *c = (*c + from.unwrap_or(0.0)) / 2.0;
            }
        }
    }
    chance.iter().sum()
}

/// The standard normal distribution below `z`; the error is below 1.5e-7.
///
/// **Source**: Abramowitz and Stegun (1964), 7.1.26.
fn normal_below(z: f64) -> f64 {
    let x = z.abs() / SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let sum = t
        * (0.254_829_592
            + t * (-0.284_496_736
                + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let above = sum * (-x * x).exp() / 2.0;
    if z < 0.0 { above } else { 1.0 - above }
}

/// The estimate with the interval of this level. `None` where so few blocks cannot support it:
/// 95% needs 6.
pub fn shift(effects: &[f64], level: f64) -> Option<Shift> {
    let left_out = left_out(effects.len(), (1.0 - level) / 2.0)?;
    let mut pairs: Vec<f64> = Vec::with_capacity(effects.len() * (effects.len() + 1) / 2);
    for (i, a) in effects.iter().enumerate() {
        pairs.extend(effects.iter().skip(i).map(|b| (a + b) / 2.0));
    }
    pairs.sort_unstable_by(f64::total_cmp);
    let value = crate::paired::median(&pairs);
    let high = pairs.len().checked_sub(left_out + 1)?;
    Some(Shift { value, low: *pairs.get(left_out)?, high: *pairs.get(high)? })
}

/// The Hodges–Lehmann estimate alone, of any number; 0 of nothing.
pub fn estimate(effects: &[f64]) -> f64 {
    let each = effects.iter().enumerate();
    let pairs: Vec<f64> =
        each.flat_map(|(i, a)| effects.iter().skip(i).map(move |b| (a + b) / 2.0)).collect();
    crate::paired::median(&pairs)
}

/// How many pairs' averages lie outside the interval at each side: the most for which the chance
/// of so many, or fewer, stays within `tail`.
fn left_out(blocks: usize, tail: f64) -> Option<usize> {
    let ranks: Vec<usize> = (1..=blocks).map(|r| 2 * r).collect();
    let chance = |k: usize| at_most(&ranks, 2 * k);
    if blocks == 0 || chance(0) > tail {
        return None;
    }
    let (mut within, mut beyond) = (0, blocks * (blocks + 1) / 4 + 1);
    while beyond - within > 1 {
        let middle = within.midpoint(beyond);
        if chance(middle) <= tail { within = middle } else { beyond = middle }
    }
    Some(within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_tables_are_met() {
        // Hollander and Wolfe, table A.4: P(T+ <= 8) for n = 10 is 0.024, P(T+ <= 2) for n = 6
        // is 0.047.
        let tail = |n: usize, t: usize| at_most(&(1..=n).map(|r| 2 * r).collect::<Vec<_>>(), 2 * t);
        assert!((tail(10, 8) - 0.0244).abs() < 5e-4, "{}", tail(10, 8));
        assert!((tail(6, 2) - 0.0469).abs() < 5e-4, "{}", tail(6, 2));
        // The normal tail takes over without a step.
        let (exact, beyond) = (tail(60, 650), tail(61, 675));
        assert!((exact - beyond).abs() < 0.02, "{exact} {beyond}");
    }

    #[test]
    fn all_on_one_side_is_two_in_two_to_the_n() {
        assert_eq!(p_value(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 2.0 / 64.0);
        assert_eq!(p_value(&[-1.0, -1.0, -1.0, 0.0]), 2.0 / 8.0);
        assert_eq!(p_value(&[]), 1.0);
        assert_eq!(p_value(&[2.0, -2.0]), 1.0);
    }

    #[test]
    fn the_interval_holds_what_the_test_does_not_refuse() {
        let effects = [0.3, -0.1, 0.25, 0.4, 0.05, 0.2, 0.31, 0.12, 0.22, 0.18];
        let found = shift(&effects, 0.95).unwrap();
        for (at, refused) in [
            (found.low - 1e-6, true),
            (found.low + 1e-6, false),
            (found.high - 1e-6, false),
            (found.high + 1e-6, true),
        ] {
            let moved: Vec<f64> = effects.iter().map(|d| d - at).collect();
            assert_eq!(p_value(&moved) <= 0.05, refused, "{at}");
        }
        assert!((found.value - estimate(&effects)).abs() < 1e-12);
    }

    #[test]
    fn one_outlier_moves_nothing_and_few_blocks_say_nothing() {
        let mut effects: Vec<f64> = (0..15).map(|i| 0.1 + f64::from(i) * 0.001).collect();
        effects[7] = 50.0;
        let found = shift(&effects, 0.95).unwrap();
        assert!(found.low >= 0.1 && found.high < 0.12, "{found:?}");
        assert_eq!(shift(&[1.0; 5], 0.95), None);
    }
}
