//! A value that another program set since it was written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value that was neither what was written nor what was there before when it was to be put back:
/// somebody set it since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drifted {
    /// The change set that wrote it.
    pub id: u64,
    pub knob: String,
    /// The knob whose write had moved it along; empty where it was written itself.
    #[serde(default)]
    pub beside: String,
    /// What was there before, and is put back.
    pub before: String,
    /// What was written, or what the write beside it left there.
    pub written: String,
    pub found: String,
    /// Unit of the values, for people; empty where they have none.
    pub unit: String,
    /// Whether it is left as it was found; `tune rollback --force` overwrites it.
    pub kept: bool,
    /// Who may have set it, as far as known.
    pub suspects: Vec<String>,
}
