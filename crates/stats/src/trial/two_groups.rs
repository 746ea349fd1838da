//! A verdict on two groups of runs that exist already, with the words and the rate of error of
//! [`super::decide`].
//!
//! Nobody chose the order of these runs by a coin, so that the test rests on another ground: where
//! nothing changed, each run could as well have been in the other group ([`crate::rank_sum`]). That
//! holds for runs in random order, whatever the host does. Where one group was made after the other
//! it holds only for a host that did not drift meanwhile. There is one look, which has the whole
//! error of 5%. Of several metrics each is corrected for the others ([`super::holm`]).

use model::prove::Direction;

use super::{
    decide::{Decision, ERROR, Finding, Outcome, outcome, together},
    holm,
};
use crate::rank_sum;

/// A metric of two groups.
#[derive(Debug, Clone, Copy)]
pub struct Groups<'a> {
    /// The figures of each group's runs, as logarithms or as they are.
    pub before: &'a [f64],
    pub after: &'a [f64],
    /// Which way it is good.
    pub direction: Direction,
    /// Effects that are shown to be smaller, on the figures' scale, do not matter.
    pub min_effect: Option<f64>,
}

/// Judges metrics together: rank sum tests, corrected by Holm's method for their number. One finding
/// a metric, in their order.
pub fn judge(metrics: &[Groups<'_>]) -> Decision {
    let raw: Vec<f64> = metrics.iter().map(|m| rank_sum::p_value(m.before, m.after)).collect();
    let corrected = holm::corrected(&raw);
    let found: Vec<Finding> = metrics.iter().zip(corrected).map(|(m, p)| finding(m, p)).collect();
    let clear = !found.is_empty() && found.iter().all(|f| f.clear);
    Decision { outcome: together(&vec![false; found.len()], &found), clear, metrics: found }
}

/// Whether groups of these sizes can show a difference in one of so many comparisons.
pub fn can_show(before: usize, after: usize, comparisons: usize) -> bool {
    rank_sum::least_p(before, after) * comparisons.max(1) as f64 <= ERROR
}

/// The fewest runs in each of two groups that can show a difference in one of so many comparisons.
pub fn fewest_runs(comparisons: usize) -> usize {
    (1..).find(|n| can_show(*n, *n, comparisons)).unwrap_or(usize::MAX)
}

fn finding(metric: &Groups<'_>, p: f64) -> Finding {
    let interval = rank_sum::shift(metric.before, metric.after, 1.0 - ERROR);
    let effect =
        interval.map_or_else(|| rank_sum::estimate(metric.before, metric.after), |i| i.value);
    let within = |limit: f64| interval.is_some_and(|i| i.low > -limit && i.high < limit);
    let small = metric.min_effect.is_some_and(within);
    let outcome = outcome(metric.direction, effect, interval, p, small);
    let clear = small || matches!(outcome, Outcome::Better | Outcome::Worse);
    Finding { outcome, effect, interval, p, clear }
}

#[cfg(test)]
mod tests;
