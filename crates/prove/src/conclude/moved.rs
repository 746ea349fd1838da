//! Counters that changed together with a level.

use model::prove::{CorrelatedCounter, Evidence, Run};
use stats::{
    paired::median,
    trial::{several, signed_rank},
};

use super::blocks;
use crate::{Experiment, evidence, experiment::FEWEST_BLOCKS, record::RecordHead};

/// The error rate for all counters together: the chance that an unaffected counter is named.
const ERROR: f64 = 0.05;

/// The counters that differ between two levels, with their p-values.
pub(super) fn between(
    experiment: &Experiment,
    begun: &RecordHead,
    runs: &[Run],
    (first, second): (usize, usize),
) -> Evidence {
    let name = |cell: usize| {
        experiment.cells.get(cell).map_or(String::new(), |c| c.name(&experiment.factors))
    };
    let blocks = pairs(experiment, runs, (first, second));
    let mut found = Evidence {
        first: name(first),
        second: name(second),
        per: evidence::per(&experiment.workload).to_owned(),
        blocks: blocks.len(),
        ..Evidence::default()
    };
    if blocks.len() < FEWEST_BLOCKS {
        found.why_not = Some(match runs.iter().any(|r| !r.counters.is_empty()) {
            true => format!("{FEWEST_BLOCKS} blocks with counters are needed"),
            false => "no counters were read".into(),
        });
        return found;
    }
    let counters = counters(&blocks);
    let effects: Vec<Vec<f64>> = counters.iter().map(Counter::effects).collect();
    let chances = several::p_values(&effects, begun.seed);
    found.judged = counters.len();
    let each = counters.iter().zip(effects.iter().zip(chances));
    found.moved = each
        .filter(|(_, (_, p))| *p <= ERROR)
        .map(|(counter, (effects, p))| counter.moved(effects, p))
        .collect();
    // Components of the response time come first, then CPU time: the other counters explain them.
    let kernel = |m: &CorrelatedCounter| match m.counter.as_str() {
        name if name.starts_with(evidence::PART) => 0,
        name if name.starts_with(evidence::CPU) => 1,
        _ => 2,
    };
    found.moved.sort_by(|a, b| {
        let rest = || a.p.total_cmp(&b.p).then(part(b).total_cmp(&part(a)));
        kernel(a).cmp(&kernel(b)).then_with(rest)
    });
    found
}

/// The relative difference of the two levels, from 0 to 1, to sort ratios and differences together.
fn part(m: &CorrelatedCounter) -> f64 {
    (m.second - m.first).abs() / m.second.abs().max(m.first.abs()).max(f64::MIN_POSITIVE)
}

/// A block with counters in all four runs: the first level's runs, and the second's.
type Pair<'a> = [Vec<&'a Run>; 2];

fn pairs<'a>(
    experiment: &Experiment,
    runs: &'a [Run],
    (first, second): (usize, usize),
) -> Vec<Pair<'a>> {
    let of = |block: Vec<Vec<&'a Run>>| -> Option<Pair<'a>> {
        let pair = [block.get(first)?.clone(), block.get(second)?.clone()];
        pair.iter().flatten().all(|r| !r.counters.is_empty()).then_some(pair)
    };
    blocks(experiment, runs).into_iter().filter_map(of).collect()
}

/// A counter, and for each block its growth in each level's runs.
struct Counter {
    name: String,
    blocks: Vec<[Vec<f64>; 2]>,
    difference: bool,
}

/// All counters that grew and are known in every run.
fn counters(blocks: &[Pair<'_>]) -> Vec<Counter> {
    let all = blocks.iter().flatten().flatten();
    let names = evidence::names(all.clone().map(|r| &r.counters));
    let known = |name: &&String| all.clone().all(|r| r.counters.get(*name) != Some(&None));
    names.into_iter().filter(known).map(|name| Counter::of(name, blocks)).collect()
}

impl Counter {
    fn of(name: &str, blocks: &[Pair<'_>]) -> Self {
        let value = |r: &&Run| {
            let grown = r.counters.get(name).copied().flatten().unwrap_or(0);
            grown as f64 / r.work.filter(|w| *w > 0.0).unwrap_or(1.0)
        };
        let values =
            |pair: &Pair<'_>| pair.each_ref().map(|level| level.iter().map(value).collect());
        let blocks: Vec<[Vec<f64>; 2]> = blocks.iter().map(values).collect();
        let difference = blocks.iter().flatten().flatten().any(|v| *v <= 0.0);
        Self { name: name.to_owned(), blocks, difference }
    }

    fn effects(&self) -> Vec<f64> {
        let scale = |x: &f64| if self.difference { *x } else { x.ln() };
        let mean = |of: &Vec<f64>| of.iter().map(scale).sum::<f64>() / of.len().max(1) as f64;
        self.blocks.iter().map(|[a, b]| mean(b) - mean(a)).collect()
    }

    fn moved(&self, effects: &[f64], p: f64) -> CorrelatedCounter {
        let middle = |level: usize| {
            let of = self.blocks.iter().filter_map(|pair| pair.get(level)).flatten();
            median(&of.copied().collect::<Vec<_>>())
        };
        let scale = |x: f64| if self.difference { x } else { x.exp_m1() };
        let interval = signed_rank::shift(effects, 0.95);
        CorrelatedCounter {
            counter: self.name.clone(),
            first: middle(0),
            second: middle(1),
            effect: scale(interval.map_or_else(|| signed_rank::estimate(effects), |i| i.value)),
            low: interval.map(|i| scale(i.low)),
            high: interval.map(|i| scale(i.high)),
            difference: self.difference,
            p,
        }
    }
}
