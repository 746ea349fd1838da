//! Shapes of one mode that must stay whole, and mixtures that must part.

use super::*;
use crate::random::{SplitMix64, draws::Ar1};

fn histogram(n: u32, mut draw: impl FnMut() -> f64) -> Histogram {
    let mut h = Histogram::new();
    (0..n).for_each(|_| h.record(draw() as u64));
    h
}

type Sampler = fn(&mut SplitMix64) -> f64;

/// Shapes with one mode, as round trips have them and worse.
const SINGLE: &[(&str, Sampler)] = &[
    ("lognormal, narrow", |r| r.lognormal(20_000.0, 0.02)),
    ("lognormal", |r| r.lognormal(20_000.0, 0.3)),
    ("lognormal, wide", |r| r.lognormal(20_000.0, 1.5)),
    ("exponential", |r| 50_000.0 * r.exponential()),
    ("gamma of 3", |r| 10_000.0 * (r.exponential() + r.exponential() + r.exponential())),
    ("floor with a short tail", |r| 10_000.0 + 1_000.0 * r.exponential()),
    ("floor with a long tail", |r| 10_000.0 + 20_000.0 * r.exponential()),
    ("pareto of 1", |r| 10_000.0 / (1.0 - r.unit())),
    ("even", |r| 10_000.0 + 40_000.0 * r.unit()),
    ("normal with 1% of timeouts", |r| {
        if r.unit() < 0.01 { 200e6 } else { 20_000.0 + 500.0 * r.normal() }
    }),
];

/// As a clock of that step tells it.
fn stepped(value: f64, step: f64) -> f64 {
    (value / step).floor() * step
}

fn mixture(n: u32, share: f64, a: f64, b: f64, sigma: f64, seed: u64) -> Vec<Mode> {
    let mut r = SplitMix64::new(seed);
    let mut draw = || {
        let median = if r.unit() < share { a } else { b };
        r.lognormal(median, sigma)
    };
    modes(&histogram(n, &mut draw), 1)
}

#[test]
fn one_peak_stays_whole_by_any_clock() {
    let mut split = Vec::new();
    for (name, draw) in SINGLE {
        // 24 MHz is the clock of many aarch64 machines.
        for step in [1.0, 41.67, 1_000.0, 4_000.0] {
            for (n, seeds) in [(300, 40), (3_000, 20), (30_000, 4)] {
                for seed in 0..seeds {
                    let mut r = SplitMix64::new(seed);
                    let h = histogram(n, || stepped(draw(&mut r), step));
                    if modes(&h, step as u64).len() != 1 {
                        split.push((name, step, n, seed));
                    }
                }
            }
        }
    }
    assert!(split.is_empty(), "{split:?}");
}

#[test]
fn a_coarse_clock_is_recognised_by_its_samples() {
    let mut r = SplitMix64::new(1);
    let h = histogram(10_000, || stepped(r.lognormal(6_000.0, 0.3), 1_000.0));
    assert!((980.0..1_020.0).contains(&density::step(&h)), "{}", density::step(&h));
    assert_eq!(modes(&h, 1).len(), 1);
    // Constants are no comb.
    let mut constants = Histogram::new();
    (0..200).for_each(|i| constants.record(if i % 2 == 0 { 11_000 } else { 53_000 }));
    let medians: Vec<u64> = modes(&constants, 1).iter().map(|h| h.median).collect();
    assert!(
        medians.len() == 2 && medians[0].abs_diff(11_000) < 90 && medians[1].abs_diff(53_000) < 500,
        "{medians:?}"
    );
}

#[test]
fn round_trips_that_resemble_their_neighbours_stay_whole() {
    for seed in 0..30 {
        let mut x = Ar1::new(0.99, seed);
        let h = histogram(10_000, || 20_000.0 * (0.3 * x.draw()).exp());
        assert_eq!(modes(&h, 1).len(), 1, "seed {seed}");
    }
}

#[test]
fn two_peaks_part_with_their_shares_and_medians() {
    for share in [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95] {
        for sigma in [0.02, 0.1, 0.25] {
            for seed in 0..3 {
                let found = mixture(10_000, share, 11_000.0, 53_000.0, sigma, seed);
                assert_eq!(found.len(), 2, "{share} {sigma} {seed}: {found:?}");
                let (a, b) = (&found[0], &found[1]);
                assert!((a.share - share).abs() < 0.015, "{share} {sigma}: {found:?}");
                assert_eq!(a.samples + b.samples, 10_000);
                let off = |h: &Mode, truth: f64| (h.median as f64 / truth - 1.0).abs();
                assert!(
                    off(a, 11_000.0) < 0.05 && off(b, 53_000.0) < 0.05,
                    "{share} {sigma}: {found:?}"
                );
                assert!(a.low < 11_000 && a.high > 11_000 && a.high <= b.low, "{found:?}");
                assert!(b.low < 53_000 && b.high > 53_000, "{found:?}");
            }
        }
    }
}

#[test]
fn three_peaks_part() {
    let mut r = SplitMix64::new(2);
    let mut turn = 0;
    let h = histogram(9_000, || {
        turn = (turn + 1) % 3;
        r.lognormal([9_000.0, 14_000.0, 60_000.0][turn], 0.06)
    });
    let shares: Vec<f64> = modes(&h, 1).iter().map(|h| (h.share * 30.0).round() / 30.0).collect();
    assert_eq!(shares, [1.0 / 3.0; 3]);
}

#[test]
fn neighbours_part_when_they_are_narrow_and_not_when_they_overlap() {
    assert_eq!(mixture(10_000, 0.5, 20_000.0, 23_000.0, 0.02, 1).len(), 2);
    assert_eq!(mixture(10_000, 0.5, 20_000.0, 23_000.0, 0.1, 1).len(), 1);
}

#[test]
fn a_peak_of_one_percent_is_a_tail() {
    assert_eq!(mixture(100_000, 0.01, 11_000.0, 53_000.0, 0.1, 1).len(), 1);
}

#[test]
fn no_samples_have_no_peak_and_extremes_have_one() {
    assert_eq!(modes(&Histogram::new(), 1), []);
    for value in [0, 1, u64::MAX] {
        let mut h = Histogram::new();
        (0..1_000).for_each(|_| h.record(value));
        let found = modes(&h, 1);
        assert_eq!(
            (found.len(), found[0].samples, found[0].median),
            (1, 1_000, value),
            "{found:?}"
        );
    }
    let mut ends = Histogram::new();
    (0..1_000).for_each(|i| ends.record(if i % 2 == 0 { 0 } else { u64::MAX }));
    assert_eq!(modes(&ends, u64::MAX).len(), 1, "no clock is that coarse, and none divides by it");
    assert_eq!(modes(&ends, 1).len(), 2);
}

#[test]
fn keys_say_what_sets_a_mode_apart() {
    let mut r = SplitMix64::new(6);
    let mut all = Histogram::new();
    // `local` makes the first mode alone; `peer` and `both` share the second, and `both` also
    // has a little of the first.
    let mut part = |fast: u32, slow: u32| {
        let mut h = histogram(fast, || r.lognormal(11_000.0, 0.1));
        h.add(&histogram(slow, || r.lognormal(53_000.0, 0.1)));
        all.add(&h);
        h
    };
    let parts = [("near", part(3_000, 0)), ("far", part(0, 4_000)), ("both", part(300, 2_700))];
    let found = by_key(&all, &parts, 1);
    let names: Vec<_> = found.iter().filter_map(|m| m.set_apart_by()).map(|k| k.key).collect();
    assert_eq!(names, ["near", "far"]);
    let local = &found[0].keys[0];
    assert_eq!((local.key, local.samples, local.outside), ("near", 3_000, 0.0));
    assert!((local.within - 3_000.0 / 3_300.0).abs() < 1e-9);
}
