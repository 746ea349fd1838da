//! UDP on the control port: a stream's first datagram arrives at the shared socket, and creates a
//! socket connected to its sender.
//!
//! Between its `bind` and its `connect`, a socket with the same local address receives datagrams of
//! any sender. Those are read from it and handled as if they had arrived at the shared socket.
//! `SO_REUSEPORT` does not work: before Linux 5.4 its groups ignore that a socket is connected.

use std::{
    io, mem,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::AsRawFd,
};

use socket2::{Protocol, SockAddr, SockAddrStorage, Socket, Type};
use traffic::net::options::set;

use super::registry::Stray;
use crate::iperf3::sock;

/// Most datagrams read from a new socket: a sender that floods it gets no stream.
const STRAYS: usize = 4096;

/// The shared socket of a port.
#[derive(Debug)]
pub struct UdpPort {
    socket: Socket,
    local: SocketAddr,
}

impl UdpPort {
    /// The port of a bound socket, which from now on reports the address that each datagram was
    /// sent to.
    ///
    /// # Errors
    /// The kernel's error of an option.
    pub fn new(socket: Socket) -> io::Result<Self> {
        let local = address(&socket.local_addr()?)?;
        // The answer must come from the address that the client used.
        match local.is_ipv4() {
            true => set(&socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?,
            false => set(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?,
        }
        Ok(Self { socket, local })
    }

    pub fn fd(&self) -> i32 {
        self.socket.as_raw_fd()
    }

    /// Receives an available datagram: its text, if it has exactly four bytes, and both its
    /// addresses.
    pub fn receive(&self) -> Option<Stray> {
        receive(&self.socket, self.local)
    }
}

/// Receives a datagram of four bytes; others are dropped (`Some` with zeros).
fn receive(socket: &Socket, local: SocketAddr) -> Option<Stray> {
    // One byte more than a stream's first datagram, to detect longer ones.
    let mut text = [0u8; 5];
    let mut control = [0u64; 16];
    let mut part = libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: text.len() };
    let mut from = SockAddrStorage::zeroed();
    let mut from_len = from.size_of();
    // SAFETY: zero is a valid header; name, part and control outlive the call and their sizes
    // are given.
    let (n, to, from_len) = unsafe {
        let mut m: libc::msghdr = mem::zeroed();
        m.msg_name = (&raw mut from).cast();
        m.msg_namelen = from_len;
        m.msg_iov = &raw mut part;
        m.msg_iovlen = 1;
        m.msg_control = control.as_mut_ptr().cast();
        m.msg_controllen = size_of_val(&control) as _;
        let n = libc::recvmsg(socket.as_raw_fd(), &raw mut m, libc::MSG_DONTWAIT);
        from_len = m.msg_namelen;
        (n, if n < 0 { None } else { destination(&m) }, from_len)
    };
    if n < 0 {
        return None;
    }
    // SAFETY: the kernel wrote an address of this length.
    let from = address(&unsafe { SockAddr::new(from, from_len) }).ok()?;
    let [a, b, c, d, _] = text;
    let text = if n == 4 { [a, b, c, d] } else { [0; 4] };
    let to = SocketAddr::new(to.unwrap_or(local.ip()), local.port());
    Some(Stray { from, to, text })
}

/// The local address that a datagram was sent to.
///
/// # Safety
/// The header's control data must be what the kernel wrote.
unsafe fn destination(header: &libc::msghdr) -> Option<IpAddr> {
    // SAFETY: as the caller promises; the data may lie unaligned.
    unsafe {
        let mut c = libc::CMSG_FIRSTHDR(header);
        while !c.is_null() {
            match ((*c).cmsg_level, (*c).cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = libc::CMSG_DATA(c).cast::<libc::in_pktinfo>().read_unaligned();
                    return Some(Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info = libc::CMSG_DATA(c).cast::<libc::in6_pktinfo>().read_unaligned();
                    return Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
                }
                _ => c = libc::CMSG_NXTHDR(header, c),
            }
        }
        None
    }
}

fn address(of: &SockAddr) -> io::Result<SocketAddr> {
    of.as_socket().ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// A socket connected to `stray.from`, and datagrams that others sent to it before.
///
/// # Errors
/// The kernel's error, for example no free descriptor.
pub fn connected(stray: &Stray) -> io::Result<(Socket, Vec<Stray>)> {
    // An IPv4-mapped address becomes IPv4, which has other socket options.
    let (to, from) = (canonical(stray.to), canonical(stray.from));
    let to = match (to, from) {
        // A link-local address needs its scope id.
        (SocketAddr::V6(mut to), SocketAddr::V6(from)) if to.ip().is_unicast_link_local() => {
            to.set_scope_id(from.scope_id());
            to.into()
        }
        _ => to,
    };
    let socket = sock::bound(to, Type::DGRAM, Protocol::UDP, false)?;
    socket.connect(&from.into())?;
    let strays = strays(&socket, to, from);
    socket.set_nonblocking(false)?;
    Ok((socket, strays))
}

fn canonical(a: SocketAddr) -> SocketAddr {
    match (a.ip().to_canonical(), a) {
        (IpAddr::V6(_), _) => a,
        (v4, _) => SocketAddr::new(v4, a.port()),
    }
}

/// Datagrams from others that reached a stream's socket. Called again before data flows: a packet
/// may have been in transit while the socket was connected.
pub fn strays(socket: &Socket, local: SocketAddr, peer: SocketAddr) -> Vec<Stray> {
    (0..STRAYS).map_while(|_| receive(socket, local)).filter(|s| s.from != peer).collect()
}

/// As [`strays`], for a socket that has both its addresses.
pub fn late_strays(socket: &Socket) -> Vec<Stray> {
    let both = socket.local_addr().and_then(|l| Ok((address(&l)?, address(&socket.peer_addr()?)?)));
    both.map(|(local, peer)| strays(socket, local, peer)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_stream_gets_a_socket_of_its_own_and_others_lose_nothing() {
        for any in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0", "[::1]:0"] {
            let any: SocketAddr = any.parse().unwrap();
            let bound = sock::bound(any, Type::DGRAM, Protocol::UDP, true).unwrap();
            let port = UdpPort::new(bound).unwrap();
            let home = if any.to_string().contains("::1") { "::1" } else { "127.0.0.1" };
            let server = SocketAddr::new(home.parse().unwrap(), port.local.port());
            let client = || {
                let socket = UdpSocket::bind((home, 0)).unwrap();
                socket.connect(server).unwrap();
                socket.send(b"9876").unwrap();
                socket
            };
            let (one, two) = (client(), client());
            let first = (0..1000).find_map(|_| port.receive()).unwrap();
            assert_eq!(canonical(first.from), one.local_addr().unwrap(), "{any}");
            assert_eq!((canonical(first.to), first.text), (server, *b"9876"), "{any}");
            let (stream, strays) = connected(&first).unwrap();
            stream.send(b"6789").unwrap();
            let mut answer = [0; 8];
            // From the address that the client used: its socket accepts no other.
            assert_eq!(one.recv(&mut answer).unwrap(), 4, "{any}");
            // The second client's datagram is still at the shared socket, or reached the new one.
            let second = port.receive().or(strays.into_iter().next()).unwrap();
            assert_eq!(canonical(second.from), two.local_addr().unwrap(), "{any}");
            two.send(b"9876").unwrap();
            assert!(late_strays(&stream).is_empty(), "{any}");
            assert!(port.receive().is_some(), "{any}");
        }
    }
}
