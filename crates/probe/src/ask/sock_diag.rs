//! `sock_diag`: the listening TCP sockets, the UDP sockets and the TCP connections.

use std::net::SocketAddr;

use parse::{
    inet_diag::{self, LISTEN, SocketMessage, TcpInfo, WITH_INFO_AND_MEMORY},
    netlink::{Message, Request},
};
use serde::{Deserialize, Serialize};

use super::netlink::{self, Dump};
use crate::{ReadError, Root};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listening {
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
            let request = request(family, libc::IPPROTO_TCP, 0, 1 << LISTEN);
            netlink::dump(libc::NETLINK_SOCK_DIAG, KEY, &request, listening)
        };
        both_families(ask)
    })
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpSocket {
    pub address: SocketAddr,
    /// Inode of its descriptor.
    pub inode: u64,
    /// What waits to be read, as the kernel counts it against the buffer, in bytes.
    pub queue: u32,
    /// Size of the buffer in bytes; `/proc/net/udp` does not have it.
    pub buffer: Option<u32>,
    /// Datagrams dropped because the buffer was full.
    pub drops: Option<u64>,
}

/// Every UDP socket of this network namespace. Needs no capability. **Source**: `INET_DIAG` with
/// `INET_DIAG_SKMEMINFO`; on a kernel without `CONFIG_INET_UDP_DIAG` `/proc/net/udp` and `udp6`.
///
/// # Errors
/// Absent on a root that has neither.
pub fn udp(root: &Root) -> Result<Vec<UdpSocket>, ReadError> {
    const KEY: &str = "netlink/udp_sockets";
    let asked = root.ask(KEY, || {
        let ask = |family| {
            let request = request(family, libc::IPPROTO_UDP, WITH_INFO_AND_MEMORY, u32::MAX);
            netlink::dump(libc::NETLINK_SOCK_DIAG, KEY, &request, udp_socket)
        };
        both_families(ask)
    });
    match asked {
        Ok(dump) => Ok(dump.entries),
        Err(ReadError::Absent { .. }) => udp_from_files(root),
        Err(e) => Err(e),
    }
}

fn udp_socket(m: &Message<'_>) -> Option<UdpSocket> {
    let (socket, memory) = (socket(m)?, inet_diag::memory(m.payload));
    Some(UdpSocket {
        address: socket.local,
        inode: socket.inode.into(),
        queue: socket.receive_queue,
        buffer: memory.map(|m| m.receive_buffer),
        drops: memory.and_then(|m| m.drops).map(u64::from),
    })
}

fn udp_from_files(root: &Root) -> Result<Vec<UdpSocket>, ReadError> {
    let four = root.read("/proc/net/udp")?;
    // A kernel without IPv6 has no second file.
    let six = root.read("/proc/net/udp6").unwrap_or_default();
    let sockets = [four, six].into_iter().flat_map(|b| parse::proc_net_tcp::parse(&b).sockets);
    let one = |s: parse::proc_net_tcp::Socket| UdpSocket {
        address: s.local,
        inode: s.inode,
        queue: s.rx_queue,
        buffer: None,
        drops: s.drops,
    };
    Ok(sockets.map(one).collect())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The socket, its cookie included.
    pub socket: SocketMessage,
    /// What the kernel knows of it.
    pub info: TcpInfo,
    /// Size of its send buffer in bytes.
    pub send_buffer: Option<u32>,
}

/// Every TCP connection of this network namespace that can carry data. Needs no capability.
/// **Source**: `INET_DIAG` with `INET_DIAG_INFO`. **Cost**: some 2 µs for each, and a walk over the
/// kernel's table of connections: some 0.2 ms of CPU time for 262,144 buckets. The older form of the
/// request asks for both families in one walk.
///
/// # Errors
/// Absent on a kernel without `CONFIG_INET_DIAG`.
pub fn connections() -> Result<Vec<Connection>, ReadError> {
    const KEY: &str = "TCP connections by sock_diag (CONFIG_INET_TCP_DIAG)";
    const TCPDIAG_GETSOCK: u16 = 18;
    // Established, FIN_WAIT1 and CLOSE_WAIT: those that may still send.
    const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 8;
    // `struct inet_diag_req`: the family, which the kernel ignores here, two unused, attributes, a
    // socket's id, states, a cursor.
    let mut header = vec![libc::AF_INET as u8, 0, 0, WITH_INFO_AND_MEMORY];
    header.extend([0; 48]);
    header.extend(STATES.to_ne_bytes());
    header.extend([0; 4]);
    let both = Request::dump(TCPDIAG_GETSOCK, &header);
    let each = |family| {
        let request = request(family, libc::IPPROTO_TCP, WITH_INFO_AND_MEMORY, STATES);
        netlink::dump(libc::NETLINK_SOCK_DIAG, KEY, &request, connection)
    };
    netlink::dump(libc::NETLINK_SOCK_DIAG, KEY, &both, connection)
        // Where the kernel refuses the older form, the newer form's error counts.
        .or_else(|_| both_families(each))
        .map(|dump| dump.entries)
}

fn connection(m: &Message<'_>) -> Option<Connection> {
    let send_buffer = inet_diag::memory(m.payload).map(|m| m.send_buffer);
    Some(Connection { socket: socket(m)?, info: inet_diag::tcp_info(m.payload)?, send_buffer })
}

/// The answers for IPv4 and IPv6 together.
fn both_families<T>(ask: impl Fn(i32) -> Result<Dump<T>, ReadError>) -> Result<Dump<T>, ReadError> {
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
}

/// A dump request with `struct inet_diag_req_v2`.
fn request(family: i32, protocol: i32, attributes: u8, states: u32) -> Request {
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    let mut header = vec![family as u8, protocol as u8, attributes, 0];
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

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn one_question_answers_with_the_connections_of_both_families() {
        let mut pairs = Vec::new();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A host without IPv6 has no such address.
            let Ok(server) = TcpListener::bind(address) else { continue };
            let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
            pairs.push((client, server.accept().unwrap().0));
        }
        assert!(!pairs.is_empty());
        let all = connections().unwrap();
        for (client, _server) in &pairs {
            let ends = (client.local_addr().unwrap(), client.peer_addr().unwrap());
            let of = |ends: &(SocketAddr, SocketAddr)| {
                all.iter().filter(|c| (c.socket.local, c.socket.remote) == *ends).count()
            };
            assert_eq!((of(&ends), of(&(ends.1, ends.0))), (1, 1), "{ends:?} of {all:#?}");
        }
        assert!(all.iter().all(|c| c.socket.state != LISTEN));
    }
}
