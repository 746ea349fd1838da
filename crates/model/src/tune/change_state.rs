//! How a change set stands.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a change set stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeState {
    /// Being made or undone right now, by a process that lives.
    InProgress,
    /// Interrupted: some of it may be in force.
    Unfinished,
    /// In force until the watchdog undoes it, unless somebody confirms.
    AwaitingConfirmation,
    InForce,
    /// Undone; all is as it was.
    RolledBack,
    /// Undone as far as possible: some values could not be put back.
    PartlyRolledBack,
    /// The host was booted since.
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
