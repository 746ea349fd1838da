//! TCP connections with their `tcp_info`, and UDP sockets with their buffers, that `ss -peaonmi` or the
//! like printed.
//!
//! **Source**: `inet_show_sock`, `print_skmem` and `tcp_stats_print` in `misc/ss.c` of iproute2 6.1. A
//! counter that is 0 is not printed: it is 0 where the same text has it of another socket, else unknown.

use std::net::SocketAddr;

use crate::{inet_diag::TcpInfo, ss_text::socket};

/// One socket as `ss` prints it, with its details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedSocket {
    pub local: SocketAddr,
    /// The other end; of an unconnected UDP socket none.
    pub remote: Option<SocketAddr>,
    /// `Recv-Q`: bytes that the application has not read; of a listening socket, connections that
    /// wait for `accept`.
    pub receive_queue: u32,
    /// `Send-Q`: bytes that are not acknowledged; of a listening socket, its backlog.
    pub send_queue: u32,
    /// `ino:`, 0 without `-e`.
    pub inode: u64,
    /// The kernel's own number of the socket, never used twice (`sk:`); `None` without `-e`.
    pub cookie: Option<u64>,
    /// Processes by id and name; empty without `-p`, or of another user.
    pub owners: Vec<(u32, String)>,
    /// Size of the receive and of the send buffer in bytes; `None` without `-m`.
    pub buffers: Option<(u32, u32)>,
    /// Packets dropped because the receive buffer was full; `None` without `-m`.
    pub drops: Option<u64>,
    /// Of a connection with `-i`.
    pub info: Option<TcpInfo>,
}

/// All TCP connections that can carry data; `None` where the text has none with its `tcp_info`, or where
/// one is not understood: addresses by their names, without `-n`.
pub fn connections(bytes: &[u8]) -> Option<Vec<PrintedSocket>> {
    let text = String::from_utf8_lossy(bytes);
    let reported = Reported::of(&text);
    let mut all = vec![];
    for row in rows(&text).filter(|r| r.kind.is_none_or(|k| k == "tcp")) {
        if !["ESTAB", "FIN-WAIT-1", "CLOSE-WAIT"].contains(&row.state) {
            continue;
        }
        let info = info(&row, &reported);
        // Without the first column it may be of UDP.
        if info.is_none() && row.kind.is_none() {
            continue;
        }
        all.push(PrintedSocket { info: Some(info?), ..row.socket()? });
    }
    (!all.is_empty()).then_some(all)
}

/// All UDP sockets; `None` where the text has none with its buffers, or where one is not understood.
pub fn udp(bytes: &[u8]) -> Option<Vec<PrintedSocket>> {
    let text = String::from_utf8_lossy(bytes);
    let mut all = vec![];
    for row in rows(&text).filter(|r| r.kind == Some("udp")) {
        let socket = row.socket()?;
        socket.buffers?;
        all.push(socket);
    }
    (!all.is_empty()).then_some(all)
}

/// One socket's words, those of its second line included.
struct Row<'a> {
    /// The first column, where it is there.
    kind: Option<&'a str>,
    state: &'a str,
    words: Vec<&'a str>,
}

fn rows<'a>(text: &'a str) -> impl Iterator<Item = Row<'a>> {
    let mut lines = text.lines().peekable();
    std::iter::from_fn(move || {
        let first = lines.next()?;
        let mut words: Vec<&'a str> = first.split_whitespace().collect();
        while let Some(more) = lines.next_if(|l| l.starts_with([' ', '\t'])) {
            words.extend(more.split_whitespace());
        }
        Some(words)
    })
    .filter_map(|mut words| {
        let kind = words.first().copied().filter(|w| w.starts_with(|c: char| c.is_lowercase()));
        if kind.is_some() {
            words.remove(0);
        }
        (!words.is_empty()).then(|| Row { kind, state: words.remove(0), words })
    })
}

impl<'a> Row<'a> {
    fn after(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find_map(|w| w.strip_prefix(key))
    }

    fn socket(&self) -> Option<PrintedSocket> {
        let [receive, send, local, remote, ..] = self.words[..] else { return None };
        let skmem = self.after("skmem:(").and_then(|m| m.strip_suffix(')'));
        let memory = |key: &str| -> Option<u64> {
            let mut parts = skmem?.split(',');
            parts.find_map(|p| p.strip_prefix(key)?.parse().ok())
        };
        let size = |key| memory(key).and_then(|n| u32::try_from(n).ok());
        Some(PrintedSocket {
            local: socket(local)?,
            remote: if remote.ends_with(":*") { None } else { Some(socket(remote)?) },
            receive_queue: receive.parse().ok()?,
            send_queue: send.parse().ok()?,
            inode: self.after("ino:").and_then(|n| n.parse().ok()).unwrap_or(0),
            cookie: self.after("sk:").and_then(|n| u64::from_str_radix(n, 16).ok()),
            owners: self.owners(),
            buffers: size("rb").zip(size("tb")),
            drops: memory("d"),
            info: None,
        })
    }

    /// `users:(("nginx",pid=812,fd=6),("nginx",pid=811,fd=6))`, ascending; a name may have blanks.
    fn owners(&self) -> Vec<(u32, String)> {
        let Some(at) = self.words.iter().position(|w| w.starts_with("users:((\"")) else {
            return vec![];
        };
        let text = self.words.get(at..).unwrap_or_default().join(" ");
        let one = |part: &str| {
            let (name, rest) = part.split_once("\",pid=")?;
            Some((rest.split(',').next()?.parse().ok()?, name.to_owned()))
        };
        let mut all: Vec<(u32, String)> = text.split("(\"").skip(1).filter_map(one).collect();
        all.sort();
        all.dedup();
        all
    }
}

/// Which counters this kernel and this `ss` report: some socket of the text has them.
struct Reported {
    acked: bool,
    received: bool,
    /// Of Linux 4.6: counts of segments with data, the shortest round trip, data not sent.
    segments: bool,
    /// Of Linux 4.10: the times limited by a window or buffer.
    times: bool,
    /// Of Linux 5.4: the offered window.
    window: bool,
}

impl Reported {
    fn of(text: &str) -> Self {
        let has = |key: &str| text.contains(key);
        Self {
            acked: has(" bytes_acked:"),
            received: has(" bytes_received:"),
            segments: has(" minrtt:") || has(" data_segs_out:"),
            times: has(" busy:"),
            window: has(" snd_wnd:"),
        }
    }
}

fn info(row: &Row<'_>, reported: &Reported) -> Option<TcpInfo> {
    row.after("cwnd:")?;
    let number = |key: &str| row.after(key).and_then(|n| n.parse::<u64>().ok());
    let or_zero =
        |known: bool, key: &str| if known { Some(number(key).unwrap_or(0)) } else { None };
    let small = |n: u64| u32::try_from(n).ok();
    let us = |key: &str| {
        let text = row.after(key);
        let ms = text.map_or(Some(0), |t| t.split("ms").next()?.parse::<u64>().ok());
        ms.filter(|_| reported.times).and_then(|ms| ms.checked_mul(1_000))
    };
    let resent = row.after("retrans:").map_or(Some("0"), |r| r.split_once('/').map(|(_, n)| n));
    let unsent = or_zero(reported.segments, "notsent:");
    Some(TcpInfo {
        retransmits: resent?.parse().ok()?,
        bytes_acked: or_zero(reported.acked, "bytes_acked:"),
        bytes_received: or_zero(reported.received, "bytes_received:"),
        waits: unsent.zip(number("mss:")).map(|(unsent, mss)| unsent >= mss.max(1)),
        min_rtt_us: row.after("minrtt:").and_then(microseconds),
        segments_out: or_zero(reported.segments, "data_segs_out:").and_then(small),
        busy_us: us("busy:"),
        rwnd_limited_us: us("rwnd_limited:"),
        sndbuf_limited_us: us("sndbuf_limited:"),
        peer_window: or_zero(reported.window, "snd_wnd:").and_then(small),
    })
}

/// Parses milliseconds such as `0.022` into whole microseconds.
fn microseconds(text: &str) -> Option<u32> {
    let us = text.parse::<f64>().ok()? * 1_000.0;
    (us.is_finite() && us >= 1.0 && us < f64::from(u32::MAX)).then(|| us.round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender with a small buffer, its receiver and a UDP socket that nobody reads, of iproute2 6.1.
    const TEXT: &str = "Netid State  Recv-Q Send-Q Local Address:Port  Peer Address:Port Process\n\
        u_str ESTAB 0 0 * 16307214 * 16307213 users:((\"a b\",pid=7,fd=5)) <->\n\
        udp   UNCONN 211968 0          127.0.0.1:43224      0.0.0.0:*     users:((\"my reader\",pid=1351,fd=6)) ino:16343702 sk:3f47 cgroup:/x <->\n\
        \t skmem:(r211968,rb212992,t0,tb212993,f1024,w0,o0,bl0,d1908)   \n\
        tcp   LISTEN 0      3          127.0.0.1:44373      0.0.0.0:*     ino:16343699 sk:3f48 <->\n\
        \t skmem:(r0,rb131072,t0,tb16384,f0,w0,o0,bl0,d0) bbr cwnd:10\n\
        tcp   ESTAB  95808  0          127.0.0.1:44373    127.0.0.1:43876 ino:16343701 sk:3f49 <->\n\
        \t skmem:(r96640,rb131072,t0,tb3939840,f1664,w0,o0,bl0,d1) ts sack bbr rto:204 rtt:0.022/0.011 mss:32768 cwnd:10 bytes_received:95808 segs_out:4 data_segs_in:6 app_limited minrtt:0.022 snd_wnd:65536\n\
        tcp   ESTAB  0      11         [::1]:43876    [fe80::1]%eth0:44373 users:((\"db\",pid=9,fd=4),(\"db\",pid=8,fd=4)) timer:(on,1sec,0) ino:16343700 sk:3f4a <->\n\
        \t skmem:(r0,rb131072,t0,tb40000,f0,w0,o0,bl0,d0) ts sack bbr mss:55808 cwnd:16 bytes_sent:151616 bytes_retrans:55808 bytes_acked:95809 data_segs_out:6 busy:48ms rwnd_limited:12ms(25.0%) retrans:0/1 notsent:70000 minrtt:0.008 snd_wnd:27648\n";

    #[test]
    fn connections_with_what_the_kernel_knows_of_them() {
        let [receiver, sender] = &connections(TEXT.as_bytes()).unwrap()[..] else { panic!() };
        assert_eq!(
            *sender.info.as_ref().unwrap(),
            TcpInfo {
                retransmits: 1,
                bytes_acked: Some(95_809),
                bytes_received: Some(0),
                waits: Some(true),
                min_rtt_us: Some(8),
                segments_out: Some(6),
                busy_us: Some(48_000),
                rwnd_limited_us: Some(12_000),
                sndbuf_limited_us: Some(0),
                peer_window: Some(27_648),
            }
        );
        assert_eq!(sender.remote.unwrap().to_string(), "[fe80::1]:44373");
        assert_eq!((sender.send_queue, sender.buffers), (11, Some((131_072, 40_000))));
        assert_eq!((sender.cookie, sender.inode), (Some(0x3f4a), 16_343_700));
        assert_eq!(sender.owners, [(8, "db".to_owned()), (9, "db".to_owned())]);
        let info = receiver.info.unwrap();
        assert_eq!((info.bytes_acked, info.busy_us, info.retransmits), (Some(0), Some(0), 0));
        assert_eq!((info.waits, receiver.receive_queue), (Some(false), 95_808));
        // Without the first column, as `-t` prints it.
        let alone = TEXT.lines().filter(|l| !l.starts_with("u")).map(|l| l.replace("tcp   ", ""));
        let alone = alone.collect::<Vec<_>>().join("\n");
        assert_eq!(connections(alone.as_bytes()).unwrap().len(), 2);
    }

    #[test]
    fn a_counter_that_no_socket_has_is_unknown() {
        let old = "tcp ESTAB 0 0 10.0.0.1:22 10.0.0.2:50000\n\t cubic rtt:1/1 mss:1448 cwnd:10\n";
        let info = connections(old.as_bytes()).unwrap()[0].info.unwrap();
        let none =
            (info.bytes_acked, info.waits, info.segments_out, info.busy_us, info.peer_window);
        assert_eq!(none, (None, None, None, None, None));
        assert_eq!(info.retransmits, 0, "always printed");
    }

    #[test]
    fn udp_sockets_with_their_buffers() {
        let [one] = &udp(TEXT.as_bytes()).unwrap()[..] else { panic!() };
        assert_eq!(one.owners, [(1_351, "my reader".to_owned())]);
        assert_eq!((one.drops, one.buffers), (Some(1_908), Some((212_992, 212_993))));
        assert_eq!((one.receive_queue, one.remote), (211_968, None));
        assert_eq!(udp(b"udp UNCONN 0 0 0.0.0.0:68 0.0.0.0:*\n"), None, "without -m");
    }

    #[test]
    fn a_list_that_is_not_understood_is_none() {
        let names =
            "tcp ESTAB 0 0 10.0.0.1:ssh 10.0.0.2:50000\n\t cubic rtt:1/1 mss:1448 cwnd:10\n";
        assert_eq!(connections(names.as_bytes()), None);
        assert_eq!(connections(b"tcp ESTAB 0 0 10.0.0.1:22 10.0.0.2:50000\n"), None, "without -i");
        assert_eq!((connections(b""), udp(b"")), (None, None));
    }
}
