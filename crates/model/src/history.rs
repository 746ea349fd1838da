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
    /// Version of netwright.
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
