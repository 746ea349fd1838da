//! Remarks on an experiment besides its verdict, as values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Discarded;
use crate::{coded::coded, units::figure};

/// A remark on an experiment. In JSON `{code, data, message}`, as a [`crate::Warning`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[schemars(tag = "code", content = "data", transform = crate::coded::short)]
pub enum ProveNote {
    // The host meanwhile.
    /// `change` is a share of the first block's level, or in the metric's unit where `difference` is set.
    #[error(
        "{metric} drifted by {} from the first block to the last; that hits all levels alike",
        changed(*.change, *.difference)
    )]
    Drifted { metric: String, change: f64, difference: bool },
    #[error(
        "{metric} wandered: neighbouring blocks resemble one another (correlation \
         {correlation:.2}); effects are taken within blocks"
    )]
    Wandered { metric: String, correlation: f64 },
    #[error(
        "the effect itself changed from the first block to the last: the reported value is its \
         middle"
    )]
    EffectDrifted,
    /// Outlier blocks, counted from 1.
    #[error("{}", outlier_blocks(.blocks))]
    OutlierBlocks { blocks: Vec<usize> },

    // Placements and factors.
    #[error("reference CPUs for all others: {}", .columns.join(", "))]
    PlacementColumns { columns: Vec<String> },
    /// `option` is the option that holds all of them.
    #[error(
        "the budget holds {held} of {all} placements, {option} holds all; not tried: {}",
        .not_tried.join(", ")
    )]
    PlacementsNotTried { held: usize, all: usize, option: String, not_tried: Vec<String> },
    #[error(
        "one factor at a time: each level was run with the first levels of the others only; \
         interactions, and the best levels together, are untested (design = \"full-factorial\" \
         runs every combination)"
    )]
    InteractionsUntested,
    #[error("interactions are reported for pairs of factors; those of three or more are untested")]
    OnlyPairsTested,

    // The resolution of the runs: half the interval's width and the wanted effect, as shares.
    #[error(
        "too noisy to distinguish {} from no effect: the interval reaches {} to each side after \
         {blocks} blocks; about {needed} blocks would suffice, or longer runs, a steadier figure, \
         a quieter host",
        percent(*.wanted), percent(*.reached)
    )]
    TooNoisy { wanted: f64, reached: f64, blocks: usize, needed: u64 },
    #[error(
        "{blocks} blocks are too few for {comparisons} comparisons, of which one in twenty may be \
         wrong in all: {needed} can tell them apart (--runs {runs})"
    )]
    FewBlocks { blocks: usize, comparisons: usize, needed: usize, runs: usize },
    /// The figures of one level have two modes, and the share of figures in the lower mode.
    #[error(
        "at {level} the runs have two modes: {} near {} and the others near {}, with nothing \
         between",
        percent(*.lower_share), figure(*.low), figure(*.high)
    )]
    TwoPlaces { level: String, lower_share: f64, low: f64, high: f64 },
    #[error("{metric} is {figure} in every run: check that this is the intended figure")]
    NeverMoves { metric: String, figure: f64 },

    // Runs that were made again.
    #[error(
        "in {count} of {runs} runs the workload failed ({}) and was run again: the figures are of \
         the successful runs; the first: {first}",
        listed(.at)
    )]
    Failed { count: usize, runs: usize, at: Vec<AtLevel>, first: Discarded },
    #[error(
        "in {count} of {runs} runs the workload ended well, but its figure was not found ({}) and \
         was run again: the verdict may be biased, where a metric misses just the fast runs or the \
         slow ones; mend the metric and prove anew; the first: {first}",
        listed(.at)
    )]
    FiguresMissing { count: usize, runs: usize, at: Vec<AtLevel>, first: Discarded },
    #[error("{count} of {runs} runs were disturbed and repeated; the first: {first}")]
    Disturbed { count: usize, runs: usize, first: Discarded },
    #[error("a run takes less than 50 ms, much of it start-up: longer runs show more")]
    ShortRuns,

    /// Written by another version of this program.
    #[error("{message}")]
    Other { code: String, message: String },
}

/// Number of runs at a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtLevel {
    pub level: String,
    pub count: usize,
}

fn changed(change: f64, difference: bool) -> String {
    match difference {
        true => format!("{change:+.3}"),
        false => format!("{:+.1}%", 100.0 * change),
    }
}

fn outlier_blocks(blocks: &[usize]) -> String {
    let which: Vec<String> = blocks.iter().map(ToString::to_string).collect();
    let (noun, are) = if blocks.len() == 1 { ("block", "lies") } else { ("blocks", "lie") };
    format!(
        "{noun} {} {are} far from the others; ranks keep them from moving the verdict",
        which.join(", ")
    )
}

fn listed(at: &[AtLevel]) -> String {
    let each: Vec<String> = at.iter().map(|a| format!("{} at {}", a.count, a.level)).collect();
    each.join(", ")
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

coded!(ProveNote);
