//! By which interface an address is reached.

use std::{
    ffi::CStr,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
};

/// The interface that has the local address from which the kernel would send to `peer`; `None`
/// when there is no route, or the address is on none. A host's own address is on `lo`.
///
/// No packet is sent: connecting a datagram socket only looks the route up.
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

/// The interface that has this address.
pub fn interface_of(address: IpAddr) -> Option<String> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: on success the list is ours until `freeifaddrs`.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return None;
    }
    let mut found = None;
    let mut at = list;
    // SAFETY: every `ifa_next` is null or an entry of the list that was not freed yet.
    while let Some(entry) = unsafe { at.as_ref() } {
        // SAFETY: the address, where there is one, is as long as its family says.
        if unsafe { ip(entry.ifa_addr) } == Some(address) {
            // SAFETY: a name that ends with NUL, as long as the list lives.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            found = name.to_str().ok().map(str::to_owned);
            break;
        }
        at = entry.ifa_next;
    }
    // SAFETY: the list that `getifaddrs` gave, once.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// # Safety
/// The pointer is null or to a `sockaddr` as long as its family says.
unsafe fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: as the caller promises.
    let family = unsafe { address.as_ref() }?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: the family says that it is one; it may not be aligned as one.
            let v4 = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
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
