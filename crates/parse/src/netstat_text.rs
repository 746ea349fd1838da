//! What `netstat -s` printed, as support archives keep it: counters of the kernel in words, since boot.
//!
//! **Source**: `statistics.c` of net-tools 2.10. Older versions end some lines with a full stop or write
//! `send` for `sent`.

use std::collections::BTreeMap;

use crate::nstat_text::Counters;

/// A protocol's lines: the counter's name, its words, and whether they are left out at zero.
type Line = (&'static str, &'static str, bool);

/// What stands for the number.
const N: &str = "#";

const IP: [Line; 17] = [
    ("InReceives", "# total packets received", false),
    ("InHdrErrors", "# with invalid headers", true),
    ("InAddrErrors", "# with invalid addresses", true),
    ("ForwDatagrams", "# forwarded", false),
    ("InUnknownProtos", "# with unknown protocol", true),
    ("InDiscards", "# incoming packets discarded", false),
    ("InDelivers", "# incoming packets delivered", false),
    ("OutRequests", "# requests sent out", false),
    ("OutDiscards", "# outgoing packets dropped", true),
    ("OutNoRoutes", "# dropped because of missing route", true),
    ("ReasmTimeout", "# fragments dropped after timeout", true),
    ("ReasmReqds", "# reassemblies required", true),
    ("ReasmOKs", "# packets reassembled ok", true),
    ("ReasmFails", "# packet reassemblies failed", true),
    ("FragOKs", "# fragments received ok", true),
    ("FragFails", "# fragments failed", true),
    ("FragCreates", "# fragments created", true),
];
const TCP: [Line; 10] = [
    ("ActiveOpens", "# active connection openings", false),
    ("PassiveOpens", "# passive connection openings", false),
    ("AttemptFails", "# failed connection attempts", false),
    ("EstabResets", "# connection resets received", false),
    ("CurrEstab", "# connections established", false),
    ("InSegs", "# segments received", false),
    ("OutSegs", "# segments sent out", false),
    ("RetransSegs", "# segments retransmitted", false),
    ("InErrs", "# bad segments received", false),
    ("OutRsts", "# resets sent", false),
];
const UDP: [Line; 6] = [
    ("InDatagrams", "# packets received", false),
    ("NoPorts", "# packets to unknown port received", false),
    ("InErrors", "# packet receive errors", false),
    ("OutDatagrams", "# packets sent", false),
    ("RcvbufErrors", "# receive buffer errors", false),
    ("SndbufErrors", "# send buffer errors", false),
];
/// Those that rules judge and every kernel since 3.10 has. Other names stand as they are (`Name: 3`).
const TCP_EXT: [Line; 13] = [
    ("PruneCalled", "# packets pruned from receive queue because of socket buffer overrun", true),
    ("RcvPruned", "# packets pruned from receive queue", true),
    (
        "OfoPruned",
        "# packets dropped from out-of-order queue because of socket buffer overrun",
        true,
    ),
    ("ListenOverflows", "# times the listen queue of a socket overflowed", true),
    ("ListenDrops", "# SYNs to LISTEN sockets dropped", true),
    ("TW", "# TCP sockets finished time wait in fast timer", true),
    ("TCPRcvCollapsed", "# packets collapsed in receive queue due to low socket buffer", true),
    ("TCPMemoryPressures", "TCP ran low on memory # times", true),
    ("TCPTimeouts", "# other TCP timeouts", true),
    ("TCPLostRetransmit", "# retransmits lost", true),
    ("TCPBacklogDrop", "", true),
    ("TCPReqQFullDoCookies", "", true),
    ("TCPReqQFullDrop", "", true),
];

/// The protocols that are read, whether `/proc/net/snmp` has them, and their lines.
const PROTOCOLS: [(&str, bool, &[Line]); 5] = [
    ("Ip", true, &IP),
    ("Tcp", true, &TCP),
    ("Udp", true, &UDP),
    ("TcpExt", false, &TCP_EXT),
    ("IpExt", false, &[]),
];

/// The counters that are understood. One that is left out at zero is zero where its protocol's lines are
/// whole, which another protocol's below them show.
pub fn parse(bytes: &[u8]) -> Counters {
    let mut all = Counters::default();
    let text = String::from_utf8_lossy(bytes);
    let mut now: Option<(&'static str, bool, &[Line])> = None;
    for line in text.lines() {
        let heading = line.strip_suffix(':').filter(|l| !l.starts_with(char::is_whitespace));
        if let Some(heading) = heading {
            if let Some(whole) = now {
                zeros(&mut all, whole);
            }
            now = PROTOCOLS.iter().copied().find(|(name, ..)| *name == heading);
        } else if let Some((protocol, snmp, lines)) = now
            && let Some((name, value)) = counter(line, lines)
        {
            file(&mut all, snmp).entry(protocol).or_default().entry(name).or_insert(value);
        }
    }
    all
}

fn file(all: &mut Counters, snmp: bool) -> &mut BTreeMap<&'static str, BTreeMap<String, u64>> {
    if snmp { &mut all.snmp } else { &mut all.netstat }
}

fn zeros(all: &mut Counters, (protocol, snmp, lines): (&'static str, bool, &[Line])) {
    // Without a single line it was another layout.
    let Some(known) = file(all, snmp).get_mut(protocol) else { return };
    for (name, _, left_out) in lines {
        if *left_out {
            known.entry((*name).to_owned()).or_insert(0);
        }
    }
}

/// `616 SYNs to LISTEN sockets dropped`, `TCPTimeouts: 157`.
fn counter(line: &str, lines: &[Line]) -> Option<(String, u64)> {
    let line = line.trim().trim_end_matches('.');
    if let Some((name, value)) = line.split_once(": ")
        && !name.contains(' ')
    {
        return Some((name.to_owned(), value.parse().ok()?));
    }
    let mut value = None;
    let words = line.split_whitespace().map(|word| match word {
        "send" => "sent",
        "retransmited" => "retransmitted",
        "reassembles" => "reassemblies",
        "connections" if line.ends_with(" openings") => "connection",
        "rejects" => "rejected",
        word if word.bytes().all(|b| b.is_ascii_digit()) && value.is_none() => {
            value = word.parse().ok();
            N
        }
        word => word,
    });
    let words = words.collect::<Vec<_>>().join(" ");
    let (name, ..) = lines.iter().find(|(_, text, _)| *text == words)?;
    Some(((*name).to_owned(), value?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Ip:\n    Forwarding: 2\n    153 total packets received\n    0 forwarded\n\
        Icmp:\n    ICMP input histogram:\n        destination unreachable: 1953\n\
        Tcp:\n    9 active connections openings\n    206043692 segments send out\n\
        \x20   44206 segments retransmited\n    0 bad segments received.\n\
        Udp:\n    7 packets received\n    1 receive buffer errors\n    3 send buffer errors\n\
        UdpLite:\nTcpExt:\n    6 packets pruned from receive queue because of socket buffer overrun\n\
        \x20   616 times the listen queue of a socket overflowed\n    TCPTimeouts: 157\n\
        \x20   TCP ran low on memory 4 times\n    Quick ack mode was activated 35428 times\n\
        IpExt:\n    InOctets: 1783466824086\n";

    #[test]
    fn words_of_either_version_are_the_kernels_counters() {
        let all = parse(TEXT.as_bytes());
        let of = |protocol: &str, name: &str| {
            let known = all.snmp.get(protocol).or_else(|| all.netstat.get(protocol));
            known.and_then(|p| p.get(name)).copied()
        };
        for (protocol, name, value) in [
            ("Ip", "InReceives", 153),
            ("Ip", "FragFails", 0),
            ("Tcp", "ActiveOpens", 9),
            ("Tcp", "OutSegs", 206_043_692),
            ("Tcp", "RetransSegs", 44_206),
            ("Tcp", "InErrs", 0),
            ("Udp", "InDatagrams", 7),
            ("Udp", "RcvbufErrors", 1),
            ("TcpExt", "PruneCalled", 6),
            ("TcpExt", "ListenOverflows", 616),
            ("TcpExt", "TCPTimeouts", 157),
            ("TcpExt", "TCPMemoryPressures", 4),
            ("TcpExt", "ListenDrops", 0),
            ("TcpExt", "TCPReqQFullDrop", 0),
            ("IpExt", "InOctets", 1_783_466_824_086),
        ] {
            assert_eq!(of(protocol, name), Some(value), "{protocol} {name}");
        }
        // Always printed, so missing is unknown; and of a kernel that may not have it.
        assert_eq!((of("Tcp", "CurrEstab"), of("TcpExt", "TCPRcvQDrop")), (None, None));
        assert!(!all.snmp.contains_key("Icmp"));
    }

    #[test]
    fn what_is_cut_off_is_not_zero() {
        let cut = TEXT.split("IpExt").next().unwrap();
        let all = parse(cut.as_bytes());
        assert_eq!(all.netstat["TcpExt"].get("ListenDrops"), None);
        assert_eq!(parse(b"netstat: command not found\n"), Counters::default());
        assert_eq!(parse(b"TcpExt:\nIpExt:\n"), Counters::default(), "no line of it");
    }
}
