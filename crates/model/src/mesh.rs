//! One host's part of a mesh: `netwright mesh --once --json`.

pub mod graph;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Nanos, Reading, measure::Quantiles};

/// What one host of a mesh measured in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshDocument {
    /// Version of the document's shape.
    pub schema_version: u32,
    /// Kind of the document: always `mesh`.
    pub kind: String,
    /// Start of the round, seconds since 1970.
    pub started_unix_s: u64,
    /// This host, as the list of peers names it.
    pub source: String,
    /// Peers in the list, this host included.
    pub peers: usize,
    /// Seed of the graph, which all hosts share.
    pub seed: u64,
    /// The targets of this host, in the order of the rings.
    pub targets: Vec<MeshTarget>,
    /// CPU quota of this program over the round; `None` where its cgroups have none.
    pub quota: Reading<Option<QuotaUse>>,
    /// Whether the round was ended early.
    pub interrupted: bool,
}

/// A target of this host, and the last probe of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshTarget {
    /// The peer, as the list names it.
    pub target: String,
    /// What the probe measured; absent where the peer could not be asked, with the reason.
    pub result: Reading<MeshProbe>,
}

impl MeshTarget {
    /// Whether at least one datagram came back.
    pub fn answered(&self) -> bool {
        self.result.known().is_some_and(|r| r.rtt_ns.is_some())
    }
}

/// Datagrams of 64 bytes to a peer and back, at a fixed rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeshProbe {
    /// Round trips from the moment of sending; `None` where every datagram was lost.
    pub rtt_ns: Option<Quantiles>,
    /// Requests with an answer in time.
    pub answered: u64,
    /// Requests without an answer in time: lost on the way there or back.
    pub lost: u64,
}

/// How far a process used up its CPU quotas: those of its own cgroup and of the cgroups above it, added
/// up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaUse {
    /// Periods in which something in a cgroup ran.
    pub periods: u64,
    /// Those periods in which the quota was used up.
    pub throttled_periods: u64,
    /// Time for which its threads were kept from running, all CPUs together.
    pub throttled_ns: Nanos,
}

impl fmt::Display for QuotaUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { periods, throttled_periods, throttled_ns } = self;
        write!(
            f,
            "own CPU throttled for {throttled_ns} in {throttled_periods} of {periods} periods of its \
             quota"
        )
    }
}

impl QuotaUse {
    /// The growth since an earlier reading; `None` where a cgroup was made anew or left in between.
    pub fn since(self, before: Self) -> Option<Self> {
        Some(Self {
            periods: self.periods.checked_sub(before.periods)?,
            throttled_periods: self.throttled_periods.checked_sub(before.throttled_periods)?,
            throttled_ns: Nanos(self.throttled_ns.0.checked_sub(before.throttled_ns.0)?),
        })
    }
}
