//! Notes beside a verdict: how the host and the figures behaved during the experiment.

use model::prove::{AtLevel, Design, Discarded, Outcome, ProveNote, Run, Verdict};
use stats::trial::{block_series, decide, two_places};

use crate::{Experiment, experiment::FEWEST_BLOCKS, levels::Cell, metric::Metric};

/// The difference to look for where the operator names none.
const MATTERS: f64 = 0.05;

/// Notes drift of the blocks' levels, and correlation between neighbouring blocks.
pub(crate) fn host(metric: &str, levels: &[f64], difference: bool, notes: &mut Vec<ProveNote>) {
    let metric = metric.to_owned();
    if let Some(trend) = block_series::trend(levels) {
        let change = if difference { trend } else { trend.exp_m1() };
        notes.push(ProveNote::Drifted { metric, change, difference });
    } else if let Some(correlation) = block_series::autocorrelation(levels) {
        notes.push(ProveNote::Wandered { metric, correlation });
    }
}

/// Notes a changing effect, and outlier blocks.
pub(crate) fn effects(effects: &[f64], notes: &mut Vec<ProveNote>) {
    if block_series::trend(effects).is_some() {
        notes.push(ProveNote::EffectDrifted);
    }
    let outliers = block_series::outliers(effects);
    if !outliers.is_empty() && effects.len() >= 6 {
        notes.push(ProveNote::OutlierBlocks { blocks: outliers.iter().map(|b| b + 1).collect() });
    }
}

/// Notes the reasons for a placement's columns, and the placements that the budget did not hold.
pub(crate) fn placement(experiment: &Experiment, notes: &mut Vec<ProveNote>) {
    let Some(placement) = &experiment.spec.placement else { return };
    if !placement.beside.is_empty() {
        notes.push(ProveNote::PlacementColumns { columns: placement.beside.clone() });
    }
    notes.extend(placement.left_out.clone());
}

/// Notes which interactions of factors are not tested.
pub(crate) fn interactions(experiment: &Experiment, notes: &mut Vec<ProveNote>) {
    match (experiment.design, experiment.factors.len()) {
        (Design::OneAtATime, _) => notes.push(ProveNote::InteractionsUntested),
        (Design::Factorial, 3..) => notes.push(ProveNote::OnlyPairsTested),
        _ => {}
    }
}

/// Notes a figure too noisy for the budget, with the blocks that would be needed. An interval
/// narrows with the square root of their number.
pub(crate) fn noise(found: &Verdict, min_effect: Option<f64>, notes: &mut Vec<ProveNote>) {
    let (Some(low), Some(high), false) = (found.low, found.high, found.difference) else { return };
    let half = (high - low) / 2.0;
    let wanted = min_effect.map_or(MATTERS, f64::exp_m1);
    if found.outcome != Outcome::NoDifferenceShown || half <= wanted {
        return;
    }
    let times = (half / wanted).powi(2);
    let needed = (found.blocks as f64 * times).ceil();
    let (blocks, needed) = (found.blocks, needed as u64);
    notes.push(ProveNote::TooNoisy { wanted, reached: half, blocks, needed });
}

/// Notes too few blocks for so many comparisons, however large the effects are.
pub(crate) fn comparisons(experiment: &Experiment, blocks: usize, notes: &mut Vec<ProveNote>) {
    let cells = experiment.cells.len();
    let comparisons = match experiment.design {
        Design::Ab => experiment.metrics.iter().filter(|m| m.guard.is_none()).count(),
        _ => cells.saturating_sub(1),
    };
    let needed = decide::fewest_blocks(comparisons);
    if (FEWEST_BLOCKS..needed).contains(&blocks) {
        let runs = 2 * cells * needed;
        notes.push(ProveNote::FewBlocks { blocks, comparisons, needed, runs });
    }
}

/// Notes runs that fall into two modes, for each combination.
pub(crate) fn places(
    experiment: &Experiment,
    goal: &Metric,
    runs: &[Run],
    notes: &mut Vec<ProveNote>,
) {
    for (i, cell) in experiment.cells.iter().enumerate() {
        let own = runs.iter().filter(|r| r.level == i && r.discarded.is_none());
        let figures: Vec<f64> =
            own.filter_map(|r| r.figures.get(&goal.name).copied()).filter(|x| *x > 0.0).collect();
        let logs: Vec<f64> = figures.iter().map(|x| x.ln()).collect();
        if let Some(two) = two_places::split(&logs) {
            notes.push(ProveNote::TwoPlaces {
                level: cell.name(&experiment.factors),
                lower_share: 1.0 - two.upper_share,
                low: two.low.exp(),
                high: two.high.exp(),
            });
        }
    }
}

/// Notes a figure that never changes: the metric may read the wrong place.
pub(crate) fn constant(goal: &str, runs: &[Run], notes: &mut Vec<ProveNote>) {
    let figures: Vec<f64> = runs.iter().filter_map(|r| r.figures.get(goal).copied()).collect();
    let Some(first) = figures.first().filter(|_| figures.len() > 1) else { return };
    if figures.iter().all(|x| x == first) {
        notes.push(ProveNote::NeverMoves { metric: goal.to_owned(), figure: *first });
    }
}

/// Notes in how many runs the workload failed, by level: the figures are of the successful ones.
fn failures(experiment: &Experiment, runs: &[Run], notes: &mut Vec<ProveNote>) {
    let failed = runs.iter().filter(|r| r.failed());
    let (missing, failed): (Vec<&Run>, Vec<&Run>) =
        failed.partition(|r| matches!(r.discarded, Some(Discarded::FigureMissing { .. })));
    let at = |which: &[&Run]| -> Vec<AtLevel> {
        let at = |(i, cell): (usize, &Cell)| {
            let count = which.iter().filter(|r| r.level == i).count();
            (count > 0).then(|| AtLevel { level: cell.name(&experiment.factors), count })
        };
        experiment.cells.iter().enumerate().filter_map(at).collect()
    };
    let runs = runs.len();
    let first = |which: &[&Run]| which.first().and_then(|r| r.discarded.clone());
    notes.extend(first(&failed).map(|first| {
        let (count, at) = (failed.len(), at(&failed));
        ProveNote::Failed { count, runs, at, first }
    }));
    notes.extend(first(&missing).map(|first| {
        let (count, at) = (missing.len(), at(&missing));
        ProveNote::FiguresMissing { count, runs, at, first }
    }));
}

/// Notes the runs that were repeated.
pub(crate) fn runs(experiment: &Experiment, runs: &[Run], notes: &mut Vec<ProveNote>) {
    failures(experiment, runs, notes);
    let disturbed = runs.iter().filter(|r| !r.failed());
    let discarded: Vec<&Discarded> = disturbed.filter_map(|r| r.discarded.as_ref()).collect();
    if let Some(first) = discarded.first() {
        let (count, runs, first) = (discarded.len(), runs.len(), (*first).clone());
        notes.push(ProveNote::Disturbed { count, runs, first });
    }
    let short = runs.iter().filter(|r| !r.failed() && r.took_s < 0.05).count();
    if short * 2 > runs.len() {
        notes.push(ProveNote::ShortRuns);
    }
}
