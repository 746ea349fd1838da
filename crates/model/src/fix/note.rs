//! Remarks on a search for remedies, as values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Nanos, coded::coded, prove::Verdict};

/// A remark on a search for remedies. In JSON `{code, data, message}`, as a [`crate::Warning`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[schemars(tag = "code", content = "data", transform = crate::coded::short)]
pub enum FixNote {
    /// A candidate that a later diagnosis found and earlier ones did not.
    #[error(
        "{asked_by}: found by diagnosis {diagnosis}, not by the {} before",
        match .diagnosis { 2 => "one".to_owned(), n => n.saturating_sub(1).to_string() }
    )]
    FoundLate { asked_by: String, diagnosis: usize },
    /// Number of diagnoses in all, number since the last kept change, and their time. `found` says
    /// whether the last diagnosis found anything new. None since the last kept change: the time
    /// budget was used up.
    #[error("{}", diagnosed(*.diagnoses, *.since_kept, *.watched_ns, *.found, *.budget_used_up))]
    NothingMoreFound {
        diagnoses: usize,
        since_kept: Option<usize>,
        watched_ns: Nanos,
        found: bool,
        budget_used_up: bool,
    },
    /// A budget for the remaining candidates: this many experiments of `runs` runs each.
    #[error(
        "a run takes {run_s:.1} s with setting and undoing, and an experiment {runs} of them, \
         {:.0}s: for what is left, {experiments} experiments with the one at the end that compares \
         all, --budget {:.0}s is enough; shorter runs (a measurement's --duration) need less",
        .experiment_s.ceil(), .budget_s.ceil()
    )]
    BudgetTooSmall { run_s: f64, runs: u32, experiment_s: f64, experiments: usize, budget_s: f64 },
    #[error("together they do harm: everything was undone")]
    TogetherHarmful,
    #[error("ended by hand: all of it together was not compared with before")]
    EndedBeforeTotal,
    #[error("all of it together was not compared with before: {why}")]
    TotalFailed { why: String },
    #[error(
        "ended by hand while all of it together was compared with before: what was kept stays, for \
         each part was shown to help"
    )]
    EndedWithinTotal,
    /// `headline` is the verdict in words.
    #[error(
        "each change was shown to help alone; all of them together were not, in the runs of the \
         last experiment: {headline}"
    )]
    TotalNotBetter { verdict: Box<Verdict>, headline: String },

    /// Written by another version of this program.
    #[error("{message}")]
    Other { code: String, message: String },
}

fn diagnosed(
    diagnoses: usize,
    since_kept: Option<usize>,
    watched: Nanos,
    found: bool,
    budget_used_up: bool,
) -> String {
    let times = match diagnoses {
        1 => format!("once, for {watched}"),
        n => format!("{n} times, {watched} in all"),
    };
    if since_kept == Some(0) {
        return format!(
            "the host was diagnosed {times}, but not since the last change was kept: the time \
             budget allows no further diagnosis"
        );
    }
    let since = since_kept
        .map(|n| format!(", {n} of them since the last change was kept"))
        .unwrap_or_default();
    let last = match found {
        true => "no remedy of the last diagnosis was kept",
        false => "the last diagnosis found nothing new",
    };
    let over = if budget_used_up { ", and the time budget allows no further one" } else { "" };
    format!("the host was diagnosed {times}{since}; {last}{over}")
}

coded!(FixNote);
