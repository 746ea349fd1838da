//! The topology of the CPUs between which threads migrate.

use std::collections::BTreeMap;

use model::{CpuId, CpuSet, NumaNode, Reading, watch::MigrationPath};

use crate::{Root, facts::topology};

#[derive(Debug, Clone, Copy)]
struct CpuDomains {
    l3: Option<CpuId>,
    node: Option<NumaNode>,
    package: Option<i64>,
}

/// Every CPU that was online at any reading; sysfs shows no topology of offline ones.
#[derive(Debug, Default)]
pub struct OnlineCpus(BTreeMap<CpuId, CpuDomains>);

impl OnlineCpus {
    /// Of the CPUs that are online now.
    pub fn read(root: &Root) -> Self {
        let mut cpus = Self::default();
        cpus.learn(root, topology::online(root).unwrap_or_default().iter());
        cpus
    }

    /// Of those that are new.
    pub fn learn(&mut self, root: &Root, cpus: impl Iterator<Item = CpuId>) {
        let new: CpuSet = cpus.filter(|c| !self.0.contains_key(c)).collect();
        if new.is_empty() {
            return;
        }
        for place in topology::read(root, &new) {
            let folder = format!("/sys/devices/system/cpu/cpu{}/topology", place.cpu);
            let package = root.number::<i64>(&format!("{folder}/physical_package_id"));
            // −1 where the firmware does not report it.
            let package = package.into_known().filter(|p| *p >= 0);
            self.0.insert(place.cpu, CpuDomains { l3: place.l3, node: place.node, package });
        }
    }

    /// Moves between CPUs that share no L3.
    pub fn across_l3(&self, transitions: &[MigrationPath]) -> Reading<u64> {
        self.across(transitions, |s| s.l3, "L3 cache")
    }

    pub fn across_node(&self, transitions: &[MigrationPath]) -> Reading<u64> {
        self.across(transitions, |s| s.node, "node")
    }

    pub fn across_package(&self, transitions: &[MigrationPath]) -> Reading<u64> {
        self.across(transitions, |s| s.package, "package")
    }

    fn across<T: PartialEq>(
        &self,
        transitions: &[MigrationPath],
        of: impl Fn(&CpuDomains) -> Option<T>,
        what: &str,
    ) -> Reading<u64> {
        let of = |cpu| self.0.get(&cpu).and_then(&of);
        let mut sum = 0;
        for way in transitions {
            match (of(way.from), of(way.to)) {
                (Some(from), Some(to)) if from == to => {}
                (Some(_), Some(_)) => sum += way.count,
                (None, _) => return unknown(way.from, what),
                (_, None) => return unknown(way.to, what),
            }
        }
        Reading::Known(sum)
    }
}

fn unknown(cpu: CpuId, what: &str) -> Reading<u64> {
    Reading::Absent(format!("the kernel does not report the {what} of CPU {cpu}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_across_caches_nodes_and_packages() {
        let domains = |l3, node, package| CpuDomains {
            l3: Some(CpuId(l3)),
            node: Some(NumaNode(node)),
            package: Some(package),
        };
        let mut cpus = OnlineCpus(BTreeMap::from([
            (CpuId(0), domains(0, 0, 0)),
            (CpuId(1), domains(0, 0, 0)),
            (CpuId(4), domains(4, 0, 0)),
            (CpuId(8), domains(8, 1, 0)),
            (CpuId(600), domains(600, 2, 1)),
        ]));
        let way = |from, to, count| MigrationPath { from: CpuId(from), to: CpuId(to), count };
        let transitions = [way(0, 1, 100), way(1, 4, 20), way(4, 8, 3), way(8, 600, 1)];
        assert_eq!(cpus.across_l3(&transitions), Reading::Known(24));
        assert_eq!(cpus.across_node(&transitions), Reading::Known(4));
        assert_eq!(cpus.across_package(&transitions), Reading::Known(1));
        cpus.0.remove(&CpuId(8));
        let why = cpus.across_node(&transitions);
        assert_eq!(why.why_not(), Some("the kernel does not report the node of CPU 8"));
    }
}
