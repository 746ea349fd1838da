//! The topology of CPUs and of a NIC: the minimum for choosing CPUs, for callers that cannot wait
//! for all facts.
//!
//! **Cost**: a file for each core, two for each L3, one for each node; measured 0.04 ms live (2
//! CPUs) and 7 ms on a tree of 1,024 CPUs in 512 cores, 64 L3s and 8 nodes.

use model::{CpuId, CpuSet, NumaNode};

use super::{
    cpu_layout::{CPUS, siblings},
    parallel,
};
use crate::Root;

const NODES: &str = "/sys/devices/system/node";
const NET: &str = "/sys/class/net";
/// The deepest stack of interfaces: a VLAN on a bond on a NIC is two.
const MAX_DEPTH: u32 = 4;
/// The most interrupts of a NIC that are read; a server's NIC has at most one for each CPU.
const MAX_IRQS: usize = 2048;

/// Where one CPU stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuLocation {
    pub cpu: CpuId,
    /// The online hardware threads of its core, itself included; itself alone where the kernel does
    /// not report them.
    pub core: CpuSet,
    /// The L3 that it uses, as the lowest CPU of those that share it.
    pub l3: Option<CpuId>,
    pub node: Option<NumaNode>,
}

/// The CPUs that are online; `None` where the kernel does not report them.
pub fn online(root: &Root) -> Option<CpuSet> {
    root.list(&format!("{CPUS}/online")).into_known()
}

/// The places of `wanted`, ascending, each thread of a core and each user of an L3 by the word
/// of the first of them.
pub fn read(root: &Root, wanted: &CpuSet) -> Vec<CpuLocation> {
    let cpus: Vec<CpuId> = wanted.iter().collect();
    let running = online(root).unwrap_or_else(|| wanted.clone());
    let nodes = nodes(root);
    let cores = parallel::by_runs(&cpus, |cpus| {
        let mut known: Vec<CpuSet> = Vec::new();
        let mut core_of = |cpu: CpuId| {
            if let Some(core) = known.iter().rev().find(|c| c.contains(cpu)) {
                return core.clone();
            }
            let said = siblings(root, cpu).into_known().unwrap_or_default();
            let mut core = said.intersection(&running);
            core.insert(cpu);
            known.push(core.clone());
            core
        };
        cpus.iter().map(|&cpu| core_of(cpu)).collect::<Vec<_>>()
    });
    let mut l3s: Vec<(CpuSet, Option<CpuId>)> = Vec::new();
    cpus.into_iter()
        .zip(cores)
        .map(|(cpu, core)| {
            let at = l3s.iter().rposition(|(cpus, _)| cpus.contains(cpu)).unwrap_or_else(|| {
                // A core without an L3 speaks for its threads only.
                let cpus = l3(root, cpu);
                let first = cpus.as_ref().and_then(CpuSet::first);
                l3s.push((cpus.unwrap_or_else(|| core.clone()), first));
                l3s.len() - 1
            });
            CpuLocation {
                cpu,
                core,
                l3: l3s.get(at).and_then(|l| l.1),
                node: nodes.iter().find(|(_, cpus)| cpus.contains(cpu)).map(|(node, _)| *node),
            }
        })
        .collect()
}

/// The CPUs that share the L3 of `cpu`. It is usually the fourth cache, after two of level 1.
fn l3(root: &Root, cpu: CpuId) -> Option<CpuSet> {
    let folder = format!("{CPUS}/cpu{cpu}/cache");
    let level = |index: &str| root.number::<u32>(&format!("{folder}/{index}/level")).into_known();
    let shared = |index: &str| {
        let list = root.list(&format!("{folder}/{index}/shared_cpu_list"));
        list.or_else(|| root.mask(&format!("{folder}/{index}/shared_cpu_map"))).into_known()
    };
    if level("index3") == Some(3) {
        return shared("index3").filter(|s| s.contains(cpu));
    }
    let all = root.entries(&folder).unwrap_or_default();
    let index = all.iter().find(|i| i.starts_with("index") && level(i) == Some(3))?;
    shared(index).filter(|s| s.contains(cpu))
}

fn nodes(root: &Root) -> Vec<(NumaNode, CpuSet)> {
    let names = root.entries(NODES).unwrap_or_default();
    let ids = names.iter().filter_map(|name| parse::text::id(name.strip_prefix("node")?));
    ids.map(|id| {
        let file = |name: &str| format!("{NODES}/node{id}/{name}");
        let cpus = root.list(&file("cpulist")).or_else(|| root.mask(&file("cpumap")));
        (NumaNode(id), cpus.into_known().unwrap_or_default())
    })
    .collect()
}

/// Where the hardware behind an interface stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NicPlace {
    /// The physical interface: the one asked for, or the one under it.
    pub name: String,
    /// The node that it is attached to; `None` where the firmware does not report it.
    pub node: Option<NumaNode>,
    /// The CPUs that take its interrupts; empty where that is not known (its interrupts are no
    /// MSIs, or `/proc/irq` is hidden).
    pub irq_cpus: CpuSet,
}

/// The device behind `interface`, which may be a VLAN, bond or bridge above it (then the first of
/// its lower interfaces); `None` where there is none, as for `lo` and `veth`.
pub fn nic(root: &Root, interface: &str) -> Option<NicPlace> {
    let name = physical(root, interface, 0)?;
    let place = super::nic::device(root, &name).into_known()?;
    let folder = place.pci.unwrap_or(place.device);
    let node = root.number::<i64>(&format!("{folder}/numa_node")).into_known();
    let irqs = root.entries(&format!("{folder}/msi_irqs")).unwrap_or_default();
    let mut irq_cpus = CpuSet::new();
    for irq in irqs.iter().filter(|i| parse::text::id(i).is_some()).take(MAX_IRQS) {
        let list = |file: &str| root.list(&format!("/proc/irq/{irq}/{file}")).into_known();
        let cpus = list("effective_affinity_list").filter(|c| !c.is_empty());
        let cpus = cpus.or_else(|| list("smp_affinity_list")).unwrap_or_default();
        cpus.iter().for_each(|c| irq_cpus.insert(c));
    }
    let node = node.and_then(|n| u32::try_from(n).ok()).map(NumaNode);
    Some(NicPlace { name, node, irq_cpus })
}

fn physical(root: &Root, interface: &str, depth: u32) -> Option<String> {
    // Names come from the kernel; one with a slash would be another folder.
    if depth > MAX_DEPTH || interface.is_empty() || interface.contains('/') {
        return None;
    }
    let folder = format!("{NET}/{interface}");
    if root.exists(&format!("{folder}/device")) {
        return Some(interface.to_owned());
    }
    let names = root.entries(&folder).unwrap_or_default();
    let below = names.iter().filter_map(|n| n.strip_prefix("lower_"));
    below.into_iter().find_map(|lower| physical(root, lower, depth + 1))
}

#[cfg(test)]
mod tests;
