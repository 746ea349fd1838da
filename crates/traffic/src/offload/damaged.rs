//! Datagrams with a deliberately wrong UDP checksum. A receiver must not deliver them.

use std::{io, net::SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

/// A raw socket beside a UDP socket.
#[derive(Debug)]
pub struct BadSender {
    raw: Socket,
    from: SocketAddr,
    to: SocketAddr,
}

impl BadSender {
    /// Opens it, between the addresses of a connected UDP socket.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_RAW`.
    pub fn open(socket: &Socket) -> io::Result<Self> {
        let address = |a: socket2::SockAddr| a.as_socket().ok_or(io::ErrorKind::Unsupported);
        let (from, to) = (address(socket.local_addr()?)?, address(socket.peer_addr()?)?);
        let raw = Socket::new(Domain::for_address(to), Type::RAW, Some(Protocol::UDP))?;
        // It gets a copy of each datagram that arrives; nobody reads them.
        let _ = raw.set_recv_buffer_size(1);
        // Raw sockets have no ports; IPv6 refuses others than 0.
        raw.bind(&SocketAddr::new(from.ip(), 0).into())?;
        raw.connect(&SocketAddr::new(to.ip(), 0).into())?;
        Ok(Self { raw, from, to })
    }

    /// Sends a payload with a wrong checksum.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn send(&self, payload: &[u8]) -> io::Result<()> {
        let length = u16::try_from(payload.len() + 8).map_err(|_| io::ErrorKind::InvalidInput)?;
        let head = [self.from.port(), self.to.port(), length];
        let mut datagram: Vec<u8> = head.iter().flat_map(|w| w.to_be_bytes()).collect();
        let right = checksum(&self.from, &self.to, length, &datagram, payload);
        datagram.extend(wrong(right).to_be_bytes());
        datagram.extend(payload);
        self.raw.send(&datagram).map(drop)
    }
}

/// A checksum that differs from the right one, and is not 0, which means none.
fn wrong(right: u16) -> u16 {
    match right ^ 0x5a5a {
        0 => !right,
        other => other,
    }
}

/// The UDP checksum by RFC 768 and RFC 8200, section 8.1.
fn checksum(from: &SocketAddr, to: &SocketAddr, length: u16, head: &[u8], payload: &[u8]) -> u16 {
    let octets = |a: &SocketAddr| match a {
        SocketAddr::V4(a) => a.ip().octets().to_vec(),
        SocketAddr::V6(a) => a.ip().octets().to_vec(),
    };
    let pseudo = [&octets(from)[..], &octets(to)[..], &17u16.to_be_bytes(), &length.to_be_bytes()];
    let bytes = [&pseudo.concat()[..], head, &[0, 0], payload].concat();
    let word = |pair: &[u8]| {
        let high = pair.first().copied().unwrap_or_default();
        u64::from(u16::from_be_bytes([high, pair.get(1).copied().unwrap_or_default()]))
    };
    let mut sum: u64 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    match !(sum as u16) {
        0 => 0xffff,
        sum => sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_the_complement_of_the_sum_by_hand() {
        let (from, to) = ("10.0.0.1:1000".parse().unwrap(), "10.0.0.2:53".parse().unwrap());
        let head: Vec<u8> = [1000u16, 53, 11].iter().flat_map(|w| w.to_be_bytes()).collect();
        // 0a00 + 0001 + 0a00 + 0002 + 0011 + 000b + 03e8 + 0035 + 000b + 6162 + 6300 = dca9
        assert_eq!(checksum(&from, &to, 11, &head, b"abc"), !0xdca9_u16);
        for right in [0, 1, 0x5a5a, 0xffff] {
            assert!(wrong(right) != right && wrong(right) != 0);
        }
    }
}
