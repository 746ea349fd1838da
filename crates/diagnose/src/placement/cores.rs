//! The cores of a node that are still free, and how they are handed out: whole cores, and where it
//! can be those of one L3.

use std::{cmp::Reverse, collections::BTreeMap};

use model::{CpuId, CpuSet};

use crate::{Case, spread};

/// Free cores of one node, each with all its hardware threads.
pub(super) struct FreeCores {
    /// By L3 (its lowest CPU, where known), in the order of their lowest CPU.
    by_l3: BTreeMap<Option<CpuId>, Vec<CpuSet>>,
}

impl FreeCores {
    /// The cores of these CPUs.
    pub(super) fn new(case: &Case<'_>, cpus: &CpuSet) -> Self {
        let mut by_l3: BTreeMap<Option<CpuId>, Vec<CpuSet>> = BTreeMap::new();
        let mut left = cpus.clone();
        for cpu in cpus.iter() {
            if !left.contains(cpu) {
                continue;
            }
            let core = spread::siblings(case, cpu).intersection(&left);
            left = left.difference(&core);
            by_l3.entry(case.cpu(cpu).and_then(|c| c.l3_id.get())).or_default().push(core);
        }
        Self { by_l3 }
    }

    pub(super) fn len(&self) -> usize {
        self.by_l3.values().map(Vec::len).sum()
    }

    /// All CPUs that are left.
    pub(super) fn cpus(&self) -> CpuSet {
        self.by_l3.values().flatten().fold(CpuSet::new(), |all, core| all.union(core))
    }

    /// How many of them a service may use whole.
    pub(super) fn usable(&self, allowed: &CpuSet) -> usize {
        self.by_l3.values().flatten().filter(|c| c.is_subset(allowed)).count()
    }

    /// Takes cores that the service may use: of the L3 with the fewest that suffice, else of as few
    /// L3s as will do. Fewer than asked for, where no more are left.
    pub(super) fn take(&mut self, wanted: usize, allowed: &CpuSet) -> CpuSet {
        let mut taken = CpuSet::new();
        let mut missing = wanted;
        while missing > 0 {
            let usable =
                |cores: &Vec<CpuSet>| cores.iter().filter(|c| c.is_subset(allowed)).count();
            let some = self.by_l3.iter().map(|(l3, cores)| (usable(cores), *l3));
            let some: Vec<_> = some.filter(|(n, _)| *n > 0).collect();
            let enough = some.iter().filter(|(n, _)| *n >= missing).min();
            let largest = || some.iter().min_by_key(|(n, l3)| (Reverse(*n), *l3));
            let Some((_, l3)) = enough.or_else(largest).copied() else { break };
            let Some(cores) = self.by_l3.get_mut(&l3) else { break };
            cores.retain(|core| {
                let take = missing > 0 && core.is_subset(allowed);
                if take {
                    taken = taken.union(core);
                    missing -= 1;
                }
                !take
            });
        }
        taken
    }
}
