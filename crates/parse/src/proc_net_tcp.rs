//! `/proc/net/tcp` and `/proc/net/tcp6`: every TCP socket of a network namespace; `udp` and `udp6`
//! have the same form.
//!
//! **Shape**: a heading, then a line per socket, listeners first:
//! `sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …`.
//! Addresses are 32-bit words in hex as a little-endian machine stores them (both
//! architectures are), ports plain hex. **Source**: `get_tcp4_sock` in `net/ipv4/tcp_ipv4.c`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The sockets of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sockets {
    /// In the file's order.
    pub sockets: Vec<Socket>,
    /// Lines that were not understood, one torn by the read included.
    pub skipped: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socket {
    /// Own address and port.
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// State, as [`crate::inet_diag::state_name`] names it.
    pub state: u8,
    /// Bytes sent and not acknowledged; 0 for a listener.
    pub tx_queue: u32,
    /// A listener's waiting connections; else bytes not read.
    pub rx_queue: u32,
    /// Inode of its descriptor, 0 if it has none.
    pub inode: u64,
    /// Datagrams dropped at the socket; `None` of a TCP socket.
    pub drops: Option<u64>,
}

/// Parses the file; a line that is not understood is skipped and counted.
pub fn parse(bytes: &[u8]) -> Sockets {
    let mut found = Sockets::default();
    for line in bytes.split(|&b| b == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else {
            found.skipped += 1;
            continue;
        };
        if line.trim().is_empty() || line.trim_start().starts_with("sl ") {
            continue;
        }
        match socket(line) {
            Some(s) => found.sockets.push(s),
            None => found.skipped += 1,
        }
    }
    found
}

fn socket(line: &str) -> Option<Socket> {
    let mut words = line.split_ascii_whitespace();
    words.next()?.strip_suffix(':')?;
    let local = address(words.next()?)?;
    let remote = address(words.next()?)?;
    let state = u8::from_str_radix(words.next()?, 16).ok()?;
    let (tx, rx) = words.next()?.split_once(':')?;
    let inode = words.nth(4)?.parse().ok()?;
    // Behind the inode a UDP socket has a count of references, a pointer and its drops; a TCP
    // socket has more or less.
    let rest: Vec<&str> = words.collect();
    let drops = match rest.as_slice() {
        [_, _, drops] => drops.parse().ok(),
        _ => None,
    };
    Some(Socket {
        local,
        remote,
        state,
        tx_queue: u32::from_str_radix(tx, 16).ok()?,
        rx_queue: u32::from_str_radix(rx, 16).ok()?,
        inode,
        drops,
    })
}

fn address(word: &str) -> Option<SocketAddr> {
    let (host, port) = word.split_once(':')?;
    let port = (port.len() == 4).then(|| u16::from_str_radix(port, 16).ok()).flatten()?;
    let word = |i: usize| {
        let hex = host.get(i * 8..i * 8 + 8)?;
        u32::from_str_radix(hex, 16).ok().map(u32::to_le_bytes)
    };
    let ip: IpAddr = match host.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?).into()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                                                     \n   0: 0100007F:1538 00000000:0000 0A 00000000:00000002 00:00000000 00000000   103        0 25683 1 00000000f4ac8dc1 100 0 0 10 0                      \n   1: 0F02000A:8F2E 0202000A:0050 01 00000010:00000000 02:000005BE 00000000  1000        0 31337 2 0000000046a1a4d2 20 4 30 10 -1                    \n   2: 0100007F:9C4E 0100007F:1538 06 00000000:00000000 03:00000F2B 00000000     0        0 0 3 00000000d9f3f7a1                                      \n";
    const V6: &str = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 20021 1 00000000bd1f1c8a 100 0 0 10 0\n   1: 000080FE00000000FF005450B6AD1DFE:01BB 00000000000000000000000001000000:D431 01 00000000:00000000 00:00000000 00000000     0        0 20022 1 00000000bd1f1c8b 100 0 0 10 0\n";

    #[test]
    fn listeners_connections_and_time_wait() {
        let found = parse(V4.as_bytes());
        assert_eq!((found.sockets.len(), found.skipped), (3, 0));
        let s = &found.sockets[0];
        assert_eq!((s.local.to_string(), s.state), ("127.0.0.1:5432".into(), 10));
        assert_eq!((s.rx_queue, s.tx_queue, s.inode), (2, 0, 25683));
        assert_eq!(found.sockets[1].remote.to_string(), "10.0.2.2:80");
        assert_eq!((found.sockets[2].state, found.sockets[2].inode), (6, 0));
    }

    #[test]
    fn only_a_udp_socket_tells_its_drops() {
        let udp = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops             \n 1035: 0100007F:270F 00000000:0000 07 00000000:00034000 00:00000000 00000000     0        0 4711 2 00000000f4ac8dc1 38075\n";
        let found = parse(udp.as_bytes());
        assert_eq!((found.sockets[0].inode, found.sockets[0].drops), (4711, Some(38_075)));
        assert_eq!(found.sockets[0].rx_queue, 212_992);
        assert!(parse(V4.as_bytes()).sockets.iter().all(|s| s.drops.is_none()));
    }

    #[test]
    fn ipv6_words_are_swapped_one_by_one() {
        let found = parse(V6.as_bytes());
        assert_eq!(found.sockets[0].local.to_string(), "[::]:22");
        assert_eq!(found.sockets[1].local.to_string(), "[fe80::5054:ff:fe1d:adb6]:443");
        assert_eq!(found.sockets[1].remote.to_string(), "[::1]:54321");
    }

    #[test]
    fn a_torn_line_is_counted_and_costs_no_other() {
        let torn = &V4[..V4.len() - 120];
        let found = parse(torn.as_bytes());
        assert_eq!((found.sockets.len(), found.skipped), (2, 1));
        assert_eq!(parse(b"nonsense\n").skipped, 1);
        assert_eq!(parse(b"\xff\xfe\n").skipped, 1);
        assert_eq!(parse(b""), Sockets::default());
    }
}
