//! `sock_diag`: the listening TCP sockets, and TCP sockets by state.

use std::{collections::BTreeMap, net::SocketAddr, ops::ControlFlow};

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

/// Connections that are counted by state before giving up: a million take about a second.
const MOST_SOCKETS: u64 = 1_000_000;

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

/// TCP sockets of this network namespace by state (`established`, `time_wait`). The kernel
/// walks every socket for it: for a person's question, not for a sample.
///
/// # Errors
/// As for [`listeners`], and where there are more than a million.
pub fn tcp_states(root: &Root) -> Result<BTreeMap<String, u64>, ReadError> {
    const KEY: &str = "netlink/tcp_states";
    root.ask(KEY, || {
        let mut states = BTreeMap::new();
        let mut count = 0;
        for family in [libc::AF_INET, libc::AF_INET6] {
            let answer = netlink::exchange(
                libc::NETLINK_SOCK_DIAG,
                KEY,
                &request(family, u32::MAX),
                &mut |m| {
                    if let Some(s) = socket(m) {
                        *states.entry(inet_diag::state_name(s.state)).or_insert(0) += 1;
                        count += 1;
                    }
                    if count > MOST_SOCKETS {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                },
            );
            match answer {
                Err(ReadError::Absent { .. }) if family == libc::AF_INET6 => {}
                other => drop(other?),
            }
        }
        if count > MOST_SOCKETS {
            return Err(ReadError::from_errno(KEY, libc::E2BIG));
        }
        Ok(states)
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
