//! `inet_diag_msg`: one socket as `sock_diag` tells it.
//!
//! **Source**: `include/uapi/linux/inet_diag.h`. Ports and addresses are in network order, the
//! rest in the machine's.

use std::net::{IpAddr, SocketAddr};

use crate::netlink::{be16_at, u32_at};
use crate::rtnl_addr::ip;

/// One socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketMessage {
    /// State number, see [`state_name`].
    pub state: u8,
    /// Own address and port.
    pub local: SocketAddr,
    /// Bound to this device, 0 if to none.
    pub ifindex: u32,
    /// A listener's waiting connections; else bytes received and not read.
    pub receive_queue: u32,
    /// A listener's limit; else bytes sent and not acknowledged.
    pub send_queue: u32,
    /// Inode of its descriptor, 0 if it has none (`TIME_WAIT`).
    pub inode: u32,
}

/// `TCP_LISTEN`.
pub const LISTEN: u8 = 10;

/// Parses the payload of one message; `None` for other families and short ones.
pub fn parse(payload: &[u8]) -> Option<SocketMessage> {
    let bytes = match payload.first()? {
        2 => 4,
        10 => 16,
        _ => return None,
    };
    let address: IpAddr = ip(payload.get(8..8 + bytes)?)?;
    Some(SocketMessage {
        state: *payload.get(1)?,
        local: SocketAddr::new(address, be16_at(payload, 4)?),
        ifindex: u32_at(payload, 40)?,
        receive_queue: u32_at(payload, 56)?,
        send_queue: u32_at(payload, 60)?,
        inode: u32_at(payload, 68)?,
    })
}

/// The kernel's name of a TCP state, in lower case.
pub fn state_name(state: u8) -> String {
    const NAMES: [&str; 12] = [
        "established",
        "syn_sent",
        "syn_recv",
        "fin_wait1",
        "fin_wait2",
        "time_wait",
        "close",
        "close_wait",
        "last_ack",
        "listen",
        "closing",
        "new_syn_recv",
    ];
    usize::from(state)
        .checked_sub(1)
        .and_then(|i| NAMES.get(i))
        .map_or_else(|| format!("state_{state}"), |n| (*n).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(family: u8, address: &[u8]) -> Vec<u8> {
        let mut m = vec![0; 72];
        m[0] = family;
        m[1] = LISTEN;
        m[4..6].copy_from_slice(&5432u16.to_be_bytes());
        m[8..8 + address.len()].copy_from_slice(address);
        m[40..44].copy_from_slice(&3u32.to_ne_bytes());
        m[56..60].copy_from_slice(&2u32.to_ne_bytes());
        m[60..64].copy_from_slice(&128u32.to_ne_bytes());
        m[68..72].copy_from_slice(&4711u32.to_ne_bytes());
        m
    }

    #[test]
    fn a_listener_of_either_family() {
        let s = parse(&message(2, &[127, 0, 0, 1])).unwrap();
        assert_eq!((s.state, s.local.to_string()), (LISTEN, "127.0.0.1:5432".into()));
        assert_eq!((s.receive_queue, s.send_queue, s.inode, s.ifindex), (2, 128, 4711, 3));
        assert_eq!(parse(&message(10, &[0; 16])).unwrap().local.to_string(), "[::]:5432");
        assert_eq!(parse(&message(1, &[])), None);
        assert_eq!(parse(&message(2, &[0; 4])[..70]), None);
        assert_eq!(parse(&[]), None);
    }

    #[test]
    fn states_by_name() {
        assert_eq!(state_name(1), "established");
        assert_eq!(state_name(6), "time_wait");
        assert_eq!(state_name(LISTEN), "listen");
        assert_eq!(state_name(0), "state_0");
        assert_eq!(state_name(13), "state_13");
    }
}
