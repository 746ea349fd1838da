//! The result of `tune persist --json`: what is kept over a reboot.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PersistNote;

/// Outcome of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileAct {
    /// Written, or would be.
    Written,
    /// Already present with the right content.
    Unchanged,
    /// Removed, or would be.
    Removed,
    /// Left in place: it was changed since.
    Left,
    /// To be removed, but already missing.
    Missing,
}

/// A file that Netwright writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PersistedFile {
    /// Path on the target host.
    pub path: String,
    pub act: FileAct,
    /// Permission bits as `chmod` takes them.
    pub mode: u32,
    /// Content; empty for a file that is removed or left.
    pub content: String,
}

/// A value in force that the next boot sets again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptValue {
    /// The change set that it is from.
    pub id: u64,
    pub knob: String,
    /// Value, in the kernel's form.
    pub value: String,
    /// The file that persists it.
    pub by: String,
}

/// A value that is not persisted.
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
    /// Whether it is a dry run, in which nothing was written.
    pub dry_run: bool,
    pub files: Vec<PersistedFile>,
    /// In the order in which they are set at boot.
    pub kept: Vec<KeptValue>,
    /// Values that the next boot removes all the same.
    pub not_kept: Vec<NotKept>,
    /// Programs that may override the settings, and actions that make them effective.
    pub notes: Vec<PersistNote>,
}
