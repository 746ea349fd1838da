//! How far a mean of batches may be off when neighbouring batches resemble one another.
//!
//! Non-overlapping batch means: the batches are grouped until the groups' means show no
//! correlation with their neighbours, and then taken as independent. The test is von Neumann's
//! ratio (Annals of Mathematical Statistics 12, 1941) as Fishman uses it ("Grouping
//! observations in digital simulation", Management Science 24, 1978; Law and Kelton, Simulation
//! Modeling and Analysis, section 9.5.3). Few groups let a moderate correlation pass, so what
//! is left of it widens the interval as it would for a first-order autoregressive series, as
//! in Skart (Tafazzoli and Wilson, IIE Transactions 43, 2011).

use crate::student::two_sided_t;

/// Fewer groups say too little about their own spread: Fishman stops at 8, Schmeiser
/// ("Batch size effects in the analysis of simulation output", Operations Research 30, 1982)
/// sees little gain beyond 10 to 30.
pub(crate) const FEWEST_GROUPS: usize = 10;

/// Groups are joined while the correlation is this many deviations above none: one in five
/// of uncorrelated series are joined once without need, which costs next to nothing.
const CORRELATED: f64 = 0.8416;

/// A correlation above this is no longer a matter of widening.
const MOST_LEFT: f64 = 0.8;

/// A trend is seen from this level on.
const TREND_LEVEL: f64 = 0.999;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Grouped {
    pub(crate) groups: usize,
    pub(crate) by: usize,
    /// Standard error of the mean.
    pub(crate) error: f64,
    /// Correlation of a group with the next.
    pub(crate) lag1: f64,
    /// Whether the groups passed as independent.
    pub(crate) independent: bool,
    /// The change from the beginning to the end that a straight line through the groups' means
    /// shows, when it is more than chance.
    pub(crate) trend: Option<f64>,
}

impl Grouped {
    /// Half the width of the interval of this level.
    pub(crate) fn half_width(&self, level: f64) -> f64 {
        two_sided_t(level, self.groups as u32 - 1) * self.error
    }
}

/// Groups the batches' values. `None` when there are fewer than 10.
pub(crate) fn group(values: &[f64]) -> Option<Grouped> {
    let mut found = None;
    // 1, 2, 3, 4, 6, 8, 12, 16 and so on; the number of groups ends it.
    for by in
        (0..).flat_map(|k| [2 << k, 3 << k]).scan(1, |by, next| Some(std::mem::replace(by, next)))
    {
        let means = means(values, by);
        if means.len() < FEWEST_GROUPS {
            break;
        }
        let (this, passes) = judge(&means, by);
        found = Some(this);
        if passes {
            break;
        }
    }
    found
}

/// The means of every `by` neighbours. A rest is left out at the beginning, where what is left
/// of warming up would be.
fn means(values: &[f64], by: usize) -> Vec<f64> {
    let mean = |group: &[f64]| group.iter().sum::<f64>() / group.len() as f64;
    values.get(values.len() % by..).unwrap_or_default().chunks(by).map(mean).collect()
}

/// And whether they need not be joined further.
fn judge(means: &[f64], by: usize) -> (Grouped, bool) {
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    let squares: f64 = means.iter().map(|m| (m - mean).powi(2)).sum();
    let variance = squares / (n - 1.0);
    let neighbours = || means.iter().zip(means.iter().skip(1));
    let differences: f64 = neighbours().map(|(a, b)| (a - b).powi(2)).sum();
    let products: f64 = neighbours().map(|(a, b)| (a - mean) * (b - mean)).sum();
    if squares <= f64::EPSILON * mean.abs() {
        let (groups, independent) = (means.len(), true);
        let equal = Grouped { groups, by, error: 0.0, lag1: 0.0, independent, trend: None };
        return (equal, true);
    }
    // 1 less half of von Neumann's ratio: near the lag-1 correlation, of known spread.
    let ratio = 1.0 - differences / (2.0 * squares);
    let deviations = ratio / ((n - 2.0) / (n * n - 1.0)).sqrt();
    let lag1 = products / squares;
    // The ratio has the first and the last in it, which of few can pass for a correlation alone.
    let independent = deviations <= CORRELATED || lag1 <= 0.0;
    let left = lag1.clamp(0.0, MOST_LEFT);
    let error = (variance / n * (1.0 + left) / (1.0 - left)).sqrt();
    let trend = trend(means, squares);
    let found = Grouped { groups: means.len(), by, error, lag1, independent, trend };
    (found, deviations <= CORRELATED)
}

/// The change along a straight line fitted to the means, when its slope is more than chance:
/// the t test of a regression.
fn trend(means: &[f64], squares: f64) -> Option<f64> {
    let n = means.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let spread = n * (n * n - 1.0) / 12.0;
    let cross: f64 = means.iter().enumerate().map(|(i, m)| (i as f64 - middle) * m).sum();
    let slope = cross / spread;
    let unexplained = (squares - slope * cross).max(0.0);
    let error = (unexplained / (n - 2.0) / spread).sqrt();
    let seen = slope.abs() > two_sided_t(TREND_LEVEL, means.len() as u32 - 2) * error;
    seen.then_some(slope * n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::draws::Ar1;

    fn series(phi: f64, n: usize, seed: u64) -> Vec<f64> {
        let mut x = Ar1::new(phi, seed);
        (0..n).map(|_| x.draw()).collect()
    }

    #[test]
    fn uncorrelated_batches_stay_apart_and_correlated_ones_are_joined() {
        let mean_by = |phi| {
            (0..200).filter_map(|s| group(&series(phi, 64, s))).map(|g| g.by as f64).sum::<f64>()
                / 200.0
        };
        let (none, some) = (mean_by(0.0), mean_by(0.6));
        assert!(none < 1.5, "{none}");
        assert!(some > 2.5, "{some}");
    }

    #[test]
    fn a_correlation_longer_than_the_run_is_called_dependent() {
        let dependent = (0..200)
            .filter_map(|s| group(&series(0.97, 64, s)))
            .filter(|g| !g.independent || g.trend.is_some())
            .count();
        assert!(dependent > 150, "{dependent} of 200");
    }

    #[test]
    fn few_batches_without_a_correlation_are_not_called_dependent() {
        let all = || (0..1_000).filter_map(|s| group(&series(0.0, 16, s)));
        let dependent: Vec<f64> = all().filter(|g| !g.independent).map(|g| g.lag1).collect();
        assert!(dependent.len() < 200, "{} of 1,000", dependent.len());
        assert!(dependent.iter().all(|lag1| *lag1 > 0.0), "{dependent:?}");
    }

    #[test]
    fn a_trend_is_seen_and_chance_is_not() {
        let rising = |seed| {
            series(0.0, 40, seed)
                .iter()
                .enumerate()
                .map(|(i, x)| x + 0.12 * i as f64)
                .collect::<Vec<_>>()
        };
        let seen: Vec<f64> = (0..200).filter_map(|s| group(&rising(s))?.trend).collect();
        assert!(seen.len() > 190, "{}", seen.len());
        let mean = seen.iter().sum::<f64>() / seen.len() as f64;
        assert!((mean - 4.8).abs() < 0.2, "{mean}");
        let by_chance =
            (0..1_000).filter(|s| group(&series(0.0, 40, *s)).unwrap().trend.is_some()).count();
        assert!(by_chance < 8, "{by_chance} of 1,000");
    }

    #[test]
    fn too_few_are_refused_and_equal_ones_are_certain() {
        assert_eq!(group(&[1.0; 9]), None);
        let g = group(&[0.1; 10]).unwrap();
        assert_eq!((g.error, g.independent), (0.0, true));
    }
}
