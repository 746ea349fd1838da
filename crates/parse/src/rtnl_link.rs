//! `RTM_NEWLINK`: one network interface.
//!
//! **Source**: `struct ifinfomsg`, `IFLA_*` of `include/uapi/linux/if_link.h`. An attribute
//! that this kernel does not send is `None`, never zero.

use serde::{Deserialize, Serialize};

use crate::netlink::{Attribute, attributes, hardware_address, i32_at, u16_at, u32_at};

/// The link type of loopback: `ARPHRD_LOOPBACK` of `linux/if_arp.h`.
pub const TYPE_LOOPBACK: u16 = 772;
/// The flag of an interface that is administratively up: `IFF_UP` of `linux/if.h`.
pub const FLAG_UP: u32 = 1;

/// What the kernel said of one interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkMessage {
    /// Index in its namespace.
    pub ifindex: u32,
    pub name: String,
    /// Hardware type, `ARPHRD_*`: 1 Ethernet, 772 loopback.
    pub device_type: u16,
    /// Bits `IFF_*` of `linux/if.h`.
    pub flags: u32,
    /// Largest packet in bytes, without the link header.
    pub mtu: Option<u32>,
    /// Smallest MTU, since 4.19; 0 is no limit.
    pub min_mtu: Option<u32>,
    /// Largest MTU, since 4.19; 0 is no limit.
    pub max_mtu: Option<u32>,
    /// Length of the transmit queue in packets.
    pub txqueuelen: Option<u32>,
    pub tx_queues: Option<u32>,
    pub rx_queues: Option<u32>,
    /// Bridge, bond or VRF above.
    pub master: Option<u32>,
    /// The device below, or a veth's other end (`IFLA_LINK`).
    pub link: Option<u32>,
    /// Number, in this namespace, of the namespace that `link` belongs to, if another.
    pub link_netnsid: Option<i32>,
    /// `veth`, `bridge`, …; none for hardware and loopback.
    pub kind: Option<String>,
    /// What is special to the kind.
    pub data: LinkData,
    /// An XDP program is attached.
    pub xdp: Option<bool>,
    pub mac: Option<String>,
    /// The address that hardware came with (`IFLA_PERM_ADDRESS`, since 5.6).
    #[serde(default)]
    pub permanent_mac: Option<String>,
}

/// `IFLA_INFO_DATA` of the kinds that matter here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkData {
    /// Another kind, or none.
    #[default]
    None,
    /// `vlan`, with its VLAN id.
    Vlan { id: Option<u16> },
    /// `macvlan`, `macvtap`, `ipvlan`, `ipvtap`.
    Macvlan {
        /// The kernel's name of the mode: `bridge`, `l3`.
        mode: Option<String>,
    },
    /// `bond`; its members have it as their master.
    Bond {
        /// The kernel's name of the mode: `802.3ad`.
        mode: Option<String>,
        /// Index of the member in use; modes without one have none.
        active: Option<u32>,
        /// The kernel's name of the policy: `layer3+4`.
        xmit_hash_policy: Option<String>,
        /// Milliseconds, 0 is off.
        miimon_ms: Option<u32>,
    },
    /// `bridge`; its ports have it as their master.
    Bridge {
        /// Spanning tree on (by the kernel's or a daemon's).
        stp: Option<bool>,
        vlan_filtering: Option<bool>,
    },
    /// `tun`: tun and tap devices.
    Tun {
        /// Which of the two: `tun` or `tap`.
        mode: Option<String>,
        /// Made for several queues.
        multi_queue: Option<bool>,
    },
}

const IFINFO_BYTES: usize = 16;

/// Parses the payload of one message; `None` where it is too short or names no device.
pub fn parse(payload: &[u8]) -> Option<LinkMessage> {
    let mut l = LinkMessage {
        ifindex: u32::try_from(i32_at(payload, 4)?).ok()?,
        name: String::new(),
        device_type: u16_at(payload, 2)?,
        flags: u32_at(payload, 8)?,
        mtu: None,
        min_mtu: None,
        max_mtu: None,
        txqueuelen: None,
        tx_queues: None,
        rx_queues: None,
        master: None,
        link: None,
        link_netnsid: None,
        kind: None,
        data: LinkData::None,
        xdp: None,
        mac: None,
        permanent_mac: None,
    };
    for a in attributes(payload.get(IFINFO_BYTES..)?) {
        match a.kind {
            1 => l.mac = hardware_address(a.bytes),
            3 => l.name = a.text(),
            4 => l.mtu = a.u32(),
            5 => l.link = a.u32().filter(|&i| i != 0),
            10 => l.master = a.u32().filter(|&i| i != 0),
            13 => l.txqueuelen = a.u32(),
            18 => info(&mut l, &a),
            31 => l.tx_queues = a.u32(),
            32 => l.rx_queues = a.u32(),
            37 => l.link_netnsid = i32_at(a.bytes, 0),
            43 => l.xdp = a.inner(2).and_then(|x| x.unsigned()).map(|mode| mode != 0),
            50 => l.min_mtu = a.u32(),
            51 => l.max_mtu = a.u32(),
            54 => l.permanent_mac = hardware_address(a.bytes),
            _ => {}
        }
    }
    (!l.name.is_empty()).then_some(l)
}

fn info(l: &mut LinkMessage, a: &Attribute<'_>) {
    l.kind = a.inner(1).map(|k| k.text()).filter(|k| !k.is_empty());
    // A bridge without data would still be a bridge: an empty attribute is no evidence.
    let data = a.inner(2).unwrap_or(Attribute { kind: 2, bytes: &[] });
    let number = |kind: u16| data.inner(kind).and_then(|v| v.u32());
    let flag = |kind: u16| number(kind).map(|v| v != 0);
    l.data = match l.kind.as_deref() {
        Some("vlan") => LinkData::Vlan { id: number(1).and_then(|id| id.try_into().ok()) },
        Some("macvlan" | "macvtap") => {
            LinkData::Macvlan { mode: number(1).map(|m| named(m, &MACVLAN_MODES)) }
        }
        Some("ipvlan" | "ipvtap") => {
            LinkData::Macvlan { mode: number(1).map(|m| named(m, &IPVLAN_MODES)) }
        }
        Some("bond") => LinkData::Bond {
            mode: number(1).map(|m| named(m, &BOND_MODES)),
            active: number(2).filter(|&i| i != 0),
            xmit_hash_policy: number(14).map(|p| named(p, &BOND_POLICIES)),
            miimon_ms: number(3),
        },
        Some("bridge") => LinkData::Bridge { stp: flag(5), vlan_filtering: flag(7) },
        Some("tun") => LinkData::Tun {
            mode: number(3).map(|t| named(t, &[(1, "tun"), (2, "tap")])),
            multi_queue: flag(7),
        },
        _ => LinkData::None,
    };
}

const MACVLAN_MODES: [(u32, &str); 5] =
    [(1, "private"), (2, "vepa"), (4, "bridge"), (8, "passthru"), (16, "source")];
const IPVLAN_MODES: [(u32, &str); 3] = [(0, "l2"), (1, "l3"), (2, "l3s")];
const BOND_MODES: [(u32, &str); 7] = [
    (0, "balance-rr"),
    (1, "active-backup"),
    (2, "balance-xor"),
    (3, "broadcast"),
    (4, "802.3ad"),
    (5, "balance-tlb"),
    (6, "balance-alb"),
];
const BOND_POLICIES: [(u32, &str); 6] = [
    (0, "layer2"),
    (1, "layer3+4"),
    (2, "layer2+3"),
    (3, "encap2+3"),
    (4, "encap3+4"),
    (5, "vlan+srcmac"),
];

/// The name of a number; a number newer than this table is itself.
fn named(number: u32, names: &[(u32, &str)]) -> String {
    names
        .iter()
        .find(|(n, _)| *n == number)
        .map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut v = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        v.extend(kind.to_ne_bytes());
        v.extend(value);
        v.resize(v.len().next_multiple_of(4), 0);
        v
    }

    fn n(v: u32) -> [u8; 4] {
        v.to_ne_bytes()
    }

    fn link(attributes: &[Vec<u8>]) -> Option<LinkMessage> {
        let mut m = vec![0, 0];
        m.extend(1u16.to_ne_bytes());
        m.extend(n(7));
        m.extend(n(0x1043));
        m.extend(n(0));
        m.extend(attributes.concat());
        parse(&m)
    }

    fn of_kind(kind: &str, data: &[Vec<u8>]) -> LinkData {
        let kind = attr(1, format!("{kind}\0").as_bytes());
        let info = attr(18 | 0x8000, &[kind, attr(2 | 0x8000, &data.concat())].concat());
        link(&[attr(3, b"x0\0"), info]).unwrap().data
    }

    #[test]
    fn a_veth_in_another_namespace() {
        let l = link(&[
            attr(3, b"vethab12\0"),
            attr(13, &n(1000)),
            attr(4, &n(1500)),
            attr(50, &n(68)),
            attr(51, &n(65535)),
            attr(31, &n(4)),
            attr(32, &n(2)),
            attr(5, &n(2)),
            attr(37, &(-1i32).to_ne_bytes()),
            attr(10, &n(5)),
            attr(1, &[2, 0, 0, 0xab, 0xcd, 0xef]),
            attr(54, &[2, 0, 0, 1, 2, 3]),
            attr(43, &attr(2, &[2])),
            attr(18, &attr(1, b"veth\0")),
        ])
        .unwrap();
        assert_eq!((l.ifindex, l.name.as_str(), l.device_type), (7, "vethab12", 1));
        assert_eq!((l.mtu, l.min_mtu, l.max_mtu), (Some(1500), Some(68), Some(65535)));
        assert_eq!((l.tx_queues, l.rx_queues, l.txqueuelen), (Some(4), Some(2), Some(1000)));
        assert_eq!((l.link, l.link_netnsid, l.master), (Some(2), Some(-1), Some(5)));
        assert_eq!((l.kind.as_deref(), l.xdp), (Some("veth"), Some(true)));
        assert_eq!(l.mac.as_deref(), Some("02:00:00:ab:cd:ef"));
        assert_eq!(l.permanent_mac.as_deref(), Some("02:00:00:01:02:03"));
        assert_eq!(l.flags & FLAG_UP, 1);
    }

    #[test]
    fn what_the_kernel_does_not_send_is_unknown() {
        let l = link(&[attr(3, b"eth0\0"), attr(5, &n(0))]).unwrap();
        assert_eq!((l.mtu, l.max_mtu, l.xdp, l.kind), (None, None, None, None));
        assert_eq!(l.link, None, "0 is no device");
        assert_eq!(link(&[]), None, "a device without a name");
        assert_eq!(parse(&[0; 15]), None);
    }

    #[test]
    fn kinds_and_their_data() {
        assert_eq!(
            of_kind("vlan", &[attr(1, &100u16.to_ne_bytes())]),
            LinkData::Vlan { id: Some(100) }
        );
        assert_eq!(
            of_kind("macvlan", &[attr(1, &n(4))]),
            LinkData::Macvlan { mode: Some("bridge".into()) }
        );
        assert_eq!(
            of_kind("ipvlan", &[attr(1, &1u16.to_ne_bytes())]),
            LinkData::Macvlan { mode: Some("l3".into()) }
        );
        assert_eq!(
            of_kind("bond", &[attr(1, &[4]), attr(14, &[1]), attr(3, &n(100)), attr(2, &n(0))]),
            LinkData::Bond {
                mode: Some("802.3ad".into()),
                active: None,
                xmit_hash_policy: Some("layer3+4".into()),
                miimon_ms: Some(100),
            }
        );
        assert_eq!(
            of_kind("bridge", &[attr(5, &n(1)), attr(7, &[0])]),
            LinkData::Bridge { stp: Some(true), vlan_filtering: Some(false) }
        );
        assert_eq!(
            of_kind("tun", &[attr(3, &[2]), attr(7, &[1])]),
            LinkData::Tun { mode: Some("tap".into()), multi_queue: Some(true) }
        );
        assert_eq!(
            of_kind("bond", &[attr(1, &[99])]),
            LinkData::Bond {
                mode: Some("99".into()),
                active: None,
                xmit_hash_policy: None,
                miimon_ms: None,
            }
        );
        assert_eq!(of_kind("vxlan", &[attr(1, &n(4))]), LinkData::None);
    }
}
