//! A second opinion on an interval: resampling blocks of neighbouring batches.
//!
//! Batch means lean on Student's t and on shares that are nearly normal. The block bootstrap
//! (Künsch, Annals of Statistics 17, 1989) leans on neither: it builds runs as they might have
//! been from blocks of the one that was, long enough to keep the resemblance of neighbours, and
//! looks how far their results scatter. Blocks may run over the end to the beginning, so that
//! every batch is drawn equally often (circular blocks: Politis and Romano, in LePage and
//! Billard, Exploring the Limits of Bootstrap, 1992).
//!
//! With 32 to 64 batches there are some dozen blocks, and a bootstrap of so few is a little too
//! narrow; their ends are moved outward for it. [`crate::interval`] is what results
//! carry; where the two differ much, neither is to be believed.

use model::measure::Interval;

use crate::{
    Histogram, NoInterval, Series,
    grouping::{self, FEWEST_GROUPS},
    interval::LEVEL,
    random::SplitMix64,
};

/// Runs that might have been.
const DRAWS: usize = 1_000;

/// Fewer blocks say nothing about their own scatter.
const FEWEST_BLOCKS: usize = 5;

/// How many batches a block has: the cube root of all, the order that makes the variance's
/// error least (Künsch; Hall, Horowitz and Jing, Biometrika 82, 1995), or as many as had to be
/// joined to be independent.
fn block_length(batches: usize, joined: usize) -> usize {
    let cube_root = (batches as f64).cbrt().ceil() as usize;
    cube_root.max(joined).min(batches / FEWEST_BLOCKS).max(1)
}

/// The interval of a quantile `q` (0 to 1) by circular blocks of batches. The same data give
/// the same interval.
///
/// # Errors
/// Fewer than 10 batches, or no samples.
pub fn of_quantile(series: &Series, all: &Histogram, q: f64) -> Result<Interval, NoInterval> {
    let batches = series.len();
    if batches < FEWEST_GROUPS {
        return Err(NoInterval::FewBatches(batches));
    }
    let none = || NoInterval::FewSamples(all.count());
    let value = all.quantile(q).ok_or_else(none)? as f64;
    let resampler = series.resampler();
    let each: Vec<usize> = (0..batches).collect();
    let whole = resampler.quantile(&each, q).ok_or_else(none)?;
    let below: Vec<f64> = match series.place(q) {
        Some(place) => series.below(place.bucket).iter().map(|n| *n as f64).collect(),
        None => return Err(none()),
    };
    let joined = grouping::group(&below).map_or(1, |g| g.by);
    let block = block_length(batches, joined);
    let mut random = SplitMix64::new(batches as u64);
    let mut results: Vec<f64> = (0..DRAWS)
        .filter_map(|_| resampler.quantile(&draw(&mut random, batches, block), q))
        .collect();
    results.sort_unstable_by(f64::total_cmp);
    let blocks = (batches as f64 / block as f64).max(2.0);
    // A resample of n blocks varies less than a new sample, by (n - 1) / n (Efron and Tibshirani,
    // An Introduction to the Bootstrap, 1993, section 5.3).
    let outward = (blocks / (blocks - 1.0)).sqrt();
    let at = |share: f64| results.get((share * results.len() as f64) as usize).copied();
    let end = |share: f64| at(share).map(|r| value * (1.0 + (r / whole - 1.0) * outward));
    let tail = (1.0 - LEVEL) / 2.0;
    let (low, high) = (end(tail).ok_or_else(none)?, end(1.0 - tail).ok_or_else(none)?);
    let unsure = series.unsure(q);
    Ok(Interval {
        value,
        low: low.min(value - unsure),
        high: high.max(value + unsure),
        level: LEVEL,
        method: format!("block bootstrap, {DRAWS} draws of blocks of {block} of {batches} batches"),
    })
}

/// Which batches make up a run that might have been: blocks from random beginnings.
fn draw(random: &mut SplitMix64, batches: usize, block: usize) -> Vec<usize> {
    let mut picks = Vec::with_capacity(batches + block);
    while picks.len() < batches {
        let from = random.below(batches);
        picks.extend((from..from + block).map(|i| i % batches));
    }
    picks.truncate(batches);
    picks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batches, interval, random::draws::Ar1};

    fn run(phi: f64, seed: u64) -> (Series, Histogram) {
        let (n, mut x) = (4_000, Ar1::new(phi, seed));
        let (mut batches, mut all) = (Batches::new(0, n / 50, 64), Histogram::new());
        for now in 0..n {
            let value = (20_000.0 * (0.3 * x.draw()).exp()) as u64;
            batches.record(now, value);
            all.record(value);
        }
        (batches.series(n), all)
    }

    #[test]
    fn holds_the_truth_and_agrees_with_batch_means() {
        const RUNS: u64 = 100;
        for phi in [0.0, 0.9] {
            let (mut holds, mut wider) = (0, 0.0);
            for seed in 0..RUNS {
                let (series, all) = run(phi, seed);
                let ours = of_quantile(&series, &all, 0.5).unwrap();
                holds += u64::from(ours.low <= 20_000.0 && 20_000.0 <= ours.high);
                let means = interval::of_quantile(&series, &all, 0.5).unwrap().interval;
                wider += (ours.high - ours.low) / (means.high - means.low) / RUNS as f64;
            }
            assert!(holds * 100 >= RUNS * 88, "phi {phi}: {holds} of {RUNS}");
            assert!((0.8..1.2).contains(&wider), "phi {phi}: {wider}");
        }
    }

    #[test]
    fn every_batch_is_drawn_equally_often_and_neighbours_stay_together() {
        let mut random = SplitMix64::new(9);
        let mut times = [0u32; 50];
        for _ in 0..4_000 {
            let picks = draw(&mut random, 50, 4);
            assert_eq!(picks.len(), 50);
            assert!(picks.chunks(4).all(|b| b.windows(2).all(|w| w[1] == (w[0] + 1) % 50)));
            picks.iter().for_each(|i| times[*i] += 1);
        }
        assert!(times.iter().all(|n| (3_600..4_400).contains(n)), "{times:?}");
    }

    #[test]
    fn blocks_are_as_long_as_needed_and_not_too_few() {
        assert_eq!(block_length(50, 1), 4);
        assert_eq!(block_length(50, 6), 6);
        assert_eq!(block_length(10, 6), 2);
    }

    #[test]
    fn the_same_data_give_the_same_interval_and_none_give_none() {
        let (series, all) = run(0.5, 3);
        assert_eq!(of_quantile(&series, &all, 0.5), of_quantile(&series, &all, 0.5));
        let empty = Batches::new(0, 1, 64).series(40);
        assert_eq!(of_quantile(&empty, &Histogram::new(), 0.5), Err(NoInterval::FewSamples(0)));
        assert_eq!(of_quantile(&empty, &all, 0.5), Err(NoInterval::FewSamples(4_000)));
    }
}
