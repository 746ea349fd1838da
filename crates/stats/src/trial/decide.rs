//! What is said of a change, and when enough is known to stop.
//!
//! The error of 5% is shared: 1% for stopping early, by a test that may be looked at after
//! every block ([`super::test_martingale`]), 4% for one look at the end that was planned
//! ([`super::signed_rank`]), as Haybittle (British Journal of Radiology 44, 1971) and Peto
//! (British Journal of Cancer 34, 1976) share it. So an experiment that runs to its end has
//! nearly the power of one that never looked. Of several goals each is corrected for the others
//! ([`super::holm`]). Guards are not: a harm is not excused by other questions having been asked.

use model::prove::{Direction, Outcome as Said};

use super::{
    holm,
    signed_rank::{self, Shift},
    test_martingale::TestMartingale,
};

/// The promise: a change that does nothing is called better or worse in at most so many.
pub(crate) const ERROR: f64 = 0.05;

/// What of it may be spent before the end.
const EARLY: f64 = 0.01;

/// What is said of a change.
pub type Outcome = Said;

/// A metric of an experiment with two levels.
#[derive(Debug, Clone)]
pub struct Metric<'a> {
    /// Each block's effect: the second level less the first, of logarithms or as they are.
    pub effects: &'a [f64],
    /// Which way it is good.
    pub direction: Direction,
    /// Whether it only must not get worse; and by how much it may, if a limit is to be shown.
    pub guard: Option<GuardMetric>,
}

/// A metric that must not get worse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GuardMetric {
    /// It must be shown to be worse by less than this, on the effects' scale.
    pub limit: Option<f64>,
}

/// When an experiment may stop, and what it must show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Effects smaller than this do not matter, on the effects' scale: once all goals are shown
    /// to be smaller the answer is clear.
    pub min_effect: Option<f64>,
    /// Whether the end that was planned is reached. What ends otherwise has only the test
    /// martingale.
    pub at_end: bool,
}

/// What was found of one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub outcome: Outcome,
    pub effect: f64,
    /// Its interval; `None` below 6 blocks.
    pub interval: Option<Shift>,
    /// Corrected for looks and for several goals.
    pub p: f64,
    /// Whether more blocks would not change what is said.
    pub clear: bool,
}

/// What was found of all.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What is said of the change.
    pub outcome: Outcome,
    /// Each metric, in the order given.
    pub metrics: Vec<Finding>,
    /// Whether the experiment may stop.
    pub clear: bool,
}

/// The fewest blocks by which each of so many comparisons can be told apart at the end: with all
/// signs alike the signed ranks' p is 2^(1 - blocks), which looks and comparisons are corrected
/// for.
pub fn fewest_blocks(comparisons: usize) -> usize {
    let corrected = ERROR / (ERROR - EARLY) * comparisons.max(1) as f64;
    1 + (corrected / ERROR).log2().ceil().max(0.0) as usize
}

/// Judges a change by the blocks so far.
pub fn judge(metrics: &[Metric<'_>], rule: Rule) -> Decision {
    let raw: Vec<f64> = metrics.iter().map(|m| p_value(m.effects, rule)).collect();
    let goals: Vec<f64> =
        metrics.iter().zip(&raw).filter(|(m, _)| m.guard.is_none()).map(|(_, p)| *p).collect();
    let mut of_goals = holm::corrected(&goals).into_iter();
    let found: Vec<Finding> = metrics
        .iter()
        .zip(raw)
        .map(|(m, raw)| {
            let p = if m.guard.is_none() { of_goals.next().unwrap_or(raw) } else { raw };
            finding(m, p, rule)
        })
        .collect();
    let roles: Vec<bool> = metrics.iter().map(|m| m.guard.is_some()).collect();
    Decision { outcome: together(&roles, &found), clear: clear(metrics, &found), metrics: found }
}

fn p_value(effects: &[f64], rule: Rule) -> f64 {
    let early = TestMartingale::on(effects, 0.0).p_value() * ERROR / EARLY;
    let at_end = || signed_rank::p_value(effects) * ERROR / (ERROR - EARLY);
    if rule.at_end { early.min(at_end()) } else { early }.min(1.0)
}

fn finding(metric: &Metric<'_>, p: f64, rule: Rule) -> Finding {
    let interval = signed_rank::shift(metric.effects, 1.0 - (ERROR - EARLY));
    let effect = interval.map_or_else(|| signed_rank::estimate(metric.effects), |i| i.value);
    let harm = harm(metric.direction);
    let small = match metric.guard {
        None => rule.min_effect.is_some_and(|s| within(metric.effects, s)),
        Some(guard) => guard.limit.is_none_or(|l| shown_below(metric.effects, harm, l)),
    };
    let outcome = match (outcome(metric.direction, effect, interval, p, false), interval) {
        (decided @ (Outcome::Better | Outcome::Worse), _) | (decided, None) => decided,
        (other, Some(i)) => match metric.guard.and_then(|g| g.limit) {
            Some(limit) if !small && (i.low * harm).max(i.high * harm) > limit => {
                Outcome::GuardWorse
            }
            // Shown to be too small to matter: which way it goes is not asked.
            _ if small && metric.guard.is_none() => Outcome::NoDifferenceShown,
            _ => other,
        },
    };
    let decided = matches!(outcome, Outcome::Better | Outcome::Worse);
    let clear = interval.is_some() && (decided || small);
    Finding { outcome, effect, interval, p, clear }
}

/// What is said of one metric by its effect, its interval and its corrected p; `small` where it is
/// shown to be too small to matter.
pub(crate) fn outcome(
    direction: Direction,
    effect: f64,
    interval: Option<Shift>,
    p: f64,
    small: bool,
) -> Outcome {
    let harm = harm(direction);
    match interval {
        None => Outcome::Undecided,
        Some(_) if p <= ERROR && effect * harm > 0.0 => Outcome::Worse,
        Some(_) if p <= ERROR && effect * harm < 0.0 => Outcome::Better,
        Some(_) if small => Outcome::NoDifferenceShown,
        // By itself it differs, and for so many looks or comparisons that is not enough yet.
        Some(i) if i.low > 0.0 || i.high < 0.0 => Outcome::Undecided,
        Some(_) => Outcome::NoDifferenceShown,
    }
}

/// 1 where more is worse.
pub(crate) fn harm(direction: Direction) -> f64 {
    match direction {
        Direction::HigherIsBetter => -1.0,
        Direction::LowerIsBetter => 1.0,
    }
}

/// Whether the effect is shown to be smaller than this on both sides, at any look: two one-sided
/// tests (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).
fn within(effects: &[f64], min_effect: f64) -> bool {
    shown_below(effects, 1.0, min_effect) && shown_below(effects, -1.0, min_effect)
}

/// Whether the effect in this direction is shown to be below the limit.
fn shown_below(effects: &[f64], direction: f64, limit: f64) -> bool {
    let turned: Vec<f64> = effects.iter().map(|d| d * direction).collect();
    TestMartingale::on(&turned, limit).p_not_below() <= ERROR / 2.0
}

/// What is said of all metrics together; of each, whether it is a guard.
pub(crate) fn together(guards: &[bool], found: &[Finding]) -> Outcome {
    let any = |guard: bool, what: &[Outcome]| {
        let mut of = guards.iter().zip(found).filter(|(g, _)| **g == guard);
        of.any(|(_, f)| what.contains(&f.outcome))
    };
    match (any(false, &[Outcome::Better]), any(false, &[Outcome::Worse])) {
        (true, true) => Outcome::Mixed,
        (false, true) => Outcome::Worse,
        (true, false) if any(true, &[Outcome::Worse, Outcome::GuardWorse]) => Outcome::GuardWorse,
        (true, false) => Outcome::Better,
        (false, false) if any(false, &[Outcome::Undecided]) => Outcome::Undecided,
        (false, false) if any(false, &[Outcome::NoDifferenceShown]) => Outcome::NoDifferenceShown,
        (false, false) => Outcome::Undecided,
    }
}

/// All goals are clear; and, where that speaks for the change, so are the guards.
fn clear(metrics: &[Metric<'_>], found: &[Finding]) -> bool {
    let mut goals = metrics.iter().zip(found).filter(|(m, _)| m.guard.is_none()).peekable();
    let mut guards = metrics.iter().zip(found).filter(|(m, _)| m.guard.is_some());
    goals.peek().is_some() && goals.all(|(_, f)| f.clear) && guards.all(|(_, f)| f.clear)
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Rule = Rule { min_effect: None, at_end: true };

    fn effects(n: usize, centre: f64) -> Vec<f64> {
        (0..n).map(|i| centre + 0.01 * ((i * 7 % 11) as f64 - 5.0)).collect()
    }

    fn goal(effects: &[f64], direction: Direction) -> Metric<'_> {
        Metric { effects, direction, guard: None }
    }

    #[test]
    fn which_way_is_good_decides_the_word() {
        let up = effects(10, 0.1);
        let said = |d| judge(&[goal(&up, d)], END).outcome;
        assert_eq!(said(Direction::HigherIsBetter), Outcome::Better);
        assert_eq!(said(Direction::LowerIsBetter), Outcome::Worse);
        let none = effects(12, 0.0);
        let found = judge(&[goal(&none, Direction::LowerIsBetter)], END);
        assert_eq!((found.outcome, found.clear), (Outcome::NoDifferenceShown, false));
        let few = judge(&[goal(&up[..5], Direction::LowerIsBetter)], END);
        assert_eq!((few.outcome, few.clear), (Outcome::Undecided, false));
    }

    #[test]
    fn a_guard_that_is_worse_or_not_within_its_limit_forbids_better() {
        let (better, worse, none) = (effects(14, -0.2), effects(14, 0.1), effects(14, 0.0));
        let said = |guard: &[f64], limit| {
            let guard = Metric {
                effects: guard,
                direction: Direction::LowerIsBetter,
                guard: Some(GuardMetric { limit }),
            };
            let found = judge(&[goal(&better, Direction::LowerIsBetter), guard], END);
            (found.outcome, found.clear)
        };
        assert_eq!(said(&worse, None), (Outcome::GuardWorse, true));
        assert_eq!(said(&none, None), (Outcome::Better, true));
        assert_eq!(said(&none, Some(0.1)), (Outcome::Better, true));
        assert_eq!(said(&none, Some(0.001)), (Outcome::GuardWorse, false));
    }

    #[test]
    fn what_does_not_matter_ends_it_too() {
        let none = effects(30, 0.0);
        let rule = Rule { min_effect: Some(0.05), at_end: false };
        let found = judge(&[goal(&none, Direction::LowerIsBetter)], rule);
        assert_eq!((found.outcome, found.clear), (Outcome::NoDifferenceShown, true));
        let clear =
            judge(&[goal(&none, Direction::LowerIsBetter)], Rule { min_effect: None, ..rule });
        assert!(!clear.clear);
        // Also where its interval excludes nothing at all, and the looks do not let that be said.
        let tiny: Vec<f64> = effects(7, 0.005).iter().map(|e| 0.005 + (e - 0.005) / 20.0).collect();
        let small = Rule { min_effect: Some(0.02), at_end: false };
        let said = judge(&[goal(&tiny, Direction::LowerIsBetter)], small);
        let found = &said.metrics[0];
        assert!(found.p > ERROR && found.interval.unwrap().low > 0.0, "{found:?}");
        assert_eq!((said.outcome, said.clear), (Outcome::NoDifferenceShown, true));
    }

    #[test]
    fn what_differs_but_not_enough_for_so_many_comparisons_is_no_missing_difference() {
        let large = effects(6, 1.0);
        let said = |comparisons| {
            let all = vec![goal(&large, Direction::LowerIsBetter); comparisons];
            judge(&all, END).outcome
        };
        assert_eq!((said(1), said(3)), (Outcome::Worse, Outcome::Undecided));
        // Ended by hand there are only the bets.
        let by_hand = Rule { at_end: false, ..END };
        let nine = effects(9, 0.1);
        let found = judge(&[goal(&nine[..7], Direction::LowerIsBetter)], by_hand);
        assert_eq!(found.outcome, Outcome::Undecided);
    }

    #[test]
    fn so_many_blocks_tell_so_many_comparisons_apart_and_one_less_does_not() {
        for comparisons in [1, 2, 3, 5, 9, 14] {
            let reported = |blocks| {
                // The bets do not count here: they may be sure before.
                let p = signed_rank::p_value(&effects(blocks, 1.0)) * ERROR / (ERROR - EARLY);
                p * comparisons as f64 <= ERROR
            };
            let fewest = fewest_blocks(comparisons);
            assert!(reported(fewest) && !reported(fewest - 1), "{comparisons}: {fewest}");
        }
        assert_eq!(fewest_blocks(1), 6);
    }

    #[test]
    fn goals_that_disagree_are_mixed() {
        let (up, down) = (effects(12, 0.1), effects(12, -0.1));
        let both = [goal(&up, Direction::LowerIsBetter), goal(&down, Direction::LowerIsBetter)];
        assert_eq!(judge(&both, END).outcome, Outcome::Mixed);
    }
}
