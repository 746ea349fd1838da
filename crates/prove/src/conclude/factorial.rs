//! Several factors at once: the effect of each, and the interactions of pairs.

use model::prove::{Design, FactorEffect, LevelResult, Outcome};

use super::{Table, judge_effects};
use crate::{Experiment, levels::Level, metric::Metric};

/// The level that differs most from its factor's first among those shown to be better, or else
/// worse; with the comparison and the combination that has this level alone.
pub(super) fn telling<'e>(
    experiment: &Experiment,
    effects: &'e [FactorEffect],
) -> Option<(&'e FactorEffect, String, usize)> {
    let most = |outcome| {
        // Interactions are neither better nor worse: they say that two factors depend on each
        // other.
        let own = effects.iter().filter(|e| cell_of(experiment, e).is_some());
        let shown = own.filter(|e| e.verdict.outcome == outcome);
        let size = |e: &FactorEffect| e.verdict.effect.map_or(0.0, f64::abs);
        shown.max_by(|a, b| size(a).total_cmp(&size(b)))
    };
    let effect = most(Outcome::Better).or_else(|| most(Outcome::Worse))?;
    let factor = experiment.factors.iter().find(|f| f.name == effect.factor)?;
    let over = match experiment.design {
        Design::OneAtATime => "beside the other factors' first levels",
        _ => "over the other factors' levels",
    };
    let (name, first) = (&factor.name, &factor.levels.first()?.name);
    let of = format!("{name} {} against {name} {first}, {over}", effect.level);
    Some((effect, of, cell_of(experiment, effect)?))
}

/// The effect in each block, for another metric, of the level that [`telling`] returned with its
/// combination.
pub(super) fn over(
    experiment: &Experiment,
    table: &Table,
    effect: &FactorEffect,
    cell: usize,
) -> Vec<f64> {
    let at = experiment.factors.iter().position(|f| f.name == effect.factor);
    let levels = at.and_then(|i| Some((i, *experiment.cells.get(cell)?.levels.get(i)?)));
    match levels.filter(|_| experiment.design == Design::Factorial) {
        Some((i, level)) => contrast(experiment, table, of_level(i, level), 1.0),
        None => table.against(cell, 0),
    }
}

/// One factor's level against its first, averaged over the other factors.
fn of_level(factor: usize, level: usize) -> impl Fn(&[usize]) -> f64 {
    move |levels| match levels.get(factor) {
        Some(at) if *at == level => 1.0,
        Some(0) => -1.0,
        _ => 0.0,
    }
}

/// The combination with one level of one factor and the first level of all others.
fn cell_of(experiment: &Experiment, effect: &FactorEffect) -> Option<usize> {
    let at = experiment.factors.iter().position(|f| f.name == effect.factor)?;
    let level = experiment.factors.get(at)?.levels.iter().position(|l| l.name == effect.level)?;
    let alone = |(i, l): (usize, &usize)| *l == if i == at { level } else { 0 };
    experiment.cells.iter().position(|c| c.levels.iter().enumerate().all(alone))
}

/// Each level of each factor against the combination of all first levels.
pub(super) fn apart(experiment: &Experiment, levels: &[LevelResult]) -> Vec<FactorEffect> {
    let each = experiment.cells.iter().zip(levels).filter_map(|(cell, result)| {
        let at = cell.levels.iter().position(|l| *l != 0)?;
        let factor = experiment.factors.get(at)?;
        Some(FactorEffect {
            factor: factor.name.clone(),
            level: factor.levels.get(*cell.levels.get(at)?)?.name.clone(),
            verdict: result.against_first.clone()?,
        })
    });
    each.collect()
}

/// The main effects and interactions of all factors.
/// - Main effect: a level against its factor's first, averaged over the other factors.
/// - Interaction: for each pair of levels beside the first, the joint effect less the sum of both.
pub(super) fn effects(
    experiment: &Experiment,
    table: &Table,
    goal: &Metric,
    planned: bool,
) -> Vec<FactorEffect> {
    let mut named: Vec<(String, String, Vec<f64>)> = Vec::new();
    for (i, factor) in experiment.factors.iter().enumerate() {
        for (l, level) in factor.levels.iter().enumerate().skip(1) {
            let effect = contrast(experiment, table, of_level(i, l), 1.0);
            named.push((factor.name.clone(), level.name.clone(), effect));
        }
    }
    let factors = || experiment.factors.iter().enumerate();
    for (i, a) in factors() {
        for (j, b) in factors().skip(i + 1) {
            let others = |f: &'_ [Level]| {
                f.iter()
                    .enumerate()
                    .skip(1)
                    .map(|(l, level)| (l, level.name.clone()))
                    .collect::<Vec<_>>()
            };
            for (l, of_a) in others(&a.levels) {
                for (m, of_b) in others(&b.levels) {
                    let sign = |at: Option<&usize>, level| match at {
                        Some(at) if *at == level => 1.0,
                        Some(0) => -1.0,
                        _ => 0.0,
                    };
                    let weigh = |levels: &[usize]| sign(levels.get(i), l) * sign(levels.get(j), m);
                    let name = format!("{} × {}", a.name, b.name);
                    let level = format!("{of_a} × {of_b}");
                    // The joint effect less the sum of both: twice the usual half-difference of
                    // means.
                    named.push((name, level, contrast(experiment, table, weigh, 2.0)));
                }
            }
        }
    }
    let effects: Vec<Vec<f64>> = named.iter().map(|(_, _, e)| e.clone()).collect();
    let judged = judge_effects(experiment, goal, &effects, planned);
    let verdicts = judged.metrics.iter().map(|f| table.verdict(f, table.blocks.len()));
    named
        .into_iter()
        .zip(verdicts)
        .map(|((factor, level, _), verdict)| FactorEffect { factor, level, verdict })
        .collect()
}

/// For each block: the mean where the weight is 1, less the mean where it is -1, times `by`.
fn contrast(
    experiment: &Experiment,
    table: &Table,
    weigh: impl Fn(&[usize]) -> f64,
    by: f64,
) -> Vec<f64> {
    let weights: Vec<f64> = experiment.cells.iter().map(|c| weigh(&c.levels)).collect();
    let each = weights.iter().filter(|w| **w > 0.0).count().max(1) as f64;
    let of =
        |block: &Vec<f64>| by * block.iter().zip(&weights).map(|(x, w)| x * w).sum::<f64>() / each;
    table.blocks.iter().map(of).collect()
}
