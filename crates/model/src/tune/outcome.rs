//! The states and outcomes of change sets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ChangeNote, ChangeState, Drifted, Trouble, plan::Planned};
use crate::Reading;

/// One change set, as its journal tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeSet {
    pub id: u64,
    pub state: ChangeState,
    /// When it began, milliseconds since 1970.
    pub begun_unix_ms: u64,
    pub by: String,
    /// Whether the watchdog that is to undo it lives, also where the change was interrupted; absent when
    /// nothing waits.
    #[serde(default)]
    pub watchdog_running: Reading<bool>,
    /// How many of its changes were begun.
    pub begun: usize,
    /// How many were made and held.
    pub made: usize,
    /// What it consists of.
    pub changes: Vec<Planned>,
    /// How long is left to confirm it, milliseconds; absent when nothing waits.
    pub confirm_within_ms: Reading<u64>,
    /// How long until a watchdog undoes it, milliseconds, also where the change was interrupted and cannot
    /// be confirmed; absent when none is to.
    #[serde(default)]
    pub undone_within_ms: Reading<u64>,
    /// What went wrong: failures, and values that could not be put back.
    pub trouble: Vec<Trouble>,
    /// Inode of the network namespace that it was made in. **Source**: `/proc/self/ns/net`.
    #[serde(default)]
    pub net_namespace: Reading<u64>,
    /// That namespace where it is not the one that the command runs in: its name of `ip netns`,
    /// else `net:[INODE]`; empty where it is that one.
    #[serde(default)]
    pub namespace: String,
    /// The commands that end it, where there is something to end: it is in force, was interrupted,
    /// waits, or was only partly rolled back.
    #[serde(default)]
    pub remedies: Vec<String>,
}

/// A value that is in force, or is no longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Now {
    /// The change set that wrote it.
    pub id: u64,
    pub knob: String,
    /// What it is called by now, where its interface was renamed; empty where it was not.
    #[serde(default)]
    pub called: String,
    /// The knob whose write had moved it along; empty where it was written itself.
    #[serde(default)]
    pub beside: String,
    /// What was there before.
    pub before: String,
    /// What was written, or what the write beside it left there.
    pub written: String,
    /// What is there now.
    pub now: Reading<String>,
    /// Unit of the values, for people; empty where they have none.
    pub unit: String,
    /// Whether it still is what was written.
    pub drift: Drift,
}

/// Whether a value still is what was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Drift {
    None,
    /// It was interrupted before it was written.
    NotWritten,
    /// Undoing ended without putting the old value back.
    NotPutBack {
        why: String,
    },
    /// Somebody wrote something else since.
    Changed {
        /// Who may have, as far as known.
        suspects: Vec<String>,
    },
    /// It cannot be read any more.
    Gone {
        why: String,
    },
}

/// The document of `tune status --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Where the journal is.
    pub journal: String,
    /// Change sets that are not rolled back and not gone, the oldest first. Of those that are partly
    /// rolled back, the ones of which something is left.
    pub sets: Vec<ChangeSet>,
    /// Their values, the last writer's of each knob; of what a write moved along, what somebody else
    /// set since. Of a set that is partly rolled back, what is left of it.
    pub values: Vec<Now>,
    /// Journal files that make no sense, with the reason: what they wrote may be in force.
    #[serde(default)]
    pub damaged: Vec<Trouble>,
}

/// The document of `tune log --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Log {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Where the journal is.
    pub journal: String,
    /// Every change set, the oldest first.
    pub sets: Vec<ChangeSet>,
    /// Journal files that make no sense, with the reason.
    pub damaged: Vec<Trouble>,
}

/// The document of `tune apply`, `confirm` and `rollback` with `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The change set, as it stands now; absent when there was nothing to do.
    pub set: Reading<ChangeSet>,
    /// All change sets that it was about, in the order in which they were dealt with; `set` is the
    /// first of them.
    #[serde(default)]
    pub sets: Vec<ChangeSet>,
    /// Values that somebody else set since, and what became of them; with `--dry-run`, what would.
    #[serde(default)]
    pub drifted: Vec<Drifted>,
    /// Whether what was asked for was done.
    pub done: bool,
    /// What happened, and how to go on.
    pub notes: Vec<ChangeNote>,
}
