//! The records of `watch --record`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WatchInterval;
use crate::{CpuId, Facts, Finding, NumaNode, Reading};

/// Version of the recording; [`super::SCHEMA_VERSION`] is the version of the intervals in it.
pub const RECORDING_VERSION: u32 = 1;

/// Data of the recorded host that the view needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchHost {
    /// [`RECORDING_VERSION`] of the writer; it identifies the file as a recording.
    pub recording_version: u32,
    pub name: Reading<String>,
    pub kernel: Reading<String>,
    /// The NUMA nodes of its CPUs, ascending by CPU.
    pub cpus: Vec<CpuNode>,
    pub nics: Vec<String>,
}

/// Location of a CPU.
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

    /// A host of which nothing is known, with the reason.
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

/// One interval and the findings of the rules. **Shape**: a recording is zstd-compressed lines of
/// JSON: first the [`WatchHost`], then one of these an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchRecord {
    /// The interval; the same as a line of `watch --json`.
    pub interval: WatchInterval,
    /// Findings of the rules in it.
    pub findings: Vec<Finding>,
}
