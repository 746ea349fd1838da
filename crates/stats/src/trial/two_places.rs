//! Runs that settle in one of two places, where a figure between them describes no run.
//!
//! [`crate::modes`] does this for the many samples within a run; here there are tens of runs,
//! too few for a density. They are cut where the two parts' own spread is least (Otsu, IEEE
//! Transactions on Systems, Man, and Cybernetics 9, 1979), and the cut is believed when the
//! parts' centres are far apart for their spread: Ashman's D (Ashman, Bird and Zepf,
//! Astronomical Journal 108, 1994). Cutting one normal mode in two gives about 2.7, so that more
//! is asked than their 2.

/// From here on two parts are two.
const APART: f64 = 5.0;

/// Fewer runs are no place, and a smaller share is a few outliers.
const LEAST_RUNS: usize = 5;
const LEAST_SHARE: f64 = 0.15;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoPlaces {
    /// The centre of the lower.
    pub low: f64,
    /// The centre of the upper.
    pub high: f64,
    /// The share of the runs in the upper.
    pub upper_share: f64,
    /// The least of the upper.
    pub from: f64,
}

/// The two places of these values, if there are two.
pub fn split(values: &[f64]) -> Option<TwoPlaces> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let least = LEAST_RUNS.max((LEAST_SHARE * sorted.len() as f64).ceil() as usize);
    let most = sorted.len().checked_sub(least)?;
    let cut = (least..=most)
        .min_by(|a, b| spread_of_parts(&sorted, *a).total_cmp(&spread_of_parts(&sorted, *b)))?;
    let (lower, upper) = sorted.split_at(cut);
    let ((low, below), (high, above)) = (centre(lower), centre(upper));
    let spread = (below + above) / lower.len().min(upper.len()).max(1) as f64 / 2.0;
    let apart = (high - low) / spread.sqrt().max(f64::EPSILON * high.abs());
    let upper_share = upper.len() as f64 / sorted.len() as f64;
    let from = upper.first().copied().unwrap_or(high);
    (high > low && apart > APART).then_some(TwoPlaces { low, high, upper_share, from })
}

fn spread_of_parts(sorted: &[f64], cut: usize) -> f64 {
    let (lower, upper) = sorted.split_at(cut);
    centre(lower).1 + centre(upper).1
}

/// The mean, and the sum of squares about it.
fn centre(part: &[f64]) -> (f64, f64) {
    let mean = part.iter().sum::<f64>() / part.len().max(1) as f64;
    (mean, part.iter().map(|x| (x - mean).powi(2)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    #[test]
    fn two_places_are_seen_and_one_peak_is_one() {
        let seen = |apart: f64| {
            (0..500u64)
                .filter(|seed| {
                    let mut random = SplitMix64::new(seed * 31 + 7);
                    let values: Vec<f64> = (0..60)
                        .map(|i| random.normal() + if i % 3 == 0 { apart } else { 0.0 })
                        .collect();
                    split(&values).is_some()
                })
                .count()
        };
        assert!(seen(10.0) >= 475, "{}", seen(10.0));
        assert!(seen(0.0) <= 5, "{}", seen(0.0));
        assert_eq!(split(&[1.0; 40]), None);
        assert_eq!(split(&[1.0, 2.0]), None);
    }
}
