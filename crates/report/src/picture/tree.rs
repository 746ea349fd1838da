//! The host as nested boxes: packages → nodes → L3s → cores → CPUs (or nodes → packages, where
//! a node spans several packages, as in many virtual machines).

use std::collections::{BTreeMap, BTreeSet};

use model::{CpuId, Facts, NumaNode, cpu::Cpu};

/// The object that a box represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoxKind {
    Package(Option<i64>),
    Node(Option<NumaNode>),
    /// An L3, by its lowest CPU.
    L3(Option<CpuId>),
    /// A core, by its lowest CPU.
    Core(CpuId),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The object that the box represents.
    pub kind: BoxKind,
    /// Its label; empty for boxes that are not drawn.
    pub label: String,
    /// What is in it.
    pub inside: Vec<Block>,
    /// Its CPUs, for a core.
    pub cpus: Vec<CpuId>,
    /// NICs at it, by position in `Facts::nics`.
    pub nics: Vec<usize>,
}

type Key = fn(&Cpu) -> BoxKind;

/// The outermost boxes, ascending; nodes without CPUs last.
pub fn blocks(facts: &Facts) -> Vec<Block> {
    let package: Key = |c| BoxKind::Package(c.package_id.get());
    let node: Key = |c| BoxKind::Node(c.numa_node.get());
    let l3: Key = |c| BoxKind::L3(c.l3_id.get());
    let levels: [Key; 4] = if node_spans_packages(facts) {
        [node, package, l3, core]
    } else {
        [package, node, l3, core]
    };
    let all: Vec<&Cpu> = facts.cpus.iter().collect();
    let mut blocks = group(&all, &levels, facts);
    let with_cpus: BTreeSet<NumaNode> =
        facts.cpus.iter().filter_map(|c| c.numa_node.get()).collect();
    for n in facts.numa_nodes.iter().filter(|n| !with_cpus.contains(&n.id)) {
        blocks.push(block(BoxKind::Node(Some(n.id)), facts));
    }
    blocks
}

fn node_spans_packages(facts: &Facts) -> bool {
    let mut packages: BTreeMap<NumaNode, BTreeSet<i64>> = BTreeMap::new();
    for c in &facts.cpus {
        if let (Some(n), Some(p)) = (c.numa_node.get(), c.package_id.get()) {
            packages.entry(n).or_default().insert(p);
        }
    }
    packages.values().any(|p| p.len() > 1)
}

fn core(c: &Cpu) -> BoxKind {
    BoxKind::Core(c.smt_siblings.known().and_then(|s| s.first()).unwrap_or(c.id))
}

fn group(cpus: &[&Cpu], levels: &[Key], facts: &Facts) -> Vec<Block> {
    let Some((key, deeper)) = levels.split_first() else { return vec![] };
    let mut groups: BTreeMap<BoxKind, Vec<&Cpu>> = BTreeMap::new();
    for c in cpus {
        groups.entry(key(c)).or_default().push(c);
    }
    groups
        .into_iter()
        .map(|(kind, members)| {
            let mut b = block(kind, facts);
            b.inside = group(&members, deeper, facts);
            if deeper.is_empty() {
                b.cpus = members.iter().map(|c| c.id).collect();
            }
            b
        })
        .collect()
}

fn block(kind: BoxKind, facts: &Facts) -> Block {
    Block { kind, label: label(kind, facts), inside: vec![], cpus: vec![], nics: vec![] }
}

fn label(kind: BoxKind, facts: &Facts) -> String {
    match kind {
        BoxKind::Package(Some(p)) => format!("package {p}"),
        BoxKind::Node(Some(n)) => {
            let of = facts.numa_nodes.iter().find(|f| f.id == n);
            let memory = of.and_then(|f| f.memory_bytes.get()).filter(|b| b.0 > 0);
            let memory = memory.map(|b| format!(" · {b}")).unwrap_or_default();
            let empty = of.is_some_and(|f| f.cpus.is_empty());
            format!("node {n}{memory}{}", if empty { " · no CPUs" } else { "" })
        }
        BoxKind::L3(Some(l3)) => {
            let cache = facts.caches.iter().find(|c| c.level == 3 && c.cpus.contains(l3));
            let size = cache.and_then(|c| c.size_bytes.get());
            format!("L3{}", size.map(|b| format!(" {b}")).unwrap_or_default())
        }
        BoxKind::Package(None) if facts.cpus.iter().any(|c| c.package_id.is_known()) => {
            "package not known".into()
        }
        BoxKind::Package(None) | BoxKind::Node(None) | BoxKind::L3(None) | BoxKind::Core(_) => {
            String::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, MachineShape};

    #[test]
    fn nests_as_the_hardware_does() {
        let shape = MachineShape { packages: 2, nodes: 2, l3s: 2, cores: 4, threads: 2 };
        let b = blocks(&testing::machine(shape));
        assert_eq!(b.len(), 2);
        assert_eq!(b[1].inside.len(), 2);
        assert_eq!(b[1].inside[1].label, "node 3 · 16 GiB");
        assert_eq!(b[1].inside[1].inside[0].label, "L3 32 MiB");
        assert_eq!(b[1].inside[1].inside[1].inside[3].cpus, [CpuId(31), CpuId(63)]);
    }

    #[test]
    fn a_node_of_many_packages_is_outside_and_unknown_levels_have_no_label() {
        let shape = MachineShape { packages: 4, nodes: 1, l3s: 1, cores: 1, threads: 1 };
        let mut f = testing::machine(shape);
        for c in &mut f.cpus {
            c.numa_node = model::reading::Known(NumaNode(0));
        }
        f.numa_nodes.truncate(1);
        let b = blocks(&f);
        assert_eq!((b.len(), b[0].inside.len()), (1, 4));
        assert_eq!(b[0].kind, BoxKind::Node(Some(NumaNode(0))));

        let mut f = testing::nothing();
        f.cpus = vec![testing::cpu(0), testing::cpu(5)];
        let b = blocks(&f);
        assert_eq!(b.len(), 1);
        assert_eq!(b[0].label, "");
        let cores = &b[0].inside[0].inside[0].inside;
        assert_eq!(cores.iter().map(|c| c.cpus[0].0).collect::<Vec<_>>(), [0, 5]);
    }
}
