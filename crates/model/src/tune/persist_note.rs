//! Remarks on persisted changes, as values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::coded::coded;

/// A remark on the persisted settings: programs that may override them, and actions that make them
/// effective. In JSON `{code, data, message}`, as a [`crate::Warning`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[schemars(tag = "code", content = "data", transform = crate::coded::short)]
pub enum PersistNote {
    // What is in force at this moment.
    #[error("the values are in force already; the files count from the next boot on")]
    InForce,
    /// `remedy` is the command that ends it.
    #[error(
        "change {id} was rolled back and is kept all the same, from the next boot on; `{remedy}` \
         ends that"
    )]
    RolledBack { id: u64, remedy: String },
    #[error(
        "{knob} is {now} now, set by another program; {kept} is kept, and counts from the \
         next boot on"
    )]
    SetSince { knob: String, now: String, kept: String },
    #[error("{knob} is not in force: {why}")]
    Gone { knob: String, why: String },
    #[error("{knob} is not in force; {kept} is kept, and counts from the next boot on")]
    NotInForce { knob: String, kept: String },
    #[error("{knob} stays kept from before ({why}); `{remedy}` ends that")]
    StaysKept { knob: String, why: String, remedy: String },

    // What makes it effective, or not.
    #[error("{key} is there only once its kernel module is loaded: see modules-load.d")]
    NeedsModule { key: String },
    #[error(
        "NetworkManager runs {nic}; if its connection says otherwise, say the same there: \
         {command}"
    )]
    NetworkManager { nic: String, command: String },
    /// Only the first `.link` file by name counts.
    #[error("{first} comes before {file}: rename it, or ours is not read")]
    LinkFileBefore { first: String, file: String },
    #[error("irqbalance reads its policy again with `{command}`")]
    PolicyReadAnew { command: String },
    /// irqbalance's policy script could not be written.
    #[error("{why}")]
    NoPolicy { why: String },
    #[error(
        "irqbalance asks {script}: it moves the kept interrupts again where that does not say \
         ban=true"
    )]
    PolicyAsked { script: String },

    // What it is judged by where it is written into a folder.
    #[error(
        "judged by the files of that folder; who manages its interfaces while it runs is not known \
         from here"
    )]
    JudgedByFolder,
    #[error(
        "that folder holds no system (no /usr): its own files are looked through for what sets the \
         same, and for all else this host's count"
    )]
    JudgedByHost,

    /// Written by another version of this program.
    #[error("{message}")]
    Other { code: String, message: String },
}

coded!(PersistNote);
