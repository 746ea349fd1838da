//! Virtual devices, one line each: what they are tied to.

use model::{
    Facts, Reading,
    nic::{KindDetails, Nic},
    reading::Known,
};

use super::{View, dotted, is_physical, names, nics};
use crate::{
    text::{Ink, Line, Page, Table},
    words::{many, reading},
};

/// From this many devices of one kind on, only their number is told.
const MANY: usize = 24;

pub fn show(v: &View<'_>, page: &mut Page) {
    let list: Vec<&Nic> = v.facts.nics.iter().filter(|n| !is_physical(n)).collect();
    if list.is_empty() {
        return;
    }
    page.heading("VIRTUAL DEVICES");
    let mut t = Table::new().left("").left("").wrapping("").wrapping("");
    let shown = if page.look().verbose { list.len() } else { MANY };
    for nic in list.iter().take(shown) {
        t.row([
            Line::new().ink(Ink::Strong, &nic.name),
            Line::plain(&nic.kind),
            state(nic),
            dotted([tie(v.facts, nic), nics::master(nic), addresses(nic)]),
        ]);
    }
    page.table(&t, 2);
    if list.len() > shown {
        page.line(Line::plain(format!("  and {} more; -v shows them", list.len() - shown)), 4);
    }
}

fn state(nic: &Nic) -> Line {
    let state = match (nic.carrier.get(), nic.up.get()) {
        (_, Some(false)) => Line::new().ink(Ink::Warn, "down"),
        (Some(false), _) => Line::new().ink(Ink::Warn, "no carrier"),
        _ => Line::plain("up"),
    };
    let mtu = nic.mtu.get().map(|m| Line::plain(format!("mtu {m}"))).unwrap_or_default();
    let rx = nic.queues.iter().filter(|q| q.id.direction == model::ids::Direction::Rx).count();
    let queues = if rx > 1 { Line::plain(many(rx, "queue")) } else { Line::new() };
    dotted([state, mtu, queues])
}

fn addresses(nic: &Nic) -> Line {
    nic.addresses.get().map(|a| Line::plain(a.join(" "))).unwrap_or_default()
}

/// What it is tied to.
pub fn tie(facts: &Facts, nic: &Nic) -> Line {
    match &nic.details {
        KindDetails::None => Line::new(),
        KindDetails::Veth { peer, peer_ifindex, peer_namespace, peer_mtu, peer_container } => {
            let mut line = Line::plain("↔ ");
            line.extend(match (peer, peer_ifindex) {
                (Known(name), _) => Line::plain(name),
                (_, Known(index)) => Line::plain(format!("ifindex {index}")),
                (other, _) => reading(other),
            });
            line.extend(peer_place(facts, peer_namespace, peer_container));
            if let (Known(ours), Known(theirs)) = (&nic.mtu, peer_mtu)
                && ours != theirs
            {
                line.push(Ink::Warn, format!(", whose mtu is {theirs}"));
            }
            line
        }
        KindDetails::Bridge { ports, .. } => Line::plain(format!("ports: {}", names(ports))),
        KindDetails::Bond { members, mode, active, xmit_hash_policy, .. } => {
            let mut line = reading(mode).text(format!(": {}", names(members)));
            if let Some(active) = active.get().filter(|a| !a.is_empty()) {
                line.push(Ink::Plain, format!(", {active} active"));
            }
            if let Known(hash) = xmit_hash_policy {
                line.push(Ink::Plain, format!(", hash {hash}"));
            }
            line
        }
        KindDetails::Vlan { id, lower } => {
            Line::plain("id ").also(reading(id)).text(" on ").also(reading(lower))
        }
        KindDetails::Macvlan { lower, mode } => {
            Line::plain("on ").also(reading(lower)).text(", mode ").also(reading(mode))
        }
        KindDetails::Tun { multi_queue } => match multi_queue.get() {
            Some(true) => Line::plain("multi-queue"),
            _ => Line::new(),
        },
    }
}

/// ` in container web`, ` in namespace blue`, ` in namespace 4026532290`.
fn peer_place(facts: &Facts, inode: &Reading<u64>, container: &Reading<String>) -> Line {
    if let Some(name) = container.get().filter(|c| c != "none") {
        return Line::plain(format!(" in container {name}"));
    }
    let Some(inode) = inode.get() else { return Line::new() };
    let space = facts.namespaces.known().and_then(|all| all.iter().find(|n| n.inode == inode));
    match space {
        Some(n) if n.own => Line::new(),
        Some(n) => match n.name.get() {
            Some(name) => Line::plain(format!(" in namespace {name}")),
            None => Line::plain(format!(" in namespace {inode}")),
        },
        None => Line::plain(format!(" in namespace {inode}")),
    }
}
