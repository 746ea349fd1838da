//! Counters of every NIC at one moment.

use std::collections::BTreeMap;

use model::{QueueId, Reading};
use parse::{genl_ethtool::FecMessage, rtnl_qdisc::QdiscMessage, rtnl_stats::LinkStats};

use super::Counters;
use crate::{
    Root,
    ask::{self, ethtool::Ethtool, netlink::Dump},
    error::reading,
    facts,
};

/// One NIC's counters at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct RawNic {
    /// Tells another device of the same name.
    pub ifindex: u32,
    /// `/sys/class/net/X/statistics`; of the running host the same by rtnetlink.
    pub statistics: Reading<Counters>,
    /// Since boot. **Source**: `/sys/class/net/X/carrier_changes`.
    pub carrier_changes: Reading<u64>,
    /// Counters of forward error correction by name. **Source**: *ethtool* netlink `FEC_GET`.
    pub fec: Reading<Counters>,
    /// Counters of the driver by name. **Source**: `ethtool -S`.
    pub driver_stats: Reading<Counters>,
    /// Counters by queue and name. **Source**: netdev netlink `qstats-get`.
    pub queues: Reading<BTreeMap<QueueId, Counters>>,
    /// Every qdisc with its counters. **Source**: rtnetlink `RTM_GETQDISC`.
    pub qdiscs: Reading<Vec<QdiscMessage>>,
}

/// Every NIC of this network namespace.
pub fn read(root: &Root) -> Reading<BTreeMap<String, RawNic>> {
    let dumps = Dumps {
        ethtool: Ethtool::new(root),
        statistics: ask::rtnl::statistics(root).unwrap_or_default(),
        qdiscs: qdiscs(root),
        queues: queues(root),
        fec: reading(ask::ethnl::fec(root)),
    };
    reading(root.entries("/sys/class/net")).map(|names| {
        names
            .into_iter()
            .filter_map(|name| Some((name.clone(), one(root, &name, &dumps)?)))
            .collect()
    })
}

/// What is asked once for all NICs, by ifindex.
struct Dumps<'a> {
    ethtool: Ethtool<'a>,
    /// By name; those that are missing are read from their files.
    statistics: BTreeMap<String, LinkStats>,
    qdiscs: Reading<BTreeMap<u32, Vec<QdiscMessage>>>,
    queues: Reading<BTreeMap<u32, BTreeMap<QueueId, Counters>>>,
    fec: Reading<Dump<FecMessage>>,
}

fn qdiscs(root: &Root) -> Reading<BTreeMap<u32, Vec<QdiscMessage>>> {
    reading(ask::rtnl::qdiscs(root)).and_then(|dump| {
        // An entry that is doubled or missing would be taken for a reset.
        if dump.interrupted {
            return Reading::absent("netlink/qdiscs: they changed while being listed");
        }
        let mut by_nic: BTreeMap<u32, Vec<QdiscMessage>> = BTreeMap::new();
        for q in dump.entries {
            by_nic.entry(q.ifindex).or_default().push(q);
        }
        Reading::Known(by_nic)
    })
}

fn queues(root: &Root) -> Reading<BTreeMap<u32, BTreeMap<QueueId, Counters>>> {
    reading(ask::netdev::qstats(root)).map(|dump| {
        let mut by_nic: BTreeMap<u32, BTreeMap<QueueId, Counters>> = BTreeMap::new();
        for q in dump.entries {
            if let Some(id) = q.id {
                by_nic.entry(q.ifindex).or_default().insert(id, q.counters);
            }
        }
        by_nic
    })
}

/// `None` for a NIC that just vanished, and for `bonding_masters`, a file among the NICs.
fn one(root: &Root, name: &str, dumps: &Dumps<'_>) -> Option<RawNic> {
    let folder = format!("/sys/class/net/{name}");
    let reported = dumps.statistics.get(name);
    let ifindex = match reported {
        Some(link) => link.ifindex,
        None => root.number(&format!("{folder}/ifindex")).into_known()?,
    };
    let queues = dumps.queues.as_ref().and_then(|by_nic| match by_nic.get(&ifindex) {
        Some(queues) => Reading::Known(queues.clone()),
        None => Reading::Absent(format!("netlink/qstats: the driver of {name} keeps none")),
    });
    Some(RawNic {
        ifindex,
        statistics: match reported {
            Some(link) => Reading::Known(link.counters.clone()),
            None => facts::nic::statistics(root, &format!("{folder}/statistics")),
        },
        carrier_changes: match reported.and_then(|link| link.carrier_changes) {
            Some(changes) => Reading::Known(changes),
            None => root.number(&format!("{folder}/carrier_changes")),
        },
        fec: facts::nic::fec_counters(root, &dumps.fec, name),
        driver_stats: facts::nic::driver_stats(root, &dumps.ethtool, name),
        queues,
        qdiscs: dumps
            .qdiscs
            .as_ref()
            .map(|by_nic| by_nic.get(&ifindex).cloned().unwrap_or_default()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_answer_has_the_names_and_numbers_of_the_files() {
        let root = Root::live();
        // Traffic may come between two looks: what one NIC counted must lie between them.
        let before = ask::rtnl::statistics(&root).unwrap();
        let folder = |name: &str| format!("/sys/class/net/{name}/statistics");
        let files: BTreeMap<String, Counters> = before
            .keys()
            .filter_map(|name| {
                Some((name.clone(), facts::nic::statistics(&root, &folder(name)).into_known()?))
            })
            .collect();
        let after = ask::rtnl::statistics(&root).unwrap();
        assert!(files.contains_key("lo"), "{files:?}");
        for (name, counters) in &files {
            let (Some(first), Some(last)) = (before.get(name), after.get(name)) else { continue };
            if first.ifindex != last.ifindex {
                continue;
            }
            assert!(first.counters.keys().eq(counters.keys()), "{name}: {first:?}");
            for (counter, n) in counters {
                assert!(
                    (first.counters[counter]..=last.counters[counter]).contains(n),
                    "{name} {counter}: {n}"
                );
            }
            assert!(last.carrier_changes.is_some());
        }
    }
}
