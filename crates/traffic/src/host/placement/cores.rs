//! The candidate cores, best first.

use std::collections::{BTreeMap, BTreeSet};

use model::{CpuId, CpuSet, NumaNode};

use super::{LocalPlacement, PlacementRequest, place};

#[derive(Debug, Clone)]
pub struct Core {
    /// Its usable CPUs, ascending; never empty.
    pub cpus: Vec<CpuId>,
    /// All its online CPUs.
    pub core: CpuSet,
    l3: Option<CpuId>,
    node: Option<NumaNode>,
}

/// The location to be near.
#[derive(Default)]
struct Anchor {
    l3s: BTreeSet<CpuId>,
    node: Option<NumaNode>,
}

/// Every core with a CPU in `usable`, ranked by the policy.
pub fn ranked(here: &LocalPlacement, request: &PlacementRequest<'_>, usable: &CpuSet) -> Vec<Core> {
    let mut cores = group(here, usable);
    let anchor = anchor(here, request, &cores);
    let irq_cpus = request.nic.filter(|_| !request.same_host).map(|n| &n.irq_cpus);
    cores.sort_by_key(|c| {
        let busy = !c.core.intersection(request.taken).is_empty();
        let other_node = anchor.node.is_some() && c.node != anchor.node;
        let other_l3 = !anchor.l3s.is_empty() && c.l3.is_none_or(|l3| !anchor.l3s.contains(&l3));
        let takes_irqs = irq_cpus.is_some_and(|i| !c.core.intersection(i).is_empty());
        let keeps_house = c.core.contains(CpuId(0));
        (busy, other_node, other_l3, takes_irqs, keeps_house, c.cpus.first().copied())
    });
    cores
}

fn group(here: &LocalPlacement, usable: &CpuSet) -> Vec<Core> {
    let mut by_core: BTreeMap<CpuId, Core> = BTreeMap::new();
    for cpu in usable.iter() {
        let place = place(here, cpu);
        let alone = || CpuSet::from_iter([cpu]);
        let core = place.map_or_else(alone, |p| p.core.clone());
        let id = core.first().unwrap_or(cpu);
        let entry = by_core.entry(id).or_insert_with(|| Core {
            cpus: vec![],
            core,
            l3: place.and_then(|p| p.l3),
            node: place.and_then(|p| p.node),
        });
        entry.cpus.push(cpu);
    }
    by_core.into_values().collect()
}

/// The location to be near: the other end on this host, else the NIC, else the largest group of
/// cores.
fn anchor(here: &LocalPlacement, request: &PlacementRequest<'_>, cores: &[Core]) -> Anchor {
    if request.same_host {
        if let Some(first) = request.partner.iter().find_map(|cpu| place(here, cpu)) {
            return Anchor { l3s: first.l3.into_iter().collect(), node: first.node };
        }
    } else if let Some(nic) = request.nic {
        let takes = |c: &&Core| !c.core.intersection(&nic.irq_cpus).is_empty();
        let local = |c: &&Core| nic.node.is_none() || c.node == nic.node;
        let l3s: BTreeSet<CpuId> =
            cores.iter().filter(takes).filter(local).filter_map(|c| c.l3).collect();
        if nic.node.is_some() || !l3s.is_empty() {
            return Anchor { l3s, node: nic.node };
        }
    }
    let free = |c: &&Core| c.core.intersection(request.taken).is_empty();
    let mut together: BTreeMap<(Option<NumaNode>, Option<CpuId>), usize> = BTreeMap::new();
    for core in cores.iter().filter(free) {
        *together.entry((core.node, core.l3)).or_default() += 1;
    }
    // On a tie the first wins; `max_by_key` alone would return the last.
    let best = together.into_iter().rev().max_by_key(|(_, n)| *n);
    best.map(|((node, l3), _)| Anchor { l3s: l3.into_iter().collect(), node }).unwrap_or_default()
}
