//! Runs that were made before: `netwright history --json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A run of the history, without its document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryRun {
    /// Its number in the store; never used again.
    pub id: u64,
    /// End of the run, milliseconds since 1970.
    pub ended_unix_ms: u64,
    /// Name of the host that the document is about.
    pub host: String,
    /// Sixteen hex digits made of the host's machine id; empty where it is unknown.
    pub host_fingerprint: String,
    /// Kernel release of that host; empty where it is unknown.
    pub kernel: String,
    /// The version of netwright that wrote the run.
    pub netwright: String,
    /// The command line; `***` stands for a secret.
    pub command: Vec<String>,
    /// Name of the document's schema: `doctor`, `measure-rtt`; `tune-rollback` for a rollback.
    pub kind: String,
    /// The operator's word for it (`--tag`); empty without one.
    pub tag: String,
    /// Exit code of the run.
    pub exit_code: u8,
    /// The result in a few words.
    pub headline: String,
    /// The change set in the journal of `tune`, where the run changed the host.
    pub change: Option<u64>,
}

/// The document of `history list --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryList {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Kind of the document: always `history_list`.
    pub kind: String,
    /// Path of the store.
    pub store: String,
    /// The runs, the newest first.
    pub runs: Vec<HistoryRun>,
}

/// A fact that differs between two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactChange {
    /// Its path in `inspect --json`; an element of a list by its id: `nics.eth0.channels.combined`.
    pub fact: String,
    /// Its value; `absent` or `denied` where it could not be read, `null` where the host has no such
    /// thing.
    pub before: Option<String>,
    pub after: Option<String>,
}

/// What two runs, or two groups of runs, say about a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FigureVerdict {
    /// Shown by the test of `compare`, over the runs of both groups.
    Better,
    Worse,
    NoDifferenceShown,
    /// One run on each side: their 95% intervals do not overlap. The difference is larger than the
    /// noise within the runs; what the host does from run to run is unknown.
    BeyondNoiseWithinRuns,
    /// One run on each side, and their 95% intervals overlap.
    WithinNoise,
    /// Too few runs, and no intervals.
    Undecided,
}

/// A figure of two runs, or of two groups of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureChange {
    /// What was measured: `tcp, 64/64 B, 1 flow`; empty where the run says nothing.
    pub case: String,
    /// Its name, with the unit in it.
    pub metric: String,
    /// The median over the runs.
    pub before: f64,
    pub after: f64,
    /// The change as a share of `before`; absent where that is 0.
    pub change: Option<f64>,
    pub runs_before: usize,
    pub runs_after: usize,
    pub verdict: FigureVerdict,
}

/// The document of `history diff --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryDiff {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Kind of the document: always `history_diff`.
    pub kind: String,
    /// The runs, the newest first.
    pub before: Vec<HistoryRun>,
    pub after: Vec<HistoryRun>,
    /// Facts that differ between the newest run before and the newest run after; absent where a run
    /// has no facts.
    pub facts: Option<Vec<FactChange>>,
    /// The figures that both have.
    pub figures: Vec<FigureChange>,
}
