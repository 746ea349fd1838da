//! What a host shows where nothing was changed: runs of one program, compared with themselves.
//!
//! Two groups are drawn from the runs, again and again, and each pair's effect is that of chance.
//! The floor is what 19 of 20 stay below: the bootstrap (Efron and Tibshirani, An Introduction to
//! the Bootstrap, 1993, chapter 6) of the Hodges–Lehmann estimate. It holds for runs in random
//! order; whether the host itself changed meanwhile, the halves of the runs say.

use model::{
    compare::{BenchmarkRun, FloorAt, NoiseFloor},
    prove::{Direction, Outcome},
};
use stats::{
    paired::median,
    random::SplitMix64,
    rank_sum,
    trial::two_groups::{self, Groups},
};

use crate::{
    Request,
    metrics::{Metric, NoMetric, Scale, cases, chosen, known, values},
};

/// Pairs of groups that are drawn.
const DRAWS: usize = 1_000;

/// The share of them that stay below the floor.
const SHARE: f64 = 0.95;

/// The runs in each group for which a floor is given.
const RUNS: [usize; 4] = [4, 6, 10, 20];

/// More of the runs are not drawn from: the floor of so many is known well enough.
const MOST_RUNS: usize = 100;

/// The noise of each metric of these runs; empty of no runs.
///
/// # Errors
/// The runs have no metric that can be compared.
pub(crate) fn of(runs: &[BenchmarkRun], request: &Request) -> Result<Vec<NoiseFloor>, NoMetric> {
    let mut floors = Vec::new();
    for case in cases(runs) {
        for figure in known(runs, case) {
            if chosen(figure, request)?.is_none() {
                continue;
            }
            let values = values(runs, case, &figure.name);
            let scale = Scale::of(values.iter());
            let scaled = scale.scaled(&values);
            let floor = |n: usize| FloorAt { runs: n, effect: scale.shown(floor(&scaled, n, n)) };
            let enough = values.len() >= two_groups::fewest_runs(1);
            floors.push(NoiseFloor {
                case: case.to_owned(),
                metric: figure.name.clone(),
                unit: figure.unit.to_owned(),
                runs: values.len(),
                median: median(&values),
                difference: scale == Scale::Plain,
                floors: if enough { RUNS.map(floor).to_vec() } else { vec![] },
            });
        }
    }
    if floors.is_empty() && !runs.is_empty() { Err(NoMetric::NoFigure) } else { Ok(floors) }
}

/// The floor for the groups of a comparison; `None` where the runs do not have its metric.
pub(crate) fn at(runs: &[BenchmarkRun], metric: &Metric, scale: Scale) -> Option<f64> {
    let own = of_metric(runs, metric);
    if own.len() < two_groups::fewest_runs(1)
        || (scale == Scale::Logarithms && own.iter().any(|v| *v <= 0.0))
    {
        return None;
    }
    let size = |group: &[f64]| group.len().min(MOST_RUNS);
    Some(scale.shown(floor(&scale.scaled(&own), size(&metric.before), size(&metric.after))))
}

/// The figures of the noise floor's runs for a metric: of its case, or of their only case.
fn of_metric(runs: &[BenchmarkRun], metric: &Metric) -> Vec<f64> {
    let all = cases(runs);
    let case = match all.as_slice() {
        [only] => only,
        _ => metric.case.as_str(),
    };
    values(runs, case, &metric.name)
}

/// By how much the second half of the runs differs from the first, where that is more than chance.
pub(crate) fn moved(values: &[f64], scale: Scale) -> Option<f64> {
    let scaled = scale.scaled(values);
    let (before, after) = scaled.split_at(scaled.len() / 2);
    let halves = Groups { before, after, direction: Direction::LowerIsBetter, min_effect: None };
    let found = two_groups::judge(&[halves]).metrics.pop()?;
    let differs = matches!(found.outcome, Outcome::Better | Outcome::Worse);
    differs.then(|| scale.shown(found.effect))
}

/// The effect that 19 of 20 pairs of groups drawn from these values stay below, on their scale.
fn floor(values: &[f64], first: usize, second: usize) -> f64 {
    let values = values.get(..values.len().min(MOST_RUNS)).unwrap_or(values);
    let mut random = SplitMix64::new(values.len() as u64);
    let mut draw = |n: usize| -> Vec<f64> {
        (0..n).filter_map(|_| values.get(random.below(values.len())).copied()).collect()
    };
    let mut effects: Vec<f64> =
        (0..DRAWS).map(|_| rank_sum::estimate(&draw(first), &draw(second)).abs()).collect();
    effects.sort_unstable_by(f64::total_cmp);
    // A resample of n values varies less than new runs, by (n - 1) / n (Efron and Tibshirani, An
    // Introduction to the Bootstrap, 1993, section 5.3).
    let n = values.len().max(2) as f64;
    let at = (SHARE * DRAWS as f64) as usize;
    effects.get(at).copied().unwrap_or(0.0) * (n / (n - 1.0)).sqrt()
}
