//! Changes to members of one bond, team or bridge that reset links. All changes of one member come
//! before the next, so that the others keep carrying traffic. Pure; [`crate::settle`] waits in
//! between.

use model::{
    Facts,
    nic::{KindDetails, Nic},
    tune::{Disruption, Impact, LinkMember, PlanNote, Planned},
};

use crate::knob::is_of_nic;

/// Interface kinds with members that replace each other, or that lead to different networks.
const MASTERS: [&str; 3] = ["bond", "team", "bridge"];

/// The member whose link such a change may reset, if any.
pub fn of(facts: &Facts, knob: &str, impact: &Impact) -> Option<LinkMember> {
    if impact.disruption < Disruption::LinkReset {
        return None;
    }
    let nic = nic_of(facts, knob)?;
    let master = nic.master.known().filter(|m| !m.is_empty())?;
    let kind = &facts.nics.iter().find(|n| n.name == *master)?.kind;
    if !MASTERS.contains(&kind.as_str()) {
        return None;
    }
    let fellow = |n: &&Nic| n.master.known() == Some(master) && n.carrier.known() == Some(&true);
    let up = facts.nics.iter().filter(fellow).map(|n| n.name.clone()).collect();
    Some(LinkMember { nic: nic.name.clone(), master: master.clone(), up })
}

/// The interface that a knob belongs to: `nic.NIC.…`, or the interface of the PCI function.
fn nic_of<'f>(facts: &'f Facts, knob: &str) -> Option<&'f Nic> {
    if knob.starts_with("nic.") {
        let its = facts.nics.iter().filter(|n| is_of_nic(knob, &n.name));
        return its.max_by_key(|n| n.name.len());
    }
    let address = knob.strip_prefix("pci.")?.rsplit_once('.')?.0;
    facts.nics.iter().find(|n| n.bus_address.known().is_some_and(|a| a == address))
}

/// Reorders a plan's changes so that members are changed one after the other. All of a member's
/// changes stand where its first one stood. The active member of an active-backup bond comes last,
/// so that the bond fails over once.
pub fn in_turn(facts: &Facts, changes: Vec<Planned>) -> Vec<Planned> {
    let mut masters: Vec<String> = Vec::new();
    for member in changes.iter().filter_map(|c| c.member.as_ref()) {
        if !masters.contains(&member.master) {
            masters.push(member.master.clone());
        }
    }
    masters.iter().fold(changes, |changes, master| of_master(facts, changes, master))
}

fn of_master(facts: &Facts, changes: Vec<Planned>, master: &str) -> Vec<Planned> {
    let turns = turns(facts, &changes, master);
    // Only the NIC's own settings: a PCI register has another phase.
    let turn = |c: &Planned| {
        let own = nic_of(facts, &c.knob).filter(|_| c.knob.starts_with("nic."))?;
        turns.iter().position(|nic| *nic == own.name)
    };
    let Some(first) = changes.iter().position(|c| turn(c).is_some()) else { return changes };
    let (mut theirs, rest): (Vec<_>, Vec<_>) =
        changes.into_iter().enumerate().partition(|(_, c)| turn(c).is_some());
    theirs.sort_by_key(|(_, c)| turn(c));
    let (before, after): (Vec<_>, Vec<_>) = rest.into_iter().partition(|(i, _)| *i < first);
    before.into_iter().chain(theirs).chain(after).map(|(_, c)| c).collect()
}

/// The members of `master` whose links a plan resets, in the order of their changes.
fn turns(facts: &Facts, changes: &[Planned], master: &str) -> Vec<String> {
    let mut nics: Vec<String> = Vec::new();
    for m in changes.iter().filter_map(|c| c.member.as_ref()).filter(|m| m.master == master) {
        if !nics.contains(&m.nic) {
            nics.push(m.nic.clone());
        }
    }
    let details = facts.nics.iter().find(|n| n.name == master).map(|n| &n.details);
    if let Some(KindDetails::Bond { active, .. }) = details {
        nics.sort_by_key(|n| active.known() == Some(n));
    }
    nics
}

/// Notes of a plan on that order.
pub fn notes(facts: &Facts, changes: &[Planned]) -> Vec<PlanNote> {
    let mut notes = Vec::new();
    let mut reported: Vec<&str> = Vec::new();
    for member in changes.iter().filter_map(|c| c.member.as_ref()) {
        let master = member.master.as_str();
        if reported.contains(&master) {
            continue;
        }
        reported.push(master);
        let turns = turns(facts, changes, master);
        if turns.len() > 1 {
            notes.push(PlanNote::OneByOne {
                master: master.to_owned(),
                members: turns.clone(),
                link_wait_s: crate::settle::PATIENCE.as_secs(),
            });
        }
        let is_bridge = facts.nics.iter().any(|n| n.name == master && n.kind == "bridge");
        if !is_bridge
            && let [only] = member.up.as_slice()
            && turns.contains(only)
        {
            notes.push(PlanNote::OnlyMemberUp { master: master.to_owned(), nic: only.clone() });
        }
    }
    notes
}

#[cfg(test)]
mod tests;
