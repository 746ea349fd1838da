//! `netwright history diff`: which facts and which figures differ.

use std::path::Path;

use ::compare::{Group, Request};
use history::{Store, facts};
use model::{
    SCHEMA_VERSION,
    compare::BenchmarkRun,
    history::{FigureChange, FigureVerdict, HistoryDiff},
    prove::Outcome,
};
use parse::benchmark;
use serde_json::Value;

use super::{
    args::DiffArgs,
    chosen::{self, Numbered},
};
use crate::{
    failure::{CommandEnd, Failure},
    output::Answer,
};

/// Compares the facts of the newest run of each side, and the figures of all runs.
pub fn run(args: &DiffArgs, store: Option<&Store>, path: &Path) -> Result<CommandEnd, Failure> {
    let answer = Answer::to(&args.output)?;
    let before = chosen::of(&args.before, store, path)?;
    let after = chosen::of(&args.after, store, path)?;
    let listed = |side: &[Numbered]| side.iter().map(|(id, r)| r.listed(*id)).collect();
    let document = HistoryDiff {
        schema_version: SCHEMA_VERSION,
        kind: "history_diff".into(),
        facts: changed(&before, &after),
        figures: figures(&before, &after),
        before: listed(&before),
        after: listed(&after),
    };
    answer.tell(&document, report::history::diff)?;
    Ok(CommandEnd::Yes)
}

fn changed(before: &[Numbered], after: &[Numbered]) -> Option<Vec<model::history::FactChange>> {
    // The record of a change has none: `{}`.
    let facts =
        |side: &[Numbered]| side.first().map(|(_, r)| r.facts.clone()).filter(|f| f.len() > 2);
    Some(facts::changes(&facts(before)?, &facts(after)?))
}

/// Runs with figures, the oldest first.
fn runs(side: &[Numbered]) -> Vec<BenchmarkRun> {
    let of = |(_, record): &Numbered| benchmark::parse(record.document.as_bytes()).ok();
    side.iter().rev().filter_map(of).flatten().collect()
}

/// The figures that both sides have; none where a side has none.
fn figures(before: &[Numbered], after: &[Numbered]) -> Vec<FigureChange> {
    let group = |name: &str, side: &[Numbered]| Group {
        name: name.into(),
        files: side.len(),
        runs: runs(side),
    };
    let groups = Some((group("before", before), group("after", after)));
    // Without a common figure there is nothing to say.
    let Ok(compared) = ::compare::compare(&Request { groups, ..Request::default() }) else {
        return vec![];
    };
    let interval = |side: &[Numbered], case: &str, metric: &str| match side {
        [(_, only)] => interval_of(&only.document, case, metric),
        _ => None,
    };
    let change = |c: &model::compare::Comparison| {
        let intervals = interval(before, &c.case, &c.metric)
            .zip(interval(after, &c.case, &c.metric))
            .filter(|_| c.before.runs == 1 && c.after.runs == 1);
        let share = c.after.median / c.before.median - 1.0;
        FigureChange {
            case: c.case.clone(),
            metric: c.metric.clone(),
            before: c.before.median,
            after: c.after.median,
            change: share.is_finite().then_some(share),
            runs_before: c.before.runs,
            runs_after: c.after.runs,
            verdict: match (c.outcome, intervals) {
                (_, Some(((_, high), (low, _)))) if high < low => {
                    FigureVerdict::BeyondNoiseWithinRuns
                }
                (_, Some(((low, _), (_, high)))) if high < low => {
                    FigureVerdict::BeyondNoiseWithinRuns
                }
                (_, Some(_)) => FigureVerdict::WithinNoise,
                (Outcome::Better, None) => FigureVerdict::Better,
                (Outcome::Worse, None) => FigureVerdict::Worse,
                (Outcome::NoDifferenceShown, None) => FigureVerdict::NoDifferenceShown,
                _ => FigureVerdict::Undecided,
            },
        }
    };
    compared.comparisons.iter().map(change).collect()
}

/// The 95% interval of a figure, where its document has one: of `rtt_p50_ns` in
/// `rtt_p50_interval_ns`, of `bits_per_s` in `bits_per_s_interval`.
fn interval_of(document: &str, case: &str, metric: &str) -> Option<(f64, f64)> {
    let at = benchmark::parse(document.as_bytes()).ok()?.iter().position(|r| r.case == case)?;
    let document: Value = serde_json::from_str(document).ok()?;
    let run = document.get("runs")?.get(at)?;
    let key = match metric.strip_suffix("_ns") {
        Some(name) => format!("{name}_interval_ns"),
        None => format!("{metric}_interval"),
    };
    let interval = run.get(key)?;
    Some((interval.get("low")?.as_f64()?, interval.get("high")?.as_f64()?))
}
