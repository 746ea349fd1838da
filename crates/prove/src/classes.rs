//! How CPUs stand to one another, and one that stands for each class: where a host has too many
//! CPUs to try each, a placement matters by what it shares with the other (a core, an L3 cache, a
//! node), not by its number. Pure.

use std::collections::BTreeMap;

use model::{
    CpuId, CpuSet, NumaNode,
    cpu::{Cpu, NumaNodeFacts},
};

/// How a CPU stands to those that it works with, the closest of them; in the order of what is
/// shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    SameCpu,
    /// Another hardware thread of the same core.
    Sibling,
    /// Another core under the same L3 cache.
    SameL3,
    /// The same node under another L3 cache; there may be several.
    OtherL3,
    /// The same node, and the kernel does not tell the L3 caches.
    SameNode,
    OtherNode,
    /// A node farther than the nearest other, where the distances differ.
    FarthestNode,
}

impl Class {
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

    /// Which classes are given up last where the budget does not hold all.
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

/// The CPUs that may be chosen from, and what is known of them.
#[derive(Debug, Clone)]
pub struct Basis<'a> {
    cpus: Vec<&'a Cpu>,
    all: &'a [Cpu],
    nodes: &'a [NumaNodeFacts],
}

impl<'a> Basis<'a> {
    /// `allowed` are the CPUs that this process may use. Those that are offline, isolated or
    /// without a tick are nobody's placement.
    pub fn new(cpus: &'a [Cpu], nodes: &'a [NumaNodeFacts], allowed: &CpuSet) -> Self {
        let usable = |c: &&Cpu| {
            allowed.contains(c.id)
                && c.online.get() != Some(false)
                && c.isolated.get() != Some(true)
                && c.nohz_full.get() != Some(true)
        };
        Self { cpus: cpus.iter().filter(usable).collect(), all: cpus, nodes }
    }

    /// How a CPU stands to others. `FarthestNode` is not reported here, for it is so only beside a nearer.
    fn relation(&self, cpu: &Cpu, others: &CpuSet) -> Class {
        if others.contains(cpu.id) {
            return Class::SameCpu;
        }
        let to = |other: &Cpu| {
            if cpu.smt_siblings.known().is_some_and(|s| s.contains(other.id)) {
                return Class::Sibling;
            }
            if cpu.numa_node.get() != other.numa_node.get() {
                return Class::OtherNode;
            }
            match (cpu.l3_id.get(), other.l3_id.get()) {
                (Some(a), Some(b)) if a == b => Class::SameL3,
                (Some(_), Some(_)) => Class::OtherL3,
                _ => Class::SameNode,
            }
        };
        let others = self.all.iter().filter(|o| others.contains(o.id));
        others.map(to).min().unwrap_or(Class::OtherNode)
    }

    fn node_of(&self, cpu: CpuId) -> Option<NumaNode> {
        self.all.iter().find(|c| c.id == cpu)?.numa_node.get()
    }

    /// How far a node is from another; `None` where the firmware does not tell.
    fn distance(&self, from: Option<NumaNode>, to: Option<NumaNode>) -> Option<u32> {
        let from = self.nodes.iter().find(|n| Some(n.id) == from)?;
        from.distances.known()?.get(&to?).copied()
    }

    /// The best of some to stand for a class: neither on the core of CPU 0, which does housekeeping for
    /// the host, nor on one that is in use, the first thread of its core, the lowest.
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

    /// The CPU that stands for each class to `others`, closest first; of [`Class::OtherL3`] one for
    /// each such cache. Classes that this host does not have, or has no free CPU of, are not there.
    pub fn classes(&self, others: &CpuSet) -> Vec<(Class, CpuId)> {
        let mut found = Vec::new();
        let local =
            [Class::SameCpu, Class::Sibling, Class::SameL3, Class::OtherL3, Class::SameNode];
        for class in local {
            let of = self.cpus.iter().copied().filter(|c| self.relation(c, others) == class);
            // The L3 and the node are shared with whom nothing closer is.
            let used = if class < Class::SameL3 { CpuSet::default() } else { others.clone() };
            let mut groups: BTreeMap<Option<CpuId>, Vec<&'a Cpu>> = BTreeMap::new();
            for cpu in of {
                let cache = cpu.l3_id.get().filter(|_| class == Class::OtherL3);
                groups.entry(cache).or_default().push(cpu);
            }
            let each = groups.into_values().filter_map(|g| self.foremost(g.into_iter(), &used));
            found.extend(each.map(|cpu| (class, cpu)));
        }
        let home = others.first().and_then(|c| self.node_of(c));
        let away = |c: &&Cpu| self.relation(c, others) == Class::OtherNode;
        let away: Vec<&Cpu> = self.cpus.iter().copied().filter(away).collect();
        let how_far = |c: &&Cpu| self.distance(home, c.numa_node.get());
        let nearest = away.iter().filter_map(how_far).min();
        let farthest = away.iter().filter_map(how_far).max();
        let at = |peer: Option<u32>| away.iter().copied().filter(move |c| how_far(c) == peer);
        match nearest {
            None => found
                .extend(self.foremost(away.iter().copied(), others).map(|c| (Class::OtherNode, c))),
            local => {
                found.extend(self.foremost(at(local), others).map(|c| (Class::OtherNode, c)));
                if farthest != local {
                    found.extend(
                        self.foremost(at(farthest), others).map(|c| (Class::FarthestNode, c)),
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

    /// CPUs for the other dimension: one on the node that is `local` (a NIC's), or where that is
    /// not reported on the node of `now`, one on the nearest other node and one on the farthest. On
    /// the node itself one of `now`, if any is there. `None` of a class: where no CPU may be used.
    pub fn homes(&self, local: Option<NumaNode>, now: &CpuSet) -> Vec<(Class, CpuId)> {
        let of_now = || now.iter().find_map(|c| self.node_of(c));
        let has = |node: &NumaNode| self.cpus.iter().any(|c| c.numa_node.get() == Some(*node));
        let node = local.filter(has).or_else(of_now);
        let node = node.or_else(|| self.cpus.first().and_then(|c| c.numa_node.get()));
        let here = || self.cpus.iter().copied().filter(|c| c.numa_node.get() == node);
        let stays = self.foremost(here().filter(|c| now.contains(c.id)), &CpuSet::default());
        let Some(first) = stays.or_else(|| self.foremost(here(), &CpuSet::default())) else {
            return vec![];
        };
        let away = self.classes(&CpuSet::from_iter([first]));
        let mut found = vec![(Class::SameNode, first)];
        found.extend(away.into_iter().filter(|(class, _)| *class >= Class::OtherNode));
        found
    }
}

#[cfg(test)]
mod tests;
