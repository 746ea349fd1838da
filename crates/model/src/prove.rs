//! The result of an experiment: `netwright prove --json`.

mod discarded;
mod note;

use std::collections::BTreeMap;

pub use discarded::Discarded;
pub use note::{AtLevel, ProveNote};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which way a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Throughput: more is better.
    HigherIsBetter,
    /// A response time: less is better.
    LowerIsBetter,
}

/// What is said of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A goal is better, none is worse, and no guard is worse.
    Better,
    /// A goal is worse, and none is better.
    Worse,
    /// One goal is better and another is worse.
    Mixed,
    /// A goal is better, but a guard is worse or not shown to be within its limit.
    GuardWorse,
    /// No difference larger than the interval's farther end was shown.
    NoDifferenceShown,
    /// Too few blocks to say anything: fewer than 6; or the interval does not hold 0, and that is
    /// not enough yet for so many looks or comparisons.
    Undecided,
}

/// A verdict, of one metric or of all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    pub outcome: Outcome,
    /// The change from the first level to the second: a share of the first (0.05 is 5% more), or
    /// in the metric's own unit where `difference` is set; `null` where nothing is compared: no block
    /// is complete, or the first level is the best.
    pub effect: Option<f64>,
    /// The lower end of its 95% interval; absent below 6 blocks.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Whether `effect` is a difference in the metric's unit, because the metric was 0 or below
    /// in a run and has no ratio.
    pub difference: bool,
    /// How it was found.
    pub method: String,
    pub blocks: usize,
    /// The chance of such evidence, or more, if the change did nothing; corrected for looks, and
    /// for several goals; `null` where `effect` is.
    pub p: Option<f64>,
}

/// One metric of an A/B experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricVerdict {
    pub metric: String,
    /// Which way it is good.
    pub direction: Direction,
    /// Whether it only must not get worse.
    pub guard: bool,
    pub verdict: Verdict,
}

/// What was compared how.
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
    /// Several factors: each level of one beside the first levels of all others.
    OneAtATime,
}

/// One level, or combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelResult {
    /// Its name: the factors' levels.
    pub level: String,
    pub settings: BTreeMap<String, String>,
    /// The median over its runs, by metric; without those that no run has told.
    pub medians: BTreeMap<String, f64>,
    pub runs: usize,
    /// The first goal against that of the first level, as a share; absent for the first.
    pub against_first: Option<Verdict>,
    /// The first goal against that of the best level; absent for the best.
    pub against_best: Option<Verdict>,
}

/// What one factor of several does, averaged over the others' levels; or what two do together
/// beyond the sum of each. One at a time: what it does at the others' first levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactorEffect {
    /// The factor, or two joined by ` × `.
    pub factor: String,
    /// Its level beside its first one; of two factors, both levels, joined likewise.
    pub level: String,
    /// On the first goal.
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Best {
    /// The level with the best first goal.
    pub level: String,
    /// Of those that are not shown to be worse than the best the smallest, where levels are numbers; else the
    /// first in the order given.
    pub smallest_within_noise: String,
    /// All levels that are not shown to be worse than the best.
    pub within_noise: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// In which block, from 0.
    pub block: usize,
    /// At which level: an index into `levels`.
    pub level: usize,
    /// How long it took.
    pub took_s: f64,
    /// The figures, by metric.
    pub figures: BTreeMap<String, f64>,
    /// CPUs' worth that others used meanwhile: neither the workload nor netwright.
    pub others_cpus: Option<f64>,
    /// The share of CPU time that the hypervisor took away.
    pub steal_share: Option<f64>,
    /// What else the host did meanwhile.
    #[serde(default)]
    pub host: DuringRun,
    /// Kernel counters that grew meanwhile, by name; `null` where one could not be known (it went
    /// backwards, its device came or went). Empty where none were read.
    #[serde(default)]
    pub counters: BTreeMap<String, Option<u64>>,
    /// How much the run did, in the unit of `evidence.per`; absent for a command, which is one run.
    #[serde(default)]
    pub work: Option<f64>,
    /// Why it does not count, if it does not.
    pub discarded: Option<Discarded>,
}

impl Run {
    /// Whether the workload failed and gave nothing.
    pub fn failed(&self) -> bool {
        self.figures.is_empty() && self.discarded.is_some()
    }
}

/// What may disturb a run, besides others' CPU time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DuringRun {
    /// Interfaces that lost or gained their carrier, came or went, each time it happened.
    pub link_changes: Option<u64>,
    /// The CPUs' mean frequency when the run had ended.
    pub frequency_khz: Option<u64>,
    /// Frequency policies whose governor or limits changed.
    pub frequency_changes: Option<u64>,
    /// Times that CPUs were throttled for heat.
    pub throttles: Option<u64>,
    /// By how much somebody set the clock.
    pub clock_step_ns: Option<i64>,
    /// For how long the host was suspended.
    pub suspended_ns: Option<u64>,
}

/// A counter that moved with the change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CorrelatedCounter {
    pub counter: String,
    /// The median over the runs at the first of the two levels, by `evidence.per`.
    pub first: f64,
    /// The median at the second level, by `evidence.per`.
    pub second: f64,
    /// The change: a share of the first, or a difference where `difference` is set.
    pub effect: f64,
    /// The lower end of its 95% interval.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Whether `effect` is a difference, because the counter did not grow in every run.
    pub difference: bool,
    /// The chance that any counter that did not move looks like this; corrected for the number of
    /// counters.
    pub p: f64,
}

/// What moved with the change: kernel counters of the host and, for measurements of ours, of both
/// ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The two levels that are compared: those of the verdict.
    pub first: String,
    pub second: String,
    /// What counters are divided by: `transaction`, `connection`, `megabyte` or `run`.
    pub per: String,
    /// Blocks in which counters were read.
    pub blocks: usize,
    /// Counters that were compared.
    pub judged: usize,
    /// Those that are shown to have moved, the clearest first.
    pub moved: Vec<CorrelatedCounter>,
    /// Why nothing could be said, if so.
    pub why_not: Option<String>,
}

/// A setting that was held while an experiment went on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldSetting {
    /// Which setting: `irqbalance.paused` or `cpu.governor`.
    pub knob: String,
    /// How many there are of it: one for each CPU.
    pub settings: u64,
    /// What it was before; several values joined by a comma.
    pub old: String,
    /// What it was held at; the same as `old` where it was so already.
    pub new: String,
    /// What was found at the end, where something else had changed it meanwhile; absent where it
    /// was held until then.
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

/// What `--freeze-host` held during the runs, and what it could not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrozenHost {
    /// What was held, and was put back at the end.
    pub held: Vec<HeldSetting>,
    /// Settings that could not be held.
    pub not_frozen: Vec<NotHeld>,
}

/// The document of `netwright prove --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProveDocument {
    /// The version of this document's shape.
    pub schema_version: u32,
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
    pub name: String,
    /// What was compared how.
    pub design: Design,
    /// The command that was run.
    pub workload: String,
    /// The first goal: the metric that levels are compared by.
    pub goal: String,
    /// A/B: of all metrics together, with the figures of the goal that tells. Else the best level against
    /// the first; of several factors, where that shows nothing and a level of one of them is shown to be
    /// better or worse than its first, that level's.
    pub verdict: Verdict,
    /// What `verdict` compares: `8 against 4`; `threads 8 against threads 4, over the other factors' levels`.
    /// Empty before the first block, and where the first level is the best.
    #[serde(default)]
    pub verdict_of: String,
    /// A/B: each metric. Other designs: the guards, between what `verdict_of` names.
    pub metrics: Vec<MetricVerdict>,
    /// Each level or combination, in the order given.
    pub levels: Vec<LevelResult>,
    /// Not for A/B: the best.
    pub best: Option<Best>,
    /// Of several factors: what each does and, where every combination was run, what pairs do beyond
    /// that.
    pub effects: Vec<FactorEffect>,
    /// Which kernel counters moved between the two levels of `verdict`.
    #[serde(default)]
    pub evidence: Evidence,
    /// What was held still meanwhile; absent where this was not asked for.
    #[serde(default)]
    pub frozen_host: Option<FrozenHost>,
    pub ended: String,
    /// Runs that were repeated because something else disturbed them.
    pub discarded_runs: usize,
    /// What else is to be said: drift, outlier blocks, two modes.
    pub notes: Vec<ProveNote>,
    pub runs: Vec<Run>,
}
