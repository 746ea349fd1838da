//! What is to be said of a series of blocks besides its effect: drift, outlier blocks, neighbours
//! that resemble one another. None of it spoils the verdict (see [`super`]); a reader wants to
//! know it all the same.

use crate::paired::median;

/// A trend is called one when chance gives it in at most one of 100 series without one.
const TREND_Z: f64 = 2.576;

/// So many deviations off, a block is an outlier: one of 150,000 normal ones.
const OUTLIER_DEVIATIONS: f64 = 4.5;

/// The change from the first block to the last along the median of all slopes (Theil 1950; Sen,
/// Journal of the American Statistical Association 63, 1968), when the order of the values is
/// more than chance: the rank test of Mann (Econometrica 13, 1945) and Kendall (Rank Correlation
/// Methods, 1975).
pub fn trend(values: &[f64]) -> Option<f64> {
    let n = values.len();
    if n < 8 {
        return None;
    }
    let (mut sum, mut slopes) = (0.0f64, Vec::with_capacity(n * (n - 1) / 2));
    for (i, a) in values.iter().enumerate() {
        for (j, b) in values.iter().enumerate().skip(i + 1) {
            sum += if b > a { 1.0 } else { 0.0 } - if b < a { 1.0 } else { 0.0 };
            slopes.push((b - a) / (j - i) as f64);
        }
    }
    let m = n as f64;
    let deviation = (m * (m - 1.0) * (2.0 * m + 5.0) / 18.0).sqrt();
    (sum.abs() - 1.0 > TREND_Z * deviation).then(|| median(&slopes) * (m - 1.0))
}

/// Which values lie far from the others, by the median absolute deviation (Hampel, Journal of
/// the American Statistical Association 69, 1974).
pub fn outliers(values: &[f64]) -> Vec<usize> {
    let middle = median(values);
    let off: Vec<f64> = values.iter().map(|x| (x - middle).abs()).collect();
    let deviation = 1.4826 * median(&off);
    let at = off
        .iter()
        .enumerate()
        .filter(|(_, d)| deviation > 0.0 && **d > OUTLIER_DEVIATIONS * deviation);
    at.map(|(i, _)| i).collect()
}

/// How much each value resembles the one before (the correlation of neighbours), when it is more
/// than chance: 2.58 over the root of their number.
pub fn autocorrelation(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    if values.len() < 8 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    // Equal values differ by what adding them up rounds.
    if squares <= n * (1e-12 * mean.abs().max(1.0)).powi(2) {
        return None;
    }
    let products: f64 =
        values.iter().zip(values.iter().skip(1)).map(|(a, b)| (a - mean) * (b - mean)).sum();
    let lag1 = products / squares;
    (lag1 > TREND_Z / n.sqrt()).then_some(lag1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{SplitMix64, draws::Ar1};

    #[test]
    fn values_that_are_all_the_same_resemble_nothing() {
        assert_eq!(autocorrelation(&[5f64.ln(); 16]), None);
        let almost: Vec<f64> = (0..16).map(|i| 5f64.ln() + 1e-15 * f64::from(i)).collect();
        assert_eq!(autocorrelation(&almost), None);
    }

    #[test]
    fn drift_is_seen_with_its_size_and_chance_is_not() {
        let series = |slope: f64, seed: u64| {
            let mut random = SplitMix64::new(seed);
            (0..30).map(|i| random.normal() + slope * f64::from(i)).collect::<Vec<f64>>()
        };
        let seen: Vec<f64> = (0..300).filter_map(|s| trend(&series(0.2, s))).collect();
        let mean = seen.iter().sum::<f64>() / seen.len() as f64;
        assert!(seen.len() > 280 && (mean - 5.8).abs() < 0.4, "{} {mean}", seen.len());
        let chance = (0..2_000).filter(|s| trend(&series(0.0, *s)).is_some()).count();
        assert!(chance <= 40, "{chance} of 2,000");
    }

    #[test]
    fn outlier_blocks_are_named() {
        let mut random = SplitMix64::new(4);
        let mut values: Vec<f64> = (0..30).map(|_| random.normal()).collect();
        assert_eq!(outliers(&values), [0usize; 0]);
        values[11] = 30.0;
        values[20] = -30.0;
        assert_eq!(outliers(&values), [11, 20]);
        assert_eq!(outliers(&[1.0; 9]), [0usize; 0]);
    }

    #[test]
    fn neighbours_that_resemble_one_another_are_seen() {
        let seen = |phi| {
            (0..500).filter(move |s| {
                let mut x = Ar1::new(phi, *s);
                autocorrelation(&(0..40).map(|_| x.draw()).collect::<Vec<_>>()).is_some()
            })
        };
        assert!(seen(0.7).count() > 400);
        assert!(seen(0.0).count() < 15);
    }
}
