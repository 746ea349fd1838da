//! Remarks on a comparison besides its verdicts, as values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{coded::coded, units::figure};

/// A remark on a comparison. In JSON `{code, data, message}`, as a [`crate::Warning`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[schemars(tag = "code", content = "data", transform = crate::coded::short)]
pub enum CompareNote {
    // The order of the runs.
    #[error(
        "the files do not say when each run was made: where one group was made after the other, \
         drift of the host looks like a change; make the runs in random order, or use \
         `netwright prove`"
    )]
    OrderUnknown,
    #[error(
        "all runs of {first} were made before those of {second}: drift of the host looks like a \
         change; make the runs in random order, or use `netwright prove`"
    )]
    OneAfterTheOther { first: String, second: String },

    // The number of runs.
    #[error(
        "{before} and {after} runs are too few for {comparisons} comparisons, of which one in \
         twenty may be wrong in all: {needed} in each group can show a difference"
    )]
    FewRuns { before: usize, after: usize, comparisons: usize, needed: usize },
    /// Half the interval's width and the wanted effect, as shares.
    #[error(
        "{metric} is too noisy to distinguish {} from no effect: the interval reaches {} to each \
         side; about {needed} runs in each group would suffice, or longer runs, a steadier figure, \
         a quieter host",
        percent(*.wanted), percent(*.reached)
    )]
    TooNoisy { metric: String, wanted: f64, reached: f64, needed: u64 },

    // The figures of a group.
    /// `change` is a share of the first run's figure, or in the metric's unit where `difference` is
    /// set.
    #[error(
        "{metric} of {group} drifted by {} from the first run to the last",
        changed(*.change, *.difference)
    )]
    Drifted { metric: String, group: String, change: f64, difference: bool },
    #[error(
        "{metric} of {group} wandered: neighbouring runs resemble one another (correlation \
         {correlation:.2}), and the interval is too narrow"
    )]
    Wandered { metric: String, group: String, correlation: f64 },
    /// Outlier runs, counted from 1.
    #[error("{metric} of {group}: {}", outlier_runs(.runs))]
    OutlierRuns { metric: String, group: String, runs: Vec<usize> },
    /// The figures have two modes, and the share of figures in the lower mode.
    #[error(
        "{metric} of {group} has two modes: {} of the runs near {} and the others near {}, with \
         nothing between",
        percent(*.lower_share), figure(*.low), figure(*.high)
    )]
    TwoModes { metric: String, group: String, lower_share: f64, low: f64, high: f64 },
    #[error("{metric} is {figure} in every run: check that this is the intended figure")]
    NeverMoves { metric: String, figure: f64 },

    // What is compared with what.
    #[error("the groups measure different things: {before} and {after}")]
    DifferentCases { before: String, after: String },
    #[error("only in {group}, and not compared: {}", .what.join(", "))]
    OnlyInOneGroup { group: String, what: Vec<String> },
    #[error("the same figures are in both groups: is a file named twice?")]
    SameRuns,

    // The noise floor.
    #[error(
        "{metric}: the change of {} is below the noise floor of {}: this host shows as much \
         where nothing was changed",
        changed(*.effect, *.difference), unsigned(*.floor, *.difference)
    )]
    BelowNoiseFloor { metric: String, effect: f64, floor: f64, difference: bool },
    #[error(
        "{metric}: the first half of the runs of --noise-floor differs from the second by {}: the \
         host itself changed meanwhile, and a comparison of runs made one after the other will \
         show that",
        changed(*.effect, *.difference)
    )]
    NoiseFloorMoves { metric: String, effect: f64, difference: bool },
    #[error("{metric}: no noise floor, the runs of --noise-floor do not have this metric")]
    NoNoiseFloor { metric: String },

    /// Written by another version of this program.
    #[error("{message}")]
    Other { code: String, message: String },
}

fn changed(change: f64, difference: bool) -> String {
    match difference {
        true => format!("{change:+.3}"),
        false => format!("{:+.1}%", 100.0 * change),
    }
}

fn unsigned(floor: f64, difference: bool) -> String {
    match difference {
        true => format!("{floor:.3}"),
        false => format!("{:.1}%", 100.0 * floor),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

fn outlier_runs(runs: &[usize]) -> String {
    let which: Vec<String> = runs.iter().map(ToString::to_string).collect();
    let (noun, lie) = if runs.len() == 1 { ("run", "lies") } else { ("runs", "lie") };
    format!(
        "{noun} {} {lie} far from the others; ranks keep them from moving the verdict",
        which.join(", ")
    )
}

coded!(CompareNote);
