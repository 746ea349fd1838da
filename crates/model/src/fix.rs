//! The result of `fix`: the candidates and what became of each. `netwright fix --json`.

mod note;

pub use note::FixNote;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    prove::{FrozenHost, Verdict},
    tune::Impact,
};

/// What became of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CandidateStatus {
    /// Shown to be better: in force.
    Kept,
    Undone,
    /// Not tried: `tune` refuses it, no knob covers it, or another finding explains it.
    Refused,
    /// Not tried: the operator did not want it.
    Declined,
    /// Not tried: the budget was used up, or somebody ended it.
    NotTried,
}

/// A knob of a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixChange {
    /// The knob's full name; one of the server begins with `peer:`.
    pub knob: String,
    /// Whose it is: the responder as it was named, or nothing for this host.
    #[serde(default)]
    pub host: String,
    /// What it was before; empty where that was not read.
    pub old: String,
    pub new: String,
    /// The unit; may be empty.
    pub unit: String,
    /// What changing it may disturb; absent where `tune` did not plan it.
    pub impact: Option<Impact>,
}

/// Something that might help.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// Who asks for it: `finding few_channels`, `argument 1`.
    pub asked_by: String,
    /// The finding's title; empty for an argument.
    pub title: String,
    /// What it changes, all together.
    pub changes: Vec<FixChange>,
    /// What became of it.
    pub status: CandidateStatus,
    /// Why, in a line.
    pub why: String,
    /// What the experiment said: with it against without it.
    pub verdict: Option<Verdict>,
    /// Runs of the experiment.
    pub runs: usize,
}

/// The document of `netwright fix --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FixDocument {
    /// The version of this document's shape.
    pub schema_version: u32,
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
    /// How long it took.
    pub took_s: f64,
    /// What is run again and again.
    pub workload: String,
    /// The figure that decides: what is to get better.
    pub goal: String,
    /// In the order in which they were tried.
    pub candidates: Vec<Candidate>,
    /// The change set with everything that was kept, for `netwright tune rollback` and
    /// `persist`; absent where nothing was.
    pub kept: Option<u64>,
    /// The responder whose host was tuned as well, as it was named.
    #[serde(default)]
    pub responder: Option<String>,
    /// The change set in the responder's own journal with everything that was kept there.
    #[serde(default)]
    pub kept_peer: Option<u64>,
    /// What of this host, or the responder's, is now another than before.
    pub changes: Vec<FixChange>,
    /// All that was kept against before, by a last experiment of its own; absent where there was
    /// none.
    pub total: Option<Verdict>,
    /// What was held still meanwhile; absent where this was not asked for.
    #[serde(default)]
    pub frozen_host: Option<FrozenHost>,
    /// Whether nothing was tried, only listed.
    pub dry_run: bool,
    pub ended: String,
    /// What else is to be said.
    pub notes: Vec<FixNote>,
}
