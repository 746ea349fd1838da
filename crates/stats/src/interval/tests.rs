//! Simulated truth: how many of many 95% intervals hold it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::{
    Batches,
    random::{SplitMix64, draws::Ar1},
};

const EACH_NS: u64 = 10_000;
const MEDIAN: f64 = 20_000.0;
const SIGMA: f64 = 0.3;
const RUNS: u64 = 1_000;

fn collect(n: u64, mut value: impl FnMut(u64) -> f64) -> (Series, Histogram) {
    let (mut batches, mut all) = (Batches::new(0, n * EACH_NS / 50, 64), Histogram::new());
    for i in 0..n {
        let value = value(i) as u64;
        batches.record(i * EACH_NS, value);
        all.record(value);
    }
    (batches.series(n * EACH_NS), all)
}

fn holds(estimate: &Estimate, truth: f64) -> bool {
    let Interval { low, high, .. } = estimate.interval;
    low <= truth && truth <= high
}

/// Shares of the simulated runs.
#[derive(Debug, Default)]
struct Shares {
    median: f64,
    p90: f64,
    mean: f64,
    textbook: f64,
    dependent: f64,
}

/// Runs of lognormal round trips whose logarithm is autoregressive.
fn coverage(phi: f64, n: u64) -> Shares {
    let truth_mean = MEDIAN * (SIGMA * SIGMA / 2.0).exp();
    let truth_p90 = MEDIAN * (SIGMA * 1.281_552).exp();
    let mut c = Shares::default();
    for seed in 0..RUNS {
        let mut x = Ar1::new(phi, seed * 7_919);
        let mut raw = Vec::new();
        let (series, all) = collect(n, |_| {
            raw.push(MEDIAN * (SIGMA * x.draw()).exp());
            *raw.last().unwrap()
        });
        let one = |yes: bool| f64::from(u8::from(yes)) / RUNS as f64;
        let median = of_quantile(&series, &all, 0.5).unwrap();
        c.median += one(holds(&median, MEDIAN));
        c.dependent += one(!median.independent);
        c.p90 += one(holds(&of_quantile(&series, &all, 0.9).unwrap(), truth_p90));
        c.mean += one(holds(&of_mean(&series).unwrap(), truth_mean));
        // The textbook: 1.96 standard deviations over the root of n.
        let mean = raw.iter().sum::<f64>() / n as f64;
        let deviation = (raw.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        c.textbook += one((mean - truth_mean).abs() <= 1.96 * deviation / (n as f64).sqrt());
    }
    c
}

#[test]
fn holds_the_truth_of_independent_samples_as_often_as_the_textbook() {
    let c = coverage(0.0, 2_000);
    for share in [c.median, c.p90, c.mean, c.textbook] {
        assert!((0.93..=0.98).contains(&share), "{c:?}");
    }
    assert!(c.dependent < 0.05, "{c:?}");
}

#[test]
fn holds_the_truth_of_correlated_samples_where_the_textbook_fails() {
    let c = coverage(0.9, 2_000);
    for share in [c.median, c.p90, c.mean] {
        assert!((0.92..=0.98).contains(&share), "{c:?}");
    }
    assert!(c.textbook < 0.4, "{c:?}");
}

#[test]
fn holds_the_truth_or_says_so_when_a_batch_is_barely_longer_than_the_memory() {
    // 200 samples a batch, and a memory of 200 samples.
    let c = coverage(0.99, 10_000);
    for share in [c.median, c.p90, c.mean] {
        assert!((0.90..=0.98).contains(&share), "{c:?}");
    }
    assert!(c.textbook < 0.15, "{c:?}");
    assert!(c.dependent > 0.08, "{c:?}");
}

#[test]
fn says_when_the_run_is_hardly_longer_than_the_memory() {
    let warned = (0..200).filter(|seed| {
        let mut x = Ar1::new(0.9995, *seed);
        let (series, all) = collect(10_000, |_| MEDIAN * (SIGMA * x.draw()).exp());
        let e = of_quantile(&series, &all, 0.5).unwrap();
        !e.independent || e.trend.is_some()
    });
    let warned = warned.count();
    assert!(warned > 170, "{warned} of 200");
}

#[test]
fn rates_hold_their_truth_and_closed_loops_do_not_mislead_the_mean() {
    // A closed loop over two kinds of stretches: 10 µs and 40 µs round trips by turns of random
    // length. Batches of slow ones hold few samples, so a mean of their means is far off.
    let (mut rate, mut mean, mut naive) = (0, 0, 0);
    for seed in 0..300 {
        let mut random = SplitMix64::new(seed);
        let mut batches = Batches::new(0, 200_000, 64);
        let (mut now, mut slow, mut until) = (0, false, 0);
        while now < 40_000_000 {
            if now >= until {
                slow = !slow;
                until = now + (100_000.0 * random.exponential()) as u64;
            }
            let rtt = if slow { 40_000 } else { 10_000 };
            now += rtt;
            batches.record(now, rtt);
        }
        let series = batches.series(40_000_000);
        // A stretch ends with a whole round trip, so it is as many as a geometric variable says.
        let (fast, slow) = (1.0 / (1.0 - (-0.1f64).exp()), 1.0 / (1.0 - (-0.4f64).exp()));
        let truth = (fast * 10_000.0 + slow * 40_000.0) / (fast + slow);
        rate += usize::from(holds(&of_rate(&series).unwrap(), 1e9 / truth));
        mean += usize::from(holds(&of_mean(&series).unwrap(), truth));
        let means: Vec<f64> = series.means().into_iter().flatten().collect();
        naive += usize::from(holds(&of_values(&means, 1).unwrap(), truth));
        let bytes = of_sum_rate(&series).unwrap().interval;
        assert!((bytes.value / 1e9 - 1.0).abs() < 0.01, "busy all the time: {bytes:?}");
    }
    assert!(rate >= 270 && mean >= 270, "{rate} and {mean} of 300");
    assert!(naive < 240, "{naive} of 300");
}

#[test]
fn samples_within_one_bucket_get_the_buckets_width_not_certainty() {
    let mut random = SplitMix64::new(5);
    let (series, all) = collect(5_000, |_| 20_480.0 + random.below(100) as f64);
    let e = of_quantile(&series, &all, 0.5).unwrap();
    assert!(holds(&e, 20_530.0), "{e:?}");
    let relative = e.relative_half_width();
    assert!((0.004..0.01).contains(&relative), "{relative}");
}

#[test]
fn a_plain_median_can_be_known_to_well_below_a_percent() {
    let known = (0..20).filter(|seed| {
        let mut random = SplitMix64::new(*seed);
        let (series, all) = collect(50_000, |_| random.lognormal(MEDIAN, SIGMA));
        let e = of_quantile(&series, &all, 0.5).unwrap();
        assert!(e.relative_half_width() < 0.006, "{e:?}");
        holds(&e, MEDIAN)
    });
    let known = known.count();
    assert!(known >= 17, "{known} of 20");
}

#[test]
fn a_drift_is_seen_with_its_size() {
    let mut random = SplitMix64::new(8);
    let n = 20_000;
    let (series, all) =
        collect(n, |i| random.lognormal(MEDIAN, 0.1) * (1.0 + 0.2 * i as f64 / n as f64));
    for e in [of_quantile(&series, &all, 0.5).unwrap(), of_mean(&series).unwrap()] {
        let trend = e.trend.unwrap();
        assert!((0.15..0.21).contains(&trend), "{trend}");
    }
}

#[test]
fn what_cannot_be_known_is_refused() {
    let (series, all) = collect(90, |_| 1_000.0);
    assert_eq!(of_quantile(&series, &all, 0.99), Err(NoInterval::FewSamples(90)));
    let short = Batches::new(0, 10, 64).series(90);
    assert_eq!(of_rate(&short), Err(NoInterval::FewBatches(9)));
    assert_eq!(of_quantile(&short, &Histogram::new(), 0.5), Err(NoInterval::FewSamples(0)));
    assert_eq!(of_mean(&short), Err(NoInterval::FewSamples(0)));
}

#[test]
fn a_server_that_stood_still_for_nearly_all_of_a_run_leaves_no_interval() {
    // 100 samples in the last two of 20 batches.
    let (mut batches, mut all) = (Batches::new(0, 20_000_000, 64), Histogram::new());
    for i in 0..100 {
        batches.record(380_000_000 - 1 + i * 200_000, 8_000);
        all.record(8_000);
    }
    let series = batches.series(400_000_000);
    assert!(series.counts().len() >= 10, "{}", series.counts().len());
    assert!(matches!(of_rate(&series), Err(NoInterval::FewBatches(1..3))));
    assert!(matches!(of_quantile(&series, &all, 0.5), Err(NoInterval::FewBatches(1..3))));
}

#[test]
fn the_method_is_said_in_words() {
    let e = of_values(&[1.0, 2.0, 1.5, 1.2, 1.9, 1.4, 1.6, 1.1, 2.0, 1.3], 150_000_000).unwrap();
    assert_eq!(e.interval.method, "batch means, 10 batches of 150 ms");
}

#[test]
fn a_rate_that_swings_widely_has_no_interval_below_zero() {
    let swings = |zero: f64| -> Vec<f64> {
        (0..10).map(|n| zero + if n == 7 { 1_000.0 } else { 1.0 }).collect()
    };
    let Interval { value, low, high, .. } = of_values(&swings(0.0), 1).unwrap().interval;
    assert_eq!(low, 0.0, "the mean of {value} less its half width is below zero");
    assert!(high > 2.0 * value, "the other side stays as wide: {high}");
    // A difference may be below zero.
    let shifted = of_values(&swings(-10.0), 1).unwrap().interval;
    assert!((shifted.high - (high - 10.0)).abs() < 1e-9 && shifted.low < 0.0, "{shifted:?}");
}
