//! Classes of CPUs by what they share (a core, an L3 cache, a node), and a representative of each.
//! A host may have too many CPUs to try each; a placement matters by what it shares with the other
//! end, not by its number. Pure.

use std::collections::BTreeMap;

use model::{
    CpuId, CpuSet, NumaNode,
    cpu::{Cpu, NumaNodeFacts},
};

/// What a CPU shares with the CPUs that it works with, the closest of them counting; ordered from
/// the most shared to the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuClass {
    SameCpu,
    /// Another hardware thread of the same core.
    Sibling,
    /// Another core under the same L3 cache.
    SameL3,
    /// The same node under another L3 cache; a node may have several.
    OtherL3,
    /// The same node, where the kernel does not report L3 caches.
    SameNode,
    OtherNode,
    /// A node farther than the nearest other, where the distances differ.
    FarthestNode,
}

impl CpuClass {
    pub fn word(self) -> &'static str {
        match self {
            Self::SameCpu => "same CPU",
            Self::Sibling => "sibling",
            Self::SameL3 => "same L3",
            Self::OtherL3 => "other L3",
            Self::SameNode => "same node",
            Self::OtherNode => "other node",
            Self::FarthestNode => "farthest node",
        }
    }

    /// The order in which a small budget keeps classes: the most important first.
    pub(crate) fn weight(self) -> usize {
        match self {
            Self::SameCpu => 0,
            Self::SameL3 => 1,
            Self::OtherNode => 2,
            Self::Sibling => 3,
            Self::OtherL3 | Self::SameNode => 4,
            Self::FarthestNode => 5,
        }
    }
}

/// The CPUs to choose from, and the host's topology.
#[derive(Debug, Clone)]
pub struct CpuClassifier<'a> {
    cpus: Vec<&'a Cpu>,
    all: &'a [Cpu],
    nodes: &'a [NumaNodeFacts],
}

impl<'a> CpuClassifier<'a> {
    /// `allowed` are the CPUs that this process may use. Offline, isolated and nohz_full CPUs are
    /// left out.
    pub fn new(cpus: &'a [Cpu], nodes: &'a [NumaNodeFacts], allowed: &CpuSet) -> Self {
        let usable = |c: &&Cpu| {
            allowed.contains(c.id)
                && c.online.get() != Some(false)
                && c.isolated.get() != Some(true)
                && c.nohz_full.get() != Some(true)
        };
        Self { cpus: cpus.iter().filter(usable).collect(), all: cpus, nodes }
    }

    /// The class of a CPU relative to others. Never `FarthestNode`, which needs a nearer node to
    /// compare with.
    fn relation(&self, cpu: &Cpu, others: &CpuSet) -> CpuClass {
        if others.contains(cpu.id) {
            return CpuClass::SameCpu;
        }
        let to = |other: &Cpu| {
            if cpu.smt_siblings.known().is_some_and(|s| s.contains(other.id)) {
                return CpuClass::Sibling;
            }
            if cpu.numa_node.get() != other.numa_node.get() {
                return CpuClass::OtherNode;
            }
            match (cpu.l3_id.get(), other.l3_id.get()) {
                (Some(a), Some(b)) if a == b => CpuClass::SameL3,
                (Some(_), Some(_)) => CpuClass::OtherL3,
                _ => CpuClass::SameNode,
            }
        };
        let others = self.all.iter().filter(|o| others.contains(o.id));
        others.map(to).min().unwrap_or(CpuClass::OtherNode)
    }

    fn node_of(&self, cpu: CpuId) -> Option<NumaNode> {
        self.all.iter().find(|c| c.id == cpu)?.numa_node.get()
    }

    /// The NUMA distance between two nodes; `None` where the firmware does not report it.
    fn distance(&self, from: Option<NumaNode>, to: Option<NumaNode>) -> Option<u32> {
        let from = self.nodes.iter().find(|n| Some(n.id) == from)?;
        from.distances.known()?.get(&to?).copied()
    }

    /// The best representative of a class. It avoids the core of CPU 0 (housekeeping) and cores in
    /// use, prefers the first thread of a core, and takes the lowest number.
    fn foremost(&self, of: impl Iterator<Item = &'a Cpu>, used: &CpuSet) -> Option<CpuId> {
        let rank = |c: &&Cpu| {
            let core = c.smt_siblings.known();
            let touches = |cpus: &CpuSet| {
                cpus.contains(c.id) || core.is_some_and(|s| !s.intersection(cpus).is_empty())
            };
            let second = core.and_then(CpuSet::first).is_some_and(|first| first != c.id);
            (touches(used), touches(&CpuSet::from_iter([CpuId(0)])), second, c.id)
        };
        of.min_by_key(rank).map(|c| c.id)
    }

    /// A representative of each class relative to `others`, closest class first; [`CpuClass::OtherL3`]
    /// has one for each such cache. Classes without a free CPU are left out.
    pub fn classes(&self, others: &CpuSet) -> Vec<(CpuClass, CpuId)> {
        let mut found = Vec::new();
        let same_node_classes = [
            CpuClass::SameCpu,
            CpuClass::Sibling,
            CpuClass::SameL3,
            CpuClass::OtherL3,
            CpuClass::SameNode,
        ];
        for class in same_node_classes {
            let of = self.cpus.iter().copied().filter(|c| self.relation(c, others) == class);
            // The same L3 and node remain only for CPUs that share nothing closer.
            let used = if class < CpuClass::SameL3 { CpuSet::default() } else { others.clone() };
            let mut groups: BTreeMap<Option<CpuId>, Vec<&'a Cpu>> = BTreeMap::new();
            for cpu in of {
                let cache = cpu.l3_id.get().filter(|_| class == CpuClass::OtherL3);
                groups.entry(cache).or_default().push(cpu);
            }
            let each = groups.into_values().filter_map(|g| self.foremost(g.into_iter(), &used));
            found.extend(each.map(|cpu| (class, cpu)));
        }
        let home = others.first().and_then(|c| self.node_of(c));
        let away = |c: &&Cpu| self.relation(c, others) == CpuClass::OtherNode;
        let away: Vec<&Cpu> = self.cpus.iter().copied().filter(away).collect();
        let how_far = |c: &&Cpu| self.distance(home, c.numa_node.get());
        let nearest = away.iter().filter_map(how_far).min();
        let farthest = away.iter().filter_map(how_far).max();
        let at =
            |distance: Option<u32>| away.iter().copied().filter(move |c| how_far(c) == distance);
        match nearest {
            None => found.extend(
                self.foremost(away.iter().copied(), others).map(|c| (CpuClass::OtherNode, c)),
            ),
            nearest => {
                found.extend(self.foremost(at(nearest), others).map(|c| (CpuClass::OtherNode, c)));
                if farthest != nearest {
                    found.extend(
                        self.foremost(at(farthest), others).map(|c| (CpuClass::FarthestNode, c)),
                    );
                }
            }
        }
        found
    }

    /// How many CPUs there are to choose from.
    pub(crate) fn len(&self) -> usize {
        self.cpus.len()
    }

    /// CPUs for the other dimension of a matrix: one on the node `home` (a NIC's), one on the
    /// nearest other node and one on the farthest. Where `home` is not known, the node of `now`
    /// takes its place. On that node a CPU of `now` is preferred. A class without a usable CPU is
    /// `None`.
    pub fn homes(&self, home: Option<NumaNode>, now: &CpuSet) -> Vec<(CpuClass, CpuId)> {
        let of_now = || now.iter().find_map(|c| self.node_of(c));
        let has = |node: &NumaNode| self.cpus.iter().any(|c| c.numa_node.get() == Some(*node));
        let node = home.filter(has).or_else(of_now);
        let node = node.or_else(|| self.cpus.first().and_then(|c| c.numa_node.get()));
        let here = || self.cpus.iter().copied().filter(|c| c.numa_node.get() == node);
        let stays = self.foremost(here().filter(|c| now.contains(c.id)), &CpuSet::default());
        let Some(first) = stays.or_else(|| self.foremost(here(), &CpuSet::default())) else {
            return vec![];
        };
        let away = self.classes(&CpuSet::from_iter([first]));
        let mut found = vec![(CpuClass::SameNode, first)];
        found.extend(away.into_iter().filter(|(class, _)| *class >= CpuClass::OtherNode));
        found
    }
}

#[cfg(test)]
mod tests;
