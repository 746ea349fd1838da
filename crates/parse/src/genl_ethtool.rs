//! Messages of the `ethtool` generic-netlink family. **Source**:
//! `include/uapi/linux/ethtool_netlink.h`, `Documentation/networking/ethtool-netlink.rst`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::netlink::{Attribute, attribute, attributes, u64_at};

/// Bytes of the generic header before the attributes.
const GENERIC_HEADER: usize = 4;
/// The nest that names the device; the first attribute of every message of this family.
const HEADER: u16 = 1;
const HEADER_DEV_NAME: u16 = 2;

/// The device that a message speaks of.
fn device(payload: &[u8]) -> Option<String> {
    let header = attribute(payload, GENERIC_HEADER, HEADER)?;
    header.inner(HEADER_DEV_NAME).map(|name| name.text())
}

/// One device's coalescing parameters: those that its driver has, by number
/// (`ETHTOOL_A_COALESCE_…`), and no others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoalesceMessage {
    pub nic: String,
    /// Value by attribute number.
    pub parameters: BTreeMap<u16, u32>,
}

/// A `COALESCE_GET` reply; `None` if it names no device.
pub fn coalesce(payload: &[u8]) -> Option<CoalesceMessage> {
    let nic = device(payload)?;
    let parameters = attributes(payload.get(GENERIC_HEADER..)?)
        .filter(|a| a.kind != HEADER)
        .filter_map(|a| Some((a.kind, a.u32()?)))
        .collect();
    Some(CoalesceMessage { nic, parameters })
}

/// One context of receive-side scaling of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RssMessage {
    pub nic: String,
    /// Context; 0 is the one that every device with RSS has.
    pub context: u32,
}

/// An `RSS_GET` reply; `None` if it names no device.
pub fn rss(payload: &[u8]) -> Option<RssMessage> {
    const CONTEXT: u16 = 2;
    Some(RssMessage {
        nic: device(payload)?,
        context: attribute(payload, GENERIC_HEADER, CONTEXT).and_then(|a| a.u32()).unwrap_or(0),
    })
}

/// Link modes of one device, by the kernel's names; ports, pause frames and FEC are among them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkModesMessage {
    pub nic: String,
    /// Whether the speed is negotiated, where the kernel says.
    pub autoneg: Option<bool>,
    pub supported: Vec<String>,
    pub advertised: Vec<String>,
    /// What the other end offers, where the driver says.
    pub peer: Option<Vec<String>>,
}

/// The part of one device's rings that the ioctl does not report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingsMessage {
    pub nic: String,
    /// Bytes of a packet that are copied into the NIC; `None` where the driver does not say (since 6.4).
    pub tx_push_buffer: Option<u32>,
}

/// A `RINGS_GET` reply; `None` if it names no device.
pub fn rings(payload: &[u8]) -> Option<RingsMessage> {
    const TX_PUSH_BUF_LEN: u16 = 15;
    Some(RingsMessage {
        nic: device(payload)?,
        tx_push_buffer: attribute(payload, GENERIC_HEADER, TX_PUSH_BUF_LEN).and_then(|a| a.u32()),
    })
}

/// A `LINKMODES_GET` reply with bit sets that have names; `None` if it names no device.
pub fn link_modes(payload: &[u8]) -> Option<LinkModesMessage> {
    const AUTONEG: u16 = 2;
    const OURS: u16 = 3;
    const PEER: u16 = 4;
    let mut message = LinkModesMessage { nic: device(payload)?, ..Default::default() };
    message.autoneg =
        attribute(payload, GENERIC_HEADER, AUTONEG).and_then(|a| a.u32()).map(|on| on != 0);
    for bit in attribute(payload, GENERIC_HEADER, OURS).iter().flat_map(bits) {
        if bit.is_set {
            message.advertised.push(bit.name.clone());
        }
        message.supported.push(bit.name);
    }
    message.peer = attribute(payload, GENERIC_HEADER, PEER)
        .map(|set| bits(&set).into_iter().map(|bit| bit.name).collect());
    Some(message)
}

/// A bit of a set: those of a mask, or of a list without a mask.
struct Bit {
    name: String,
    /// Its value, where the set has a mask.
    is_set: bool,
}

/// The bits of a set in its verbose form. A bit without a name is `bit N`.
fn bits(set: &Attribute<'_>) -> Vec<Bit> {
    const BITS: u16 = 3;
    const BIT: u16 = 1;
    const INDEX: u16 = 1;
    const NAME: u16 = 2;
    const VALUE: u16 = 3;
    let bit = |a: Attribute<'_>| {
        let index = a.inner(INDEX).and_then(|i| i.u32());
        let name = a.inner(NAME).map(|name| name.text()).filter(|name| !name.is_empty());
        let name = name.or_else(|| index.map(|i| format!("bit {i}")))?;
        Some(Bit { name, is_set: a.inner(VALUE).is_some() })
    };
    let Some(list) = set.inner(BITS) else { return vec![] };
    list.nested().filter(|a| a.kind == BIT).filter_map(bit).collect()
}

/// Forward error correction of one device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FecMessage {
    pub nic: String,
    /// Configured encodings by the kernel's names: `None` (off), `RS`, `BASER`, `LLRS`.
    pub configured: Vec<String>,
    /// Whether the NIC chooses.
    pub auto: bool,
    /// The encoding in use, of the same names, or `bit N`.
    pub active: Option<String>,
    /// `corrected_blocks`, `uncorrectable_blocks`, `corrected_bits`: the port's sums of those that the
    /// driver counts.
    pub counters: BTreeMap<String, u64>,
}

/// A `FEC_GET` reply; `None` if it names no device.
pub fn fec(payload: &[u8]) -> Option<FecMessage> {
    const MODES: u16 = 2;
    const AUTO: u16 = 3;
    const ACTIVE: u16 = 4;
    const STATS: u16 = 5;
    /// Bits `ETHTOOL_LINK_MODE_FEC_…_BIT` of link modes, with the encodings' names.
    const ENCODINGS: [(u32, &str); 4] = [(49, "None"), (50, "RS"), (51, "BASER"), (74, "LLRS")];
    const COUNTERS: [(u16, &str); 3] =
        [(2, "corrected_blocks"), (3, "uncorrectable_blocks"), (4, "corrected_bits")];
    let at = |kind| attribute(payload, GENERIC_HEADER, kind);
    let encoding = |bit: u32| {
        let known = ENCODINGS.iter().find(|e| e.0 == bit);
        known.map_or_else(|| format!("bit {bit}"), |e| e.1.to_owned())
    };
    let mut message = FecMessage { nic: device(payload)?, ..Default::default() };
    let set = at(MODES).map(|set| bits(&set)).unwrap_or_default();
    message.configured = set.into_iter().map(|bit| bit.name).collect();
    message.auto = at(AUTO).and_then(|a| a.u32()).is_some_and(|on| on != 0);
    message.active = at(ACTIVE).and_then(|a| a.u32()).map(encoding);
    if let Some(stats) = at(STATS) {
        // An array: the port's sum, then one number for each lane.
        let sum = |kind| stats.inner(kind).and_then(|a| u64_at(a.bytes, 0));
        let counted =
            COUNTERS.iter().filter_map(|(kind, name)| Some(((*name).into(), sum(*kind)?)));
        message.counters = counted.collect();
    }
    Some(message)
}

/// The bytes of a `MODULE_EEPROM_GET` reply; `None` if it has none.
pub fn module_bytes(payload: &[u8]) -> Option<Vec<u8>> {
    const DATA: u16 = 7;
    attribute(payload, GENERIC_HEADER, DATA).map(|a| a.bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (value.len() as u16 + 4).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(attributes: &[Vec<u8>]) -> Vec<u8> {
        let index = attribute(1, &4u32.to_ne_bytes());
        let name = attribute(2, b"eth0\0");
        let header = attribute(1 | 0x8000, &[index, name].concat());
        [vec![20, 1, 0, 0], header, attributes.concat()].concat()
    }

    #[test]
    fn a_driver_names_the_parameters_it_has() {
        let bytes = message(&[
            attribute(2, &50u32.to_ne_bytes()),
            attribute(6, &0u32.to_ne_bytes()),
            attribute(11, &[1]),
        ]);
        let found = coalesce(&bytes).unwrap();
        assert_eq!(found.nic, "eth0");
        assert_eq!(found.parameters, BTreeMap::from([(2, 50), (6, 0), (11, 1)]));
    }

    #[test]
    fn rings_have_a_push_buffer_where_the_driver_says() {
        let of = |attributes: &[Vec<u8>]| rings(&message(attributes)).unwrap().tx_push_buffer;
        let number = |kind, n: u32| attribute(kind, &n.to_ne_bytes());
        // The largest one (16) is another attribute.
        assert_eq!(of(&[number(9, 512), number(15, 96), number(16, 224)]), Some(96));
        assert_eq!(of(&[number(5, 1024), number(9, 512)]), None);
        assert_eq!(rings(&[18, 1, 0, 0]), None, "no device");
    }

    #[test]
    fn the_context_without_a_number_is_the_first() {
        assert_eq!(rss(&message(&[])), Some(RssMessage { nic: "eth0".into(), context: 0 }));
        let other = message(&[attribute(2, &3u32.to_ne_bytes())]);
        assert_eq!(rss(&other).unwrap().context, 3);
        assert_eq!(rss(&[38, 1, 0, 0]), None, "no device");
        assert_eq!(coalesce(&[]), None);
    }

    fn nest(kind: u16, inner: &[Vec<u8>]) -> Vec<u8> {
        attribute(kind | 0x8000, &inner.concat())
    }

    /// A bit set as the kernel writes it: index, name, and the value where there is a mask.
    fn set(kind: u16, list: &[(u32, &str, bool)]) -> Vec<u8> {
        let bit = |(index, name, value): &(u32, &str, bool)| {
            let mut inner = vec![attribute(1, &index.to_ne_bytes())];
            inner.push(attribute(2, format!("{name}\0").as_bytes()));
            if *value {
                inner.push(attribute(3, &[]));
            }
            nest(1, &inner)
        };
        let size = attribute(2, &121u32.to_ne_bytes());
        nest(kind, &[size, nest(3, &list.iter().map(bit).collect::<Vec<_>>())])
    }

    #[test]
    fn modes_of_both_ends_have_names() {
        let ours = [(3, "100baseT/Full", true), (5, "1000baseT/Full", false), (6, "Autoneg", true)];
        let theirs = [(3, "100baseT/Full", false)];
        let found =
            link_modes(&message(&[attribute(2, &[1]), set(3, &ours), set(4, &theirs)])).unwrap();
        assert_eq!(found.autoneg, Some(true));
        assert_eq!(found.supported, ["100baseT/Full", "1000baseT/Full", "Autoneg"]);
        assert_eq!(found.advertised, ["100baseT/Full", "Autoneg"]);
        assert_eq!(found.peer, Some(vec!["100baseT/Full".to_owned()]));
        let silent = link_modes(&message(&[attribute(2, &[0]), set(3, &ours)])).unwrap();
        assert_eq!((silent.autoneg, silent.peer), (Some(false), None));
        assert_eq!(link_modes(&[]), None);
    }

    #[test]
    fn blocks_are_the_ports_sum_and_not_a_lanes() {
        let numbers = |list: &[u64]| list.iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<u8>>();
        let stats = nest(
            5,
            &[
                attribute(2, &numbers(&[123, 100, 23])),
                attribute(3, &numbers(&[4])),
                attribute(4, &[]),
            ],
        );
        let bytes = message(&[
            set(2, &[(50, "RS", false)]),
            attribute(3, &[0]),
            attribute(4, &50u32.to_ne_bytes()),
            stats,
        ]);
        let found = fec(&bytes).unwrap();
        assert_eq!((found.configured, found.auto), (vec!["RS".to_owned()], false));
        assert_eq!(found.active.as_deref(), Some("RS"));
        let counters = [("corrected_blocks".to_owned(), 123), ("uncorrectable_blocks".into(), 4)];
        assert_eq!(found.counters, BTreeMap::from(counters));
        let other = fec(&message(&[attribute(4, &99u32.to_ne_bytes())])).unwrap();
        assert_eq!(other.active.as_deref(), Some("bit 99"));
        assert!(other.counters.is_empty());
    }
}
