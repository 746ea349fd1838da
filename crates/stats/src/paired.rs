//! Two things measured interleaved (A B B A), so that what drifts hits both alike.
//!
//! A round's mean may hold one long disturbance that the next does not; the median over rounds
//! leaves it out, and how far it could be off shows by resampling rounds (percentile bootstrap,
//! Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13).

use crate::random::SplitMix64;

const DRAWS: usize = 2_000;

/// A value with its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Centre {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Centre {
    /// Half of the interval's width.
    pub fn half(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// What it is less than this.
    pub fn less_than(&self, whole: f64) -> Self {
        Self { value: whole - self.value, low: whole - self.high, high: whole - self.low }
    }
}

/// The median; 0 of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |i: usize| sorted.get(i).copied().unwrap_or(0.0);
    let n = sorted.len();
    if n.is_multiple_of(2) { (at((n / 2).saturating_sub(1)) + at(n / 2)) / 2.0 } else { at(n / 2) }
}

/// The standard deviation of one value, as a share of their mean; `None` of fewer than two, or of a
/// mean that is not above zero.
pub fn spread(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (values.len() > 1 && mean > 0.0).then(|| (squares / (n - 1.0)).sqrt() / mean)
}

/// The median of rounds with its interval. The same values give the same interval. `None` below
/// 3 rounds, which say nothing of their spread.
pub fn centre(values: &[f64]) -> Option<Centre> {
    if values.len() < 3 {
        return None;
    }
    let mut random = SplitMix64::new(values.len() as u64);
    let mut medians: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let drawn: Vec<f64> = (0..values.len())
                .filter_map(|_| values.get(random.below(values.len())).copied())
                .collect();
            median(&drawn)
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    let end = |q: f64| medians.get((q * DRAWS as f64) as usize).copied();
    Some(Centre { value: median(values), low: end(0.025)?, high: end(0.975)? })
}

/// The differences `a - b` of rounds that stood side by side.
pub fn differences(pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs.iter().map(|(a, b)| a - b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_that_hits_both_leaves_the_difference() {
        let mut random = SplitMix64::new(3);
        let pairs: Vec<(f64, f64)> = (0..40)
            .map(|i| {
                let drift = f64::from(i) * 500.0;
                (30_000.0 + drift + 50.0 * random.normal(), 20_000.0 + drift)
            })
            .collect();
        let found = centre(&differences(&pairs)).unwrap();
        assert!(found.low < 10_000.0 && 10_000.0 < found.high, "{found:?}");
        assert!(found.high - found.low < 100.0, "{found:?}");
    }

    #[test]
    fn one_disturbed_round_moves_nothing() {
        let mut values: Vec<f64> = (0..21).map(|i| 100.0 + f64::from(i % 3)).collect();
        let typical = centre(&values).unwrap();
        values[7] = 1e6;
        let found = centre(&values).unwrap();
        assert!((found.value - typical.value).abs() <= 1.0 && found.high < 103.0, "{found:?}");
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        let holds = (0..300u64).filter(|seed| {
            let mut random = SplitMix64::new(seed * 977 + 5);
            let values: Vec<f64> = (0..15).map(|_| 10.0 + random.normal()).collect();
            let c = centre(&values).unwrap();
            c.low <= 10.0 && 10.0 <= c.high
        });
        let holds = holds.count();
        assert!((270..=298).contains(&holds), "{holds} of 300");
    }

    #[test]
    fn too_few_rounds_have_no_interval() {
        assert_eq!(centre(&[1.0, 2.0]), None);
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0, 10.0]), 2.5);
    }
}
