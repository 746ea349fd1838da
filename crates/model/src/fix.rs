//! The result of `fix`: the candidates and what became of each. `netwright fix --json`.

mod note;

pub use note::FixNote;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    prove::{FrozenHost, Verdict},
    tune::Impact,
};

/// Outcome of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CandidateStatus {
    /// Shown to be better; in force.
    Kept,
    Undone,
    /// Not tried: `tune` refuses it, no knob covers it, or another finding explains it.
    Refused,
    /// Not tried: the operator did not want it.
    Declined,
    /// Not tried: the budget was used up, or the operator ended the run.
    NotTried,
}

/// A knob of a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixChange {
    /// The knob's full name; a knob of the server begins with `peer:`.
    pub knob: String,
    /// Host of the knob: the responder as it was named; empty for this host.
    #[serde(default)]
    pub host: String,
    /// Value before; empty where it was not read.
    pub old: String,
    pub new: String,
    /// The unit; may be empty.
    pub unit: String,
    /// Impact of the change; absent where `tune` did not plan it.
    pub impact: Option<Impact>,
}

/// A candidate: a change set that might help.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// Origin of the request: `finding few_channels`, `argument 1`.
    pub asked_by: String,
    /// The finding's title; empty for an argument.
    pub title: String,
    /// The knobs that it changes together.
    pub changes: Vec<FixChange>,
    /// Outcome of the candidate.
    pub status: CandidateStatus,
    /// The reason, in one line.
    pub why: String,
    /// Result of the experiment: with the candidate against without it.
    pub verdict: Option<Verdict>,
    /// Number of runs of the experiment.
    pub runs: usize,
}

/// The document of `netwright fix --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FixDocument {
    /// The version of this document's shape.
    pub schema_version: u32,
    /// Start, in seconds since 1970.
    pub started_unix_s: u64,
    /// Time from the start to this document, seconds.
    pub took_s: f64,
    /// The workload that is run repeatedly.
    pub workload: String,
    /// The goal: the metric that decides.
    pub goal: String,
    /// The candidates, in the order in which they were tried.
    pub candidates: Vec<Candidate>,
    /// The change set with all kept changes, for `netwright tune rollback` and `persist`; absent
    /// where nothing was kept.
    pub kept: Option<u64>,
    /// Name of the responder; its host was also tuned.
    #[serde(default)]
    pub responder: Option<String>,
    /// The change set in the responder's own journal with all changes kept on that host.
    #[serde(default)]
    pub kept_peer: Option<u64>,
    /// Settings of this host, or of the responder's, that now differ from before.
    pub changes: Vec<FixChange>,
    /// All kept changes together against the original state, by a final experiment; absent where
    /// there was none.
    pub total: Option<Verdict>,
    /// Settings that were frozen meanwhile; absent where this was not requested.
    #[serde(default)]
    pub frozen_host: Option<FrozenHost>,
    /// Whether nothing was tried, only listed.
    pub dry_run: bool,
    /// Why the search ended, in words: `no further remedy helps`, `interrupted`.
    pub ended: String,
    /// What the reader must know beside the table: what was not tried, and why.
    pub notes: Vec<FixNote>,
}
