//! Problems of a change set, as values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::coded::coded;

/// Message for a value in a network namespace that no longer exists.
pub const NAMESPACE_GONE: &str = "its network namespace is gone, and its settings with it";

/// Remedy for an unreadable journal.
const BY_HAND: &str = "its lines, as far as they exist, hold the old values (\"old\"): restore by \
                       hand the values still in force, then move the file away";

/// A failure of a change set or its journal. In JSON `{code, data, message}`, as a
/// [`crate::Warning`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[schemars(tag = "code", content = "data", transform = crate::coded::short)]
pub enum Trouble {
    /// A change could not be made; `step` counts from 1.
    #[error("step {step} of {steps}: {why}")]
    StepFailed { step: usize, steps: usize, why: String },
    #[error("undone because {why}")]
    Undone { why: String },
    #[error("{knob}: put back as {name}, its name by then")]
    PutBackAs { knob: String, name: String },
    #[error("{knob}: gone with its value ({why})")]
    Gone { knob: String, why: String },
    #[error("{knob}: {found}, set by another program, was overwritten")]
    Overwritten { knob: String, found: String },
    #[error("{knob}: {found}, set by another program, was left")]
    LeftAsFound { knob: String, found: String },
    #[error("{knob} not put back: {why}")]
    NotPutBack { knob: String, why: String },
    #[error("{NAMESPACE_GONE}")]
    NamespaceGone,

    // Journals that cannot be read: what they tell of may be in force.
    #[error("{file}: {why}; the journal is damaged; {BY_HAND}")]
    JournalDamaged { file: String, why: String },
    #[error("{file}: written by a newer netwright ({what}); use that one")]
    JournalNewer { file: String, what: String },
    #[error("{why}")]
    JournalUnread { file: String, why: String },

    /// Written by another version of this program.
    #[error("{message}")]
    Other { code: String, message: String },
}

coded!(Trouble);
