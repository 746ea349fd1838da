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
    /// What follows a key on its first lines: `mtu`, `qlen`.
    pub values: BTreeMap<String, String>,
}

/// Keys with a value after a blank.
const KEYS: [&str; 3] = ["mtu", "qlen", "state"];

/// All interfaces, in their order.
pub fn parse(bytes: &[u8]) -> Vec<PrintedLink> {
    let text = String::from_utf8_lossy(bytes);
    let mut all: Vec<PrintedLink> = vec![];
    let mut current = None;
    for line in text.lines() {
        if !line.starts_with(char::is_whitespace) {
            current = first_line(line).map(|link| {
                all.push(link);
                all.len() - 1
            });
        }
        // What follows a line that was not understood is of no other interface.
        let Some(link) = current.and_then(|n| all.get_mut(n)) else { continue };
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            match pair {
                // Statistics have titles instead: `RX: bytes packets`.
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

/// `2: eth0@if5: <BROADCAST,UP> mtu 1500 …`
fn first_line(line: &str) -> Option<PrintedLink> {
    let (index, rest) = line.split_once(": ")?;
    let (name, rest) = rest.split_once(": <")?;
    let (flags, _) = rest.split_once('>')?;
    Some(PrintedLink {
        ifindex: index.parse().ok()?,
        name: name.split('@').next()?.to_owned(),
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
    }

    #[test]
    fn what_is_no_record_gives_none() {
        assert!(parse(b"    mtu 1500\nDevice does not exist.\n    mtu 9000\n\xff\xff").is_empty());
    }
}
