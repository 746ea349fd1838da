//! Kind and details of links from files alone, for a tree that holds no netlink answers.
//!
//! **Source**: `/sys/class/net/X/{bonding,bridge,lower_*,iflink,tun_flags}`, `master` links,
//! `/proc/net/vlan/config`. Modes of macvlan and ipvlan, and whose namespace a veth's other
//! end is in, stand in no file.

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

/// The `lower_NAME` link.
fn lower(root: &Root, dir: &str) -> Reading<String> {
    let names = root.entries(dir).unwrap_or_default();
    names.iter().find_map(|n| n.strip_prefix("lower_")).map_or_else(
        || Reading::Absent(format!("{dir}/lower_*: not there")),
        |name| Reading::Known(name.to_owned()),
    )
}

/// Those whose master it is, ascending.
fn members(nic: &Nic, nics: &[Nic]) -> Vec<String> {
    let mut names: Vec<String> = nics
        .iter()
        .filter(|n| n.master.known() == Some(&nic.name))
        .map(|n| n.name.clone())
        .collect();
    names.sort();
    names
}
