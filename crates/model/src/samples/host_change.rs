//! Changes of the host within a window, as values.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuId, coded::coded};

/// A change of the host. In JSON `{code, data, message}`, as a [`crate::Warning`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[schemars(tag = "code", content = "data", transform = crate::coded::short)]
pub enum HostChange {
    #[error("CPU {cpu} {}", online(*.change))]
    CpuChanged { cpu: CpuId, change: Presence },
    #[error("{nic} (ifindex {ifindex}) {change}")]
    NicChanged { nic: String, ifindex: u32, change: Presence },
    /// The list of interfaces is not known.
    #[error("{why}")]
    NicsNotRead { why: String },
    #[error("{nic} lost or gained its carrier, {times} times in all")]
    CarrierChanged { nic: String, times: u64 },
    /// **Source**: `scaling_governor`, `scaling_max_freq` of the policy.
    #[error("{policy} from {before} to {after}")]
    FrequencyLimitChanged { policy: String, before: FrequencyLimit, after: FrequencyLimit },

    /// Written by another version of this program.
    #[error("{message}")]
    Other { code: String, message: String },
}

/// Whether an object existed at the beginning, in the middle and at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    Came,
    Went,
    CameAndWent,
    WentAndCameBack,
}

impl fmt::Display for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Came => "came",
            Self::Went => "went",
            Self::CameAndWent => "came and went",
            Self::WentAndCameBack => "went and came back",
        })
    }
}

fn online(change: Presence) -> &'static str {
    match change {
        Presence::Came => "came online",
        Presence::Went => "went offline",
        Presence::CameAndWent => "came online and went offline",
        Presence::WentAndCameBack => "went offline and came back",
    }
}

/// Limits of the frequency of a policy's CPUs; values that could not be read are absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrequencyLimit {
    pub governor: Option<String>,
    pub max_khz: Option<u64>,
}

impl fmt::Display for FrequencyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = self.max_khz.map_or("?".to_owned(), |m| m.to_string());
        write!(f, "{} up to {most} kHz", self.governor.as_deref().unwrap_or("?"))
    }
}

coded!(HostChange);
