//! Turns runs into the document with its verdict. Pure.

mod factorial;
mod moved;

use std::collections::BTreeMap;

use model::{
    SCHEMA_VERSION,
    prove::{
        Best, Design, Direction, Evidence, LevelResult, MetricVerdict, Outcome, ProveDocument, Run,
        Verdict,
    },
};
use stats::{
    paired::median,
    trial::{
        decide::{Decision, Finding, Metric as Judged, Rule},
        judge,
    },
};

use crate::{
    Experiment, ProveError,
    experiment::FEWEST_BLOCKS,
    metric::Metric,
    notes,
    record::{RecordContent, RecordHead},
};

/// Why an experiment makes no more runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    pub why: String,
    /// Whether the experiment used its whole budget, as planned.
    pub planned: bool,
    /// Whether `--resume` can continue it.
    pub may_go_on: bool,
}

impl Ending {
    pub(crate) fn at_end() -> Self {
        Self { why: "the budget is used up".into(), planned: true, may_go_on: false }
    }

    pub(crate) fn clear() -> Self {
        Self { why: "the result is conclusive".into(), planned: false, may_go_on: false }
    }

    pub(crate) fn stopped() -> Self {
        Self { why: "interrupted".into(), planned: false, may_go_on: true }
    }

    pub(crate) fn broken(e: &ProveError) -> Self {
        Self { why: format!("broken off: {e}"), planned: false, may_go_on: true }
    }

    /// The reason that a record gives for its end.
    fn as_recorded(why: &str) -> Self {
        let at_end = Self::at_end();
        Self { planned: why == at_end.why, why: why.to_owned(), may_go_on: false }
    }

    /// The state of an experiment, read from its record without continuing it.
    pub fn until_now(past: &RecordContent) -> Self {
        let why = match (&past.ended, &past.stopped, past.under_way) {
            (Some(why), ..) => return Self::as_recorded(why),
            (None, _, true) => "under way".to_owned(),
            (None, Some(why), false) => format!("{why}; --resume goes on with it"),
            (None, None, false) => {
                "broken off without a word: killed, or the host went down; --resume goes on with it"
                    .to_owned()
            }
        };
        Self { why, planned: false, may_go_on: true }
    }
}

/// A metric's values: for each complete block, each combination's mean. Means are of logarithms,
/// unless a value is 0 or negative.
struct Table {
    blocks: Vec<Vec<f64>>,
    difference: bool,
}

/// The complete blocks: each has two runs of each combination.
fn blocks<'a>(experiment: &Experiment, runs: &'a [Run]) -> Vec<Vec<Vec<&'a Run>>> {
    let cells = experiment.cells.len();
    let mut by_block: BTreeMap<usize, Vec<Vec<&Run>>> = BTreeMap::new();
    for run in runs.iter().filter(|r| r.discarded.is_none()) {
        let block = by_block.entry(run.block).or_insert_with(|| vec![Vec::new(); cells]);
        if let Some(cell) = block.get_mut(run.level) {
            cell.push(run);
        }
    }
    by_block.into_values().filter(|b| b.iter().all(|cell| cell.len() == 2)).collect()
}

/// How many blocks are complete.
pub(crate) fn complete(experiment: &Experiment, runs: &[Run]) -> usize {
    blocks(experiment, runs).len()
}

fn table(experiment: &Experiment, runs: &[Run], metric: &Metric) -> Table {
    let figure = |r: &Run| r.figures.get(&metric.name).copied().unwrap_or(0.0);
    let blocks = blocks(experiment, runs);
    let difference = blocks.iter().flatten().flatten().any(|r| figure(r) <= 0.0);
    let scale = |x: f64| if difference { x } else { x.ln() };
    let mean = |cell: &Vec<&Run>| {
        cell.iter().map(|r| scale(figure(r))).sum::<f64>() / cell.len().max(1) as f64
    };
    Table { blocks: blocks.iter().map(|b| b.iter().map(mean).collect()).collect(), difference }
}

impl Table {
    fn at(block: &[f64], cell: usize) -> f64 {
        block.get(cell).copied().unwrap_or(0.0)
    }

    /// Each block's effect of one combination compared with another.
    fn against(&self, cell: usize, base: usize) -> Vec<f64> {
        self.blocks.iter().map(|b| Self::at(b, cell) - Self::at(b, base)).collect()
    }

    /// Each block's mean level.
    fn levels(&self) -> Vec<f64> {
        self.blocks.iter().map(|b| b.iter().sum::<f64>() / b.len().max(1) as f64).collect()
    }

    fn scale(&self, x: f64) -> f64 {
        if self.difference { x } else { x.exp_m1() }
    }

    fn verdict(&self, found: &Finding, blocks: usize) -> Verdict {
        Verdict {
            outcome: found.outcome,
            effect: (blocks > 0).then(|| self.scale(found.effect)),
            low: found.interval.map(|i| self.scale(i.low)),
            high: found.interval.map(|i| self.scale(i.high)),
            difference: self.difference,
            method: format!(
                "{} of {blocks} blocks in random mirrored order; Hodges–Lehmann, signed ranks, \
                 and bets for stopping early",
                if self.difference { "differences" } else { "log ratios" }
            ),
            blocks,
            p: (blocks > 0).then_some(found.p),
        }
    }
}

fn rule(experiment: &Experiment, planned: bool) -> Rule {
    Rule { min_effect: experiment.min_effect, at_end: planned }
}

fn judge_ab(experiment: &Experiment, runs: &[Run], planned: bool) -> (Decision, Vec<Table>) {
    let tables: Vec<Table> =
        experiment.metrics.iter().map(|m| table(experiment, runs, m)).collect();
    let effects: Vec<Vec<f64>> = tables.iter().map(|t| t.against(1, 0)).collect();
    let metrics: Vec<Judged<'_>> = experiment
        .metrics
        .iter()
        .zip(&effects)
        .map(|(m, effects)| Judged { effects, direction: m.direction, guard: m.guard })
        .collect();
    (judge(&metrics, rule(experiment, planned)), tables)
}

/// Judges all combinations against one, as goals that share one error rate.
fn judge_levels(
    experiment: &Experiment,
    table: &Table,
    goal: &Metric,
    base: usize,
    planned: bool,
) -> Decision {
    let others = (0..experiment.cells.len()).filter(|c| *c != base);
    judge_effects(
        experiment,
        goal,
        &others.map(|c| table.against(c, base)).collect::<Vec<_>>(),
        planned,
    )
}

fn judge_effects(
    experiment: &Experiment,
    goal: &Metric,
    effects: &[Vec<f64>],
    planned: bool,
) -> Decision {
    let metrics: Vec<Judged<'_>> = effects
        .iter()
        .map(|effects| Judged { effects, direction: goal.direction, guard: None })
        .collect();
    judge(&metrics, rule(experiment, planned))
}

/// Whether more blocks would not change the verdict.
pub(crate) fn clear(experiment: &Experiment, runs: &[Run]) -> bool {
    if experiment.design == Design::Ab {
        return judge_ab(experiment, runs, false).0.clear;
    }
    let Some(goal) = experiment.goal() else { return false };
    let table = table(experiment, runs, goal);
    let clear = |base| judge_levels(experiment, &table, goal, base, false).clear;
    let best = best(&table, goal, experiment.cells.len());
    let held = || guards(experiment, runs, |t| t.against(best, 0), false);
    clear(0) && clear(best) && (best == 0 || held().iter().all(|(_, f, _)| f.clear))
}

/// The guard metrics, each judged by `effects`.
fn guards<'e>(
    experiment: &'e Experiment,
    runs: &[Run],
    effects: impl Fn(&Table) -> Vec<f64>,
    planned: bool,
) -> Vec<(&'e Metric, Finding, Table)> {
    let each = experiment.metrics.iter().filter(|m| m.guard.is_some());
    let judged = each.filter_map(|m| {
        let table = table(experiment, runs, m);
        let effects = effects(&table);
        let guard = Judged { effects: &effects, direction: m.direction, guard: m.guard };
        let found = judge(&[guard], rule(experiment, planned)).metrics.pop()?;
        Some((m, found, table))
    });
    judged.collect()
}

/// The present estimate of an A/B experiment, for the progress line.
pub(crate) fn estimate(experiment: &Experiment, runs: &[Run]) -> String {
    let blocks = complete(experiment, runs);
    let (judged, tables) = judge_ab(experiment, runs, false);
    let shown = experiment.metrics.iter().zip(judged.metrics.iter().zip(&tables));
    let goal = shown.filter(|(m, _)| m.guard.is_none()).map(|(m, (f, t))| {
        let share = |x: f64| match t.difference {
            true => format!("{x:+.3}"),
            false => format!("{:+.1}%", 100.0 * x.exp_m1()),
        };
        match f.interval {
            Some(i) => {
                format!("{} {} ({} to {})", m.name, share(i.value), share(i.low), share(i.high))
            }
            None => m.name.clone(),
        }
    });
    format!("{}, {blocks} blocks", goal.take(1).collect::<String>())
}

fn best(table: &Table, goal: &Metric, cells: usize) -> usize {
    let middle = |c: usize| {
        median(&table.blocks.iter().map(|b| Table::at(b, c)).collect::<Vec<_>>())
            * if goal.direction == Direction::LowerIsBetter { 1.0 } else { -1.0 }
    };
    (0..cells).min_by(|a, b| middle(*a).total_cmp(&middle(*b))).unwrap_or(0)
}

/// The document for these runs.
pub fn conclude(
    experiment: &Experiment,
    begun: &RecordHead,
    runs: &[Run],
    ending: &Ending,
) -> ProveDocument {
    let mut document = ProveDocument {
        schema_version: SCHEMA_VERSION,
        started_unix_s: begun.started_unix_s,
        name: experiment.name.clone(),
        design: experiment.design,
        workload: experiment.shown(),
        goal: experiment.goal().map_or(String::new(), |m| m.name.clone()),
        verdict: nothing(complete(experiment, runs)),
        verdict_of: String::new(),
        limit: None,
        metrics: vec![],
        levels: levels(experiment, runs),
        best: None,
        effects: vec![],
        evidence: Evidence::default(),
        frozen_host: None,
        ended: ending.why.clone(),
        discarded_runs: runs.iter().filter(|r| r.discarded.is_some()).count(),
        notes: vec![],
        runs: runs.to_vec(),
    };
    let reported = match experiment.design {
        Design::Ab => conclude_ab(experiment, runs, ending, &mut document),
        _ => conclude_levels(experiment, runs, ending, &mut document),
    };
    if let Some(pair) = reported {
        document.evidence = moved::between(experiment, begun, runs, pair);
    }
    if let Some(goal) = experiment.goal() {
        let t = table(experiment, runs, goal);
        let effects = t.against(experiment.cells.len() - 1, 0);
        notes::constant(&goal.name, runs, &mut document.notes);
        notes::host(&goal.name, &t.levels(), t.difference, &mut document.notes);
        if experiment.design == Design::Ab {
            notes::effects(&effects, &mut document.notes);
        }
        notes::places(experiment, goal, runs, &mut document.notes);
    }
    notes::noise(&document.verdict, experiment.min_effect, &mut document.notes);
    notes::comparisons(experiment, document.verdict.blocks, &mut document.notes);
    notes::runs(experiment, runs, &mut document.notes);
    notes::placement(experiment, &mut document.notes);
    notes::interactions(experiment, &mut document.notes);
    document
}

fn nothing(blocks: usize) -> Verdict {
    Verdict {
        outcome: Outcome::Undecided,
        effect: None,
        low: None,
        high: None,
        difference: false,
        method: "too few blocks".into(),
        blocks,
        p: None,
    }
}

fn levels(experiment: &Experiment, runs: &[Run]) -> Vec<LevelResult> {
    let counted: Vec<&Run> = runs.iter().filter(|r| r.discarded.is_none()).collect();
    let each = experiment.cells.iter().enumerate().map(|(i, cell)| {
        let own: Vec<&&Run> = counted.iter().filter(|r| r.level == i).collect();
        let middle = |m: &Metric| {
            let figures: Vec<f64> =
                own.iter().filter_map(|r| r.figures.get(&m.name).copied()).collect();
            (!figures.is_empty()).then(|| (m.name.clone(), median(&figures)))
        };
        LevelResult {
            level: cell.name(&experiment.factors),
            settings: cell.settings(&experiment.factors),
            medians: experiment.metrics.iter().filter_map(middle).collect(),
            runs: own.len(),
            against_first: None,
            against_best: None,
        }
    });
    each.collect()
}

/// Writes the outcome of two levels; returns the combinations that the verdict compares.
fn conclude_ab(
    experiment: &Experiment,
    runs: &[Run],
    ending: &Ending,
    document: &mut ProveDocument,
) -> Option<(usize, usize)> {
    let blocks = document.verdict.blocks;
    let (judged, tables) = judge_ab(experiment, runs, ending.planned);
    let of = experiment.metrics.iter().zip(judged.metrics.iter().zip(&tables));
    document.metrics = of
        .map(|(m, (found, table))| MetricVerdict {
            metric: m.name.clone(),
            direction: m.direction,
            guard: m.guard.is_some(),
            verdict: table.verdict(found, blocks),
        })
        .collect();
    // The goal behind the outcome; the first goal where no single one decided it.
    let goals = || document.metrics.iter().filter(|m| !m.guard);
    let telling = goals()
        .find(|m| matches!(m.verdict.outcome, Outcome::Better | Outcome::Worse))
        .or_else(|| goals().next());
    if let Some(telling) = telling {
        document.verdict = Verdict { outcome: judged.outcome, ..telling.verdict.clone() };
    }
    if let Some(second) = document.levels.get_mut(1) {
        second.against_first = Some(document.verdict.clone());
    }
    if blocks > 0 {
        document.verdict_of = against(document, (0, 1));
    }
    Some((0, 1))
}

/// Two combinations for a sentence: `8 against 4`.
fn against(document: &ProveDocument, (first, other): (usize, usize)) -> String {
    let name = |i: usize| document.levels.get(i).map_or("", |l| l.level.as_str());
    format!("{} against {}", name(other), name(first))
}

/// Writes the outcome of several levels. Returns the combinations that the verdict compares: the
/// first one, and the best one or the one with the decisive level. `None` where the first is the
/// best.
fn conclude_levels(
    experiment: &Experiment,
    runs: &[Run],
    ending: &Ending,
    document: &mut ProveDocument,
) -> Option<(usize, usize)> {
    let goal = experiment.goal()?;
    let table = table(experiment, runs, goal);
    let blocks = table.blocks.len();
    if blocks == 0 {
        return None;
    }
    let first = judge_levels(experiment, &table, goal, 0, ending.planned);
    let best = best(&table, goal, experiment.cells.len());
    let others = judge_levels(experiment, &table, goal, best, ending.planned);
    let (mut of_first, mut of_best) = (first.metrics.iter(), others.metrics.iter());
    for (i, level) in document.levels.iter_mut().enumerate() {
        if i != 0 {
            level.against_first = of_first.next().map(|f| table.verdict(f, blocks));
        }
        if i != best {
            level.against_best = of_best.next().map(|f| table.verdict(f, blocks));
        }
    }
    document.verdict = match document.levels.get(best).and_then(|l| l.against_first.clone()) {
        Some(verdict) => verdict,
        None if blocks < FEWEST_BLOCKS => nothing(blocks),
        None => Verdict {
            outcome: Outcome::NoDifferenceShown,
            method: "the first level is the best".into(),
            ..nothing(blocks)
        },
    };
    if document.verdict.outcome != Outcome::Undecided && blocks >= FEWEST_BLOCKS {
        document.best = best_of(document, best);
    }
    document.effects = match experiment.design {
        Design::Factorial => factorial::effects(experiment, &table, goal, ending.planned),
        Design::OneAtATime => factorial::apart(experiment, &document.levels),
        _ => vec![],
    };
    let shown = matches!(document.verdict.outcome, Outcome::Better | Outcome::Worse);
    let reported = factorial::telling(experiment, &document.effects).filter(|_| !shown);
    let held =
        |effects: &dyn Fn(&Table) -> Vec<f64>| guards(experiment, runs, effects, ending.planned);
    let (pair, held) = match reported {
        Some((effect, of, cell)) => {
            let held = held(&|t| factorial::over(experiment, t, effect, cell));
            (document.verdict, document.verdict_of) = (effect.verdict.clone(), of);
            ((0, cell), held)
        }
        None if best == 0 => return None,
        None => {
            document.verdict_of = against(document, (0, best));
            ((0, best), held(&|t| t.against(best, 0)))
        }
    };
    hold(document, &held);
    Some(pair)
}

/// The verdict is "better" only where no guard is worse between the same two combinations.
fn hold(document: &mut ProveDocument, guards: &[(&Metric, Finding, Table)]) {
    let blocks = document.verdict.blocks;
    let worse = |f: &Finding| matches!(f.outcome, Outcome::Worse | Outcome::GuardWorse);
    if document.verdict.outcome == Outcome::Better && guards.iter().any(|(_, f, _)| worse(f)) {
        document.verdict.outcome = Outcome::GuardWorse;
    }
    let each = guards.iter().map(|(m, found, table)| MetricVerdict {
        metric: m.name.clone(),
        direction: m.direction,
        guard: true,
        verdict: table.verdict(found, blocks),
    });
    document.metrics.extend(each);
}

fn best_of(document: &ProveDocument, best: usize) -> Option<Best> {
    let excluded = [Outcome::Worse, Outcome::Undecided];
    let near_best =
        |l: &&LevelResult| l.against_best.as_ref().is_none_or(|v| !excluded.contains(&v.outcome));
    let within: Vec<String> =
        document.levels.iter().filter(near_best).map(|l| l.level.clone()).collect();
    Some(Best {
        level: document.levels.get(best)?.level.clone(),
        smallest_within_noise: lowest(&within)?.to_owned(),
        within_noise: within,
    })
}

/// The smallest level where all are numbers, else the first.
fn lowest(levels: &[String]) -> Option<&str> {
    let numbers: Option<Vec<f64>> = levels.iter().map(|l| l.trim().parse().ok()).collect();
    let numbers = numbers.into_iter().flatten().enumerate();
    let least = numbers.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at);
    levels.get(least).map(String::as_str)
}

#[cfg(test)]
mod tests;
