//! What `ip -d link` printed, as support archives keep it instead of `/sys/class/net`.
//!
//! **Source**: `print_linkinfo` in `ip/ipaddress.c` of iproute2 6.1.

use std::collections::BTreeMap;

/// One interface. A value that was not printed is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrintedLink {
    pub ifindex: u32,
    pub name: String,
    /// Between the brackets: `UP`, `LOWER_UP`.
    pub flags: Vec<String>,
    /// As `operstate` has it: `up`.
    pub state: Option<String>,
    pub mac: Option<String>,
    /// What makes it, with `-d`: `veth`, `bridge`; hardware and loopback have none.
    pub kind: Option<String>,
    /// What follows a key on its first lines: `mtu`, `qlen`, `master`, `parentdev`.
    pub values: BTreeMap<String, String>,
    /// Counters by their names in `/sys/class/net/X/statistics`, since the interface exists; with `-s`,
    /// those of errors with `-s -s`.
    pub statistics: BTreeMap<String, u64>,
    /// How often the carrier came or went, with `-s -s`.
    pub carrier_changes: Option<u64>,
}

impl PrintedLink {
    /// The flags as bits `IFF_*` of `linux/if.h`, as far as they have one there.
    pub fn flag_bits(&self) -> u32 {
        const BITS: [(&str, u32); 13] = [
            ("UP", 1),
            ("BROADCAST", 1 << 1),
            ("DEBUG", 1 << 2),
            ("LOOPBACK", 1 << 3),
            ("POINTOPOINT", 1 << 4),
            ("NOTRAILERS", 1 << 5),
            ("NOARP", 1 << 7),
            ("PROMISC", 1 << 8),
            ("ALLMULTI", 1 << 9),
            ("MASTER", 1 << 10),
            ("SLAVE", 1 << 11),
            ("MULTICAST", 1 << 12),
            ("DYNAMIC", 1 << 15),
        ];
        let bits = BITS.iter().filter(|(name, _)| self.flags.iter().any(|f| f == name));
        bits.fold(0, |all, (_, bit)| all | bit)
    }
}

/// Keys with a value after a blank.
const KEYS: [&str; 5] = ["mtu", "qlen", "state", "master", "parentdev"];

/// Kinds, as the first word of a line of `-d`; other words there are of ports and addresses.
const KINDS: [&str; 24] = [
    "bareudp",
    "bond",
    "bridge",
    "dummy",
    "geneve",
    "gre",
    "gretap",
    "ifb",
    "ip6gre",
    "ip6gretap",
    "ip6tnl",
    "ipip",
    "ipvlan",
    "ipvtap",
    "macsec",
    "macvlan",
    "macvtap",
    "netkit",
    "sit",
    "team",
    "veth",
    "vlan",
    "vrf",
    "vxlan",
];

/// Titles of counters, and their names in sysfs after `rx_` or `tx_`.
const COUNTERS: [(&str, &str); 12] = [
    ("bytes", "bytes"),
    ("packets", "packets"),
    ("errors", "errors"),
    ("dropped", "dropped"),
    ("missed", "missed_errors"),
    ("overrun", "over_errors"),
    ("length", "length_errors"),
    ("crc", "crc_errors"),
    ("frame", "frame_errors"),
    ("fifo", "fifo_errors"),
    ("aborted", "aborted_errors"),
    ("window", "window_errors"),
];

/// A counter's name in sysfs, by the direction and its title.
fn counter(direction: &str, title: &str) -> Option<String> {
    match (direction, title) {
        ("rx", "mcast") => Some("multicast".into()),
        ("tx", "collsns") => Some("collisions".into()),
        ("tx", "carrier") => Some("tx_carrier_errors".into()),
        ("tx", "heartbt") => Some("tx_heartbeat_errors".into()),
        _ => {
            let (_, name) = COUNTERS.iter().find(|(t, _)| *t == title)?;
            Some(format!("{direction}_{name}"))
        }
    }
}

/// All interfaces, in their order.
pub fn parse(bytes: &[u8]) -> Vec<PrintedLink> {
    let text = String::from_utf8_lossy(bytes);
    let mut all: Vec<PrintedLink> = vec![];
    let mut current = None;
    let mut titles: Option<Vec<Option<String>>> = None;
    let mut in_vf = false;
    for line in text.lines() {
        if !line.starts_with(char::is_whitespace) {
            (titles, in_vf) = (None, false);
            current = first_line(line).map(|link| {
                all.push(link);
                all.len() - 1
            });
        }
        // What follows a line that was not understood is of no other interface.
        let Some(link) = current.and_then(|n| all.get_mut(n)) else { continue };
        let words: Vec<&str> = line.split_whitespace().collect();
        // The virtual functions of a NIC follow its own values, with titles of the same words.
        in_vf |= words.first() == Some(&"vf");
        if in_vf {
            continue;
        }
        // A line of titles is of the line after it.
        if let Some(names) = titles.take() {
            counts(link, &names, &words);
            continue;
        }
        titles = titles_of(&words);
        if let Some(first) = words.first().filter(|w| KINDS.contains(w)) {
            link.kind.get_or_insert_with(|| (*first).to_owned());
        }
        // tun and tap are one module; its type follows.
        if let ["tun", "type", kind @ ("tun" | "tap"), ..] = words[..] {
            link.kind.get_or_insert_with(|| kind.to_owned());
        }
        for pair in words.windows(2) {
            match pair {
                [key, value] if KEYS.contains(key) => {
                    link.values.entry((*key).to_owned()).or_insert_with(|| (*value).to_owned());
                }
                [key, value] if key.starts_with("link/") && link.mac.is_none() => {
                    link.mac = Some((*value).to_owned());
                }
                _ => {}
            }
        }
        if let Some(state) = link.values.remove("state") {
            link.state.get_or_insert(state.to_lowercase());
        }
    }
    all
}

/// The names of the counters below a line of titles: `RX: bytes packets …`, `TX errors: aborted …`.
fn titles_of(words: &[&str]) -> Option<Vec<Option<String>>> {
    let (direction, titles) = match words {
        ["RX:" | "RX", titles @ ..] => ("rx", titles),
        ["TX:" | "TX", titles @ ..] => ("tx", titles),
        _ => return None,
    };
    let titles = titles.strip_prefix(&["errors:"]).unwrap_or(titles);
    let name = |title: &&str| match *title {
        "transns" => Some("carrier_changes".to_owned()),
        title => counter(direction, title),
    };
    Some(titles.iter().map(name).collect())
}

/// Adds a line of numbers, one for each title; a line of another form has none.
fn counts(link: &mut PrintedLink, names: &[Option<String>], words: &[&str]) {
    let numbers: Option<Vec<u64>> = words.iter().map(|w| w.parse().ok()).collect();
    for (name, n) in
        names.iter().zip(numbers.filter(|n| n.len() == names.len()).unwrap_or_default())
    {
        match name.as_deref() {
            Some("carrier_changes") => link.carrier_changes = Some(n),
            Some(name) => drop(link.statistics.insert(name.to_owned(), n)),
            None => {}
        }
    }
}

/// `2: eth0@if5: <BROADCAST,UP> mtu 1500 …`
fn first_line(line: &str) -> Option<PrintedLink> {
    let (index, rest) = line.split_once(": ")?;
    let (name, rest) = rest.split_once(": <")?;
    let (flags, _) = rest.split_once('>')?;
    let name = name.split('@').next()?;
    if name.is_empty() || name.starts_with('.') || name.contains('/') {
        return None; // no kernel has such a name
    }
    Some(PrintedLink {
        ifindex: index.parse().ok()?,
        name: name.to_owned(),
        flags: flags.split(',').map(str::to_owned).collect(),
        ..PrintedLink::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00 promiscuity 0 minmtu 0 maxmtu 0 numtxqueues 1 numrxqueues 1
    RX: bytes  packets  errors  dropped overrun mcast
    12         3        0       0       0       0
7: eth0@if9: <BROADCAST,MULTICAST> mtu 9000 qdisc mq master br0 state DOWN mode DEFAULT group default qlen 500
    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff
    veth numtxqueues 8 numrxqueues 4
";

    #[test]
    fn a_record_is_read_over_its_lines() {
        let [lo, eth0] = &parse(PRINTED.as_bytes())[..] else { panic!() };
        assert_eq!((lo.ifindex, lo.state.as_deref()), (1, Some("unknown")));
        assert_eq!((eth0.ifindex, eth0.name.as_str()), (7, "eth0"));
        assert_eq!(eth0.mac.as_deref(), Some("02:00:00:00:00:01"));
        assert_eq!(eth0.flags, ["BROADCAST", "MULTICAST"]);
        let of = |key: &str| eth0.values.get(key).map(String::as_str);
        assert_eq!((of("mtu"), of("qlen")), (Some("9000"), Some("500")));
        assert_eq!((of("master"), eth0.kind.as_deref()), (Some("br0"), Some("veth")));
    }

    #[test]
    fn counters_of_virtual_functions_are_not_the_nic_s() {
        let text = include_bytes!("../tests/seeds/ip_link_text/virtual_functions");
        let [eth0, eth1] = &parse(text)[..] else { panic!() };
        let of = |name: &str| eth0.statistics.get(name).copied();
        assert_eq!((of("rx_bytes"), of("tx_packets")), (Some(900_000), Some(900)));
        assert_eq!((of("rx_dropped"), of("multicast")), (Some(2), Some(3)));
        assert_eq!(eth1.values.get("master").map(String::as_str), Some("br0"));
        assert!(eth1.statistics.is_empty());
    }

    #[test]
    fn counters_have_the_names_of_sysfs() {
        let text = "4: eth0: <UP,LOWER_UP> mtu 1400 qdisc mq state UP qlen 1000\n    \
            link/ether 02:fc:00:00:00:01 numtxqueues 1 parentbus virtio parentdev virtio2 \n    \
            RX:  bytes packets errors dropped  missed   mcast           \n     \
            330729129    8823      0       3       7       2 \n    \
            RX errors:  length    crc   frame    fifo overrun\n  0 1 0 0 5 \n    \
            TX:  bytes packets errors dropped carrier collsns           \n  443930 5457 0 0 4 6 \n    \
            TX errors: aborted   fifo  window heartbt transns\n  0 0 0 8 2 \n\
            5: eth1: <UP> mtu 1500\n    RX: bytes packets\n    1 2 3\n    RX: bytes packets\n    9 x\n";
        let [eth0, eth1] = &parse(text.as_bytes())[..] else { panic!() };
        let of = |name: &str| eth0.statistics.get(name).copied();
        for (name, n) in [
            ("rx_bytes", 330_729_129),
            ("rx_dropped", 3),
            ("rx_missed_errors", 7),
            ("multicast", 2),
            ("rx_crc_errors", 1),
            ("rx_over_errors", 5),
            ("tx_packets", 5457),
            ("tx_carrier_errors", 4),
            ("collisions", 6),
            ("tx_heartbeat_errors", 8),
        ] {
            assert_eq!(of(name), Some(n), "{name}");
        }
        assert_eq!((eth0.carrier_changes, eth0.flag_bits()), (Some(2), 1));
        assert_eq!(eth0.values.get("parentdev").map(String::as_str), Some("virtio2"));
        assert!(eth1.statistics.is_empty(), "as many numbers as titles, or none");
    }

    #[test]
    fn a_kind_is_the_first_word_of_a_line() {
        let text = "3: br0: <UP> mtu 1500\n    link/ether 02:00:00:00:00:01\n    bridge forward_delay 1500\n\
            4: a: <UP> mtu 1500\n    bridge_slave state forwarding\n    alias veth\n\
            5: t: <UP> mtu 1500\n    tun type tap pi off\n6: ..: <UP>\n    veth\n";
        let kinds: Vec<_> = parse(text.as_bytes()).into_iter().map(|l| (l.name, l.kind)).collect();
        let of = |name: &str, kind: Option<&str>| (name.to_owned(), kind.map(str::to_owned));
        assert_eq!(kinds, [of("br0", Some("bridge")), of("a", None), of("t", Some("tap"))]);
    }

    #[test]
    fn what_is_no_record_gives_none() {
        assert!(parse(b"    mtu 1500\nDevice does not exist.\n    mtu 9000\n\xff\xff").is_empty());
    }
}
