//! `RTM_NEWADDR`: one address of a device.
//!
//! **Source**: `struct ifaddrmsg`, `IFA_*` of `include/uapi/linux/if_addr.h`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::netlink::{attributes, u32_at};

/// What the kernel said of one address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressMessage {
    pub ifindex: u32,
    /// The host's own address, also on a point-to-point link.
    pub address: IpAddr,
    /// Length of the network's prefix.
    pub prefix: u8,
}

const IFADDR_BYTES: usize = 8;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

/// Parses the payload of one message; `None` for other families than IPv4 and IPv6.
pub fn parse(payload: &[u8]) -> Option<AddressMessage> {
    let mut address = None;
    let mut local = None;
    for a in attributes(payload.get(IFADDR_BYTES..)?) {
        match a.kind {
            IFA_ADDRESS => address = ip(a.bytes),
            IFA_LOCAL => local = ip(a.bytes),
            _ => {}
        }
    }
    Some(AddressMessage {
        ifindex: u32_at(payload, 4)?,
        // With a peer, IFA_ADDRESS is the peer's.
        address: local.or(address)?,
        prefix: *payload.get(1)?,
    })
}

/// An address by its length, in network order.
pub fn ip(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(four).into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|sixteen| Ipv6Addr::from(sixteen).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(prefix: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut m = vec![2, prefix, 0, 0];
        m.extend(9u32.to_ne_bytes());
        for (kind, value) in attributes {
            m.extend(((value.len() + 4) as u16).to_ne_bytes());
            m.extend(kind.to_ne_bytes());
            m.extend(*value);
            m.resize(m.len().next_multiple_of(4), 0);
        }
        m
    }

    #[test]
    fn the_local_end_of_a_tunnel_and_plain_ipv6() {
        let tunnel = parse(&message(32, &[(1, &[10, 0, 0, 2]), (2, &[10, 0, 0, 1])])).unwrap();
        assert_eq!(
            (tunnel.ifindex, tunnel.address.to_string(), tunnel.prefix),
            (9, "10.0.0.1".into(), 32)
        );
        let mut six = [0u8; 16];
        six[0] = 0xfe;
        six[1] = 0x80;
        six[15] = 1;
        assert_eq!(parse(&message(64, &[(1, &six)])).unwrap().address.to_string(), "fe80::1");
        assert_eq!(parse(&message(24, &[])), None);
        assert_eq!(parse(&message(24, &[(1, &[1, 2, 3])])), None);
        assert_eq!(parse(&[2, 24]), None);
    }
}
