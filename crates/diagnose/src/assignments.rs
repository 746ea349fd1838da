//! CPUs for processes that migrate: those nearest to the packets' softirqs. Each group gets its
//! own, and none gets a CPU that is pinned to or filled with packet work.

use model::quote;
use std::collections::BTreeMap;

use model::{CpuId, CpuSet, Reading, ids::Direction, process::Process};

use crate::{
    Case,
    case::by_id,
    knob::{change, change_by},
    load, queues,
    rule::Proposal,
    spread,
};

/// The share of a CPU from which a thread needs one for itself. Our proposal.
const WHOLE: f64 = 0.5;
/// How far a group may exceed full CPUs before it needs one more: clocks differ, and main threads
/// work a little.
const SPARE: f64 = 0.1;

/// A unit of placement: a container or a system service by its cgroup, or one process.
pub(crate) struct Group<'a> {
    /// The first chosen process in it.
    pub(crate) leader: &'a Process,
    /// The chosen processes in it.
    pub(crate) members: Vec<&'a Process>,
    /// Whether it has its own cgroup, which is then limited as a whole.
    pub(crate) confined: bool,
}

impl Group<'_> {
    /// The knob that places it.
    pub(crate) fn knob(&self) -> String {
        let setting = if self.confined { "cpuset" } else { "affinity" };
        format!("process.{}.{setting}", self.leader.pid)
    }
}

/// Groups processes that share a cgroup. A login session's cgroup does not count: it holds
/// everything that its user runs.
pub(crate) fn groups<'a>(processes: &[&'a Process]) -> Vec<Group<'a>> {
    let mut all: Vec<Group<'a>> = vec![];
    for &p in processes {
        let service = p.unit.known().is_some_and(|u| u.ends_with(".service"));
        let contained = p.container.known().is_some_and(|c| c != "none");
        let own = p.cgroup.known().filter(|g| *g != "/" && (service || contained));
        let same =
            |g: &&mut Group<'_>| g.confined && own.is_some() && g.leader.cgroup.known() == own;
        match all.iter_mut().find(same) {
            Some(group) => group.members.push(p),
            None => all.push(Group { leader: p, members: vec![p], confined: own.is_some() }),
        }
    }
    all
}

/// The CPUs that a process's threads may use together: what `taskset -acp` would replace.
pub(crate) fn affinity(p: &Process) -> Reading<CpuSet> {
    let mut all = CpuSet::new();
    for thread in &p.threads {
        match &thread.affinity {
            Reading::Known(set) => all = all.union(set),
            missing => return missing.clone(),
        }
    }
    match all.is_empty() {
        true => Reading::absent("no thread was read"),
        false => Reading::Known(all),
    }
}

/// The change that keeps a group of processes on CPUs.
pub(crate) fn place(group: &Group<'_>, cpus: &CpuSet, risk: &str) -> Proposal {
    let (p, new) = (group.leader, cpus.to_string());
    if !group.confined {
        return change(group.knob(), &affinity(p), new, risk);
    }
    let folder = p.cgroup.known().map_or("", String::as_str);
    let command = format!(
        "echo {cpus} > \"$(find /sys/fs/cgroup -path {})\"",
        quote::shell(&format!("*{folder}/cpuset.cpus"))
    );
    let risk = format!("holds for all processes of its control group; {risk}");
    change_by(group.knob(), &p.cpuset_cpus, new, command, risk)
}

/// CPUs for each group, in the groups' order, or why there are none.
pub(crate) fn hand_out(case: &Case<'_>, groups: &[Group<'_>]) -> Result<Vec<CpuSet>, String> {
    let free = free(case, groups);
    let mut order: Vec<CpuId> = nearest_first(case, &free, groups);
    let wanted: usize = groups.iter().map(|g| wants(case, g)).sum();
    let mut assignments = vec![];
    for group in groups {
        let allowed = allowed(case, group);
        let mine: CpuSet = order
            .iter()
            .copied()
            .filter(|c| allowed.contains(*c))
            .take(wants(case, group))
            .collect();
        if mine.len() < wants(case, group) {
            return Err(format!(
                "they have work for {wanted} CPUs, and {} they may run on are free of pinned \
                 processes and of packet work",
                free.len()
            ));
        }
        order.retain(|c| !mine.contains(*c));
        assignments.push(mine);
    }
    Ok(assignments)
}

/// How many CPUs a group needs: one for each thread that needs its own, and at least what all use
/// together.
fn wants(case: &Case<'_>, group: &Group<'_>) -> usize {
    let Ok(samples) = case.samples() else { return 1 };
    let ours = samples.threads.iter().filter(|t| group.members.iter().any(|p| p.pid == t.pid));
    let shares: Vec<f64> =
        ours.filter_map(|t| Some(t.cpu_ns.get()? as f64 / samples.window_ns.0 as f64)).collect();
    let whole = shares.iter().filter(|s| **s >= WHOLE).count();
    let together = (shares.iter().sum::<f64>() - SPARE).ceil() as usize;
    whole.max(together).max(1)
}

/// The CPUs that a group may use now; a remedy adds none. The affinities of a cgroup's threads are
/// a separate request, which the cgroup's limit overrides.
pub(crate) fn allowed(case: &Case<'_>, group: &Group<'_>) -> CpuSet {
    let mut set = case.online();
    for p in &group.members {
        if let Some(own) = p.cpuset_cpus.known().filter(|s| !s.is_empty()) {
            set = set.intersection(own);
        }
        let asked = p.threads.iter().filter_map(|t| t.affinity.known());
        let asked = asked.fold(CpuSet::new(), |all, one| all.union(one));
        if !group.confined && !asked.is_empty() {
            set = set.intersection(&asked);
        }
    }
    set
}

/// CPUs that can be assigned.
fn free(case: &Case<'_>, groups: &[Group<'_>]) -> CpuSet {
    // The other processes of the cgroup are limited with it.
    let within = |p: &Process, g: &Group<'_>| {
        g.confined && p.cgroup.is_known() && g.leader.cgroup.known() == p.cgroup.known()
    };
    let placed = |p: &Process| {
        let member = |g: &Group<'_>| g.members.iter().any(|m| m.pid == p.pid);
        groups.iter().any(|g| member(g) || within(p, g))
    };
    let mut free = case.housekeeping();
    let all = free.clone();
    for p in case.facts.processes.iter().filter(|p| !placed(p)) {
        for set in p.threads.iter().filter_map(|t| t.affinity.known()) {
            // An affinity to half of the CPUs or more is not a chosen place.
            if set.len() * 2 <= all.len() {
                free = free.difference(set);
            }
        }
    }
    // Softirqs that a process causes itself (loopback, veth) move with it; a NIC's stay.
    let nics = packets(case).unwrap_or_default();
    free.iter().filter(|c| !(nics.contains(*c) && full_of_packets(case, *c))).collect()
}

/// Whether packets use half of a CPU: no place for a thread that needs a whole one.
pub(crate) fn full_of_packets(case: &Case<'_>, cpu: CpuId) -> bool {
    load::load(case, cpu).is_ok_and(|l| l.network >= WHOLE)
}

/// The CPUs by their distance from the packets. The origin is the L3, then the node, of the busiest
/// NIC's interrupts; without a busy NIC it is the CPU where these processes ran most. One thread of
/// every core comes first.
fn nearest_first(case: &Case<'_>, free: &CpuSet, groups: &[Group<'_>]) -> Vec<CpuId> {
    let home = packets(case).unwrap_or_else(|| seen_most(case, groups));
    let mut cores = CpuSet::new();
    let mut keyed: Vec<(u32, bool, CpuId)> = vec![];
    for cpu in free.iter() {
        let apart = home.iter().map(|h| spread::distance(case, cpu, h)).min().unwrap_or(0);
        let core = spread::siblings(case, cpu).first().unwrap_or(cpu);
        let second = cores.contains(core);
        cores.insert(core);
        keyed.push((apart.max(2), second, cpu));
    }
    keyed.sort();
    keyed.into_iter().map(|k| k.2).collect()
}

/// CPUs that serve the NIC with the highest receive rate, if one carries traffic.
fn packets(case: &Case<'_>) -> Option<CpuSet> {
    let rate = |nic| queues::rx_per_s(case, nic).unwrap_or(0.0);
    let nics = queues::running_physical(case).into_iter();
    let busiest = nics.max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    let busy = rate(busiest) >= queues::BUSY_NIC_PER_S;
    queues::nic_cpus(case, busiest, Direction::Rx).ok().filter(|_| busy)
}

fn seen_most(case: &Case<'_>, groups: &[Group<'_>]) -> CpuSet {
    let mut counts: BTreeMap<CpuId, usize> = BTreeMap::new();
    let pids: Vec<u32> = groups.iter().flat_map(|g| &g.members).map(|p| p.pid).collect();
    let threads = case.samples().map(|s| s.threads.as_slice()).unwrap_or_default();
    for cpu in threads.iter().filter(|t| pids.contains(&t.pid)).flat_map(|t| &t.on_cpus) {
        *counts.entry(*cpu).or_default() += 1;
    }
    // Of equals the lowest number.
    let most = counts.into_iter().max_by_key(|(cpu, n)| (*n, std::cmp::Reverse(*cpu)));
    most.map(|(cpu, _)| cpu).into_iter().collect()
}

/// How often a thread was on another L3 or node than at the previous reading.
pub(crate) fn crossings(case: &Case<'_>, on_cpus: &[CpuId]) -> usize {
    let place = |c: CpuId| {
        let cpu = by_id(&case.facts.cpus, c, |f| f.id);
        cpu.map(|f| (f.numa_node.get(), f.l3_id.get()))
    };
    let steps = on_cpus.iter().zip(on_cpus.iter().skip(1));
    steps.filter(|(a, b)| matches!((place(**a), place(**b)), (Some(a), Some(b)) if a != b)).count()
}
