//! A value that another program set since it was written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// External change: when the value was to be restored, it was neither the written nor the old
/// value. Another program set it since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drifted {
    /// The change set that wrote it.
    pub id: u64,
    pub knob: String,
    /// The knob whose write changed it as a side effect; empty where it was written itself.
    #[serde(default)]
    pub beside: String,
    /// Value before; it is restored.
    pub before: String,
    /// The written value, or the value after the side effect.
    pub written: String,
    pub found: String,
    /// Unit of the values, for people; empty where they have none.
    pub unit: String,
    /// Whether it is left unchanged; `tune rollback --force` overwrites it.
    pub kept: bool,
    /// The program that may have set it, where known.
    pub suspects: Vec<String>,
}
