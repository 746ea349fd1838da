//! Confidence intervals for correlated samples, by batch means.
//!
//! The textbook's interval takes samples as independent. Round trips are not: one that waited
//! behind a softirq is followed by others that did, a CPU changes its frequency for
//! milliseconds. With a lag-1 correlation of 0.9 that interval holds the truth in a third of
//! the cases instead of 95% (the tests show it). Batches of time are grouped until they are
//! independent (`grouping.rs`) and their spread is Student's.
//!
//! The three results differ in what a batch contributes. Batches of equal time hold unequally
//! many samples, in a closed loop fewer where the round trips are long, so neither the mean of
//! the batches' means nor that of their medians is the result's. The mean is a ratio of two
//! sums (Cochran, Sampling Techniques, 1977, section 6.3), and a quantile is where a ratio, the
//! share of samples below a value, reaches a given number: its interval is that of the share,
//! carried back by the distribution (Woodruff, JASA 47, 1952; for batches of simulations
//! Heidelberger and Lewis, Operations Research 32, 1984).

use std::fmt;

use model::{Nanos, measure::Interval};

use crate::{
    Histogram, Series,
    grouping::{self, FEWEST_GROUPS, Grouped},
};

/// The level of every interval.
pub const LEVEL: f64 = 0.95;

/// An interval and what stands behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The value and its ends.
    pub interval: Interval,
    /// How many batches it rests on, after joining.
    pub batches: usize,
    pub batch_ns: Nanos,
    /// The correlation of a batch with the next.
    pub lag1: f64,
    /// Whether the batches passed as independent; if not, the interval may be too narrow.
    pub independent: bool,
    /// The change over the window that a straight line shows, as a share of the value, when
    /// it is more than chance.
    pub trend: Option<f64>,
}

impl Estimate {
    /// Half the interval's width (its longer side) as a share of the value; infinite for a
    /// value of 0.
    pub fn relative_half_width(&self) -> f64 {
        let Interval { value, low, high, .. } = self.interval;
        let half = (high - value).max(value - low);
        if value == 0.0 { f64::INFINITY } else { half / value.abs() }
    }

    fn new(
        value: f64,
        ends: (f64, f64),
        grouped: &Grouped,
        batch_ns: u64,
        trend: Option<f64>,
    ) -> Self {
        let batch_ns = Nanos(batch_ns.saturating_mul(grouped.by as u64));
        let mut method = format!("batch means, {} batches of {batch_ns}", grouped.groups);
        if !grouped.independent {
            method += &format!(", autocorrelated ({:.2}): CI too narrow", grouped.lag1);
        }
        Self {
            interval: Interval { value, low: ends.0, high: ends.1, level: LEVEL, method },
            batches: grouped.groups,
            batch_ns,
            lag1: grouped.lag1,
            independent: grouped.independent,
            trend: trend.filter(|_| value != 0.0).map(|t| t / value),
        }
    }
}

/// Why there is no interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoInterval {
    /// So many whole batches; 10 are needed.
    FewBatches(usize),
    /// So many samples: the interval of this quantile would reach beyond all of them.
    FewSamples(u64),
}

impl fmt::Display for NoInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewBatches(n) => write!(f, "{n} batches, {FEWEST_GROUPS} are needed"),
            Self::FewSamples(n) => write!(f, "{n} samples are too few"),
        }
    }
}

impl std::error::Error for NoInterval {}

/// The mean of equally long stretches' values, for instance bits by second, with its interval. Where no
/// value is below zero, such as a rate, the interval ends at zero.
///
/// # Errors
/// Fewer than 10 values.
pub fn of_values(values: &[f64], each_ns: u64) -> Result<Estimate, NoInterval> {
    let grouped = grouping::group(values).ok_or(NoInterval::FewBatches(values.len()))?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let half = grouped.half_width(LEVEL);
    let least = if values.iter().all(|v| *v >= 0.0) { 0.0 } else { f64::NEG_INFINITY };
    let ends = ((mean - half).max(least), mean + half);
    Ok(Estimate::new(mean, ends, &grouped, each_ns, grouped.trend))
}

/// Batches in which nothing ended are alike, and tell nothing of how the others vary: where all but a
/// few are such (a server that stood still for nearly all of a short run), there is no interval.
fn filled(series: &Series) -> Result<(), NoInterval> {
    match series.counts().iter().filter(|n| **n > 0).count() {
        n if n < FEWEST_GROUPS => Err(NoInterval::FewBatches(n)),
        _ => Ok(()),
    }
}

/// Samples by second, with their interval.
///
/// # Errors
/// Fewer than 10 batches that have samples.
pub fn of_rate(series: &Series) -> Result<Estimate, NoInterval> {
    let by_second = 1e9 / series.batch_ns() as f64;
    let rates: Vec<f64> = series.counts().iter().map(|n| *n as f64 * by_second).collect();
    let estimate = of_values(&rates, series.batch_ns())?;
    filled(series).map(|()| estimate)
}

/// The sum of the values by second, for instance bytes, with its interval.
///
/// # Errors
/// Fewer than 10 batches.
pub fn of_sum_rate(series: &Series) -> Result<Estimate, NoInterval> {
    let by_second = 1e9 / series.batch_ns() as f64;
    let rates: Vec<f64> = series.sums().iter().map(|n| *n as f64 * by_second).collect();
    of_values(&rates, series.batch_ns())
}

/// The mean of all samples with its interval: a ratio of the batches' sums and counts.
///
/// # Errors
/// Fewer than 10 batches, or no sample.
pub fn of_mean(series: &Series) -> Result<Estimate, NoInterval> {
    let sums: Vec<f64> = series.sums().iter().map(|s| *s as f64).collect();
    let (mean, grouped) = ratio(&sums, &series.counts())?;
    let half = grouped.half_width(LEVEL);
    Ok(Estimate::new(mean, (mean - half, mean + half), &grouped, series.batch_ns(), grouped.trend))
}

/// A ratio of sums over batches, and how far it may be off. What a batch contributes is its
/// numerator less the ratio times its denominator, by the mean denominator.
fn ratio(above: &[f64], below: &[u64]) -> Result<(f64, Grouped), NoInterval> {
    let samples: u64 = below.iter().sum();
    if samples == 0 {
        return Err(NoInterval::FewSamples(0));
    }
    let ratio = above.iter().sum::<f64>() / samples as f64;
    let by_batch = samples as f64 / below.len() as f64;
    let each: Vec<f64> =
        above.iter().zip(below).map(|(a, b)| (a - ratio * *b as f64) / by_batch).collect();
    let grouped = grouping::group(&each).ok_or(NoInterval::FewBatches(each.len()))?;
    Ok((ratio, grouped))
}

/// A quantile `q` (0 to 1) with its interval. The value and the ends come from the histogram
/// of the same samples, the spread from the batches.
///
/// # Errors
/// Fewer than 10 batches that have samples, or so few samples that an end would lie beyond
/// them all.
pub fn of_quantile(series: &Series, all: &Histogram, q: f64) -> Result<Estimate, NoInterval> {
    let few = || NoInterval::FewSamples(all.count());
    let value = all.quantile(q).ok_or_else(few)? as f64;
    filled(series)?;
    let counts = series.counts();
    let samples: u64 = counts.iter().sum();
    let place = series.place(q).ok_or_else(few)?;
    // Below an edge of a bucket the batches know their share exactly; between edges they would
    // have to guess, and guess alike. So the nearer edge is asked, and its spread taken as that
    // of an edge in the quantile's own place.
    let share = |n: u64| n as f64 / samples as f64;
    let (before, after) = (share(place.before), share(place.before + place.inside));
    let (edge, at) =
        if q - before < after - q { (place.bucket, before) } else { (place.bucket + 1, after) };
    let below: Vec<f64> = series.below(edge).iter().map(|n| *n as f64).collect();
    let (_, grouped) = ratio(&below, &counts)?;
    // The spread on the scale of log odds, which is nearly the same at both places and keeps
    // the ends between 0 and 1 (Agresti, Categorical Data Analysis, 2002, section 1.4).
    let odds = |x: f64| x * (1.0 - x);
    let half =
        if odds(at) > 0.0 { grouped.half_width(LEVEL) * (odds(q) / odds(at)).sqrt() } else { 0.0 };
    let moved = |by: f64| 1.0 / (1.0 + ((1.0 - q) / q) * (-by / odds(q)).exp());
    let (low, high) = (moved(-half), moved(half));
    if low * (samples as f64) < 1.0 || (1.0 - high) * (samples as f64) < 1.0 {
        return Err(few());
    }
    let end = |q: f64| all.quantile(q).map_or(value, |v| v as f64);
    let unsure = series.unsure(q);
    let ends = (end(low).min(value - unsure), end(high).max(value + unsure));
    // More below the edge is a smaller quantile; the slope of the distribution carries it over.
    let slope = (end(high) - end(low)) / (high - low);
    let trend =
        grouped.trend.filter(|_| half > 0.0).map(|t| -t * (odds(q) / odds(at)).sqrt() * slope);
    Ok(Estimate::new(value, ends, &grouped, series.batch_ns(), trend))
}

#[cfg(test)]
mod tests;
