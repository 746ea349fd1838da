//! Further effects of a change, as values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::coded::coded;

/// What else a change puts at stake. In JSON `{code, data, message}`, as a [`crate::Warning`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "code", content = "data", rename_all = "snake_case", remote = "Self")]
#[schemars(transform = crate::coded::short)]
pub enum AtStake {
    #[error("{nic} is a member of {master}")]
    Member { nic: String, master: String },
    #[error("{nic} carries the default route")]
    DefaultRoute { nic: String },
    #[error("all processes of the group {group}")]
    ProcessesOfGroup { group: String },
    /// NAPI instances that are set, too; `own` are those that have another value of their own.
    #[error("sets each of its NAPIs, too ({count}){}", over(.own))]
    Napis { count: usize, own: Vec<NapiValue> },

    /// Of another version of this program.
    #[error("{message}")]
    Other { code: String, message: String },
}

/// A setting of one NAPI instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NapiValue {
    /// Which one, as knobs name it.
    pub napi: String,
    /// In the kernel's unit.
    pub value: u64,
}

fn over(own: &[NapiValue]) -> String {
    if own.is_empty() {
        return String::new();
    }
    let each: Vec<String> = own.iter().map(|n| format!("{}: {}", n.napi, n.value)).collect();
    format!(", over the value of its own that {} of them has ({})", own.len(), each.join(", "))
}

coded!(AtStake);
