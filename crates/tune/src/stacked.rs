//! Orders MTU changes of stacked interfaces: at every step of the plan and of its undo, the lower
//! interface carries at least the upper one's MTU. Pure.

use std::collections::BTreeSet;

use model::{
    Facts,
    nic::{KindDetails, Nic},
    tune::{PlanNote, Planned},
};

use crate::knob::{PlanContext, mtu_of};

/// The MTU of the lower interface, or of the master that sets it, as the plan leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LowerNic<'f> {
    pub nic: &'f str,
    /// Its MTU, in bytes.
    pub carries: u64,
    /// Whether the plan sets it.
    pub planned: bool,
}

/// The interfaces directly below: a VLAN's or macvlan's device, bridge ports, members of a bond or
/// team.
fn lowers<'f>(facts: &'f Facts, nic: &'f Nic) -> Vec<&'f str> {
    if let KindDetails::Vlan { lower, .. } | KindDetails::Macvlan { lower, .. } = &nic.details {
        return lower.known().map(String::as_str).into_iter().collect();
    }
    let of_it = |n: &&Nic| n.master.known() == Some(&nic.name);
    facts.nics.iter().filter(of_it).map(|n| n.name.as_str()).collect()
}

/// Whether it sets its members' MTU.
fn sets_member_mtu(nic: &Nic) -> bool {
    matches!(nic.kind.as_str(), "bond" | "team")
}

/// The smallest MTU below an interface that cannot exceed it.
pub fn smallest_mtu_below<'f>(context: &PlanContext<'f>, nic: &'f Nic) -> Option<LowerNic<'f>> {
    if sets_member_mtu(nic) {
        return None;
    }
    let below = |name: &'f str| {
        let planned = context.mtus.get(name).copied();
        let now = || context.nic(name).and_then(|n| n.mtu.get()).map(u64::from);
        let carries = planned.or_else(now)?;
        Some(LowerNic { nic: name, carries, planned: planned.is_some() })
    };
    lowers(context.facts, nic).into_iter().filter_map(below).min_by_key(|b| b.carries)
}

/// Every interface lowered together with this one: VLANs and macvlans always, and a bridge that
/// appears to follow its ports.
pub fn followers<'f>(facts: &'f Facts, nic: &str) -> Vec<&'f Nic> {
    let (mut all, mut next): (Vec<&Nic>, usize) = (Vec::new(), 0);
    let mut below = nic.to_owned();
    loop {
        let new = facts.nics.iter().filter(|n| {
            follows(facts, n, &below) && n.name != nic && !all.iter().any(|a| a.name == n.name)
        });
        let new: Vec<&Nic> = new.collect();
        all.extend(new);
        match all.get(next) {
            Some(follower) => below.clone_from(&follower.name),
            None => return all,
        }
        next += 1;
    }
}

fn follows(facts: &Facts, nic: &Nic, below: &str) -> bool {
    let lowers = lowers(facts, nic);
    if sets_member_mtu(nic) || !lowers.contains(&below) {
        return false;
    }
    let mtu = |name: &&str| facts.nics.iter().find(|n| n.name == **name).and_then(|n| n.mtu.get());
    nic.kind != "bridge" || lowers.iter().filter_map(mtu).min() == nic.mtu.get()
}

/// The interface's bond or team, if the plan gives that another MTU, or it has a larger one now.
pub fn other_of_master<'f>(
    context: &'f PlanContext<'_>,
    nic: &Nic,
    mtu: u64,
) -> Option<LowerNic<'f>> {
    let master = context.nic(nic.master.known()?).filter(|m| sets_member_mtu(m))?;
    let planned = context.mtus.get(&master.name).copied();
    let carries = planned.or_else(|| master.mtu.get().map(u64::from))?;
    let other = mtu < carries || planned.is_some() && mtu > carries;
    other.then_some(LowerNic { nic: &master.name, carries, planned: planned.is_some() })
}

/// The members whose MTU an interface sets.
pub fn members<'f>(context: &PlanContext<'f>, nic: &Nic) -> Vec<&'f Nic> {
    let of_it = |n: &&Nic| sets_member_mtu(nic) && n.master.known() == Some(&nic.name);
    context.facts.nics.iter().filter(of_it).collect()
}

/// Orders MTU changes as the kernel requires: raises from the bottom up, reductions from the top
/// down. The plan positions of MTU changes stay the same.
pub fn in_order(facts: &Facts, changes: Vec<Planned>) -> Vec<Planned> {
    let is_mtu = |c: &Planned| mtu_of(&c.knob).is_some();
    let places: Vec<bool> = changes.iter().map(is_mtu).collect();
    let (mtus, rest): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_mtu);
    let (mut mtus, mut rest) = (ordered(facts, mtus).into_iter(), rest.into_iter());
    places.into_iter().filter_map(|mtu| if mtu { mtus.next() } else { rest.next() }).collect()
}

fn ordered(facts: &Facts, mut left: Vec<Planned>) -> Vec<Planned> {
    let mut done = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let free = |c: &&Planned| !left.iter().any(|other| comes_first(facts, other, c));
        // Stacking has no cycles, so one change is always free.
        let next = left.iter().position(|c| free(&c)).unwrap_or_default();
        done.push(left.remove(next));
    }
    done
}

/// Whether change `a` must be made before change `b`.
fn comes_first(facts: &Facts, a: &Planned, b: &Planned) -> bool {
    let name = |c: &Planned| mtu_of(&c.knob).unwrap_or_default().to_owned();
    let (below, above) =
        (stands_on(facts, &name(b), &name(a)), stands_on(facts, &name(a), &name(b)));
    below && grows(b) || above && !grows(a)
}

fn grows(change: &Planned) -> bool {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    matches!((number(&change.old), number(&change.new)), (Some(old), Some(new)) if new > old)
}

/// Whether an interface is stacked on another one, directly or not.
fn stands_on(facts: &Facts, top: &str, bottom: &str) -> bool {
    let (mut todo, mut seen) = (vec![top], BTreeSet::new());
    while let Some(name) = todo.pop() {
        let Some(nic) = facts.nics.iter().find(|n| n.name == name && seen.insert(name)) else {
            continue;
        };
        let next = lowers(facts, nic);
        if next.contains(&bottom) {
            return true;
        }
        todo.extend(next);
    }
    false
}

/// Notes of a plan on MTUs that undoing does not restore.
pub fn notes(facts: &Facts, changes: &[Planned]) -> Vec<PlanNote> {
    let bridges = changes.iter().filter_map(|c| {
        let name = mtu_of(&c.knob)?;
        facts.nics.iter().find(|n| n.name == name && n.kind == "bridge")
    });
    let note = |bridge: &Nic| PlanNote::BridgeMtuStays { bridge: bridge.name.clone() };
    bridges.map(note).collect()
}

#[cfg(test)]
mod tests;
