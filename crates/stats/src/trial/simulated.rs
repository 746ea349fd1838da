//! The promises, kept on made-up hosts that drift, remember, jump and stumble.

mod fix;

use model::prove::Direction;

use super::{
    decide::{Finding, Metric, Outcome, Rule, judge},
    order,
};
use crate::{
    random::{SplitMix64, draws::Ar1},
    rate::wilson,
};

/// A host whose runs' logarithms are noise of deviation `noise`, of one kind.
#[derive(Debug, Clone, Copy)]
enum NoiseKind {
    Steady,
    Drift,
    Remembers,
    TwoModes,
    HeavyTails,
    Outliers,
    All,
}

const NOISE_KINDS: [NoiseKind; 7] = [
    NoiseKind::Steady,
    NoiseKind::Drift,
    NoiseKind::Remembers,
    NoiseKind::TwoModes,
    NoiseKind::HeavyTails,
    NoiseKind::Outliers,
    NoiseKind::All,
];

/// The figures of `runs` runs one after the other, as logarithms.
fn host(noise_kind: NoiseKind, noise: f64, runs: usize, seed: u64) -> Vec<f64> {
    let has = |h: NoiseKind| {
        matches!(noise_kind, NoiseKind::All)
            || std::mem::discriminant(&noise_kind) == std::mem::discriminant(&h)
    };
    let mut random = SplitMix64::new(seed.wrapping_mul(0x9e37_79b9) ^ 0x5eed);
    let (mut slow, mut mode) = (Ar1::new(0.9, seed ^ 77), false);
    (0..runs)
        .map(|i| {
            let mut x = noise * random.normal();
            if has(NoiseKind::Drift) {
                // Twelve deviations over the whole, faster at the beginning.
                x += 12.0 * noise * (i as f64 / runs as f64).sqrt();
            }
            if has(NoiseKind::Remembers) {
                x += 2.0 * noise * slow.draw();
            }
            if has(NoiseKind::TwoModes) {
                mode ^= random.unit() < 0.15;
                x += if mode { 8.0 * noise } else { 0.0 };
            }
            if has(NoiseKind::HeavyTails) {
                // Student's t of 2 degrees.
                x += noise * random.normal() / random.exponential().sqrt();
            }
            if has(NoiseKind::Outliers) && random.unit() < 0.05 {
                x += 0.5;
            }
            x
        })
        .collect()
}

/// Each block's effect when the second level adds `truth`.
fn effects(runs: &[f64], truth: f64, seed: u64) -> Vec<f64> {
    runs.chunks_exact(4)
        .enumerate()
        .map(|(block, runs)| {
            let order = order::of_block(2, seed, block);
            let of = |level| {
                order.iter().zip(runs).filter(|(l, _)| **l == level).map(|(_, x)| x).sum::<f64>()
                    / 2.0
            };
            of(1) - of(0) + truth
        })
        .collect()
}

/// An experiment as it is made: looked at after each block, ended when clear or at the end.
fn experiment(effects: &[f64]) -> (Finding, usize) {
    let look = |n: usize| {
        let metric = Metric {
            effects: effects.get(..n).unwrap_or_default(),
            direction: Direction::LowerIsBetter,
            guard: None,
        };
        judge(&[metric], Rule { min_effect: None, at_end: n == effects.len() })
    };
    let ended = (6..effects.len()).find(|n| look(*n).clear).unwrap_or(effects.len());
    let mut found = look(ended);
    (found.metrics.remove(0), ended)
}

/// What many experiments of one truth say.
#[derive(Debug, Default)]
struct VerdictCounts {
    runs: usize,
    held: usize,
    better: usize,
    worse: usize,
    blocks: usize,
}

fn count_verdicts(
    noise_kind: NoiseKind,
    noise: f64,
    truth: f64,
    blocks: usize,
    runs: u64,
) -> VerdictCounts {
    let mut t = VerdictCounts::default();
    for seed in 0..runs {
        let seed = seed.wrapping_mul(7_919) + blocks as u64;
        let runs = host(noise_kind, noise, 4 * blocks, seed);
        let (found, used) = experiment(&effects(&runs, truth, seed ^ 0xabcd));
        let interval = found.interval.unwrap();
        t.runs += 1;
        t.held += usize::from(interval.low <= truth && truth <= interval.high);
        t.better += usize::from(found.outcome == Outcome::Better);
        t.worse += usize::from(found.outcome == Outcome::Worse);
        t.blocks += used;
    }
    t
}

fn shown((p, low, high): (f64, f64, f64)) -> String {
    format!("{:.1}% ({:.1}% to {:.1}%)", 100.0 * p, 100.0 * low, 100.0 * high)
}

/// More under `make bench BENCHES=prove`.
fn a_change_of_nothing(runs: u64) {
    for noise_kind in NOISE_KINDS {
        let t = count_verdicts(noise_kind, 0.02, 0.0, 20, runs);
        let called = wilson(t.better + t.worse, t.runs);
        println!("A/A {noise_kind:?}: better or worse in {}", shown(called));
        // Two deviations above 5% would be chance in one of 40; the seeds are fixed.
        assert!(called.1 <= 0.05, "{noise_kind:?}: {t:?}");
        let held = wilson(t.held, t.runs);
        println!("A/A {noise_kind:?}: the interval held the truth in {}", shown(held));
        assert!(held.2 >= 0.92 && held.1 <= 0.98, "{noise_kind:?}: {t:?}");
    }
}

fn a_change_of_a_twentieth(runs: u64) {
    let truth = 1.05f64.ln();
    for noise_kind in NOISE_KINDS {
        let t = count_verdicts(noise_kind, 0.01, truth, 30, runs);
        let (found, held) = (wilson(t.worse, t.runs), wilson(t.held, t.runs));
        println!(
            "5% {noise_kind:?}: found in {}, held in {}, {:.1} of 30 blocks",
            shown(found),
            shown(held),
            t.blocks as f64 / t.runs as f64
        );
        assert_eq!(t.better, 0, "{noise_kind:?}: the wrong sign");
        assert!(held.2 >= 0.92 && held.1 <= 0.98, "{noise_kind:?}: {t:?}");
        if !matches!(noise_kind, NoiseKind::All) {
            assert!(found.2 >= 0.95, "{noise_kind:?}: {t:?}");
        }
    }
}

#[test]
fn a_change_of_nothing_is_called_better_or_worse_in_at_most_a_twentieth() {
    a_change_of_nothing(400);
}

#[test]
fn a_change_of_a_twentieth_is_found_with_its_sign() {
    a_change_of_a_twentieth(200);
}

#[test]
#[ignore = "minutes: `make bench BENCHES=prove`"]
fn both_many_times() {
    a_change_of_nothing(20_000);
    a_change_of_a_twentieth(5_000);
}
