//! What became of the settings that Netwright applied.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Reading;

/// A setting that Netwright wrote in this boot and that nobody asked it to undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedSetting {
    /// The change set that wrote it, as in `netwright tune log`.
    pub set: u64,
    /// Seconds since the change set began.
    pub age_s: u64,
    /// The knob, under its present name.
    pub knob: String,
    /// The value before, in the kernel's form.
    pub before: String,
    /// The written value, in the kernel's form.
    pub written: String,
    /// The value of now, in the kernel's form; absent where its object is gone.
    pub now: Reading<String>,
    /// Whether the value of now is the written one.
    pub in_force: bool,
    /// Running tuners that set such settings.
    pub suspects: Vec<String>,
}
