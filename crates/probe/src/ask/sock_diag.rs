//! `sock_diag`: the listening TCP sockets, and TCP sockets by state.

use std::net::SocketAddr;

use parse::{
    inet_diag::{self, LISTEN, SocketMessage},
    netlink::{Message, Request},
};
use serde::{Deserialize, Serialize};

use super::netlink::{self, Dump};
use crate::{ReadError, Root};

/// A listening socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listening {
    /// Address and port.
    pub address: SocketAddr,
    /// Device it is bound to, 0 if to none.
    pub ifindex: u32,
    /// Connections waiting to be accepted.
    pub waiting: u32,
    /// The most that may wait.
    pub limit: u32,
    /// Inode of its descriptor.
    pub inode: u64,
}

/// Every listening TCP socket of this network namespace. Needs no capability. **Source**:
/// `INET_DIAG` with the state `LISTEN` alone, IPv4 and IPv6.
///
/// # Errors
/// Absent on a kernel without `CONFIG_INET_DIAG`, or a root without this answer.
pub fn listeners(root: &Root) -> Result<Dump<Listening>, ReadError> {
    const KEY: &str = "netlink/listeners";
    root.ask(KEY, || {
        let ask = |family| {
            let request = request(family, 1 << LISTEN);
            netlink::dump(libc::NETLINK_SOCK_DIAG, KEY, &request, listening)
        };
        let mut all = ask(libc::AF_INET)?;
        match ask(libc::AF_INET6) {
            Ok(six) => {
                all.entries.extend(six.entries);
                all.interrupted |= six.interrupted;
            }
            // A kernel without IPv6.
            Err(ReadError::Absent { .. }) => {}
            Err(e) => return Err(e),
        }
        Ok(all)
    })
}

/// `struct inet_diag_req_v2` for TCP.
fn request(family: i32, states: u32) -> Request {
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    let mut header = vec![family as u8, libc::IPPROTO_TCP as u8, 0, 0];
    header.extend(states.to_ne_bytes());
    header.extend([0; 48]);
    Request::dump(SOCK_DIAG_BY_FAMILY, &header)
}

fn socket(m: &Message<'_>) -> Option<SocketMessage> {
    inet_diag::parse(m.payload)
}

fn listening(m: &Message<'_>) -> Option<Listening> {
    socket(m).filter(|s| s.state == LISTEN).map(|s| Listening {
        address: s.local,
        ifindex: s.ifindex,
        waiting: s.receive_queue,
        limit: s.send_queue,
        inode: s.inode.into(),
    })
}
