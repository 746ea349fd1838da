//! State of a change set.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of a change set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeState {
    /// Being made or undone by a live process.
    InProgress,
    /// Interrupted: parts of it may be in force.
    Unfinished,
    /// In force until the watchdog undoes it, unless the operator confirms.
    AwaitingConfirmation,
    InForce,
    /// Undone; all old values are restored.
    RolledBack,
    /// Undone as far as possible: some values could not be restored.
    PartlyRolledBack,
    /// Gone: the host was rebooted since.
    GoneWithBoot,
}

impl fmt::Display for ChangeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::InProgress => "in progress",
            Self::Unfinished => "unfinished",
            Self::AwaitingConfirmation => "awaiting confirmation",
            Self::InForce => "in force",
            Self::RolledBack => "rolled back",
            Self::PartlyRolledBack => "partly rolled back",
            Self::GoneWithBoot => "gone with the reboot",
        })
    }
}
