//! Two groups of runs that exist already: what changed, with the words and the rate of error of
//! `prove`. Pure: runs in, document out.
//!
//! `metrics` pairs the figures of both groups, `stats` judges them, `notes` says what a reader
//! must know beside the verdict, `noise_floor` what the host shows where nothing was changed.

mod metrics;
mod noise_floor;
mod notes;

use model::{
    SCHEMA_VERSION,
    compare::{BenchmarkRun, CompareDocument, Comparison, GroupFigures, GroupSummary, RunOrder},
    prove::{Direction, Outcome},
};
use stats::{
    paired::median,
    trial::two_groups::{self, Groups},
};

pub use metrics::{Choice, NoMetric};
use metrics::{Metric, Scale};

/// A group of runs with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub name: String,
    pub files: usize,
    pub runs: Vec<BenchmarkRun>,
}

/// What is to be compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// The two groups; `None` where only the noise floor is wanted.
    pub groups: Option<(Group, Group)>,
    /// Runs where nothing was changed; empty where there are none.
    pub noise_floor: Vec<BenchmarkRun>,
    /// The chosen metrics; empty for the main metrics of each program.
    pub choices: Vec<Choice>,
    /// Every metric that has a direction, not only the main ones.
    pub all_metrics: bool,
    /// The share by which a metric may be worse.
    pub limit: Option<f64>,
    /// Smaller effects do not matter: a share.
    pub min_effect: Option<f64>,
}

/// Compares the groups.
///
/// # Errors
/// No metric is in both groups, or a chosen one is not, or has no direction.
pub fn compare(request: &Request) -> Result<CompareDocument, NoMetric> {
    let mut document = empty(request);
    document.noise_floor = noise_floor::of(&request.noise_floor, request)?;
    let Some((before, after)) = &request.groups else {
        document.notes = notes::of_noise_floor(&document, request);
        return Ok(document);
    };
    let paired = metrics::pair(before, after, request)?;
    document.order = order(before, after);
    document.before = Some(summary(before));
    document.after = Some(summary(after));
    let scaled: Vec<_> = paired.iter().map(Metric::scaled).collect();
    let judged = scaled.iter().zip(&paired).map(|(s, m)| s.groups(m, request.min_effect));
    let decision = two_groups::judge(&judged.collect::<Vec<Groups<'_>>>());
    for ((metric, found), scaled) in paired.iter().zip(&decision.metrics).zip(&scaled) {
        let shown = |x: f64| scaled.scale.shown(x);
        let (low, high) = found.interval.map(|i| (shown(i.low), shown(i.high))).unzip();
        let floor = noise_floor::at(&request.noise_floor, metric, scaled.scale);
        document.comparisons.push(Comparison {
            case: metric.case.clone(),
            metric: metric.name.clone(),
            unit: metric.unit.to_owned(),
            direction: metric.direction,
            before: figures(&metric.before),
            after: figures(&metric.after),
            outcome: found.outcome,
            effect: shown(found.effect),
            low,
            high,
            difference: scaled.scale == Scale::Plain,
            p: found.p,
            noise_floor: floor,
            within_limit: request.limit.map(|limit| {
                // A difference has no share: then only a proof of no harm is within the limit.
                let limit = if scaled.scale == Scale::Plain { 0.0 } else { limit };
                within(metric.direction, low, high, limit)
            }),
        });
    }
    document.outcome = Some(decision.outcome);
    document.passed = match request.limit {
        Some(_) => document.comparisons.iter().all(|c| c.within_limit == Some(true)),
        None => matches!(decision.outcome, Outcome::Better | Outcome::NoDifferenceShown),
    };
    notes::all(&mut document, (before, after), request);
    Ok(document)
}

fn empty(request: &Request) -> CompareDocument {
    CompareDocument {
        schema_version: SCHEMA_VERSION,
        kind: "compare".into(),
        before: None,
        after: None,
        outcome: None,
        passed: true,
        limit: request.limit,
        min_effect: request.min_effect,
        order: RunOrder::Unknown,
        comparisons: vec![],
        noise_floor: vec![],
        notes: vec![],
    }
}

/// Whether the harmful end of the interval is within the limit.
fn within(direction: Direction, low: Option<f64>, high: Option<f64>, limit: f64) -> bool {
    match direction {
        Direction::LowerIsBetter => high.is_some_and(|h| h <= limit),
        Direction::HigherIsBetter => low.is_some_and(|l| l >= -limit),
    }
}

fn figures(values: &[f64]) -> GroupFigures {
    GroupFigures { runs: values.len(), median: median(values), figures: values.to_vec() }
}

fn summary(group: &Group) -> GroupSummary {
    let mut programs: Vec<String> = Vec::new();
    for run in &group.runs {
        if !programs.contains(&run.program) {
            programs.push(run.program.clone());
        }
    }
    GroupSummary { name: group.name.clone(), files: group.files, runs: group.runs.len(), programs }
}

/// The order of the runs by their times.
fn order(before: &Group, after: &Group) -> RunOrder {
    let times = |g: &Group| g.runs.iter().map(|r| r.started_unix_s).collect::<Option<Vec<f64>>>();
    let Some((before, after)) = times(before).zip(times(after)) else { return RunOrder::Unknown };
    let ends = |t: &[f64]| {
        let (low, high) = (f64::INFINITY, f64::NEG_INFINITY);
        t.iter().fold((low, high), |(low, high), t| (low.min(*t), high.max(*t)))
    };
    let ((b_first, b_last), (a_first, a_last)) = (ends(&before), ends(&after));
    match b_last <= a_first || a_last <= b_first {
        true => RunOrder::OneAfterTheOther,
        false => RunOrder::Interleaved,
    }
}

#[cfg(test)]
mod tests;
