//! Assigns work to CPUs: interrupts, RPS and XPS.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    CpuId, CpuSet, NumaNode, QueueId,
    spread::{assignments, ordered},
};

use crate::{
    Case, knob,
    queues::QueueIrq,
    rule::{Missing, Proposal, need},
};

/// Physical cores among these CPUs: groups of SMT siblings.
pub(crate) fn cores(case: &Case<'_>, cpus: &CpuSet) -> usize {
    cpus.iter().map(|c| core_of(case, c)).collect::<BTreeSet<_>>().len()
}

/// Evidence: the siblings of every CPU, which distinguish cores from threads.
pub(crate) fn cores_read(case: &Case<'_>) -> Result<(), Missing> {
    case.housekeeping()
        .iter()
        .filter_map(|c| case.cpu(c))
        .try_for_each(|c| need(&format!("siblings of CPU {}", c.id), &c.smt_siblings).map(drop))
}

/// A core's name: its lowest CPU.
fn core_of(case: &Case<'_>, cpu: CpuId) -> CpuId {
    siblings(case, cpu).first().unwrap_or(cpu)
}

/// Hardware threads of the CPU's core, itself included. The source is the CPU's own list, else a
/// sibling's list; else the CPU is alone.
pub(crate) fn siblings(case: &Case<'_>, cpu: CpuId) -> CpuSet {
    let own = case.cpu(cpu).and_then(|c| c.smt_siblings.get());
    let reported = || {
        let others = case.facts.cpus.iter().filter_map(|c| c.smt_siblings.known());
        others.into_iter().find(|s| s.contains(cpu)).cloned()
    };
    let known = own.filter(|s| s.contains(cpu)).or_else(reported);
    known.unwrap_or_else(|| [cpu].into_iter().collect())
}

/// Housekeeping CPUs of the node, in the order to assign interrupts; all of them, where the node is
/// unknown or has none.
pub(crate) fn candidates(case: &Case<'_>, node: Option<NumaNode>) -> Vec<CpuId> {
    let all = case.housekeeping();
    let local = node.map(|n| case.node_cpus(n).intersection(&all)).filter(|s| !s.is_empty());
    let pool = local.unwrap_or(all);
    let cpus: Vec<_> = case.facts.cpus.iter().filter(|c| pool.contains(c.id)).collect();
    ordered(&cpus, node)
}

/// Whether the chosen processes' threads last ran mostly on the nodes of these CPUs.
pub(crate) fn processes_live_with(case: &Case<'_>, cpus: &CpuSet) -> bool {
    let nodes: Vec<_> = cpus.iter().filter_map(|c| case.node_of(c)).collect();
    let threads = case.facts.processes.iter().flat_map(|p| &p.threads);
    let at: Vec<_> =
        threads.filter_map(|t| t.last_cpu.get()).filter_map(|c| case.node_of(c)).collect();
    let there = at.iter().filter(|n| nodes.contains(n)).count();
    there * 2 > at.len()
}

/// Moves queues' interrupts to these CPUs, the emptiest first; `taken` counts their queues.
pub(crate) fn moves(
    case: &Case<'_>,
    movable: &[&QueueIrq<'_>],
    pool: &[CpuId],
    taken: &mut BTreeMap<CpuId, u32>,
) -> Vec<Proposal> {
    let assignments = assignments(movable.iter().filter_map(|q| q.number()), pool, taken);
    let one = |q: &&QueueIrq<'_>| {
        let cpu = assignments.get(&q.number()?)?;
        Some(knob::irq_affinity(case, q.irq, *cpu))
    };
    movable.iter().filter_map(one).collect()
}

/// CPUs for receive packet steering: the node's housekeeping CPUs except the interrupt's core.
pub(crate) fn rps_cpus(case: &Case<'_>, node: Option<NumaNode>, irq_cpus: &CpuSet) -> CpuSet {
    let mut pool: CpuSet = candidates(case, node).into_iter().collect();
    for cpu in irq_cpus.iter() {
        pool = pool.difference(&siblings(case, cpu));
    }
    pool
}

/// The distance of two CPUs: same CPU, core, L3, node, elsewhere. Unknown counts as apart, except
/// the node on a host with one.
pub(crate) fn distance(case: &Case<'_>, a: CpuId, b: CpuId) -> u32 {
    if a == b {
        return 0;
    }
    if siblings(case, a).contains(b) {
        return 1;
    }
    let l3 = |c: CpuId| case.cpu(c).and_then(|c| c.l3_id.get());
    if l3(a).is_some() && l3(a) == l3(b) {
        return 2;
    }
    let one_node = case.facts.numa_nodes.len() == 1;
    if one_node || case.node_of(a).is_some() && case.node_of(a) == case.node_of(b) {
        return 3;
    }
    4
}

/// The map for transmit packet steering: each housekeeping CPU to the nearest queue, and among
/// equally near ones to that with the fewest CPUs.
pub(crate) fn nearest_queues(
    case: &Case<'_>,
    queues: &[(QueueId, CpuSet)],
) -> BTreeMap<QueueId, CpuSet> {
    let mut map: BTreeMap<QueueId, CpuSet> =
        queues.iter().map(|(q, _)| (*q, CpuSet::new())).collect();
    for cpu in case.housekeeping().iter() {
        let nearest = |irq_cpus: &CpuSet| {
            irq_cpus.iter().map(|c| distance(case, cpu, c)).min().unwrap_or(u32::MAX)
        };
        let best = queues
            .iter()
            .min_by_key(|(q, irq_cpus)| (nearest(irq_cpus), map.get(q).map_or(0, CpuSet::len), *q));
        if let Some(set) = best.and_then(|(q, _)| map.get_mut(q)) {
            set.insert(cpu);
        }
    }
    map
}
