//! The comparison of two groups of runs that exist already: `netwright compare --json`.

mod note;
mod run;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use note::CompareNote;
pub use run::{BenchmarkFigure, BenchmarkRun};

use crate::prove::{Direction, Outcome};

/// One of the two groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupSummary {
    /// Name, as the operator gave it: a folder, a file, or a value of the column of `--group`.
    pub name: String,
    pub files: usize,
    pub runs: usize,
    /// Programs that made the runs: `wrk`, `netwright measure rtt`.
    pub programs: Vec<String>,
}

/// The order in which the runs were made, by the times in their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOrder {
    /// A file has no time of its run.
    Unknown,
    /// All runs of one group were made before those of the other.
    OneAfterTheOther,
    /// The runs of both groups alternate.
    Interleaved,
}

/// The figures of one group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupFigures {
    pub runs: usize,
    /// The median over the runs, in the metric's unit.
    pub median: f64,
    /// The figure of each run, in the metric's unit, in the order of the runs where it is known.
    pub figures: Vec<f64>,
}

/// One metric of both groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// What was measured, as the program says: `tcp 64/64 B, 1 flow`; empty where it says nothing.
    pub case: String,
    /// Name of the metric; a time or a rate has its unit in it.
    pub metric: String,
    /// Unit of the figures: `ns`, `1/s`, `bit/s`; empty where it is unknown.
    pub unit: String,
    /// Whether more or less of it is better.
    pub direction: Direction,
    pub before: GroupFigures,
    pub after: GroupFigures,
    pub outcome: Outcome,
    /// The change from `before` to `after`: a share of `before` (0.05 is 5% more), or in the
    /// metric's own unit where `difference` is set.
    pub effect: f64,
    /// The lower end of its 95% interval; absent with too few runs (4 in each group are needed).
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Whether `effect` is a difference in the metric's unit, because the metric was 0 or below in
    /// a run and has no ratio.
    pub difference: bool,
    /// p-value: the probability of this or stronger evidence if nothing changed; corrected for the
    /// number of metrics.
    pub p: f64,
    /// The effect that 19 of 20 comparisons of the runs of `--noise-floor` with themselves stay
    /// below, in groups of these sizes.
    pub noise_floor: Option<f64>,
    /// With `--limit`: whether the metric is shown to be worse by less than the limit, or not to be
    /// worse.
    pub within_limit: Option<bool>,
}

/// The noise of a metric where nothing was changed (`--noise-floor`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseFloor {
    pub case: String,
    pub metric: String,
    pub unit: String,
    pub runs: usize,
    /// The median over the runs, in the metric's unit.
    pub median: f64,
    /// Whether the floors are differences in the metric's unit, not shares.
    pub difference: bool,
    /// For numbers of runs in each group, ascending: the effect that 19 of 20 comparisons without a
    /// change stay below.
    pub floors: Vec<FloorAt>,
}

/// The noise floor for a number of runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FloorAt {
    /// Runs in each group.
    pub runs: usize,
    pub effect: f64,
}

/// The document of `compare --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareDocument {
    /// The version of this document's shape.
    pub schema_version: u32,
    /// Kind of the document: always `compare`.
    pub kind: String,
    /// The two groups; absent where only a noise floor was requested.
    pub before: Option<GroupSummary>,
    pub after: Option<GroupSummary>,
    /// The verdict on all metrics together; absent where only a noise floor was requested.
    pub outcome: Option<Outcome>,
    /// Whether the exit code is 0: no metric is worse, mixed or undecided; with `--limit`, each is
    /// within the limit.
    pub passed: bool,
    /// The share by which a metric may be worse (`--limit`).
    pub limit: Option<f64>,
    /// Smaller effects do not matter: a share (`--min-effect`).
    pub min_effect: Option<f64>,
    pub order: RunOrder,
    pub comparisons: Vec<Comparison>,
    /// The noise of each metric where nothing was changed; empty without `--noise-floor`.
    pub noise_floor: Vec<NoiseFloor>,
    /// Remarks: the order, too few runs, drift, modes, outlier runs.
    pub notes: Vec<CompareNote>,
}
