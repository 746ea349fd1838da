//! Kind and details of links from files alone, for a tree without netlink answers.
//!
//! **Source**: `/sys/class/net/X/{bonding,bridge,lower_*,iflink,tun_flags}`, `master` links,
//! `/proc/net/vlan/config`. No file has the modes of macvlan and ipvlan, or the namespace of a
//! veth's other end.

use std::collections::{BTreeMap, HashMap};

use model::{
    Reading,
    nic::{KindDetails, Nic},
};
use parse::vlan_config::VlanLine;

use super::details::no_peer;
use crate::Root;

const IFF_MULTI_QUEUE: u64 = 0x100;

/// Kind and details by name.
pub fn details(root: &Root, nics: &[Nic]) -> HashMap<String, (String, KindDetails)> {
    let vlans = root
        .read("/proc/net/vlan/config")
        .map(|b| parse::vlan_config::parse(&b))
        .unwrap_or_default();
    let iflinks: BTreeMap<u32, u32> = nics
        .iter()
        .filter_map(|n| Some((n.ifindex.get()?, iflink(root, &n.name).into_known()?)))
        .collect();
    nics.iter()
        .map(|nic| {
            let kind = kind(root, nic, &vlans, &iflinks);
            let details = of_kind(root, nic, &kind, &vlans, nics);
            (nic.name.clone(), (kind, details))
        })
        .collect()
}

fn iflink(root: &Root, name: &str) -> Reading<u32> {
    root.number(&format!("/sys/class/net/{name}/iflink"))
}

/// The kind that was guessed of each interface alone, corrected by what stands elsewhere.
fn kind(root: &Root, nic: &Nic, vlans: &[VlanLine], iflinks: &BTreeMap<u32, u32>) -> String {
    if vlans.iter().any(|v| v.name == nic.name) {
        return "vlan".into();
    }
    if nic.kind != "virtual" {
        return nic.kind.clone();
    }
    // A nameless kind that points to another interface which is not below it: one end of a
    // pair. A tunnel bound to a device also points to one, but that does not point back.
    let index = nic.ifindex.get();
    let other = iflink(root, &nic.name).into_known().filter(|&l| l != 0 && Some(l) != index);
    let pair = other.is_some_and(|l| match iflinks.get(&l) {
        None => true,
        back => back.copied() == index,
    });
    let below = root
        .entries(&format!("/sys/class/net/{}", nic.name))
        .is_ok_and(|all| all.iter().any(|e| e.starts_with("lower_")));
    if pair && !below { "veth".into() } else { nic.kind.clone() }
}

fn of_kind(root: &Root, nic: &Nic, kind: &str, vlans: &[VlanLine], nics: &[Nic]) -> KindDetails {
    let dir = format!("/sys/class/net/{}", nic.name);
    match kind {
        "bond" => bond(root, &dir, members(nic, nics)),
        "bridge" => KindDetails::Bridge {
            ports: members(nic, nics),
            stp: root.number::<u32>(&format!("{dir}/bridge/stp_state")).map(|s| s != 0),
            vlan_filtering: root
                .number::<u32>(&format!("{dir}/bridge/vlan_filtering"))
                .map(|s| s != 0),
        },
        "vlan" => vlan(root, nic, &dir, vlans),
        "macvlan" | "macvtap" | "ipvlan" | "ipvtap" => KindDetails::Macvlan {
            lower: lower(root, &dir),
            mode: Reading::absent("no file tells the mode"),
        },
        "tun" | "tap" => KindDetails::Tun {
            multi_queue: root
                .parsed(&format!("{dir}/tun_flags"), parse::text::hex)
                .map(|f| f & IFF_MULTI_QUEUE != 0),
        },
        "veth" | "netkit" => no_peer(&iflink(root, &nic.name)),
        _ => KindDetails::None,
    }
}

/// The first word of a choice file, as in `802.3ad 4`; empty is absent.
fn choice(root: &Root, path: &str) -> Reading<String> {
    root.word(path).map(|w| w.split(' ').next().unwrap_or_default().to_owned())
}

fn bond(root: &Root, dir: &str, members: Vec<String>) -> KindDetails {
    let at = |file: &str| format!("{dir}/bonding/{file}");
    KindDetails::Bond {
        members,
        mode: choice(root, &at("mode")),
        active: root.word(&at("active_slave")),
        xmit_hash_policy: choice(root, &at("xmit_hash_policy")),
        miimon_ms: root.number(&at("miimon")),
    }
}

fn vlan(root: &Root, nic: &Nic, dir: &str, vlans: &[VlanLine]) -> KindDetails {
    match vlans.iter().find(|v| v.name == nic.name) {
        Some(v) => {
            KindDetails::Vlan { id: Reading::Known(v.id), lower: Reading::Known(v.lower.clone()) }
        }
        None => KindDetails::Vlan {
            id: Reading::Absent(format!("/proc/net/vlan/config: {} is not in it", nic.name)),
            lower: lower(root, dir),
        },
    }
}

/// The device below, from the link `lower_NAME`.
fn lower(root: &Root, dir: &str) -> Reading<String> {
    let names = root.entries(dir).unwrap_or_default();
    names.iter().find_map(|n| n.strip_prefix("lower_")).map_or_else(
        || Reading::Absent(format!("{dir}/lower_*: not there")),
        |name| Reading::Known(name.to_owned()),
    )
}

/// The interfaces with this master, in ascending order.
fn members(nic: &Nic, nics: &[Nic]) -> Vec<String> {
    let mut names: Vec<String> = nics
        .iter()
        .filter(|n| n.master.known() == Some(&nic.name))
        .map(|n| n.name.clone())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ask::rtnl::Answers,
        facts::{netns, nic, nic_netlink},
    };

    /// A tree of `/sys/class/net` as a person would copy it: no netlink answers.
    struct Tree(tempfile::TempDir);

    impl Tree {
        fn file(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn link(&self, path: &str, target: &str) {
            std::os::unix::fs::symlink(target, self.0.path().join(path)).unwrap();
        }

        fn nic(&self, name: &str, index: u32, iflink: u32) {
            self.file(&format!("sys/class/net/{name}/ifindex"), &format!("{index}\n"));
            self.file(&format!("sys/class/net/{name}/iflink"), &format!("{iflink}\n"));
            self.file(&format!("sys/class/net/{name}/uevent"), &format!("INTERFACE={name}\n"));
        }

        fn read(&self) -> Vec<Nic> {
            let root = Root::open(self.0.path()).unwrap();
            let mut nics = nic::read(&root);
            let answers = Answers::ask(&root);
            let (namespaces, _) = netns::read(&root, &answers);
            let no_access = nic_netlink::enrich(&root, &mut nics, &answers, &namespaces);
            assert!(no_access.iter().any(|u| u.why.contains("netlink/links")), "{no_access:?}");
            assert!(nics.iter().all(|n| !n.addresses.is_known() && !n.xdp.is_known()));
            nics
        }
    }

    fn named<'a>(nics: &'a [Nic], name: &str) -> &'a Nic {
        nics.iter().find(|n| n.name == name).unwrap()
    }

    #[test]
    fn a_bond_with_members_and_a_vlan_on_it() {
        let t = Tree(tempfile::tempdir().unwrap());
        for (name, index) in [("eth0", 2), ("eth1", 3), ("bond0", 5)] {
            t.nic(name, index, index);
        }
        for member in ["eth1", "eth0"] {
            t.link(&format!("sys/class/net/{member}/master"), "../bond0");
        }
        t.file("sys/class/net/bond0/bonding/mode", "802.3ad 4\n");
        t.file("sys/class/net/bond0/bonding/active_slave", "\n");
        t.file("sys/class/net/bond0/bonding/xmit_hash_policy", "layer3+4 1\n");
        t.file("sys/class/net/bond0/bonding/miimon", "100\n");
        t.file("sys/class/net/bonding_masters", "bond0\n");
        t.nic("storage", 6, 5);
        t.file(
            "proc/net/vlan/config",
            "VLAN Dev name | VLAN ID\nName-Type: X\nstorage | 42 | bond0\n",
        );
        let nics = t.read();
        let bond = named(&nics, "bond0");
        assert_eq!(bond.kind, "bond");
        let KindDetails::Bond { members, mode, active, xmit_hash_policy, miimon_ms } =
            &bond.details
        else {
            panic!("{:?}", bond.details)
        };
        assert_eq!(members, &["eth0", "eth1"]);
        assert_eq!(mode.known().unwrap(), "802.3ad");
        assert_eq!(xmit_hash_policy.known().unwrap(), "layer3+4");
        assert_eq!(miimon_ms.get(), Some(100));
        assert!(!active.is_known(), "{active:?}");
        let vlan = named(&nics, "storage");
        assert_eq!(vlan.kind, "vlan");
        assert_eq!(
            vlan.details,
            KindDetails::Vlan { id: Reading::Known(42), lower: Reading::Known("bond0".into()) }
        );
    }

    #[test]
    fn bridge_macvlan_tap_and_what_no_file_tells() {
        let t = Tree(tempfile::tempdir().unwrap());
        t.nic("br0", 2, 2);
        t.file("sys/class/net/br0/uevent", "DEVTYPE=bridge\nINTERFACE=br0\n");
        t.file("sys/class/net/br0/bridge/stp_state", "0\n");
        t.nic("tap0", 3, 3);
        t.file("sys/class/net/tap0/tun_flags", "0x1102\n");
        t.link("sys/class/net/tap0/master", "../br0");
        t.nic("mv0", 4, 3);
        t.file("sys/class/net/mv0/uevent", "DEVTYPE=macvlan\nINTERFACE=mv0\n");
        t.file("sys/class/net/mv0/lower_tap0/ifindex", "3\n");
        let nics = t.read();
        let KindDetails::Bridge { ports, stp, vlan_filtering } = &named(&nics, "br0").details
        else {
            panic!()
        };
        assert_eq!((ports.as_slice(), stp.get()), (["tap0".to_owned()].as_slice(), Some(false)));
        assert!(!vlan_filtering.is_known());
        assert_eq!(
            named(&nics, "tap0").details,
            KindDetails::Tun { multi_queue: Reading::Known(true) }
        );
        let KindDetails::Macvlan { lower, mode } = &named(&nics, "mv0").details else { panic!() };
        assert_eq!((lower.known().unwrap().as_str(), mode.is_known()), ("tap0", false));
    }

    #[test]
    fn a_pair_is_known_by_where_it_points() {
        let t = Tree(tempfile::tempdir().unwrap());
        t.nic("away", 7, 2); // no index 2 here: the other end is in another namespace
        t.nic("x", 8, 9);
        t.nic("y", 9, 8);
        t.nic("tunnel", 10, 8); // bound to x, which does not point back
        t.nic("alone", 11, 11);
        let nics = t.read();
        let kinds: Vec<&str> = ["away", "x", "y", "tunnel", "alone"]
            .iter()
            .map(|n| named(&nics, n).kind.as_str())
            .collect();
        assert_eq!(kinds, ["veth", "veth", "veth", "virtual", "virtual"]);
        let KindDetails::Veth { peer_ifindex, peer, peer_namespace, .. } =
            &named(&nics, "away").details
        else {
            panic!()
        };
        assert_eq!(peer_ifindex.get(), Some(2));
        assert!(!peer.is_known() && !peer_namespace.is_known());
    }
}
