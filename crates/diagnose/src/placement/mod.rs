//! Where services should run: each with its NIC and its disks, interrupts on CPUs of their own.
//!
//! ```text
//! what each service uses ─► CPUs for interrupts ─► services to nodes ─► cores of the node
//! ```
//!
//! A service costs on a node what the firmware's distances (ACPI SLIT) to its NIC and its disks
//! say. The sum over all services is the least that the nodes' cores allow.

mod assign;
mod cores;
#[cfg(test)]
mod tests;
mod used;

use std::collections::{BTreeMap, BTreeSet};

use model::{
    CpuId, CpuSet, NumaNode, SCHEMA_VERSION,
    nic::Nic,
    placement::{
        PlacedInterrupts, PlacedNode, PlacedService, PlacementDocument, ProcessUse, UsedDevice,
    },
};

use crate::{
    Case,
    assignments::{self, Group},
    knob, queues,
    rule::Proposal,
    spread,
};
use cores::FreeCores;

/// What the operator wants of a placement.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlacementOptions {
    /// Cores for each service; without it they share a node's cores evenly.
    pub cores: Option<usize>,
    /// Cores for each NIC's interrupts; 0 leaves interrupts alone. Without it a quarter of the
    /// node's.
    pub interrupt_cores: Option<usize>,
}

/// The share of a node's cores that its interrupts get without a request: one of so many. Our
/// proposal, which no measurement supports yet.
const INTERRUPT_SHARE: usize = 4;

/// To be nearer to its NIC and disks, a service gives up cores, but keeps one of so many of those that
/// it could have. Our proposal: a placement that crosses nodes costs less than half of the cores.
const FEWEST: usize = 2;

/// Distance of two nodes whose distance the firmware does not name: ACPI's 10 is the node itself,
/// and 20 is what Linux assumes of another one (`REMOTE_DISTANCE`).
const REMOTE: u32 = 20;

/// Proposes CPUs for each service and for the interrupts of their NICs.
///
/// # Errors
/// What is missing to propose anything: CPUs, nodes, processes.
pub fn place(
    case: &Case<'_>,
    uses: &[ProcessUse],
    options: PlacementOptions,
    source: &str,
) -> Result<PlacementDocument, String> {
    let nodes = nodes(case)?;
    let all: Vec<_> = case.processes().map_err(|m| m.0)?.iter().collect();
    let groups = assignments::groups(&all);
    let mut notes = vec![];
    let services: Vec<PlacedService> =
        groups.iter().map(|g| unplaced(case, g, uses, &mut notes)).collect();
    let mut free: BTreeMap<NumaNode, CpuSet> =
        nodes.iter().map(|n| (*n, case.node_cpus(*n).intersection(&case.housekeeping()))).collect();
    let (interrupts, mut proposals) =
        place_interrupts(case, &services, options, &mut free, &mut notes);
    let services = place_services(case, &groups, services, options, free.clone(), &mut notes);
    for (group, service) in groups.iter().zip(&services).filter(|(_, s)| !s.cpus.is_empty()) {
        proposals.extend(move_service(group, service));
    }
    let mut changes = vec![];
    for proposal in proposals {
        match proposal {
            Ok(change) => changes.push(change),
            Err(missing) => notes.push(format!("no change is proposed: {}", missing.0)),
        }
    }
    let given = services.iter().fold(CpuSet::new(), |all, s| all.union(&s.cpus));
    let nodes = nodes.into_iter().map(|id| PlacedNode {
        id,
        cpus: case.node_cpus(id).intersection(&case.online()),
        free: free.get(&id).cloned().unwrap_or_default().difference(&given),
        devices: devices_of(case, id),
    });
    Ok(PlacementDocument {
        schema_version: SCHEMA_VERSION,
        source: source.into(),
        services,
        interrupts,
        nodes: nodes.collect(),
        changes,
        notes,
    })
}

fn nodes(case: &Case<'_>) -> Result<Vec<NumaNode>, String> {
    let nodes = case.nodes_with_cpus().map_err(|m| m.0)?;
    let usable = |n: &NumaNode| !case.node_cpus(*n).intersection(&case.housekeeping()).is_empty();
    let nodes: Vec<NumaNode> = nodes.into_iter().filter(usable).collect();
    match nodes.is_empty() {
        true => Err("CPUs: no node has one that is online and not isolated".into()),
        false => Ok(nodes),
    }
}

/// A service with what it uses, before it has CPUs.
fn unplaced(
    case: &Case<'_>,
    group: &Group<'_>,
    uses: &[ProcessUse],
    notes: &mut Vec<String>,
) -> PlacedService {
    let leader = group.leader;
    let container = leader.container.known().filter(|c| *c != "none" && group.confined);
    let unit = leader.unit.known().filter(|_| group.confined);
    let name = container.or(unit).unwrap_or(&leader.name).clone();
    let mut pids: Vec<u32> = group.members.iter().map(|p| p.pid).collect();
    pids.sort_unstable();
    let own: Vec<&ProcessUse> = uses.iter().filter(|u| pids.contains(&u.pid)).collect();
    let disks = used::disks(case, &own);
    let nics = used::nics(case, &own);
    let missing = |what: &str, why: Option<&str>| why.map(|w| format!("{name}: {what}: {w}"));
    notes.extend(missing("its disks are not known", own.iter().find_map(|u| u.disks.why_not())));
    notes.extend(missing("its NICs are not known", own.iter().find_map(|u| u.addresses.why_not())));
    PlacedService {
        pid: pids.first().copied().unwrap_or(leader.pid),
        pids,
        knob: group.knob(),
        nics,
        disks,
        cpus_now: match group.confined && leader.cpuset_cpus.is_known() {
            true => leader.cpuset_cpus.clone(),
            false => assignments::affinity(leader),
        },
        cpus: CpuSet::new(),
        node: None,
        name,
    }
}

/// CPUs for the interrupts of each NIC that a service uses; they are taken from the free ones.
fn place_interrupts(
    case: &Case<'_>,
    services: &[PlacedService],
    options: PlacementOptions,
    free: &mut BTreeMap<NumaNode, CpuSet>,
    notes: &mut Vec<String>,
) -> (Vec<PlacedInterrupts>, Vec<Proposal>) {
    let used: BTreeSet<&str> =
        services.iter().flat_map(|s| &s.nics).map(|n| n.name.as_str()).collect();
    let nics: Vec<&Nic> =
        case.facts.nics.iter().filter(|n| used.contains(n.name.as_str())).collect();
    let mut of_node: BTreeMap<NumaNode, Vec<&Nic>> = BTreeMap::new();
    for nic in &nics {
        if let Some(node) = nic.numa_node.get() {
            of_node.entry(node).or_default().push(nic);
        }
    }
    let (mut placed, mut proposals) = (vec![], vec![]);
    for nic in nics {
        let irqs = queues::queue_irqs(case, nic).unwrap_or_default();
        let movable: Vec<_> =
            irqs.into_iter().filter(|i| i.irq.managed.get() != Some(true)).collect();
        let now = movable.iter().filter_map(|i| i.irq.target().into_known());
        let mut one = PlacedInterrupts {
            nic: nic.name.clone(),
            node: nic.numa_node.clone(),
            movable: movable.len(),
            cpus_now: now.fold(CpuSet::new(), |all, set| all.union(&set)),
            cpus: CpuSet::new(),
        };
        let on_node = nic.numa_node.get().and_then(|n| Some((n, free.get(&n)?.clone())));
        let neighbours = nic.numa_node.get().and_then(|n| of_node.get(&n)).map_or(1, Vec::len);
        if let Some((node, cpus)) = on_node.filter(|_| !movable.is_empty()) {
            let whole = FreeCores::new(case, &case.node_cpus(node)).len();
            let share = (whole / INTERRUPT_SHARE / neighbours).max(1);
            let wanted = options.interrupt_cores.unwrap_or(share).min(movable.len());
            // With so few cores an interrupt in the application's own time costs least.
            if wanted > 0 && (whole >= INTERRUPT_SHARE || options.interrupt_cores.is_some()) {
                let cores = FreeCores::new(case, &cpus).take(wanted, &cpus);
                // One interrupt for a core; its second thread would take half of it.
                let is_first =
                    |c: &CpuId| spread::siblings(case, *c).intersection(&cores).first() == Some(*c);
                let firsts: Vec<CpuId> = cores.iter().filter(is_first).collect();
                one.cpus = firsts.iter().copied().collect();
                free.insert(node, cpus.difference(&cores));
                proposals.extend(move_interrupts(case, &movable, &firsts));
            } else if options.interrupt_cores.is_none() {
                notes.push(format!(
                    "{}: node {node} has {whole} cores, too few to keep some for interrupts alone",
                    nic.name
                ));
            }
        }
        placed.push(one);
    }
    if case.running_tuner("irqbalance").is_some() && !proposals.is_empty() {
        notes.push(
            "irqbalance runs and would move interrupts again: stop it \
             (irqbalance.running=stopped), or ban them there (--banirq)"
                .into(),
        );
    }
    (placed, proposals)
}

/// One change for each queue's interrupt that is not on its CPU.
fn move_interrupts(
    case: &Case<'_>,
    irqs: &[queues::QueueIrq<'_>],
    cpus: &[CpuId],
) -> Vec<Proposal> {
    let numbers = irqs.iter().filter_map(queues::QueueIrq::number);
    let places = model::spread::assignments(numbers, cpus, &mut BTreeMap::new());
    let mut proposals = vec![];
    for i in irqs {
        let Some(cpu) = i.number().and_then(|n| places.get(&n)) else { continue };
        let there = i.irq.affinity.known().is_some_and(|a| *a == [*cpu].into_iter().collect());
        if !there {
            proposals.push(knob::irq_affinity(case, i.irq, *cpu));
        }
    }
    proposals
}

/// Nodes, then cores, for each service.
fn place_services(
    case: &Case<'_>,
    groups: &[Group<'_>],
    mut services: Vec<PlacedService>,
    options: PlacementOptions,
    free: BTreeMap<NumaNode, CpuSet>,
    notes: &mut Vec<String>,
) -> Vec<PlacedService> {
    let nodes: Vec<NumaNode> = free.keys().copied().collect();
    let mut cores: Vec<FreeCores> = free.values().map(|cpus| FreeCores::new(case, cpus)).collect();
    let allowed: Vec<CpuSet> = groups.iter().map(|g| may_use(case, g)).collect();
    // What each service costs on each node that has so many whole cores for it.
    let costs = |each: usize| -> Vec<Vec<Option<u64>>> {
        let row = |(s, may): (&PlacedService, &CpuSet)| {
            let of_node = |(node, left): (&NumaNode, &FreeCores)| {
                (left.usable(may) >= each).then(|| cost(case, s, *node))
            };
            nodes.iter().zip(&cores).map(of_node).collect()
        };
        services.iter().zip(&allowed).map(row).collect()
    };
    // The most cores for each with which all find a place; fewer where that brings them nearer.
    let sizes: Vec<usize> = cores.iter().map(FreeCores::len).collect();
    let even = sizes.iter().sum::<usize>() / services.len().max(1);
    let most = options.cores.unwrap_or(even).max(1);
    let with = |each: usize| {
        let places: Vec<usize> = sizes.iter().map(|n| n / each).collect();
        Some((each, assign::assign(&costs(each), &places)?))
    };
    let apart = |at: &[usize]| -> u64 {
        let nodes = at.iter().map(|n| nodes.get(*n));
        let pairs = services.iter().zip(nodes);
        pairs.filter_map(|(s, node)| Some(distances(case, s, *node?))).map(|(n, d)| n + d).sum()
    };
    let fit = (1..=most).rev().find_map(with).map(|top| match options.cores {
        Some(_) => top,
        None => {
            let fewer = (top.0.div_ceil(FEWEST)..top.0).rev().filter_map(with);
            std::iter::once(top).chain(fewer).min_by_key(|fit| apart(&fit.1)).unwrap_or_default()
        }
    });
    if let Some(asked) = options.cores.filter(|c| fit.as_ref().is_none_or(|f| f.0 < *c)) {
        let free = sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        notes.push(format!(
            "{} services cannot have {asked} cores each: the nodes have {free} free cores",
            services.len()
        ));
    }
    match fit {
        Some((each, at)) => {
            for ((service, node), may) in services.iter_mut().zip(at).zip(&allowed) {
                let (Some(left), Some(id)) = (cores.get_mut(node), nodes.get(node)) else {
                    continue;
                };
                let usable = left.usable(may).min(each);
                service.cpus = left.take(each, may);
                service.node = Some(*id).filter(|_| usable > 0);
                if usable < each {
                    notes.push(format!(
                        "{}: {usable} of {each} cores: its cpuset allows no more that are free",
                        service.name
                    ));
                }
            }
        }
        None => {
            let costs = costs(1);
            share(&mut services, &nodes, &cores, &costs, &allowed, notes);
        }
    }
    services
}

/// More services than cores: those of a node share all its free cores.
fn share(
    services: &mut [PlacedService],
    nodes: &[NumaNode],
    cores: &[FreeCores],
    costs: &[Vec<Option<u64>>],
    allowed: &[CpuSet],
    notes: &mut Vec<String>,
) {
    let all: usize = cores.iter().map(FreeCores::len).sum();
    if all == 0 {
        notes
            .push("no core is left for services: give interrupts fewer (--interrupt-cores)".into());
        return;
    }
    let count = services.len();
    let places: Vec<usize> = cores.iter().map(|c| (count * c.len()).div_ceil(all)).collect();
    let Some(at) = assign::assign(costs, &places) else {
        notes.push(
            "the services' cpusets and affinities leave no even distribution: widen them first"
                .into(),
        );
        return;
    };
    for ((service, node), may) in services.iter_mut().zip(at).zip(allowed) {
        if let (Some(left), Some(id)) = (cores.get(node), nodes.get(node)) {
            service.cpus = left.cpus().intersection(may);
            service.node = Some(*id);
        }
    }
    notes.push(format!("{count} services share {all} free cores: those of a node share its cores"));
}

/// CPUs that a service may be given. Its affinity of now is what is to be changed; the cpuset of a
/// container or unit is too, but a process cannot leave the one that it is confined in.
fn may_use(case: &Case<'_>, group: &Group<'_>) -> CpuSet {
    match group.confined {
        true => case.online(),
        false => {
            let own = group.leader.cpuset_cpus.known().filter(|s| !s.is_empty());
            own.cloned().unwrap_or_else(|| case.online())
        }
    }
}

/// The mean distance of a node to a service's NICs, and that to its disks, in thousandths.
fn distances(case: &Case<'_>, service: &PlacedService, node: NumaNode) -> (u64, u64) {
    let mean = |devices: &[UsedDevice]| {
        let all: Vec<u64> = devices
            .iter()
            .filter_map(|d| d.node.get())
            .map(|n| u64::from(distance(case, node, n)))
            .collect();
        all.iter().sum::<u64>().saturating_mul(1000) / (all.len() as u64).max(1)
    };
    (mean(&service.nics), mean(&service.disks))
}

/// What a service costs on a node: the distances to its NICs and to its disks. Of two equal nodes
/// the NIC's is better, then the one where the service is now.
fn cost(case: &Case<'_>, service: &PlacedService, node: NumaNode) -> u64 {
    let elsewhere =
        service.cpus_now.known().is_none_or(|now| !now.is_subset(&case.node_cpus(node)));
    let (nics, disks) = distances(case, service, node);
    // 1001 and 1000: the NIC decides a tie; the last digit is for staying.
    nics * 1001 + disks * 1000 + u64::from(elsewhere)
}

fn distance(case: &Case<'_>, from: NumaNode, to: NumaNode) -> u32 {
    let of = case.facts.numa_nodes.iter().find(|n| n.id == from);
    let named = of.and_then(|n| n.distances.known()?.get(&to).copied());
    named.unwrap_or(if from == to { 10 } else { REMOTE })
}

/// The change that keeps a service on its CPUs, and its memory on their node where its control
/// group can say so.
fn move_service(group: &Group<'_>, service: &PlacedService) -> Option<Proposal> {
    const RISK: &str = "low; threads move at once, and memory that is elsewhere stays or is moved \
                        by the kernel in the background";
    let node: Option<CpuSet> = service.node.map(|n| [CpuId(n.0)].into_iter().collect());
    let memory = node.filter(|n| group.confined && group.leader.cpuset_mems.known() != Some(n));
    if service.cpus_now.known() == Some(&service.cpus) && memory.is_none() {
        return None;
    }
    let proposal = assignments::place(group, &service.cpus, RISK);
    Some(proposal.map(|mut change| {
        if let Some(node) = memory {
            let cpus = format!("echo {} ", service.cpus);
            let mems = change.command.replacen(&cpus, &format!("echo {node} "), 1);
            change.command += &format!(" && {}", mems.replace("cpuset.cpus", "cpuset.mems"));
            change.new = format!("{} mems {node}", service.cpus);
        }
        change
    }))
}

/// NICs and storage controllers of a node.
fn devices_of(case: &Case<'_>, node: NumaNode) -> Vec<String> {
    let nics = case.facts.nics.iter().filter(|n| n.numa_node.get() == Some(node));
    let storage = case.facts.storage.iter().filter(|s| s.numa_node.get() == Some(node));
    nics.map(|n| n.name.clone()).chain(storage.map(|s| s.name.clone())).collect()
}
