//! What a reader wants to know besides the verdict: how the host behaved meanwhile.

use model::{
    prove::{Design, Outcome, Run, Verdict},
    units::figure,
};
use stats::trial::{decide, looks, two_places};

use crate::{
    Experiment, experiment::FEWEST_BLOCKS, figure as figures, levels::Cell, metric::Metric,
};

/// A difference that most would want to see, where nobody says which.
const MATTERS: f64 = 0.05;

/// Drift of the blocks' levels, and neighbours that resemble one another.
pub(crate) fn host(metric: &str, levels: &[f64], difference: bool, notes: &mut Vec<String>) {
    let by = |x: f64| match difference {
        true => format!("{x:+.3}"),
        false => format!("{:+.1}%", 100.0 * x.exp_m1()),
    };
    if let Some(trend) = looks::trend(levels) {
        notes.push(format!(
            "{metric} drifted by {} from the first block to the last; that hits all levels alike",
            by(trend)
        ));
    } else if let Some(lag1) = looks::resemblance(levels) {
        notes.push(format!(
            "{metric} wandered: neighbouring blocks resemble one another (correlation {lag1:.2}); \
             effects are taken within blocks"
        ));
    }
}

/// A changing effect, and wild blocks.
pub(crate) fn effects(effects: &[f64], notes: &mut Vec<String>) {
    if looks::trend(effects).is_some() {
        notes.push(
            "the effect itself changed from the first block to the last: what is said is its middle"
                .into(),
        );
    }
    let wild = looks::wild(effects);
    if !wild.is_empty() && effects.len() >= 6 {
        let which: Vec<String> = wild.iter().map(|b| (b + 1).to_string()).collect();
        let (noun, are) = if wild.len() == 1 { ("block", "lies") } else { ("blocks", "lie") };
        notes.push(format!(
            "{noun} {} {are} far from the others; ranks keep them from moving the verdict",
            which.join(", ")
        ));
    }
}

/// Why a placement's columns are what they are, and what the budget did not hold.
pub(crate) fn placement(experiment: &Experiment, notes: &mut Vec<String>) {
    let Some(placement) = &experiment.spec.placement else { return };
    if !placement.beside.is_empty() {
        notes.push(format!(
            "CPUs that the others are told against: {}",
            placement.beside.join(", ")
        ));
    }
    notes.extend(placement.left_out.clone());
}

/// Which interactions of factors are not tested.
pub(crate) fn interactions(experiment: &Experiment, notes: &mut Vec<String>) {
    match (experiment.design, experiment.factors.len()) {
        (Design::OneAtATime, _) => notes.push(
            "one factor at a time: each level was run beside the others' first levels only; interactions, \
             and what the best levels do together, are untested (design = \"full-factorial\" runs every \
             combination)"
                .into(),
        ),
        (Design::Factorial, 3..) => notes.push(
            "interactions are told of pairs of factors; those of three or more are untested".into(),
        ),
        _ => {}
    }
}

/// A figure too noisy for the budget: how many blocks would show what matters. An interval narrows
/// with the root of their number.
pub(crate) fn noise(found: &Verdict, min_effect: Option<f64>, notes: &mut Vec<String>) {
    let (Some(low), Some(high), false) = (found.low, found.high, found.difference) else { return };
    let half = (high - low) / 2.0;
    let wanted = min_effect.map_or(MATTERS, f64::exp_m1);
    if found.outcome != Outcome::NoDifferenceShown || half <= wanted {
        return;
    }
    let times = (half / wanted).powi(2);
    let needed = (found.blocks as f64 * times).ceil();
    notes.push(format!(
        "too noisy to tell {} from nothing: the interval reaches {} to each side after {} blocks; \
         about {needed:.0} blocks would do, or longer runs, a steadier figure, a quieter host",
        percent(wanted),
        percent(half),
        found.blocks
    ));
}

/// Too few blocks to tell so many comparisons apart, however large they are.
pub(crate) fn comparisons(experiment: &Experiment, blocks: usize, notes: &mut Vec<String>) {
    let cells = experiment.cells.len();
    let many = match experiment.design {
        Design::Ab => experiment.metrics.iter().filter(|m| m.guard.is_none()).count(),
        _ => cells.saturating_sub(1),
    };
    let needed = decide::fewest_blocks(many);
    if (FEWEST_BLOCKS..needed).contains(&blocks) {
        notes.push(format!(
            "{blocks} blocks are too few for {many} comparisons, of which one in twenty may be wrong in all: {needed} can tell them apart (--runs {})",
            2 * cells * needed
        ));
    }
}

/// Runs in two places, at each combination.
pub(crate) fn places(
    experiment: &Experiment,
    goal: &Metric,
    runs: &[Run],
    notes: &mut Vec<String>,
) {
    for (i, cell) in experiment.cells.iter().enumerate() {
        let own = runs.iter().filter(|r| r.level == i && r.discarded.is_none());
        let figures: Vec<f64> =
            own.filter_map(|r| r.figures.get(&goal.name).copied()).filter(|x| *x > 0.0).collect();
        let logs: Vec<f64> = figures.iter().map(|x| x.ln()).collect();
        if let Some(two) = two_places::split(&logs) {
            notes.push(format!(
                "at {} the runs fall into two places: {} near {} and the others near {}, \
                 with nothing between",
                cell.name(&experiment.factors),
                percent(1.0 - two.upper_share),
                figure(two.low.exp()),
                figure(two.high.exp())
            ));
        }
    }
}

/// A figure that never moves: what is read may not be what is meant.
pub(crate) fn constant(goal: &str, runs: &[Run], notes: &mut Vec<String>) {
    let figures: Vec<f64> = runs.iter().filter_map(|r| r.figures.get(goal).copied()).collect();
    let Some(first) = figures.first().filter(|_| figures.len() > 1) else { return };
    if figures.iter().all(|x| x == first) {
        notes.push(format!(
            "{goal} is {first} in every run: look whether that is the figure that is meant"
        ));
    }
}

/// In how many runs the workload failed, by level: what is told is of those that worked.
fn failures(experiment: &Experiment, runs: &[Run], notes: &mut Vec<String>) {
    let failed = runs.iter().filter(|r| r.failed());
    let (missing, failed): (Vec<&Run>, Vec<&Run>) =
        failed.partition(|r| r.discarded.as_deref().is_some_and(figures::is_missing));
    let mut say = |which: &[&Run], what: &str, so: &str| {
        let Some(first) = which.first().and_then(|r| r.discarded.as_ref()) else { return };
        let at = |(i, cell): (usize, &Cell)| {
            let count = which.iter().filter(|r| r.level == i).count();
            (count > 0).then(|| format!("{count} at {}", cell.name(&experiment.factors)))
        };
        let at: Vec<String> = experiment.cells.iter().enumerate().filter_map(at).collect();
        notes.push(format!(
            "in {} of {} runs {what} ({}) and was run again: {so}; the first: {first}",
            which.len(),
            runs.len(),
            at.join(", ")
        ));
    };
    say(&failed, "the workload failed", "what is told is of the runs that worked");
    say(
        &missing,
        "the workload ended well, but its figure was not found",
        "the verdict may be biased, where a metric misses just the fast runs or the slow ones; \
         mend the metric and prove anew",
    );
}

/// Runs that were repeated.
pub(crate) fn runs(experiment: &Experiment, runs: &[Run], notes: &mut Vec<String>) {
    failures(experiment, runs, notes);
    let disturbed = runs.iter().filter(|r| !r.failed());
    let discarded: Vec<&String> = disturbed.filter_map(|r| r.discarded.as_ref()).collect();
    if let Some(first) = discarded.first() {
        notes.push(format!(
            "{} of {} runs were disturbed and repeated; the first: {first}",
            discarded.len(),
            runs.len()
        ));
    }
    let short = runs.iter().filter(|r| !r.failed() && r.took_s < 0.05).count();
    if short * 2 > runs.len() {
        notes.push(
            "a run takes less than 50 ms, of which starting it is much: longer runs show more"
                .into(),
        );
    }
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}
