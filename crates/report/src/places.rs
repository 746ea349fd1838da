//! The positions of CPUs: node, L3, package, core.

use std::collections::{BTreeMap, BTreeSet};

use model::{CpuId, CpuSet, Facts, NumaNode, cpu::Cpu};

pub struct CpuPlaces<'a> {
    cpus: BTreeMap<CpuId, &'a Cpu>,
}

impl<'a> CpuPlaces<'a> {
    pub fn new(facts: &'a Facts) -> Self {
        Self { cpus: facts.cpus.iter().map(|c| (c.id, c)).collect() }
    }

    pub fn cpu(&self, id: CpuId) -> Option<&'a Cpu> {
        self.cpus.get(&id).copied()
    }

    /// The nodes that CPUs of the set are known to be on.
    pub fn nodes(&self, set: &CpuSet) -> BTreeSet<NumaNode> {
        set.iter().filter_map(|c| self.cpu(c)?.numa_node.get()).collect()
    }

    /// The L3s that CPUs of the set are known to use, each by its lowest CPU.
    pub fn l3s(&self, set: &CpuSet) -> CpuSet {
        set.iter().filter_map(|c| self.cpu(c)?.l3_id.get()).collect()
    }

    /// CPUs of the set that are isolated from the scheduler.
    pub fn isolated(&self, set: &CpuSet) -> CpuSet {
        set.iter()
            .filter(|&c| self.cpu(c).is_some_and(|c| c.isolated.get() == Some(true)))
            .collect()
    }

    /// CPUs that run, of one node or of all.
    pub fn online(&self, node: Option<NumaNode>) -> CpuSet {
        self.cpus
            .values()
            .filter(|c| c.online.get() != Some(false))
            .filter(|c| node.is_none() || c.numa_node.get() == node)
            .map(|c| c.id)
            .collect()
    }

    /// The number of cores of the running CPUs, where all siblings are known; the kernel does not
    /// report those of offline CPUs.
    pub fn cores(&self) -> Option<usize> {
        let cores: Option<BTreeSet<CpuId>> = self
            .cpus
            .values()
            .filter(|c| c.online.get() != Some(false))
            .map(|c| c.smt_siblings.known().map(|s| s.first().unwrap_or(c.id)))
            .collect();
        cores.map(|c| c.len())
    }

    /// How many packages are known.
    pub fn packages(&self) -> usize {
        self.cpus.values().filter_map(|c| c.package_id.get()).collect::<BTreeSet<_>>().len()
    }

    /// How many L3s are known.
    pub fn l3_count(&self) -> usize {
        self.cpus.values().filter_map(|c| c.l3_id.get()).collect::<BTreeSet<_>>().len()
    }
}
