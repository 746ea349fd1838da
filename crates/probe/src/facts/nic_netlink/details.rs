//! Details of each kind of link, from rtnetlink's answers of this and other namespaces.

use std::collections::BTreeMap;

use model::{
    Reading,
    netns::{Link, NetNamespace},
    nic::KindDetails,
};
use parse::rtnl_link::{LinkData, LinkMessage};

use crate::ask::netlink::Dump;

/// The links of this namespace by index, and the other namespaces.
pub struct Map<'a> {
    links: BTreeMap<u32, &'a LinkMessage>,
    namespaces: &'a Reading<Vec<NetNamespace>>,
}

impl<'a> Map<'a> {
    pub fn new(
        links: Option<&'a Dump<LinkMessage>>,
        namespaces: &'a Reading<Vec<NetNamespace>>,
    ) -> Self {
        let entries = links.map(|d| d.entries.as_slice()).unwrap_or_default();
        Self { links: entries.iter().map(|l| (l.ifindex, l)).collect(), namespaces }
    }

    pub fn link(&self, ifindex: u32) -> Option<&'a LinkMessage> {
        self.links.get(&ifindex).copied()
    }

    pub fn details(&self, link: &LinkMessage) -> KindDetails {
        match (&link.data, link.kind.as_deref()) {
            (LinkData::Vlan { id }, _) => {
                KindDetails::Vlan { id: reported(*id, "VLAN id"), lower: self.lower(link) }
            }
            (LinkData::Macvlan { mode }, _) => KindDetails::Macvlan {
                lower: self.lower(link),
                mode: reported(mode.clone(), "mode"),
            },
            (LinkData::Bond { mode, active, xmit_hash_policy, miimon_ms }, _) => {
                KindDetails::Bond {
                    members: self.below(link.ifindex),
                    mode: reported(mode.clone(), "mode"),
                    active: match active {
                        None => Reading::absent("no member is the active one"),
                        Some(index) => self.name(*index),
                    },
                    xmit_hash_policy: reported(xmit_hash_policy.clone(), "hash policy"),
                    miimon_ms: reported(*miimon_ms, "miimon"),
                }
            }
            (LinkData::Bridge { stp, vlan_filtering }, _) => KindDetails::Bridge {
                ports: self.below(link.ifindex),
                stp: reported(*stp, "STP state"),
                vlan_filtering: reported(*vlan_filtering, "VLAN filtering"),
            },
            (LinkData::Tun { multi_queue, .. }, _) => {
                KindDetails::Tun { multi_queue: reported(*multi_queue, "multi-queue") }
            }
            // netkit is a pair like veth, and pairs are what matters of it here.
            (LinkData::None, Some("veth" | "netkit")) => self.veth(link),
            (LinkData::None, _) => KindDetails::None,
        }
    }

    /// Names of the members or ports, ascending.
    fn below(&self, ifindex: u32) -> Vec<String> {
        let members = self.links.values().filter(|l| l.master == Some(ifindex));
        let mut names: Vec<String> = members.map(|l| l.name.clone()).collect();
        names.sort();
        names
    }

    fn name(&self, ifindex: u32) -> Reading<String> {
        self.links.get(&ifindex).map_or_else(
            || Reading::Absent(format!("index {ifindex}: not among this namespace's links")),
            |l| Reading::Known(l.name.clone()),
        )
    }

    /// The device below. One in another namespace is no name of this one.
    fn lower(&self, link: &LinkMessage) -> Reading<String> {
        let Some(index) = link.link else {
            return Reading::Absent(format!("{} has no device below", link.name));
        };
        if link.link_netnsid.is_none() {
            return self.name(index);
        }
        match self.elsewhere(link) {
            Reading::Known((ns, Some(lower))) => {
                Reading::Absent(format!("{} of network namespace {}", lower.name, ns.inode))
            }
            Reading::Known((ns, None)) => {
                Reading::Absent(format!("index {index} of network namespace {}", ns.inode))
            }
            Reading::Absent(why) => Reading::Absent(why),
            Reading::Denied(why) => Reading::Denied(why),
        }
    }

    /// The namespace that a link points into, and the link there if it could be looked into.
    fn elsewhere(&self, link: &LinkMessage) -> Reading<(&'a NetNamespace, Option<&'a Link>)> {
        let all = match self.namespaces {
            Reading::Known(all) => all,
            Reading::Absent(why) => return Reading::Absent(why.clone()),
            Reading::Denied(why) => return Reading::Denied(why.clone()),
        };
        let own = all.iter().find(|n| n.own).and_then(|n| n.links.known());
        let here = own.and_then(|links| links.iter().find(|l| l.ifindex == link.ifindex));
        let inode = match here.map(|l| &l.lower_namespace) {
            Some(Reading::Known(inode)) => *inode,
            Some(Reading::Absent(why)) => return Reading::Absent(why.clone()),
            Some(Reading::Denied(why)) => return Reading::Denied(why.clone()),
            None => return Reading::Absent(format!("{}: came meanwhile", link.name)),
        };
        let Some(namespace) = all.iter().find(|n| n.inode == inode) else {
            return Reading::Absent(format!("network namespace {inode}: not there"));
        };
        let other = namespace
            .links
            .known()
            .and_then(|links| links.iter().find(|l| Some(l.ifindex) == link.link));
        Reading::Known((namespace, other))
    }

    fn veth(&self, link: &LinkMessage) -> KindDetails {
        let Some(index) = link.link else {
            return no_peer(&Reading::Absent(format!("{} has no other end", link.name)));
        };
        let peer_ifindex = Reading::Known(index);
        if link.link_netnsid.is_some() {
            return self.veth_elsewhere(link, peer_ifindex);
        }
        let own = self.namespaces.as_ref().and_then(|all| {
            all.iter()
                .find(|n| n.own)
                .map_or_else(|| Reading::absent("own namespace: not found"), Reading::Known)
        });
        let peer = self.links.get(&index);
        KindDetails::Veth {
            peer_ifindex,
            peer: self.name(index),
            peer_namespace: own.clone().map(|n| n.inode),
            peer_mtu: reported(peer.and_then(|p| p.mtu), "MTU"),
            peer_container: own.and_then(|n| n.container.clone()),
        }
    }

    fn veth_elsewhere(&self, link: &LinkMessage, peer_ifindex: Reading<u32>) -> KindDetails {
        let elsewhere = self.elsewhere(link);
        let peer = elsewhere.clone().and_then(|(namespace, peer)| match peer {
            Some(peer) => Reading::Known(peer),
            None => namespace.links.as_ref().and_then(|_| {
                Reading::Absent(format!("network namespace {}: no such link", namespace.inode))
            }),
        });
        KindDetails::Veth {
            peer_ifindex,
            peer: peer.clone().map(|p| p.name.clone()),
            peer_namespace: elsewhere.clone().map(|(n, _)| n.inode),
            peer_mtu: peer.map(|p| p.mtu),
            peer_container: elsewhere.and_then(|(n, _)| n.container.clone()),
        }
    }
}

/// A pair of which only the other end's index may be known.
pub fn no_peer(peer_ifindex: &Reading<u32>) -> KindDetails {
    fn why<T>(index: &Reading<u32>) -> Reading<T> {
        index.as_ref().and_then(|_| Reading::absent("sysfs tells no more than its index"))
    }
    KindDetails::Veth {
        peer_ifindex: peer_ifindex.clone(),
        peer: why(peer_ifindex),
        peer_namespace: why(peer_ifindex),
        peer_mtu: why(peer_ifindex),
        peer_container: why(peer_ifindex),
    }
}

fn reported<T>(value: Option<T>, what: &str) -> Reading<T> {
    value.map_or_else(|| Reading::Absent(format!("{what}: not reported")), Reading::Known)
}
