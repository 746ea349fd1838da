//! Listening TCP sockets that `ss` printed, as support archives keep them.
//!
//! **Source**: `inet_show_sock` in `misc/ss.c` of iproute2 6.1.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// One listening socket as `ss` prints it.
#[derive(Debug, PartialEq, Eq)]
pub struct PrintedListener {
    pub address: SocketAddr,
    /// Connections that wait to be accepted (`Recv-Q`).
    pub waiting: u32,
    /// How many may (`Send-Q`).
    pub limit: u32,
    /// Processes, ascending; empty where none was printed (without `-p`, or another user's).
    pub pids: Vec<u32>,
}

/// All of them; `None` where there is none (it lists them with `-l` or `-a` alone), or where one is
/// not understood: services by their names, without `-n`.
pub fn listeners(bytes: &[u8]) -> Option<Vec<PrintedListener>> {
    let text = String::from_utf8_lossy(bytes);
    let mut all = vec![];
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // The first column is there unless one kind alone was asked for.
        let row = words.strip_prefix(&["tcp"]).unwrap_or(&words);
        if let ["LISTEN", waiting, limit, address, ..] = *row {
            all.push(PrintedListener {
                address: socket(address)?,
                waiting: waiting.parse().ok()?,
                limit: limit.parse().ok()?,
                pids: pids(line),
            });
        }
    }
    (!all.is_empty()).then_some(all)
}

/// `0.0.0.0:22`, `[::]:22`, `*:22` (both), `127.0.0.53%lo:53`, `[fe80::1]%eth0:22`.
pub(crate) fn socket(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.split('%').next()?.trim_matches(['[', ']']);
    let host = match host {
        "*" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        host => host.parse().ok()?,
    };
    Some(SocketAddr::new(host, port.parse().ok()?))
}

/// The process ids in `users:(("nginx",pid=812,fd=6),("nginx",pid=811,fd=6))`.
fn pids(line: &str) -> Vec<u32> {
    let Some((_, users)) = line.split_once("users:((") else { return vec![] };
    let pid = |part: &str| part.split(',').next()?.parse().ok();
    let mut pids: Vec<u32> = users.split(",pid=").skip(1).filter_map(pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_with_and_without_the_first_column() {
        let all = b"Netid State  Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n\
            u_str LISTEN 0 128 /run/x 1234 * 0\n\
            udp UNCONN 0 0 0.0.0.0:68 0.0.0.0:*\n\
            tcp LISTEN 3 128 127.0.0.53%lo:53 0.0.0.0:* users:((\"a,pid=x\",pid=9,fd=3),(\"b\",pid=7,fd=3)) ino:1\n\
            \t skmem:(r0,rb131072)\n\
            tcp ESTAB 0 0 10.0.0.1:22 10.0.0.2:50000\n\
            tcp LISTEN 0 4096 *:80 *:*\n";
        let [dns, http] = &listeners(all).unwrap()[..] else { panic!() };
        assert_eq!(
            (dns.address.to_string().as_str(), dns.waiting, dns.limit),
            ("127.0.0.53:53", 3, 128)
        );
        assert_eq!(dns.pids, [7, 9]);
        assert_eq!((http.address.to_string().as_str(), http.pids.len()), ("[::]:80", 0));
        let alone =
            b"State Recv-Q Send-Q Local Address:Port\nLISTEN 0 128 [fe80::1]%eth0:22 [::]:*\n";
        assert_eq!(listeners(alone).unwrap()[0].address.to_string(), "[fe80::1]:22");
    }

    #[test]
    fn one_that_is_not_understood_makes_the_list_unknown() {
        assert_eq!(
            listeners(b"LISTEN 0 128 0.0.0.0:22 *\nLISTEN 0 128 0.0.0.0:ssh 0.0.0.0:*\n"),
            None
        );
        assert_eq!(listeners(b"tcp ESTAB 0 0 10.0.0.1:22 10.0.0.2:50000\n"), None);
    }
}
