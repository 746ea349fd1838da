//! Echo requests of a given size that must not be fragmented.

use std::{
    collections::BTreeSet,
    net::Ipv4Addr,
    os::fd::{AsRawFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    net::{AddressFamily, RecvFlags, SocketFlags, SocketType, ipproto, socket_with},
};

use crate::ReadError;

/// IPv4 and ICMP headers.
const HEADERS: usize = 28;
/// A request of this size passes every path (RFC 791).
pub const SMALL: usize = 68;
/// How often a request is retransmitted.
const AGAIN: Duration = Duration::from_millis(200);
const ECHO_REQUEST: u8 = 8;

/// Those of `hosts` that answer requests of `bytes`, headers of IP included, through the interface `nic`.
/// Ends when all have answered, `enough` of them, or the time is over. What the path is believed to carry
/// is not asked: the packet leaves as it is, or the interface refuses it.
///
/// # Errors
/// Without CAP_NET_RAW; no such interface.
pub fn answers(
    nic: &str,
    hosts: &BTreeSet<Ipv4Addr>,
    bytes: usize,
    enough: usize,
    patience: Duration,
) -> Result<BTreeSet<Ipv4Addr>, ReadError> {
    let what = format!("echo requests of {bytes} bytes through {nic}");
    let failed = |errno| ReadError::from_errno(&what, errno);
    let socket = open(nic).map_err(failed)?;
    let ident = (std::process::id() & 0xffff) as u16;
    let request = request(ident, bytes);
    let end = Instant::now() + patience;
    let mut next = Instant::now();
    let mut answered = BTreeSet::new();
    let mut buffer = vec![0; 1 << 16];
    while answered.len() < enough.min(hosts.len()) && Instant::now() < end {
        if Instant::now() >= next {
            next = Instant::now() + AGAIN;
            for host in hosts.difference(&answered) {
                // What cannot be sent (no route, no neighbour, too large) is not answered.
                send(&socket, *host, &request);
            }
        }
        let host = receive(&socket, &mut buffer).and_then(|packet| answerer(packet, ident, bytes));
        answered.extend(host.filter(|h| hosts.contains(h)));
    }
    Ok(answered)
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

fn open(nic: &str) -> Result<OwnedFd, i32> {
    let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
    let socket = socket_with(AddressFamily::INET, kind, flags, Some(ipproto::ICMP))
        .map_err(Errno::raw_os_error)?;
    set(&socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, nic.as_bytes())?;
    let never_fragmented = libc::IP_PMTUDISC_PROBE.to_ne_bytes();
    set(&socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &never_fragmented)?;
    let wait = libc::timeval { tv_sec: 0, tv_usec: 50_000 };
    let seconds = wait.tv_sec.to_ne_bytes();
    let bytes = [seconds, wait.tv_usec.to_ne_bytes()].concat();
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &bytes)?;
    Ok(socket)
}

fn set(socket: &OwnedFd, level: i32, name: i32, value: &[u8]) -> Result<(), i32> {
    // SAFETY: the value outlives the call and its size is given.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    if done < 0 { Err(errno()) } else { Ok(()) }
}

fn send(socket: &OwnedFd, host: Ipv4Addr, request: &[u8]) {
    let to = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from(host).to_be() },
        sin_zero: [0; 8],
    };
    // SAFETY: both outlive the call and their sizes are given.
    let _ = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            request.as_ptr().cast(),
            request.len(),
            libc::MSG_DONTWAIT,
            (&raw const to).cast(),
            size_of::<libc::sockaddr_in>() as libc::socklen_t,
        )
    };
}

fn receive<'b>(socket: &OwnedFd, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let n = rustix::net::recv(socket, &mut *buffer, RecvFlags::empty()).ok()?.1;
    buffer.get(..n)
}

/// An ICMP echo request that is a packet of `bytes`.
fn request(ident: u16, bytes: usize) -> Vec<u8> {
    let mut packet = vec![0; bytes.max(HEADERS) - HEADERS + 8];
    packet
        .splice(..8, [ECHO_REQUEST, 0, 0, 0].into_iter().chain(ident.to_be_bytes()).chain([0, 1]));
    let sum = checksum(&packet).to_be_bytes();
    packet.splice(2..4, sum);
    packet
}

/// The Internet checksum of RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|c| match c {
        [a, b] => u32::from(u16::from_be_bytes([*a, *b])),
        [a] => u32::from(*a) << 8,
        _ => 0,
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The sender of this packet, if it answers a request of ours of this size.
fn answerer(packet: &[u8], ident: u16, bytes: usize) -> Option<Ipv4Addr> {
    let head = usize::from(packet.first()? & 0xf) * 4;
    let icmp = packet.get(head..)?;
    let from: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
    let is_ours = icmp.first() == Some(&0)
        && icmp.get(4..6) == Some(&ident.to_be_bytes()[..])
        && icmp.len() == bytes.max(HEADERS) - HEADERS + 8;
    is_ours.then(|| Ipv4Addr::from(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_size_and_a_sum_that_holds() {
        for bytes in [SMALL, 1500, 1501, 9000] {
            let packet = request(0x1234, bytes);
            assert_eq!(packet.len() + 20, bytes);
            assert_eq!(checksum(&packet), 0, "a packet with its sum sums up to nothing");
        }
    }

    #[test]
    fn an_answer_is_of_our_number_and_size() {
        let mut answer = [vec![0x45; 12], vec![10, 0, 0, 2], vec![0; 4], request(7, 1500)].concat();
        assert_eq!(answerer(&answer, 7, 1500), None, "a request");
        answer.splice(20..21, [0]);
        assert_eq!(answerer(&answer, 7, 1500), Some(Ipv4Addr::new(10, 0, 0, 2)));
        assert_eq!(answerer(&answer, 8, 1500), None);
        assert_eq!(answerer(&answer, 7, 9000), None);
        assert_eq!(answerer(&[], 7, 9000), None);
    }
}
