//! Messages of the `ethtool` generic-netlink family. **Source**:
//! `include/uapi/linux/ethtool_netlink.h`, `Documentation/networking/ethtool-netlink.rst`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::netlink::{attribute, attributes};

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
    fn the_context_without_a_number_is_the_first() {
        assert_eq!(rss(&message(&[])), Some(RssMessage { nic: "eth0".into(), context: 0 }));
        let other = message(&[attribute(2, &3u32.to_ne_bytes())]);
        assert_eq!(rss(&other).unwrap().context, 3);
        assert_eq!(rss(&[38, 1, 0, 0]), None, "no device");
        assert_eq!(coalesce(&[]), None);
    }
}
