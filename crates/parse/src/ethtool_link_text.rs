//! What `ethtool NIC` says of the modes of both ends of a link, and `ethtool --show-fec` of forward
//! error correction.
//!
//! **Source**: `netlink/settings.c` and `netlink/fec.c` of ethtool 6.15; before netlink
//! `ethtool.c` printed the same lines.

use std::collections::BTreeMap;

/// Link modes by name (`10000baseT/Full`); a list that is not printed is `None`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Modes that the NIC, its port and its transceiver can do.
    pub supported: Option<Vec<String>>,
    /// Modes that the NIC offers.
    pub advertised: Option<Vec<String>>,
    /// Modes that the other end offers; empty where the driver reports none.
    pub peer: Option<Vec<String>>,
    pub autoneg: Option<bool>,
}

/// The modes; `None` for other text, or where it has no list of what is supported.
pub fn modes(bytes: &[u8]) -> Option<Modes> {
    let text = String::from_utf8_lossy(bytes);
    let (_, text) = text.split_once("Settings for ")?;
    let found = Modes {
        supported: list(text, "Supported link modes:"),
        advertised: list(text, "Advertised link modes:"),
        peer: list(text, "Link partner advertised link modes:"),
        autoneg: text.lines().find_map(|l| {
            match l.trim().strip_prefix("Auto-negotiation:")?.split_whitespace().next()? {
                "on" => Some(true),
                "off" => Some(false),
                _ => None,
            }
        }),
    };
    found.supported.is_some().then_some(found)
}

/// The words after a key, and those of the lines below it that have no key. `Not reported` is an
/// empty list.
fn list(text: &str, key: &str) -> Option<Vec<String>> {
    let mut lines = text.lines().skip_while(|l| !l.trim_start().starts_with(key));
    let first = lines.next()?.trim().strip_prefix(key)?;
    let more = lines.take_while(|l| !l.contains(':') && !l.trim().is_empty());
    let words = std::iter::once(first).chain(more).flat_map(str::split_whitespace);
    Some(words.filter(|w| w.contains("base")).map(str::to_owned).collect())
}

/// What `ethtool --show-fec` prints, with `-I` also the counters.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fec {
    /// The configured encodings as printed: `Auto`, `RS`, `BaseR`, `Off`, `None`.
    pub configured: Vec<String>,
    /// The encodings in use.
    pub active: Vec<String>,
    /// `corrected_blocks`, `uncorrectable_blocks`, `corrected_bits` of the port since boot.
    pub counters: BTreeMap<String, u64>,
}

/// The encodings and counters; `None` for other text.
pub fn fec(bytes: &[u8]) -> Option<Fec> {
    let text = String::from_utf8_lossy(bytes);
    let (_, text) = text.split_once("FEC parameters for ")?;
    let mut fec = Fec::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let words = || value.split_whitespace().map(str::to_owned);
        match key.trim() {
            "Configured FEC encodings" | "Supported/Configured FEC encodings" => {
                fec.configured = words().collect();
            }
            "Active FEC encoding" | "Active FEC encodings" => fec.active = words().collect(),
            name @ ("corrected_blocks" | "uncorrectable_blocks" | "corrected_bits") => {
                // The lanes' numbers follow on lines of their own, or in brackets.
                let first = words().next().and_then(|n| n.parse().ok());
                fec.counters.extend(first.map(|n| (name.to_owned(), n)));
            }
            _ => {}
        }
    }
    (!fec.configured.is_empty()).then_some(fec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_over_several_lines() {
        let text = b"Settings for eth0:\n\tSupported ports: [ TP ]\n\
            \tSupported link modes:   10baseT/Half 10baseT/Full\n\
            \t                        100baseT/Half 100baseT/Full\n\
            \t                        1000baseT/Full\n\
            \tSupported pause frame use: Symmetric\n\tSupports auto-negotiation: Yes\n\
            \tSupported FEC modes: Not reported\n\
            \tAdvertised link modes:  1000baseT/Full\n\tAdvertised pause frame use: No\n\
            \tLink partner advertised link modes:  100baseT/Full\n\
            \t                                     1000baseT/Full\n\
            \tLink partner advertised pause frame use: No\n\
            \tSpeed: 100Mb/s\n\tDuplex: Full\n\tAuto-negotiation: on\n";
        let found = modes(text).unwrap();
        let words = |list: Option<Vec<String>>| list.unwrap().join(" ");
        assert_eq!(
            words(found.supported),
            "10baseT/Half 10baseT/Full 100baseT/Half 100baseT/Full 1000baseT/Full"
        );
        assert_eq!(words(found.advertised), "1000baseT/Full");
        assert_eq!(words(found.peer), "100baseT/Full 1000baseT/Full");
        assert_eq!(found.autoneg, Some(true));
    }

    #[test]
    fn no_list_is_unknown_and_an_empty_list_is_empty() {
        let text = b"Settings for eth0:\n\tSupported link modes:   Not reported\n\
            \tAdvertised link modes:  Not reported\n\tSpeed: 10000Mb/s\n\tAuto-negotiation: off\n";
        let found = modes(text).unwrap();
        assert_eq!((found.supported, found.peer), (Some(vec![]), None));
        assert_eq!(found.autoneg, Some(false));
        assert_eq!(modes(b"Settings for lo:\n\tLink detected: yes\n"), None);
        assert_eq!(modes(b"netlink error: No such device\n"), None);
    }

    #[test]
    fn fec_with_and_without_counters() {
        let text = b"FEC parameters for eth0:\nSupported/Configured FEC encodings: Auto RS BaseR\n\
            Active FEC encoding: RS\nStatistics:\n  corrected_blocks: 123\n    Lane 0: 100\n\
              uncorrectable_blocks: 4\n";
        let found = fec(text).unwrap();
        assert_eq!(
            (found.configured.join(" "), found.active.join(" ")),
            ("Auto RS BaseR".into(), "RS".into())
        );
        let counters = [("corrected_blocks".to_owned(), 123), ("uncorrectable_blocks".into(), 4)];
        assert_eq!(found.counters, BTreeMap::from(counters));
        let old =
            b"FEC parameters for eth0:\nConfigured FEC encodings: Off\nActive FEC encoding: Off\n";
        assert!(fec(old).unwrap().counters.is_empty());
        assert_eq!(fec(b"netlink error: Operation not supported\n"), None);
    }
}
