//! The NICs and disks that a service uses, with their nodes.

use std::collections::BTreeMap;

use model::{
    Reading,
    nic::{KindDetails, Nic},
    placement::{ProcessUse, UsedDevice},
};

use crate::{Case, queues};

/// Interfaces below interfaces that are followed: a VLAN on a bond is two.
const MOST_LAYERS: u32 = 6;

/// The disks, each once, with the node of its controller.
pub(super) fn disks(case: &Case<'_>, uses: &[&ProcessUse]) -> Vec<UsedDevice> {
    let mut found = BTreeMap::new();
    for (disk, known_by) in uses.iter().filter_map(|u| u.disks.known()).flatten() {
        let controller = case.facts.storage.iter().find(|s| s.disks.contains(disk));
        let node = match controller {
            Some(c) => c.numa_node.clone(),
            None => Reading::absent(format!("{disk}: no storage controller has it")),
        };
        found.entry(disk.clone()).or_insert(UsedDevice {
            name: disk.clone(),
            node,
            known_by: known_by.clone(),
        });
    }
    found.into_values().collect()
}

/// The physical NICs that have the service's addresses, below bonds, bridges and VLANs. Without
/// any such address they are all NICs that are up: a client's way out is not known.
pub(super) fn nics(case: &Case<'_>, uses: &[&ProcessUse]) -> Vec<UsedDevice> {
    let mut found = BTreeMap::new();
    for address in uses.iter().filter_map(|u| u.addresses.known()).flatten() {
        let text = address.to_string();
        let has = |n: &&Nic| {
            let own = n.addresses.known().into_iter().flatten();
            own.into_iter().any(|a| a.split('/').next() == Some(&text))
        };
        for nic in case.facts.nics.iter().filter(has) {
            below(case, nic, MOST_LAYERS, &mut |physical| {
                let node = physical.numa_node.clone();
                let known_by = format!("a socket at {text}");
                let name = physical.name.clone();
                found.entry(name.clone()).or_insert(UsedDevice { name, node, known_by });
            });
        }
    }
    if found.is_empty() {
        let all = queues::running_physical(case);
        let read = uses.iter().all(|u| u.addresses.is_known());
        let known_by = match all.len() {
            1 => "the only NIC that is up",
            _ if read => "no socket has an address of a NIC: all that are up",
            _ => "its addresses are not known: all NICs that are up",
        };
        return all
            .into_iter()
            .map(|n| UsedDevice {
                name: n.name.clone(),
                node: n.numa_node.clone(),
                known_by: known_by.into(),
            })
            .collect();
    }
    found.into_values().collect()
}

/// The interface itself if it has a device, else those that carry its packets.
fn below<'a>(case: &Case<'a>, nic: &'a Nic, layers: u32, each: &mut impl FnMut(&'a Nic)) {
    if nic.kind == "physical" {
        return each(nic);
    }
    if layers == 0 {
        return;
    }
    let carries = |n: &&Nic| match &nic.details {
        KindDetails::Vlan { lower, .. } | KindDetails::Macvlan { lower, .. } => {
            lower.known() == Some(&n.name)
        }
        _ => n.master.known() == Some(&nic.name),
    };
    for lower in case.facts.nics.iter().filter(carries) {
        below(case, lower, layers - 1, each);
    }
}
