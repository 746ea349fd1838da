//! Virtual devices, one line each: what they are tied to.

use model::{
    CpuSet, Facts, Reading,
    nic::{KindDetails, Nic},
    reading::Known,
};

use super::{View, dotted, is_physical, names, nics};
use crate::{
    text::{Ink, Line, Page, Table},
    words::{cpus, many, reading},
};

/// From this many devices of one kind on, only their number is shown.
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
            dotted([tie(v.facts, nic), nics::master(nic), steering(nic), addresses(nic)]),
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
        (_, Some(true)) => Line::plain("up"),
        (_, None) => Line::new().ink(Ink::Faint, "state not known"),
    };
    let mtu = nic.mtu.get().map(|m| Line::plain(format!("mtu {m}"))).unwrap_or_default();
    let rx = nic.queues.iter().filter(|q| q.id.direction == model::ids::Direction::Rx).count();
    let queues = if rx > 1 { Line::plain(many(rx, "queue")) } else { Line::new() };
    dotted([state, mtu, queues])
}

/// CPUs that its packets are steered to.
pub fn steering(nic: &Nic) -> Line {
    let all = |pick: fn(&model::nic::Queue) -> &Reading<CpuSet>| {
        nic.queues.iter().filter_map(|q| pick(q).known()).fold(CpuSet::new(), |a, b| a.union(b))
    };
    let say = |what: &str, set: CpuSet| {
        if set.is_empty() { Line::new() } else { Line::plain(format!("{what} {}", cpus(&set))) }
    };
    dotted([say("RPS to", all(|q| &q.rps_cpus)), say("XPS from", all(|q| &q.xps_cpus))])
}

fn addresses(nic: &Nic) -> Line {
    nic.addresses.get().map(|a| Line::plain(a.join(" "))).unwrap_or_default()
}

/// What a virtual device is tied to.
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
                line.push(Ink::Warn, format!(", mtu {theirs} on the peer"));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, bare_nic};

    fn tied(details: KindDetails) -> String {
        let mut nic = bare_nic("x", "x");
        nic.details = details;
        tie(&testing::nothing(), &nic).bare()
    }

    #[test]
    fn says_what_a_device_is_tied_to() {
        fn no<T>() -> Reading<T> {
            Reading::absent("not reported")
        }
        assert_eq!(
            tied(KindDetails::Bond {
                members: vec!["eth0".into(), "eth1".into()],
                mode: Known("802.3ad".into()),
                active: no(),
                xmit_hash_policy: Known("layer3+4".into()),
                miimon_ms: Known(100),
            }),
            "802.3ad: eth0, eth1, hash layer3+4"
        );
        let lower = || Known("eth0".to_owned());
        assert_eq!(tied(KindDetails::Vlan { id: Known(10), lower: lower() }), "id 10 on eth0");
        let mode = Reading::denied("EPERM");
        assert_eq!(tied(KindDetails::Macvlan { lower: lower(), mode }), "on eth0, mode denied");
        assert_eq!(tied(KindDetails::Tun { multi_queue: Known(true) }), "multi-queue");
        let bridge = KindDetails::Bridge { ports: vec![], stp: Known(true), vlan_filtering: no() };
        assert_eq!(tied(bridge), "ports: none");
        assert_eq!(
            tied(KindDetails::Veth {
                peer_ifindex: Known(7),
                peer: no(),
                peer_namespace: Known(4_026_532_290),
                peer_mtu: no(),
                peer_container: Known("none".into()),
            }),
            "↔ ifindex 7 in namespace 4026532290"
        );
    }

    #[test]
    fn steering_of_a_virtual_device_is_reported() {
        let mut f = testing::machine(testing::MachineShape {
            packages: 1,
            nodes: 1,
            l3s: 1,
            cores: 4,
            threads: 1,
        });
        testing::add_nic(&mut f, "v0", 0, 2, 40, &[0, 1]);
        assert_eq!(steering(&f.nics[0]).bare(), "");
        f.nics[0].queues[1].rps_cpus = Known("0-1".parse().unwrap());
        f.nics[0].queues[2].xps_cpus = Known("3".parse().unwrap());
        assert_eq!(steering(&f.nics[0]).bare(), "RPS to CPUs 0-1 · XPS from CPU 3");
    }
}
