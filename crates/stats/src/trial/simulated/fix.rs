//! How often `fix` keeps what does nothing, by its own decisions over made-up hosts: each candidate an
//! experiment, what showed nothing tried once more together with the others of its rule, and all that was
//! kept compared with before at the end.

use super::*;
use crate::trial::decide::GuardMetric;

/// What a rule asks for and does nothing, and what was typed by hand and does nothing.
const OF_ONE_RULE: u64 = 3;
const BY_HAND: u64 = 3;
/// Of the fault that is there: the remedy makes the workload so much quicker.
const REMEDY: f64 = 0.10;

/// The 95% interval of a rate (Clopper and Pearson, Biometrika 26, 1934): the rate and its ends.
fn clopper_pearson(hits: usize, of: usize) -> (f64, f64, f64) {
    // The greatest p by which at least `hits` are as rare as 2.5%; and by which at most `hits` are.
    let low = bisect(|p| 1.0 - at_most(hits as i64 - 1, of, p) <= 0.025);
    let high = bisect(|p| at_most(hits as i64, of, p) > 0.025);
    (hits as f64 / of as f64, if hits == 0 { 0.0 } else { low }, high)
}

/// Where in 0 to 1 it ceases to hold.
fn bisect(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

/// The chance of at most so many hits of `n`.
fn at_most(hits: i64, n: usize, p: f64) -> f64 {
    let (mut log, mut sum) = (n as f64 * (-p).ln_1p(), 0.0);
    for k in 0..=hits {
        sum += log.exp();
        log += ((n as f64 - k as f64) / (k as f64 + 1.0)).ln() + p.ln() - (-p).ln_1p();
    }
    sum
}

/// What one candidate's experiment says: the rate is the goal, the tail must not get worse. `truth` is by
/// how much it is quicker.
fn experiment(noise_kind: NoiseKind, truth: f64, blocks: usize, seed: u64) -> Outcome {
    let effects = |truth, of| effects(&host(noise_kind, 0.02, 4 * blocks, seed ^ of), truth, seed);
    let (rate, tail) = (effects(truth, 0), effects(-truth, 0x7a11));
    let look = |n: usize| {
        let (direction, effects) = (Direction::HigherIsBetter, rate.get(..n).unwrap_or_default());
        let goal = Metric { effects, direction, guard: None };
        let (direction, effects) = (Direction::LowerIsBetter, tail.get(..n).unwrap_or_default());
        let guard = Metric { effects, direction, guard: Some(GuardMetric { limit: None }) };
        judge(&[goal, guard], Rule { min_effect: None, at_end: n == blocks })
    };
    let ended = (6..blocks).find(|n| look(*n).clear).unwrap_or(blocks);
    look(ended).outcome
}

/// What many runs of `fix` came to.
#[derive(Debug, Default)]
struct FixCounts {
    runs: usize,
    decoys: usize,
    kept: usize,
    runs_that_kept_one: usize,
    remedies: usize,
}

fn count_kept(noise_kind: NoiseKind, runs: u64) -> FixCounts {
    let mut t = FixCounts::default();
    for run in 0..runs {
        let seed = |n: u64| run.wrapping_mul(1_000_003).wrapping_add(n.wrapping_mul(7_919));
        // Its share of the budget: from the shortest experiment to four times that.
        let blocks = |n: u64| 6 + (SplitMix64::new(seed(n)).unit() * 19.0) as usize;
        let better = |truth, n| experiment(noise_kind, truth, blocks(n), seed(n));
        let alone: Vec<Outcome> = (0..OF_ONE_RULE + BY_HAND).map(|n| better(0.0, n)).collect();
        let mut kept = alone.iter().filter(|o| **o == Outcome::Better).count();
        let nothing = |o: &&Outcome| matches!(o, Outcome::NoDifferenceShown | Outcome::Undecided);
        let again = alone.iter().take(OF_ONE_RULE as usize).filter(nothing).count();
        if again > 1 && better(0.0, 100) == Outcome::Better {
            kept += again;
        }
        let remedy = better(REMEDY, 101) == Outcome::Better;
        // All together against before; what is shown to do harm is undone.
        let truth = if remedy { REMEDY } else { 0.0 };
        if kept + usize::from(remedy) > 0 && better(truth, 102) == Outcome::Worse {
            kept = 0;
        }
        t.runs += 1;
        t.decoys += alone.len();
        t.kept += kept;
        t.runs_that_kept_one += usize::from(kept > 0);
        t.remedies += usize::from(remedy);
    }
    t
}

fn how_often_decoys_are_kept(runs: u64) {
    for noise_kind in NOISE_KINDS {
        let t = count_kept(noise_kind, runs);
        let kept = clopper_pearson(t.kept, t.decoys);
        println!(
            "{noise_kind:?}: kept {} of {} decoys, {}; at least one in {}; the remedy in {}",
            t.kept,
            t.decoys,
            shown(kept),
            shown(clopper_pearson(t.runs_that_kept_one, t.runs)),
            shown(clopper_pearson(t.remedies, t.runs)),
        );
        // Half of one in twenty by itself, and as much of each by the one experiment of a rule's together.
        let together = OF_ONE_RULE as f64 / (OF_ONE_RULE + BY_HAND) as f64;
        assert!(kept.1 <= 0.025 * (1.0 + together), "{noise_kind:?}: {t:?}");
        assert!(t.kept > 0, "a test that finds none finds nothing: {t:?}");
    }
}

#[test]
fn fix_keeps_what_does_nothing_no_more_often_than_it_says() {
    how_often_decoys_are_kept(150);
}

#[test]
#[ignore = "a minute: docs/prove-method.md has the command and its result"]
fn fix_many_times() {
    how_often_decoys_are_kept(3_000);
}

#[test]
fn an_interval_is_the_published_one() {
    // Newcombe, Statistics in Medicine 17 (1998), table I, method 5.
    let (_, low, high) = clopper_pearson(81, 263);
    assert!((low - 0.2527).abs() < 1e-4 && (high - 0.3676).abs() < 1e-4, "{low} {high}");
    let (_, low, high) = clopper_pearson(0, 20);
    assert!(low < 1e-9 && (high - 0.1684).abs() < 1e-4, "{low} {high}");
}
