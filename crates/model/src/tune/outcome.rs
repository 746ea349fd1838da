//! The states and outcomes of change sets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ChangeNote, ChangeState, Drifted, Trouble, plan::Planned};
use crate::Reading;

/// One change set, as recorded in its journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeSet {
    pub id: u64,
    pub state: ChangeState,
    /// Start, milliseconds since 1970.
    pub begun_unix_ms: u64,
    pub by: String,
    /// Whether the watchdog that is to undo it is alive, also where the change was interrupted;
    /// absent when no watchdog is pending.
    #[serde(default)]
    pub watchdog_running: Reading<bool>,
    /// Number of started changes.
    pub begun: usize,
    /// Number of changes that were made and verified.
    pub made: usize,
    /// The changes of the set.
    pub changes: Vec<Planned>,
    /// Time left to confirm it, milliseconds; absent when no confirmation is pending.
    pub confirm_within_ms: Reading<u64>,
    /// Time until a watchdog undoes it, milliseconds, also where the change was interrupted and
    /// cannot be confirmed; absent when no watchdog is to undo it.
    #[serde(default)]
    pub undone_within_ms: Reading<u64>,
    /// Failures, and values that could not be restored.
    pub trouble: Vec<Trouble>,
    /// Inode of the network namespace in which it was made. **Source**: `/proc/self/ns/net`.
    #[serde(default)]
    pub net_namespace: Reading<u64>,
    /// Name of that namespace where it differs from the namespace of the command: the `ip netns`
    /// name, otherwise `net:[INODE]`; empty where it is the same.
    #[serde(default)]
    pub namespace: String,
    /// The commands that end it, where it is in force, was interrupted, waits, or was only partly
    /// rolled back.
    #[serde(default)]
    pub remedies: Vec<String>,
}

/// A written value and its present state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Now {
    /// The change set that wrote it.
    pub id: u64,
    pub knob: String,
    /// Its present name, where its interface was renamed; empty where it was not.
    #[serde(default)]
    pub called: String,
    /// The knob whose write changed it as a side effect; empty where it was written itself.
    #[serde(default)]
    pub beside: String,
    /// The value before the set wrote it, in the kernel's form.
    pub before: String,
    /// The written value, or the value after the side effect.
    pub written: String,
    /// The value that the host has now, in the kernel's form; absent where its object is gone.
    pub now: Reading<String>,
    /// Unit of the values, for people; empty where they have none.
    pub unit: String,
    /// Whether it is still the written value.
    pub drift: Drift,
}

/// Whether a value is still the written one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Drift {
    None,
    /// The change was interrupted before it was written.
    NotWritten,
    /// The undo ended without restoring the old value.
    NotPutBack {
        why: String,
    },
    /// Another program wrote another value since.
    Changed {
        /// The program that may have written it, where known.
        suspects: Vec<String>,
    },
    /// The value can no longer be read.
    Gone {
        why: String,
    },
}

/// The document of `tune status --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Path of the journal.
    pub journal: String,
    /// Change sets that are not rolled back and not gone, the oldest first. Partly rolled back sets
    /// are included where values are left.
    pub sets: Vec<ChangeSet>,
    /// Their values, those of the last writer of each knob. Of side effects, only values that
    /// another program set since. Of a partly rolled back set, only the values that are left.
    pub values: Vec<Now>,
    /// Unreadable journal files, with the reason: values that they wrote may be in force.
    #[serde(default)]
    pub damaged: Vec<Trouble>,
}

/// The document of `tune log --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Log {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Path of the journal.
    pub journal: String,
    /// Every change set, the oldest first.
    pub sets: Vec<ChangeSet>,
    /// Unreadable journal files, with the reason.
    pub damaged: Vec<Trouble>,
}

/// The document of `tune apply`, `confirm` and `rollback` with `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The change set in its present state; absent when there was nothing to do.
    pub set: Reading<ChangeSet>,
    /// All change sets that the command handled, in order; `set` is the first of them.
    #[serde(default)]
    pub sets: Vec<ChangeSet>,
    /// Values that another program set since, and their outcome; with `--dry-run`, the expected
    /// outcome.
    #[serde(default)]
    pub drifted: Vec<Drifted>,
    /// Whether the request was carried out.
    pub done: bool,
    /// Remarks on the outcome, and the next command.
    pub notes: Vec<ChangeNote>,
}
