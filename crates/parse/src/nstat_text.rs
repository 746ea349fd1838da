//! What `nstat -a` printed, as support archives keep it: a counter of the kernel a line, since boot.
//!
//! **Source**: `dump_kern_db` in `misc/nstat.c` of iproute2 6.1.

use std::collections::BTreeMap;

/// Counters of protocols as the kernel's files have them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// For `/proc/net/snmp`: values by protocol and name.
    pub snmp: BTreeMap<&'static str, BTreeMap<String, u64>>,
    /// Counters as `/proc/net/netstat` has them, by group and name.
    pub netstat: BTreeMap<&'static str, BTreeMap<String, u64>>,
    /// For `/proc/net/snmp6`: values by name, such as `Ip6InReceives`.
    pub snmp6: BTreeMap<String, u64>,
}

/// Prefixes of names, each before those that it begins with, and whether `/proc/net/snmp` has them.
const PROTOCOLS: [(&str, bool); 9] = [
    ("MPTcpExt", false),
    ("TcpExt", false),
    ("Tcp", true),
    ("IpExt", false),
    ("Ip", true),
    ("IcmpMsg", true),
    ("Icmp", true),
    ("UdpLite", true),
    ("Udp", true),
];

/// Every counter `Name value rate`; a line of another form, and a name of no protocol, is none.
pub fn parse(bytes: &[u8]) -> Counters {
    let mut all = Counters::default();
    for line in String::from_utf8_lossy(bytes).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[name, value, _] = &words[..] else { continue };
        // A limit of -1 (`TcpMaxConn`) is printed without its sign and is no counter.
        let Some(value) = value.parse().ok().filter(|v| i64::try_from(*v).is_ok()) else {
            continue;
        };
        if ["Ip6", "Icmp6", "Udp6", "UdpLite6"].iter().any(|p| name.starts_with(p)) {
            all.snmp6.insert(name.to_owned(), value);
            continue;
        }
        let protocol = PROTOCOLS.iter().find_map(|(prefix, snmp)| {
            let rest = name.strip_prefix(prefix).filter(|rest| !rest.is_empty())?;
            Some((*prefix, rest, *snmp))
        });
        if let Some((protocol, name, snmp)) = protocol {
            let file = if snmp { &mut all.snmp } else { &mut all.netstat };
            file.entry(protocol).or_default().insert(name.to_owned(), value);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_its_protocols_and_the_longest_prefix_counts() {
        let text = b"#kernel\nIpInReceives                    153  0.0\nIp6InReceives 7 0.0\n\
            TcpExtSyncookiesSent 3 0.0\nTcpOutSegs 9 0.0\nIcmpMsgInType3 2 0.0\nUdpLiteInErrors 4 0.0\n\
            UdpInErrors 5 0.0\nMPTcpExtMPCapableSYNRX 6 0.0\nUdpLite6InErrors 8 0.0\n\
            TcpX y 0.0\nTcp 1 0.0\nOther 1 0.0\nTcpShort 1\n";
        let all = parse(text);
        let of = |file: &BTreeMap<&'static str, BTreeMap<String, u64>>, protocol, name: &str| {
            file[protocol].get(name).copied()
        };
        assert_eq!(of(&all.snmp, "Ip", "InReceives"), Some(153));
        assert_eq!(all.snmp["Tcp"], [("OutSegs".to_owned(), 9)].into());
        assert_eq!(of(&all.snmp, "IcmpMsg", "InType3"), Some(2));
        assert_eq!(
            (of(&all.snmp, "UdpLite", "InErrors"), of(&all.snmp, "Udp", "InErrors")),
            (Some(4), Some(5))
        );
        assert_eq!(of(&all.netstat, "TcpExt", "SyncookiesSent"), Some(3));
        assert_eq!(of(&all.netstat, "MPTcpExt", "MPCapableSYNRX"), Some(6));
        assert_eq!(all.snmp6, [("Ip6InReceives".into(), 7), ("UdpLite6InErrors".into(), 8)].into());
        assert_eq!(parse(b""), Counters::default());
    }
}
