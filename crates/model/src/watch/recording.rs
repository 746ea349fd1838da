//! The records of `watch --record`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WatchInterval;
use crate::{CpuId, Facts, Finding, NumaNode, Reading};

/// The recording's version; [`super::SCHEMA_VERSION`] is that of the intervals within.
pub const RECORDING_VERSION: u32 = 1;

/// What the view needs to know of the host whose intervals it shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchHost {
    /// [`RECORDING_VERSION`] of the writer; what tells a recording from other files.
    pub recording_version: u32,
    pub name: Reading<String>,
    pub kernel: Reading<String>,
    /// The nodes of its CPUs, ascending by CPU.
    pub cpus: Vec<CpuNode>,
    pub nics: Vec<String>,
}

/// Where a CPU is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuNode {
    pub id: CpuId,
    pub numa_node: Reading<NumaNode>,
}

impl WatchHost {
    /// Of a host's facts.
    pub fn of(facts: &Facts) -> Self {
        let place = |c: &crate::cpu::Cpu| CpuNode { id: c.id, numa_node: c.numa_node.clone() };
        Self {
            recording_version: RECORDING_VERSION,
            name: facts.host.name.clone(),
            kernel: facts.host.kernel.clone(),
            cpus: facts.cpus.iter().map(place).collect(),
            nics: facts.nics.iter().map(|n| n.name.clone()).collect(),
        }
    }

    /// One of which nothing is known, for a stated reason.
    pub fn unknown(why: &str) -> Self {
        Self {
            recording_version: RECORDING_VERSION,
            name: Reading::absent(why),
            kernel: Reading::absent(why),
            cpus: vec![],
            nics: vec![],
        }
    }

    /// The node of a CPU, if it is known.
    pub fn node_of(&self, cpu: CpuId) -> Option<NumaNode> {
        let at = self.cpus.binary_search_by_key(&cpu, |c| c.id).ok()?;
        self.cpus.get(at)?.numa_node.get()
    }
}

/// One interval and what the rules said of it. **Shape**: a recording is zstd-compressed lines
/// of JSON: first the [`WatchHost`], then one of these an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchRecord {
    /// What was seen; exactly a line of `watch --json`.
    pub interval: WatchInterval,
    /// What the rules found in it.
    pub findings: Vec<Finding>,
}
