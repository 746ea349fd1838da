//! Modes of a distribution: where a result has two, its mean describes no round trip that was.
//!
//! The density is smoothed on the scale of logarithms, where latency shapes (lognormal, gamma,
//! a floor with an exponential tail) have one mode each and a step of 20% is as wide at 10 µs as
//! at 10 ms. Hills of the smoothed density are joined, least convincing valley first, until
//! each valley that remains is at most half as high as the lower hill beside it, by more than
//! chance, and each hill is a share worth naming.
//!
//! The chance: a density smoothed by a Gaussian kernel of deviation h rests on about 2 √π h f n
//! samples, whose number varies by its root (Silverman, Density Estimation, 1986, section 3.3).
//! Testing each valley by what lies above it follows Minnotte ("Nonparametric testing of the
//! existence of modes", Annals of Statistics 25, 1997). The dip (Hartigan and Hartigan, Annals
//! of Statistics 13, 1985) was refused: it says that there are several modes but not where, and
//! any coarse clock fails it.
//!
//! What is certain is that the samples have modes. When the run is not much longer than the
//! time over which its round trips wander (see [`crate::Estimate::independent`]), modes are
//! places where it lingered, and another run may have others.

use crate::Histogram;

mod density;
mod keys;
mod placed;

pub use keys::{InMode, KeyedMode, by_key};
pub use placed::{Placed, describe};

use density::Density;

/// Deviations of the kernels on the scale of natural logarithms; the one that finds most modes
/// is believed, because each must be certain by itself. Narrow ones tell apart modes that are a
/// tenth apart, wide ones see those that few samples spread widely.
const SMOOTHING: [f64; 4] = [0.025, 0.05, 0.1, 0.2];

/// A valley is at most so high, as a share of the lower hill beside it.
const VALLEY: f64 = 0.5;

/// By how many deviations it is lower than that.
const CERTAIN: f64 = 4.0;

/// A mode of less is not worth a name: it is in the upper quantiles.
const LEAST_SHARE: f64 = 0.02;

/// A mode of less is an accident.
const LEAST_SAMPLES: u64 = 50;

#[derive(Debug, Clone, PartialEq)]
pub struct Mode {
    /// How many samples belong to it.
    pub samples: u64,
    /// Its share of all, 0 to 1.
    pub share: f64,
    /// Where its first sample's bucket begins.
    pub low: u64,
    /// Where its last sample's bucket ends.
    pub high: u64,
    /// The median of its samples, in their unit.
    pub median: u64,
    /// What belongs to it: values from `begin`, before `end`.
    begin: u64,
    end: u64,
}

/// The modes, ascending; one when there is but one, none of an empty histogram.
///
/// `clock_step` is the clock's smallest step, 0 or 1 for a fine one. A coarser step is also
/// seen in the data when they fall on four places or more.
pub fn modes(all: &Histogram, clock_step: u64) -> Vec<Mode> {
    if all.count() == 0 {
        return Vec::new();
    }
    let step = density::step(all).max(clock_step as f64);
    let cuts = SMOOTHING.iter().map(|h| cuts(all, *h, step)).max_by_key(Vec::len);
    let mut edges = vec![0];
    edges.extend(cuts.unwrap_or_default());
    edges.push(u64::MAX);
    edges.windows(2).filter_map(|e| mode(all, e[0], e[1])).collect()
}

fn mode(all: &Histogram, begin: u64, end: u64) -> Option<Mode> {
    let mut inside = all.buckets().filter(|(low, _, _)| (begin..end).contains(low));
    let first = inside.next()?;
    let last = inside.last().unwrap_or(first);
    let before = all.count_below(begin);
    let samples = all.count_below(end) - before;
    let middle = (before as f64 + samples as f64 / 2.0) / all.count() as f64;
    Some(Mode {
        samples,
        share: samples as f64 / all.count() as f64,
        low: first.0.max(all.min()?),
        high: last.1.min(all.max()?.saturating_add(1)),
        median: all.quantile(middle)?,
        begin,
        end,
    })
}

/// A hill between two valleys: its summit, and the valley before it (which the first has not).
#[derive(Debug, Clone, Copy)]
struct Hill {
    summit: usize,
    valley: usize,
}

/// The values at which the modes part.
fn cuts(all: &Histogram, smoothing: f64, step: f64) -> Vec<u64> {
    let density = Density::new(all, smoothing, step);
    let mut hills = hills(&density);
    // Each round removes a hill, so this ends.
    while let Some(at) = least_convincing(all.count(), &density, &hills) {
        join(&density, &mut hills, at);
    }
    hills.iter().skip(1).map(|h| density.value(h.valley)).collect()
}

/// Every local summit with the lowest place (the middle of it) before it.
fn hills(density: &Density) -> Vec<Hill> {
    let heights = density.heights();
    let mut hills: Vec<Hill> = Vec::new();
    let mut rising = true;
    for (i, pair) in heights.windows(2).enumerate() {
        if rising && pair[1] < pair[0] {
            let valley = hills.last().map_or(0, |h| density.lowest(h.summit, i));
            hills.push(Hill { summit: i, valley });
            rising = false;
        } else if pair[1] > pair[0] {
            rising = true;
        }
    }
    hills
}

/// Joins a hill with the one before: the higher summit stays.
fn join(density: &Density, hills: &mut Vec<Hill>, at: usize) {
    let gone = hills.remove(at);
    if let Some(kept) = at.checked_sub(1).and_then(|i| hills.get_mut(i))
        && density.heights()[gone.summit] > density.heights()[kept.summit]
    {
        kept.summit = gone.summit;
    }
    // With the new summit the valleys on both sides may be elsewhere.
    for i in [at.saturating_sub(1).max(1), at] {
        if let [before, hill] = hills.get(i - 1..=i).unwrap_or_default() {
            let valley = density.lowest(before.summit, hill.summit);
            hills[i].valley = valley;
        }
    }
}

/// The hill whose valley before it convinces least, when that is not enough. Small hills come
/// first, the smallest before all.
fn least_convincing(samples: u64, density: &Density, hills: &[Hill]) -> Option<usize> {
    let least = LEAST_SAMPLES.max((LEAST_SHARE * samples as f64).ceil() as u64);
    let begins = |i: usize| hills.get(i).map_or(samples, |h| density.below(h.valley));
    let size = |i: usize| begins(i + 1) - if i == 0 { 0 } else { begins(i) };
    let judged = (1..hills.len()).map(|i| {
        let smaller = size(i - 1).min(size(i));
        (
            if smaller < least { smaller } else { u64::MAX },
            certainty(density, hills[i - 1], hills[i]),
            i,
        )
    });
    let (small, certain, at) = judged.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))?;
    (small < u64::MAX || certain < CERTAIN).then_some(at)
}

/// By how many deviations the valley between two hills is low enough.
fn certainty(density: &Density, before: Hill, hill: Hill) -> f64 {
    let lower = density.supported(before.summit).min(density.supported(hill.summit));
    let valley = density.supported(hill.valley);
    let noise = (VALLEY * VALLEY * lower + valley).sqrt();
    (VALLEY * lower - valley) / noise.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests;
