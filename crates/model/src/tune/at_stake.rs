//! Further effects of a change, as values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::coded::coded;

/// A further risk of a change. In JSON `{code, data, message}`, as a [`crate::Warning`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[schemars(tag = "code", content = "data", transform = crate::coded::short)]
pub enum AtStake {
    #[error("{nic} is a member of {master}")]
    Member { nic: String, master: String },
    #[error("{nic} carries the default route")]
    DefaultRoute { nic: String },
    #[error("all processes of the group {group}")]
    ProcessesOfGroup { group: String },
    /// NAPI instances that the write also sets; `own` are instances with a different value of their
    /// own.
    #[error("sets each of its NAPIs, too ({count}){}", over(.own))]
    Napis { count: usize, own: Vec<NapiValue> },

    /// Written by another version of this program.
    #[error("{message}")]
    Other { code: String, message: String },
}

/// A setting of one NAPI instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NapiValue {
    /// Name of the instance, as knobs name it.
    pub napi: String,
    /// Value in the kernel's unit.
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
