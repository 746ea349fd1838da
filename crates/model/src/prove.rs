//! The result of an experiment: `netwright prove --json`.

mod discarded;
mod note;

use std::collections::BTreeMap;

pub use discarded::Discarded;
pub use note::{AtLevel, ProveNote};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether more or less of a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Throughput: more is better.
    HigherIsBetter,
    /// A response time: less is better.
    LowerIsBetter,
}

/// Verdict on a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A goal is better, none is worse, and no guard is worse.
    Better,
    /// A goal is worse, and none is better.
    Worse,
    /// One goal is better and another is worse.
    Mixed,
    /// A goal is better, but a guard metric is worse or not shown to be within its limit.
    GuardWorse,
    /// No difference larger than the farther end of the interval was shown.
    NoDifferenceShown,
    /// Undecided: fewer than 6 blocks; or the interval excludes 0, but the evidence is not
    /// sufficient yet for this number of interim analyses or comparisons.
    Undecided,
}

/// A verdict on one metric or on all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    pub outcome: Outcome,
    /// The change from the first level to the second: a share of the first (0.05 is 5% more), or
    /// in the metric's own unit where `difference` is set; `null` where nothing is compared: no block
    /// is complete, or the first level is the best.
    pub effect: Option<f64>,
    /// The lower end of its 95% interval; absent with fewer than 6 blocks.
    pub low: Option<f64>,
    /// The upper end of its 95% interval; absent where `low` is.
    pub high: Option<f64>,
    /// Whether `effect` is a difference in the metric's unit, because the metric was 0 or below
    /// in a run and has no ratio.
    pub difference: bool,
    /// How the interval and the p-value were computed, in words.
    pub method: String,
    /// Complete blocks that the verdict is based on.
    pub blocks: usize,
    /// p-value: the probability of this or stronger evidence if the change had no effect; corrected
    /// for interim analyses and for several goals; `null` where `effect` is.
    pub p: Option<f64>,
}

/// One metric of an A/B experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricVerdict {
    pub metric: String,
    /// Whether more or less of it is better.
    pub direction: Direction,
    /// Whether it is a guard metric, which only must not get worse.
    pub guard: bool,
    pub verdict: Verdict,
}

/// Design of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// One factor of two levels.
    Ab,
    /// One factor of several levels.
    Sweep,
    /// Placements of two ends: every pair.
    Matrix,
    /// Several factors: every combination.
    Factorial,
    /// Several factors: each level of one with the first levels of all others.
    OneAtATime,
}

/// One level, or combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelResult {
    /// Its name: the factors' levels.
    pub level: String,
    pub settings: BTreeMap<String, String>,
    /// The median over its runs, by metric; without metrics that no run reported.
    pub medians: BTreeMap<String, f64>,
    pub runs: usize,
    /// Change of the first goal against the first level, as a share; absent for the first level.
    pub against_first: Option<Verdict>,
    /// Change of the first goal against the best level; absent for the best level.
    pub against_best: Option<Verdict>,
}

/// Main effect of one factor, averaged over the levels of the others; or the interaction of two,
/// beyond the sum of their effects. In a one-at-a-time design: its effect at the first levels of
/// the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactorEffect {
    /// The factor, or two joined by ` × `.
    pub factor: String,
    /// The level that is compared with the first one; with two factors both levels, joined
    /// likewise.
    pub level: String,
    /// Effect on the first goal.
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Best {
    /// The level with the best first goal.
    pub level: String,
    /// Recommended level among those not shown to be worse than the best: the smallest where levels
    /// are numbers, otherwise the first in the given order.
    pub smallest_within_noise: String,
    /// All levels that are not shown to be worse than the best.
    pub within_noise: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Block of the run, from 0.
    pub block: usize,
    /// Level of the run: an index into `levels`.
    pub level: usize,
    /// Duration of the workload of this run, seconds.
    pub took_s: f64,
    /// The figures, by metric.
    pub figures: BTreeMap<String, f64>,
    /// CPU use of other processes meanwhile, in CPUs: neither the workload nor netwright.
    pub others_cpus: Option<f64>,
    /// Steal time, as a share of CPU time.
    pub steal_share: Option<f64>,
    /// Other events on the host meanwhile.
    #[serde(default)]
    pub host: DuringRun,
    /// Deltas of kernel counters that grew meanwhile, by name; `null` where one is not known (it
    /// went backwards, its device came or went). Empty where none were read.
    #[serde(default)]
    pub counters: BTreeMap<String, Option<u64>>,
    /// Work done by the run, in the unit of `evidence.per`; absent for a command, which counts as
    /// one run.
    #[serde(default)]
    pub work: Option<f64>,
    /// Reason for discarding the run, where it was discarded.
    pub discarded: Option<Discarded>,
}

impl Run {
    /// Whether the workload failed and reported no figures.
    pub fn failed(&self) -> bool {
        self.figures.is_empty() && self.discarded.is_some()
    }
}

/// Disturbances of a run, besides the CPU use of other processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DuringRun {
    /// Interfaces that lost or gained their carrier, came or went; one entry per event.
    pub link_changes: Option<u64>,
    /// Mean frequency of the CPUs at the end of the run.
    pub frequency_khz: Option<u64>,
    /// Frequency policies whose governor or limits changed.
    pub frequency_changes: Option<u64>,
    /// Number of times that CPUs were throttled for heat.
    pub throttles: Option<u64>,
    /// Step of the wall clock, where it was set.
    pub clock_step_ns: Option<i64>,
    /// Time for which the host was suspended.
    pub suspended_ns: Option<u64>,
}

/// A counter that changed together with the change under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CorrelatedCounter {
    pub counter: String,
    /// The median over the runs at the first of the two levels, per `evidence.per`.
    pub first: f64,
    /// The median at the second level, per `evidence.per`.
    pub second: f64,
    /// The change: a share of the first, or a difference where `difference` is set.
    pub effect: f64,
    /// The lower end of its 95% interval.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Whether `effect` is a difference, because the counter did not grow in every run.
    pub difference: bool,
    /// p-value: the probability that any unaffected counter shows this difference; corrected for
    /// the number of counters.
    pub p: f64,
}

/// Correlated counters: kernel counters of the host and, for Netwright's own measurements, of both
/// ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The two compared levels: those of the verdict.
    pub first: String,
    pub second: String,
    /// Unit that counters are divided by: `transaction`, `connection`, `megabyte` or `run`.
    pub per: String,
    /// Blocks in which counters were read.
    pub blocks: usize,
    /// Number of compared counters.
    pub judged: usize,
    /// Counters with a shown difference, the clearest first.
    pub moved: Vec<CorrelatedCounter>,
    /// The reason, where no conclusion is possible.
    pub why_not: Option<String>,
}

/// A setting that was held during an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldSetting {
    /// Name of the setting: `irqbalance.paused` or `cpu.governor`.
    pub knob: String,
    /// Number of its instances: one for each CPU.
    pub settings: u64,
    /// Value before; several values joined by a comma.
    pub old: String,
    /// Value that it was held at; equal to `old` where nothing had to change.
    pub new: String,
    /// Value found at the end, where another program had changed it meanwhile; absent where it was
    /// held until the end.
    pub until: Option<String>,
}

/// A setting that could not be held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotHeld {
    /// Name of the setting, as in [`HeldSetting`].
    pub knob: String,
    /// The reason, for people.
    pub why: String,
}

/// Settings that `--freeze-host` held during the runs, and settings that it could not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrozenHost {
    /// Settings that were held and restored at the end.
    pub held: Vec<HeldSetting>,
    /// Settings that could not be held.
    pub not_frozen: Vec<NotHeld>,
}

/// What a change may cost, and whether it is shown to cost less.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// A share of the first level (0.05 is 5%).
    pub share: f64,
    /// Whether the harmful end of each metric's 95% interval is within it.
    pub held: bool,
}

/// The document of `netwright prove --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProveDocument {
    /// The version of this document's shape.
    pub schema_version: u32,
    /// Start, in seconds since 1970.
    pub started_unix_s: u64,
    pub name: String,
    /// Design of the experiment.
    pub design: Design,
    /// The command that was run.
    pub workload: String,
    /// The first goal: the metric that levels are compared by.
    pub goal: String,
    /// A/B: verdict on all metrics together, with the figures of the deciding goal. Other designs:
    /// the best level against the first. With several factors, where that shows nothing and a level
    /// of one factor is shown to be better or worse than its first: the verdict on that level.
    pub verdict: Verdict,
    /// Comparison of `verdict`: `8 against 4`; `threads 8 against threads 4, over the other
    /// factors' levels`. Empty before the first block, and where the first level is the best.
    #[serde(default)]
    pub verdict_of: String,
    /// The verdict on `--limit`; only an A/B design has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// A/B: each metric. Other designs: the guard metrics, for the comparison that `verdict_of`
    /// names.
    pub metrics: Vec<MetricVerdict>,
    /// Each level or combination, in the given order.
    pub levels: Vec<LevelResult>,
    /// The best level; absent for A/B.
    pub best: Option<Best>,
    /// With several factors: the effect of each and, where every combination was run, the
    /// interactions of pairs.
    pub effects: Vec<FactorEffect>,
    /// Kernel counters that differ between the two levels of `verdict`.
    #[serde(default)]
    pub evidence: Evidence,
    /// Settings that were frozen meanwhile; absent where this was not requested.
    #[serde(default)]
    pub frozen_host: Option<FrozenHost>,
    pub ended: String,
    /// Number of runs that were repeated because of a disturbance.
    pub discarded_runs: usize,
    /// Further remarks: drift, outlier blocks, two modes.
    pub notes: Vec<ProveNote>,
    pub runs: Vec<Run>,
}
