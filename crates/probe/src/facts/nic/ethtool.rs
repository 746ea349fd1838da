//! Settings, statistics and RSS of a NIC: converts ethtool's answers to the model.

use std::collections::{BTreeMap, btree_map::Entry};

use model::{
    Reading,
    nic::{Channels, Coalesce, Feature, Pause, Rings, Rss},
};

use parse::genl_ethtool::{CoalesceMessage, FecMessage, RingsMessage, RssMessage};

use crate::{
    ReadError, Root,
    ask::{
        ethnl,
        ethtool::{
            Ethtool,
            answers::{self, Stats},
        },
        netlink::Dump,
    },
    error::reading,
};

/// Answers that one dump gives for all devices.
pub struct EthtoolDumps {
    coalesce: Result<Dump<CoalesceMessage>, ReadError>,
    rings: Result<Dump<RingsMessage>, ReadError>,
    rss: Result<Dump<RssMessage>, ReadError>,
    pub fec: Result<Dump<FecMessage>, ReadError>,
}

impl EthtoolDumps {
    pub fn read(root: &Root) -> Self {
        Self {
            coalesce: ethnl::coalesce(root),
            rings: ethnl::rings(root),
            rss: ethnl::rss_contexts(root),
            fec: ethnl::fec(root),
        }
    }
}

/// What `ethtool -l` shows; absent where the driver has no channels.
pub fn channels(ethtool: &Ethtool, nic: &str) -> Reading<Channels> {
    reading(ethtool.channels(nic)).map(|c| Channels {
        rx: c.rx_count,
        tx: c.tx_count,
        combined: c.combined_count,
        other: c.other_count,
        max_rx: c.max_rx,
        max_tx: c.max_tx,
        max_combined: c.max_combined,
        max_other: c.max_other,
    })
}

/// Why a NIC has no such length.
pub const NO_PUSH_BUFFER: &str = "the driver reports none";

/// What `ethtool -g` shows; absent where the driver has no rings.
pub fn rings(ethtool: &Ethtool, dumps: &EthtoolDumps, nic: &str) -> Reading<Rings> {
    let push_buffer = || {
        reading(dumps.rings.clone()).and_then(|dump| {
            let bytes =
                dump.entries.into_iter().find(|m| m.nic == nic).and_then(|m| m.tx_push_buffer);
            bytes.map_or_else(|| Reading::absent(NO_PUSH_BUFFER), Reading::Known)
        })
    };
    reading(ethtool.rings(nic)).map(|r| Rings {
        rx: r.rx_pending,
        rx_mini: r.rx_mini_pending,
        rx_jumbo: r.rx_jumbo_pending,
        tx: r.tx_pending,
        max_rx: r.rx_max_pending,
        max_rx_mini: r.rx_mini_max_pending,
        max_rx_jumbo: r.rx_jumbo_max_pending,
        max_tx: r.tx_max_pending,
        tx_push_buffer_bytes: push_buffer(),
    })
}

/// `ethtool -c`. `has` are the parameters of each driver, where the kernel can name them.
pub fn coalesce(ethtool: &Ethtool, has: &EthtoolDumps, nic: &str) -> Reading<Coalesce> {
    // Numbers of `ETHTOOL_A_COALESCE_…`.
    let parameter = |number: u16, value: u32| match &has.coalesce {
        Ok(dump) if value == 0 => match dump.entries.iter().find(|m| m.nic == nic) {
            Some(m) if !m.parameters.contains_key(&number) => {
                Reading::absent("the driver has no such parameter")
            }
            _ => Reading::Known(value),
        },
        _ => Reading::Known(value),
    };
    reading(ethtool.coalesce(nic)).map(|c| Coalesce {
        rx_usecs: parameter(2, c.rx_coalesce_usecs),
        rx_max_frames: parameter(3, c.rx_max_coalesced_frames),
        tx_usecs: parameter(6, c.tx_coalesce_usecs),
        tx_max_frames: parameter(7, c.tx_max_coalesced_frames),
        adaptive_rx: parameter(11, c.use_adaptive_rx_coalesce).map(|on| on != 0),
        adaptive_tx: parameter(12, c.use_adaptive_tx_coalesce).map(|on| on != 0),
        rx_usecs_irq: parameter(4, c.rx_coalesce_usecs_irq),
        tx_usecs_irq: parameter(8, c.tx_coalesce_usecs_irq),
        stats_block_usecs: parameter(10, c.stats_block_coalesce_usecs),
    })
}

/// What `ethtool -a` shows; absent where the driver has no pause frames.
pub fn pause(ethtool: &Ethtool, nic: &str) -> Reading<Pause> {
    reading(ethtool.pause(nic)).map(|p| Pause {
        autoneg: p.autoneg != 0,
        rx: p.rx_pause != 0,
        tx: p.tx_pause != 0,
    })
}

/// `ethtool -k`. Fixed features are those that the driver does not let change, and those that the
/// kernel never does.
pub fn features(ethtool: &Ethtool, nic: &str) -> Reading<BTreeMap<String, Feature>> {
    reading(ethtool.features(nic)).map(|features| {
        let feature = |f: answers::Feature| {
            let fixed = !f.available || f.never_changed;
            (f.name, Feature { active: f.active, requested: f.requested, fixed })
        };
        features.into_iter().map(feature).collect()
    })
}

/// `ethtool -x` and `-n X rx-flow-hash`.
pub fn rss(ethtool: &Ethtool, dumps: &EthtoolDumps, nic: &str) -> Reading<Rss> {
    reading(ethtool.rss(nic)).map(|rss| Rss {
        key: if rss.key.is_empty() {
            Reading::absent("the driver shows no hash key")
        } else {
            Reading::Known(hex(&rss.key))
        },
        functions: functions(rss.hfunc),
        hash_fields: reading(ethtool.hash_fields(nic)).map(|h| {
            h.fields.into_iter().map(|(flow, bits)| (flow, fields(bits).join(" "))).collect()
        }),
        contexts: contexts(dumps, nic),
        rings: rss
            .rx_rings
            .and_then(|n| u32::try_from(n).ok())
            .map_or_else(|| Reading::absent("the driver does not say"), Reading::Known),
        table: rss.indir,
    })
}

/// Contexts beside the first.
fn contexts(dumps: &EthtoolDumps, nic: &str) -> Reading<u32> {
    reading(dumps.rss.clone()).and_then(|dump| {
        let mut of_nic = dump.entries.iter().filter(|m| m.nic == nic).peekable();
        if of_nic.peek().is_none() {
            return Reading::absent("the driver shows no RSS contexts");
        }
        Reading::Known(of_nic.filter(|m| m.context != 0).map(|_| 1).sum())
    })
}

/// Bytes as `ethtool -x` prints a key.
fn hex(key: &[u8]) -> String {
    key.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")
}

/// The functions in a set of `ETH_RSS_HASH_…` bits.
fn functions(bits: u8) -> Reading<Vec<String>> {
    const NAMES: [&str; 3] = ["toeplitz", "xor", "crc32"];
    if bits == 0 {
        return Reading::absent("the driver shows no hash function");
    }
    let name = |bit: u8| NAMES.get(usize::from(bit)).map_or(format!("bit {bit}"), |&n| n.into());
    Reading::Known((0..8).filter(|bit| bits >> bit & 1 == 1).map(name).collect())
}

/// The header fields in a set of `RXH_…` bits, in the order a packet has them.
fn fields(bits: u64) -> Vec<String> {
    const NAMES: [(u32, &str); 10] = [
        (1, "dst_mac"),
        (2, "vlan"),
        (3, "l3_proto"),
        (4, "src_ip"),
        (5, "dst_ip"),
        (6, "src_port"),
        (7, "dst_port"),
        (8, "gtp_teid"),
        (9, "ipv6_flow_label"),
        (31, "discard"),
    ];
    let name = |bit: u32| {
        NAMES.iter().find(|n| n.0 == bit).map_or_else(|| format!("bit_{bit}"), |n| n.1.into())
    };
    (0..64).filter(|bit| bits >> bit & 1 == 1).map(name).collect()
}

/// `ethtool -S` by name. A name that the driver gives again becomes `name#2`, so that neither
/// value is lost.
pub fn stats(ethtool: &Ethtool, nic: &str) -> Reading<BTreeMap<String, u64>> {
    reading(ethtool.stats(nic)).map(by_name)
}

fn by_name(stats: Stats) -> BTreeMap<String, u64> {
    let mut map: BTreeMap<String, u64> = BTreeMap::new();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for (name, value) in stats.stats {
        let again = seen.entry(name.clone()).and_modify(|n| *n += 1).or_insert(1);
        let name = if *again == 1 { name } else { format!("{name}#{again}") };
        if let Entry::Vacant(free) = map.entry(name) {
            free.insert(value);
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_bits_have_names() {
        assert_eq!(fields(0xf0).join(" "), "src_ip dst_ip src_port dst_port");
        assert_eq!(fields(0x30).join(" "), "src_ip dst_ip");
        assert_eq!(fields(0), [""; 0]);
        assert_eq!(fields(1 << 31 | 1 << 40), ["discard", "bit_40"]);
        assert_eq!(functions(1), Reading::Known(vec!["toeplitz".into()]));
        assert_eq!(functions(0x12), Reading::Known(vec!["xor".into(), "bit 4".into()]));
        assert!(!functions(0).is_known());
        assert_eq!(hex(&[0x6d, 0, 0xff]), "6d:00:ff");
    }

    #[test]
    fn a_repeated_statistic_keeps_every_value() {
        let stats = |s: &[(&str, u64)]| Stats {
            stats: s.iter().map(|&(n, v)| (n.to_owned(), v)).collect(),
        };
        let map = by_name(stats(&[("rx", 1), ("tx", 2), ("rx", 3), ("rx", 4)]));
        let list: Vec<_> = map.iter().map(|(n, &v)| (n.as_str(), v)).collect();
        assert_eq!(list, [("rx", 1), ("rx#2", 3), ("rx#3", 4), ("tx", 2)]);
    }
}
