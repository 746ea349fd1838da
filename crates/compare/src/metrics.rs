//! Which figures of the two groups are compared with each other.

use model::{
    compare::{BenchmarkFigure, BenchmarkRun},
    prove::Direction,
};
use stats::trial::two_groups::Groups;

use crate::{Group, Request};

/// A metric that the operator names, with its direction where the program's figures have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub metric: String,
    pub direction: Option<Direction>,
}

/// Why there is nothing to compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoMetric {
    /// A chosen metric is in no run; the runs have these.
    NotThere { metric: String, known: Vec<String> },
    /// Nobody said which way these are good.
    NoDirection { metrics: Vec<String> },
    /// The groups share no metric; each has these.
    NothingInCommon { before: Vec<String>, after: Vec<String> },
    /// The runs of the noise floor have no metric that can be compared.
    NoFigure,
}

/// A metric of both groups.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Metric {
    pub(crate) case: String,
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) direction: Direction,
    /// The figures in the order of the runs.
    pub(crate) before: Vec<f64>,
    pub(crate) after: Vec<f64>,
}

/// Whether effects are ratios or differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Logarithms,
    /// A figure is 0 or below, and has no ratio.
    Plain,
}

impl Scale {
    pub(crate) fn of<'a>(mut values: impl Iterator<Item = &'a f64>) -> Self {
        if values.any(|v| *v <= 0.0) { Self::Plain } else { Self::Logarithms }
    }

    pub(crate) fn scaled(self, values: &[f64]) -> Vec<f64> {
        match self {
            Self::Logarithms => values.iter().map(|x| x.ln()).collect(),
            Self::Plain => values.to_vec(),
        }
    }

    /// An effect as it is shown: a share, or a difference.
    pub(crate) fn shown(self, effect: f64) -> f64 {
        match self {
            Self::Logarithms => effect.exp_m1(),
            Self::Plain => effect,
        }
    }
}

/// The figures of a metric on the scale that is judged.
pub(crate) struct Scaled {
    pub(crate) scale: Scale,
    before: Vec<f64>,
    after: Vec<f64>,
}

impl Scaled {
    /// For the verdict. A share that does not matter has no meaning for differences.
    pub(crate) fn groups<'a>(&'a self, metric: &Metric, min_effect: Option<f64>) -> Groups<'a> {
        Groups {
            before: &self.before,
            after: &self.after,
            direction: metric.direction,
            min_effect: min_effect.filter(|_| self.scale == Scale::Logarithms).map(f64::ln_1p),
        }
    }
}

impl Metric {
    pub(crate) fn scaled(&self) -> Scaled {
        let scale = Scale::of(self.before.iter().chain(&self.after));
        Scaled { scale, before: scale.scaled(&self.before), after: scale.scaled(&self.after) }
    }
}

/// Pairs the figures of both groups by case and metric, in the order in which they first appear.
/// Where each group has but one case, these are compared also if they differ.
///
/// # Errors
/// Nothing is left to compare.
pub(crate) fn pair(
    before: &Group,
    after: &Group,
    request: &Request,
) -> Result<Vec<Metric>, NoMetric> {
    let (first, second) = (cases(&before.runs), cases(&after.runs));
    let across = first.len() == 1 && second.len() == 1;
    let mut metrics = Vec::new();
    for case in first {
        let other = if across { second.first().copied().unwrap_or(case) } else { case };
        for figure in known(&before.runs, case) {
            let Some(direction) = chosen(figure, request)? else { continue };
            let after = values(&after.runs, other, &figure.name);
            if !after.is_empty() {
                metrics.push(Metric {
                    case: if across && case != other { String::new() } else { case.to_owned() },
                    name: figure.name.clone(),
                    unit: figure.unit,
                    direction,
                    before: values(&before.runs, case, &figure.name),
                    after,
                });
            }
        }
    }
    let names = |runs: &[BenchmarkRun]| names(runs);
    let missing = request.choices.iter().find(|c| !metrics.iter().any(|m| m.name == c.metric));
    match missing {
        Some(c) => {
            let (metric, mut known) = (c.metric.clone(), names(&before.runs));
            let there = names(&after.runs);
            known.retain(|n| there.contains(n));
            Err(NoMetric::NotThere { metric, known })
        }
        None if metrics.is_empty() => nothing(before, after),
        None => Ok(metrics),
    }
}

/// Why no metric is left where the operator chose none.
fn nothing(before: &Group, after: &Group) -> Result<Vec<Metric>, NoMetric> {
    let (first, second) = (names(&before.runs), names(&after.runs));
    let common: Vec<String> = first.iter().filter(|n| second.contains(n)).cloned().collect();
    Err(match common.is_empty() {
        true => NoMetric::NothingInCommon { before: first, after: second },
        false => NoMetric::NoDirection { metrics: common },
    })
}

/// The direction of a figure that is to be compared; `None` where it is not.
///
/// # Errors
/// It is chosen, and has no direction.
pub(crate) fn chosen(
    figure: &BenchmarkFigure,
    request: &Request,
) -> Result<Option<Direction>, NoMetric> {
    if request.choices.is_empty() {
        let wanted = figure.main || request.all_metrics;
        return Ok(figure.direction.filter(|_| wanted));
    }
    let Some(choice) = request.choices.iter().find(|c| c.metric == figure.name) else {
        return Ok(None);
    };
    match choice.direction.or(figure.direction) {
        None => Err(NoMetric::NoDirection { metrics: vec![figure.name.clone()] }),
        direction => Ok(direction),
    }
}

/// The cases of these runs, in order.
pub(crate) fn cases(runs: &[BenchmarkRun]) -> Vec<&str> {
    let mut cases: Vec<&str> = Vec::new();
    for run in runs {
        if !cases.contains(&run.case.as_str()) {
            cases.push(&run.case);
        }
    }
    cases
}

/// One figure of each name that these runs have in a case, in order.
pub(crate) fn known<'r>(runs: &'r [BenchmarkRun], case: &str) -> Vec<&'r BenchmarkFigure> {
    let mut figures: Vec<&BenchmarkFigure> = Vec::new();
    for figure in runs.iter().filter(|r| r.case == case).flat_map(|r| &r.figures) {
        if !figures.iter().any(|f| f.name == figure.name) {
            figures.push(figure);
        }
    }
    figures
}

/// The names of all figures, in order.
fn names(runs: &[BenchmarkRun]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for figure in runs.iter().flat_map(|r| &r.figures) {
        if !names.contains(&figure.name) {
            names.push(figure.name.clone());
        }
    }
    names
}

/// The figures of a metric, in the order of the runs' times; as given where one has no time.
pub(crate) fn values(runs: &[BenchmarkRun], case: &str, metric: &str) -> Vec<f64> {
    let mut own: Vec<&BenchmarkRun> = runs.iter().filter(|r| r.case == case).collect();
    if own.iter().all(|r| r.started_unix_s.is_some()) {
        let at = |r: &BenchmarkRun| r.started_unix_s.unwrap_or(0.0);
        own.sort_by(|a, b| at(a).total_cmp(&at(b)));
    }
    let figure = |r: &&BenchmarkRun| r.figures.iter().find(|f| f.name == metric).map(|f| f.value);
    own.iter().filter_map(figure).collect()
}
