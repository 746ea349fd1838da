//! The counters of `RTM_NEWLINK`: those of `/sys/class/net/X/statistics`, all in one message.
//!
//! **Source**: `struct rtnl_link_stats64` and `IFLA_*` of `include/uapi/linux/if_link.h`.

use std::collections::BTreeMap;

use crate::netlink::{attributes, i32_at, u64_at};

/// One interface's counters since it was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkStats {
    /// Index in its namespace.
    pub ifindex: u32,
    pub name: String,
    /// By the names of the files in `/sys/class/net/X/statistics`; only those the kernel sent.
    pub counters: BTreeMap<String, u64>,
    /// Number of carrier changes. **Source**: `IFLA_CARRIER_CHANGES`.
    pub carrier_changes: Option<u64>,
}

/// The fields in the kernel's order. What newer kernels send behind them has no file.
const FIELDS: [&str; 24] = [
    "rx_packets",
    "tx_packets",
    "rx_bytes",
    "tx_bytes",
    "rx_errors",
    "tx_errors",
    "rx_dropped",
    "tx_dropped",
    "multicast",
    "collisions",
    "rx_length_errors",
    "rx_over_errors",
    "rx_crc_errors",
    "rx_frame_errors",
    "rx_fifo_errors",
    "rx_missed_errors",
    "tx_aborted_errors",
    "tx_carrier_errors",
    "tx_fifo_errors",
    "tx_heartbeat_errors",
    "tx_window_errors",
    "rx_compressed",
    "tx_compressed",
    "rx_nohandler",
];

const IFINFO_BYTES: usize = 16;
const IFNAME: u16 = 3;
const STATS64: u16 = 23;
const CARRIER_CHANGES: u16 = 35;

/// Parses the payload of one message; `None` where it is too short, names no device or has no
/// counters.
pub fn parse(payload: &[u8]) -> Option<LinkStats> {
    let ifindex = u32::try_from(i32_at(payload, 4)?).ok()?;
    let mut link = LinkStats { ifindex, ..LinkStats::default() };
    for a in attributes(payload.get(IFINFO_BYTES..)?) {
        match a.kind {
            IFNAME => link.name = a.text(),
            STATS64 => {
                let counters = FIELDS.iter().enumerate().map_while(|(n, name)| {
                    Some(((*name).to_owned(), u64_at(a.bytes, n.checked_mul(8)?)?))
                });
                link.counters = counters.collect();
            }
            CARRIER_CHANGES => link.carrier_changes = a.u32().map(u64::from),
            _ => {}
        }
    }
    (!link.name.is_empty() && !link.counters.is_empty()).then_some(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(words: u64, name: &[u8]) -> Vec<u8> {
        let attribute = |kind: u16, value: &[u8]| {
            let mut all = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
            all.extend(kind.to_ne_bytes());
            all.extend(value);
            all.resize(all.len().next_multiple_of(4), 0);
            all
        };
        let mut all = vec![0; IFINFO_BYTES];
        all.splice(4..8, 7_i32.to_ne_bytes());
        all.extend(attribute(IFNAME, name));
        let counters: Vec<u8> = (100..100 + words).flat_map(u64::to_ne_bytes).collect();
        all.extend(attribute(STATS64, &counters));
        all.extend(attribute(CARRIER_CHANGES, &3_u32.to_ne_bytes()));
        all
    }

    #[test]
    fn counters_go_by_their_place_and_the_newest_ones_have_no_file() {
        let link = parse(&message(25, b"eth0\0")).unwrap();
        assert_eq!((link.ifindex, link.name.as_str(), link.carrier_changes), (7, "eth0", Some(3)));
        assert_eq!(link.counters.len(), 24);
        assert_eq!((link.counters["rx_packets"], link.counters["rx_nohandler"]), (100, 123));
    }

    #[test]
    fn what_an_old_kernel_does_not_send_is_missing_and_never_zero() {
        let link = parse(&message(23, b"eth0\0")).unwrap();
        assert_eq!(link.counters.len(), 23);
        assert!(!link.counters.contains_key("rx_nohandler"));
        assert_eq!(parse(&message(0, b"eth0\0")), None);
        assert_eq!(parse(&message(24, b"\0")), None);
        assert_eq!(parse(&[0; 15]), None);
    }
}
