//! Words the reason of a choice from the chosen CPUs: it states facts, not intentions.

use std::collections::BTreeSet;

use model::{CpuId, CpuSet, NumaNode};

use super::{LocalPlacement, PlacementRequest, node, place};

/// The clauses, joined. `usable` are the CPUs available to the choice.
pub fn words(
    here: &LocalPlacement,
    request: &PlacementRequest<'_>,
    cpus: &[CpuId],
    usable: &CpuSet,
) -> String {
    let used: CpuSet = cpus.iter().copied().collect();
    if used.is_empty() {
        return "no thread to pin".into();
    }
    let mut clauses = vec![];
    // A core shared by both ends is no separate core.
    if !request.same_host || !shares_core(here, request, &used, usable) {
        clauses.push(cores(here, &used));
    }
    if request.same_host {
        clauses.push(beside(here, request, &used, usable));
    } else if request.nic.is_some() {
        clauses.extend(nic(here, request, &used));
    }
    clauses.extend(house(here, &used));
    if !used.intersection(request.taken).is_empty() {
        clauses.push("other sessions use all CPUs, these too".into());
    } else if !request.taken.is_empty() {
        clauses.push(format!("not {}, which other sessions use", named(request.taken)));
    }
    clauses.join("; ")
}

/// `CPU 3` or `CPUs 0-3,8`.
fn named(cpus: &CpuSet) -> String {
    let s = if cpus.len() == 1 { "" } else { "s" };
    format!("CPU{s} {cpus}")
}

/// Whether the other end on this host uses one of these cores.
fn shares_core(
    here: &LocalPlacement,
    request: &PlacementRequest<'_>,
    used: &CpuSet,
    usable: &CpuSet,
) -> bool {
    let core = |c: CpuId| place(here, c).map_or(CpuSet::from_iter([c]), |p| p.core.clone());
    match request.partner.is_empty() {
        true => usable.first().is_none_or(|c| usable.difference(&core(c)).is_empty()),
        false => used.iter().any(|c| !core(c).intersection(request.partner).is_empty()),
    }
}

/// Relation of threads to cores.
fn cores(here: &LocalPlacement, used: &CpuSet) -> String {
    let text = match used.len() {
        1 => "a separate core",
        _ => "a core for each thread",
    };
    let nodes: BTreeSet<Option<NumaNode>> = used.iter().map(|c| node(here, c)).collect();
    match nodes.len() {
        2.. => format!("{text}, on {} nodes: one has too few", nodes.len()),
        _ => text.into(),
    }
}

/// Relation to the other end on the same host.
fn beside(
    here: &LocalPlacement,
    request: &PlacementRequest<'_>,
    used: &CpuSet,
    usable: &CpuSet,
) -> String {
    let other = match request.role {
        super::Role::LocalEnd => "server",
        super::Role::PeerEnd => "client",
    };
    if here.allowed.len() == 1 {
        return format!("shared with the {other}: this process may use no other CPU");
    }
    if request.partner.is_empty() && usable.len() == 1 {
        return "the only CPU that other sessions leave".into();
    }
    if request.partner.is_empty() {
        // The other end chooses by the same rules.
        let of = |c: CpuId| place(here, c).and_then(|p| p.core.first()).unwrap_or(c);
        let all: BTreeSet<CpuId> = usable.iter().map(of).collect();
        return match all.len() {
            1 => format!(
                "the {other} on the same core's other hardware threads: there is no second core"
            ),
            _ => format!("the {other}, on this host, runs on other cores"),
        };
    }
    let partner = named(request.partner);
    let Some(there) = request.partner.iter().find_map(|c| place(here, c)) else {
        return format!("the {other} is on {partner}, which this process may not use");
    };
    let all = |same: &dyn Fn(CpuId) -> bool| used.iter().all(same);
    let shares_core = used
        .iter()
        .any(|c| place(here, c).is_some_and(|p| !p.core.intersection(request.partner).is_empty()));
    let relation = if !used.intersection(request.partner).is_empty() {
        "shared with"
    } else if shares_core {
        "on the same core as"
    } else if there.l3.is_some() && all(&|c| place(here, c).is_some_and(|p| p.l3 == there.l3)) {
        "in the L3 of"
    } else if there.node.is_some() && all(&|c| node(here, c) == there.node) {
        "on the node of"
    } else {
        "apart from"
    };
    format!("{relation} the {other}'s {partner}")
}

/// Relation of the choice to the NIC.
fn nic(here: &LocalPlacement, request: &PlacementRequest<'_>, used: &CpuSet) -> Vec<String> {
    let Some(nic) = request.nic else { return vec![] };
    let name = &nic.name;
    let mut clauses = Vec::new();
    if let Some(at) = nic.node {
        let there = used.iter().filter(|&c| node(here, c) == Some(at)).count();
        clauses.push(match there {
            n if n == used.len() => format!("on node {at}, where {name} is"),
            0 => format!("not on node {at}, where {name} is: none of its CPUs is free"),
            _ => format!("some on node {at}, where {name} is"),
        });
    }
    let both = used.intersection(&nic.irq_cpus);
    if nic.irq_cpus.is_empty() {
        clauses.push(format!("which CPUs take {name}'s interrupts is not known"));
    } else if both.is_empty() {
        clauses.push(format!("{name} interrupts {}", named(&nic.irq_cpus)));
    } else {
        clauses.push(format!("{name} interrupts {}, too", named(&both)));
    }
    clauses
}

/// Mentions CPU 0 only if there was a choice.
fn house(here: &LocalPlacement, used: &CpuSet) -> Option<String> {
    let zero = CpuId(0);
    let first = place(here, zero)?;
    let avoided = used.intersection(&first.core).is_empty();
    let local = used.iter().all(|c| place(here, c).is_some_and(|p| p.node == first.node));
    (avoided && local).then(|| "CPU 0 avoided (housekeeping)".to_owned())
}
