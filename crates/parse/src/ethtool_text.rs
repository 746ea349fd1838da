//! `ethtool`'s output as support archives keep it: without option, `-l` and `-g`, `-k`, `-c`, `-S`, `-i`,
//! `-a`, `-x`, `-n`.
//!
//! **Source**: `common.c`, `features.c`, `netlink/channels.c`, `netlink/rings.c` and
//! `netlink/coalesce.c` of ethtool 6.1. The layout before netlink differs only in `n/a`, which was
//! 0.

use std::collections::BTreeMap;

/// `-l`, `-g`: numbers by their name, `RX Mini`; what is `n/a` is not there.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Numbers below the line `Pre-set maximums:`.
    pub most: BTreeMap<String, u32>,
    /// Below `Current hardware settings:`.
    pub now: BTreeMap<String, u32>,
}

/// Both blocks; `None` where one is missing (the device has none) or the second is cut off. A
/// missing line is unknown, not 0.
pub fn limits(bytes: &[u8]) -> Option<Limits> {
    let text = String::from_utf8_lossy(bytes);
    let (_, rest) = text.split_once("Pre-set maximums:")?;
    let (most, now) = rest.split_once("Current hardware settings:")?;
    let pairs = |block: &str| -> BTreeMap<String, String> {
        let pairs = block.lines().filter_map(|line| line.split_once(':'));
        pairs.map(|(k, v)| (k.trim().to_owned(), v.trim().to_owned())).collect()
    };
    let (most, now) = (pairs(most), pairs(now));
    let is_whole = |name: &String| now.get(name).is_some_and(|value| !value.is_empty());
    if most.is_empty() || !most.keys().all(is_whole) {
        return None;
    }
    let numbers = |all: BTreeMap<String, String>| {
        all.into_iter().filter_map(|(k, v)| Some((k, v.parse().ok()?))).collect()
    };
    Some(Limits { most: numbers(most), now: numbers(now) })
}

/// What `ethtool NIC` says of its link; what is unknown is not there.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Link {
    pub speed_mbit_s: Option<u32>,
    /// Duplex as ethtool prints it: `full` or `half`; `None` where it prints none or unknown.
    pub duplex: Option<String>,
}

/// The settings of a link; `None` for other text.
pub fn link(bytes: &[u8]) -> Option<Link> {
    let text = String::from_utf8_lossy(bytes);
    let (_, text) = text.split_once("Settings for ")?;
    let of =
        |key: &str| text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": "));
    Some(Link {
        speed_mbit_s: of("Speed").and_then(|s| s.strip_suffix("Mb/s")?.parse().ok()),
        duplex: of("Duplex").filter(|d| ["Full", "Half"].contains(d)).map(str::to_lowercase),
    })
}

/// A line of `-k`, by the kernel's name of the feature.
#[derive(Debug, PartialEq, Eq)]
pub struct Feature {
    pub name: String,
    pub active: bool,
    pub requested: bool,
    pub fixed: bool,
}

/// Features with other names in ethtool than in the kernel.
const OWN_NAMES: [(&str, &str); 9] = [
    ("rx-checksumming", "rx-checksum"),
    ("udp-fragmentation-offload", "tx-udp-fragmentation"),
    ("generic-segmentation-offload", "tx-generic-segmentation"),
    ("generic-receive-offload", "rx-gro"),
    ("large-receive-offload", "rx-lro"),
    ("rx-vlan-offload", "rx-vlan-hw-parse"),
    ("tx-vlan-offload", "tx-vlan-hw-insert"),
    ("ntuple-filters", "rx-ntuple-filter"),
    ("receive-hashing", "rx-hashing"),
];

/// Lines that sum up the indented ones below them.
const SUMS: [&str; 3] = ["tx-checksumming", "scatter-gather", "tcp-segmentation-offload"];

/// All features; `None` where it prints none.
pub fn features(bytes: &[u8]) -> Option<Vec<Feature>> {
    let text = String::from_utf8_lossy(bytes);
    let one = |line: &str| {
        let (name, value) = line.split_once(": ")?;
        let (name, mut words) = (name.trim(), value.split_whitespace());
        let active = on(words.next()?)?;
        let mark = words.collect::<Vec<_>>().join(" ");
        let own = OWN_NAMES.iter().find(|(own, _)| *own == name).map(|(_, kernel)| *kernel);
        Some(Feature {
            name: own.unwrap_or(name).to_owned(),
            active,
            requested: match mark.as_str() {
                "[requested on]" => true,
                // A fixed feature cannot be requested.
                "[requested off]" | "[fixed]" => false,
                _ => active,
            },
            fixed: mark == "[fixed]",
        })
    };
    let all: Vec<Feature> =
        text.lines().filter_map(one).filter(|f| !SUMS.contains(&f.name.as_str())).collect();
    (!all.is_empty()).then_some(all)
}

fn on(word: &str) -> Option<bool> {
    match word {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// What `ethtool -c` prints.
#[derive(Debug, PartialEq, Eq)]
pub struct Coalesce {
    pub adaptive_rx: Option<bool>,
    pub adaptive_tx: Option<bool>,
    /// By name, `rx-usecs`; what is `n/a` is not there.
    pub numbers: BTreeMap<String, u32>,
}

/// The parameters; `None` where there are none.
pub fn coalesce(bytes: &[u8]) -> Option<Coalesce> {
    let text = String::from_utf8_lossy(bytes);
    let (_, adaptive) = text.split_once("Adaptive RX:")?;
    let (rx, tx) = adaptive.lines().next()?.split_once("TX:")?;
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    let number = |(k, v): (&str, &str)| Some((k.trim().to_owned(), v.trim().parse().ok()?));
    Some(Coalesce {
        adaptive_rx: on(rx.trim()),
        adaptive_tx: on(tx.trim()),
        numbers: pairs.filter_map(number).collect(),
    })
}

/// `-S`: counters by name; `None` where it prints none.
pub fn statistics(bytes: &[u8]) -> Option<BTreeMap<String, u64>> {
    let text = String::from_utf8_lossy(bytes);
    let (_, lines) = text.split_once("NIC statistics:")?;
    // A name may contain colons (`rx_queue[0]: packets`); the last one ends it.
    let one = |line: &str| {
        let (name, n) = line.rsplit_once(": ")?;
        Some((name.trim().to_owned(), n.trim().parse().ok()?))
    };
    let all: BTreeMap<String, u64> = lines.lines().filter_map(one).collect();
    (!all.is_empty()).then_some(all)
}

/// `-i`: the driver's information, by key (`driver`, `firmware-version`).
pub fn driver(bytes: &[u8]) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(bytes);
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(k, v)| (k.trim().to_owned(), v.trim().to_owned())).collect()
}

/// The pause settings that `ethtool -a` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    pub autoneg: bool,
    pub rx: bool,
    pub tx: bool,
}

/// The three settings; `None` where one is missing. What was negotiated follows under other names.
pub fn pause(bytes: &[u8]) -> Option<Pause> {
    let text = String::from_utf8_lossy(bytes);
    let (_, text) = text.split_once("Pause parameters for ")?;
    let of = |key: &str| on(text.lines().find_map(|l| l.strip_prefix(key))?.trim());
    Some(Pause { autoneg: of("Autonegotiate:")?, rx: of("RX:")?, tx: of("TX:")? })
}

/// The RSS table and key that `ethtool -x` prints.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rss {
    /// Receive rings that the table can use.
    pub rings: Option<u32>,
    /// Hash bucket to receive queue; empty where the driver has none.
    pub table: Vec<u32>,
    /// In hex, bytes by colon.
    pub key: Option<String>,
    /// Hash functions that are on; `None` where none was printed.
    pub functions: Option<Vec<String>>,
}

/// The table, key and functions; `None` for other text, or where rows of the table are missing.
pub fn rss(bytes: &[u8]) -> Option<Rss> {
    let text = String::from_utf8_lossy(bytes);
    let (_, rest) = text.split_once("RX flow hash indirection table for ")?;
    let mut lines = rest.lines();
    let (_, rings) = lines.next()?.split_once(" with ")?;
    let mut rss = Rss { rings: rings.split(' ').next()?.parse().ok(), ..Rss::default() };
    let mut part = "";
    for line in lines {
        if !line.starts_with(char::is_whitespace) && line.ends_with(':') {
            part = line;
            continue;
        }
        match (part, line.split_once(':')) {
            ("", Some((bucket, queues))) => {
                if bucket.trim().parse() != Ok(rss.table.len()) {
                    return None;
                }
                let queues: Result<Vec<u32>, _> =
                    queues.split_whitespace().map(str::parse).collect();
                rss.table.extend(queues.ok()?);
            }
            ("RSS hash key:", Some(_)) => rss.key = Some(line.trim().to_owned()),
            ("RSS hash function:", Some((name, state))) => {
                let all = rss.functions.get_or_insert_default();
                if on(state.trim()) == Some(true) {
                    all.push(name.trim().to_owned());
                }
            }
            _ => {}
        }
    }
    Some(rss)
}

/// How many rules `-n` lists: `Total 2 rules`.
pub fn rule_count(bytes: &[u8]) -> Option<u32> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().find_map(|l| l.strip_prefix("Total ")?.strip_suffix(" rules")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_and_rings_in_the_new_and_the_old_layout() {
        let new = b"Channel parameters for eth0:\nPre-set maximums:\nRX:\t\tn/a\nTX:\t\tn/a\n\
            Other:\t\t1\nCombined:\t63\nCurrent hardware settings:\nRX:\t\tn/a\nTX:\t\tn/a\n\
            Other:\t\t1\nCombined:\t8\n";
        let parsed = limits(new).unwrap();
        assert_eq!((parsed.most["Combined"], parsed.now["Combined"]), (63, 8));
        assert!(!parsed.most.contains_key("RX"));
        let old = b"Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\t0\n\
            TX:\t\t4096\nCurrent hardware settings:\nRX:\t\t512\nRX Mini:\t0\nTX:\t\t512\n\n";
        let parsed = limits(old).unwrap();
        assert_eq!((parsed.most["RX"], parsed.now["RX"], parsed.now["RX Mini"]), (4096, 512, 0));
        // Cut off behind any line of the second block.
        let text = String::from_utf8_lossy(old);
        let cut = text.find("Current").unwrap();
        for (at, _) in text[cut..].match_indices(':') {
            assert_eq!(limits(text[..=cut + at].as_bytes()), None, "{}", &text[..=cut + at]);
        }
        assert_eq!(limits(b"netlink error: Operation not supported\n"), None);
        assert_eq!(
            limits(b"Cannot get device channel parameters\n: Operation not supported\n"),
            None
        );
    }

    #[test]
    fn features_have_the_kernels_names_and_sums_are_left_out() {
        let text = b"Features for eth0:\nrx-checksumming: on [fixed]\ntx-checksumming: on\n\
            \ttx-checksum-ip-generic: on\ngeneric-receive-offload: on\n\
            large-receive-offload: off [requested on]\nrx-gro-hw: on [requested off]\n";
        let all = features(text).unwrap();
        let names: Vec<&str> = all.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(
            names,
            ["rx-checksum", "tx-checksum-ip-generic", "rx-gro", "rx-lro", "rx-gro-hw"]
        );
        let flags: Vec<_> = all.iter().map(|f| (f.active, f.requested, f.fixed)).collect();
        let (on, off) = (true, false);
        assert_eq!(
            flags,
            [(on, off, on), (on, on, off), (on, on, off), (off, on, off), (on, off, off)]
        );
        assert_eq!(features(b"Cannot get device features: No such device\n"), None);
    }

    #[test]
    fn statistics_by_name_and_the_driver_by_key() {
        let text =
            b"NIC statistics:\n     rx_packets: 18\n     rx_queue[0]: drops: 7\n     bad: x\n";
        let all = statistics(text).unwrap();
        assert_eq!(all, [("rx_packets".into(), 18), ("rx_queue[0]: drops".into(), 7)].into());
        assert_eq!(statistics(b"no stats available\n"), None);
        let text = b"driver: ixgbe\nversion: 5.1.0-k\nfirmware-version: 0x800003df\nbus-info: 0000:04:00.0\n";
        let own = driver(text);
        assert_eq!((own["driver"].as_str(), own["bus-info"].as_str()), ("ixgbe", "0000:04:00.0"));
    }

    #[test]
    fn coalescing_tells_what_the_driver_has() {
        let text = b"Coalesce parameters for eth0:\nAdaptive RX: off  TX: n/a\n\
            stats-block-usecs: n/a\n\nrx-usecs: 3\nrx-frames: 0\ntx-usecs: n/a\n";
        let parsed = coalesce(text).unwrap();
        assert_eq!((parsed.adaptive_rx, parsed.adaptive_tx), (Some(false), None));
        assert_eq!(parsed.numbers, [("rx-frames".into(), 0), ("rx-usecs".into(), 3)].into());
        assert_eq!(coalesce(b"netlink error: Operation not supported\n"), None);
    }

    #[test]
    fn pause_and_its_parts() {
        let text = b"Pause parameters for eth0:\nAutonegotiate:\ton\nRX:\t\toff\nTX:\t\ton\n\
            RX negotiated: on\nTX negotiated: on\n";
        assert_eq!(pause(text), Some(Pause { autoneg: true, rx: false, tx: true }));
        assert_eq!(pause(b"Pause parameters for eth0:\nAutonegotiate:\ton\nRX:\t\toff\n"), None);
        assert_eq!(pause(b"netlink error: Operation not supported\n"), None);
    }

    #[test]
    fn the_table_of_rss_is_whole_or_none() {
        let text = b"RX flow hash indirection table for eth0 with 4 RX ring(s):\n    \
            0:      0     1     2     3\n    4:      0     1     0     1\nRSS hash key:\n\
            6d:5a:56\nRSS hash function:\n    toeplitz: on\n    xor: off\n";
        let parsed = rss(text).unwrap();
        assert_eq!((parsed.rings, parsed.table), (Some(4), vec![0, 1, 2, 3, 0, 1, 0, 1]));
        assert_eq!(parsed.key.as_deref(), Some("6d:5a:56"));
        assert_eq!(parsed.functions, Some(vec!["toeplitz".to_owned()]));
        let none = b"RX flow hash indirection table for eth0 with 1 RX ring(s):\n\
            Operation not supported\nRSS hash key:\nOperation not supported\n";
        assert_eq!(rss(none), Some(Rss { rings: Some(1), ..Rss::default() }));
        let torn =
            b"RX flow hash indirection table for eth0 with 4 RX ring(s):\n    4:      0     1\n";
        assert_eq!(rss(torn), None);
        assert_eq!(rss(b"Cannot get RX ring count: Operation not supported\n"), None);
        assert_eq!(rule_count(b"4 RX rings available\nTotal 2 rules\n\nFilter: 1\n"), Some(2));
        assert_eq!(rule_count(b"1 RX rings available\n"), None);
    }
}
