//! Finds the interface towards an address.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    os::unix::net::UnixDatagram,
};

use probe::{Root, ask::rtnl};
use rustix::net::netdevice::index_to_name;

/// The interface with the source address that the kernel would use towards `peer`; `None` without a
/// route, or if no interface has the address. A host's own address is on `lo`.
///
/// Sends no packet: connecting a datagram socket only looks up the route.
pub fn interface_to(peer: SocketAddr) -> Option<String> {
    let any: SocketAddr = match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(peer).ok()?;
    let local = socket.local_addr().ok()?.ip();
    if local == peer.ip() {
        return Some("lo".into());
    }
    interface_of(local)
}

/// The interface with this address.
pub fn interface_of(address: IpAddr) -> Option<String> {
    let all = rtnl::addresses(&Root::live()).ok()?;
    let owner = all.entries.iter().find(|a| a.address == address)?;
    interface_name(owner.ifindex)
}

/// Name of an interface in this network namespace.
pub fn interface_name(index: u32) -> Option<String> {
    index_to_name(UnixDatagram::unbound().ok()?, index).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_reached_by_loopback() {
        assert_eq!(interface_to("127.0.0.1:9".parse().unwrap()).as_deref(), Some("lo"));
        assert_eq!(interface_to("127.3.2.1:9".parse().unwrap()).as_deref(), Some("lo"));
        assert_eq!(interface_of("192.0.2.77".parse().unwrap()), None);
    }
}
