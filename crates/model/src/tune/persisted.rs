//! The result of `tune persist --json`: what is kept over a reboot.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PersistNote;

/// What was done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileAct {
    /// Written, or would be.
    Written,
    /// It is there already, as it should be.
    Unchanged,
    /// Removed, or would be.
    Removed,
    /// Left where it is: somebody changed it.
    Left,
    /// To be removed, and it was not there: somebody removed it.
    Missing,
}

/// A file of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PersistedFile {
    /// Where, on the host that it is for.
    pub path: String,
    pub act: FileAct,
    /// Permission bits as `chmod` takes them.
    pub mode: u32,
    /// What it holds; empty for one that is removed or left.
    pub content: String,
}

/// A value that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptValue {
    /// The change set that it is from.
    pub id: u64,
    pub knob: String,
    /// Value, in the kernel's form.
    pub value: String,
    /// The file that keeps it.
    pub by: String,
}

/// A value that is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotKept {
    /// The change set that it is from.
    pub id: u64,
    pub knob: String,
    /// Value, in the kernel's form.
    pub value: String,
    /// The reason, for people.
    pub why: String,
}

/// The document of `tune persist --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Persisted {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Whether nothing was written because nobody wanted it to be.
    pub dry_run: bool,
    pub files: Vec<PersistedFile>,
    /// In the order in which they are set at boot.
    pub kept: Vec<KeptValue>,
    /// What the next boot takes away all the same.
    pub not_kept: Vec<NotKept>,
    /// Who may override it, and what makes it effective.
    pub notes: Vec<PersistNote>,
}
