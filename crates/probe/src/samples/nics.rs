//! Counters of NICs.

use std::collections::BTreeMap;

use model::{QueueId, Reading, nic::Qdisc};

use super::raw::Counters;
use crate::{Root, error::reading};

/// One NIC's counters at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct RawNic {
    /// Tells another device of the same name.
    pub ifindex: u32,
    /// `/sys/class/net/X/statistics`.
    pub statistics: Reading<Counters>,
    /// `carrier_changes`.
    pub carrier_changes: Reading<u64>,
    /// `ethtool -S`.
    pub driver_stats: Reading<Counters>,
    /// netdev netlink `qstats-get`.
    pub queues: Reading<BTreeMap<QueueId, Counters>>,
    /// rtnetlink `RTM_GETQDISC`.
    pub qdiscs: Reading<Vec<Qdisc>>,
}

/// Every NIC of this network namespace.
pub fn read(root: &Root) -> Reading<BTreeMap<String, RawNic>> {
    reading(root.entries("/sys/class/net")).map(|names| {
        names.into_iter().filter_map(|name| Some((name.clone(), one(root, &name)?))).collect()
    })
}

/// `None` for a NIC that just vanished, and for `bonding_masters`, a file among the NICs.
fn one(root: &Root, name: &str) -> Option<RawNic> {
    let folder = format!("/sys/class/net/{name}");
    let ifindex = root.number(&format!("{folder}/ifindex")).into_known()?;
    Some(RawNic {
        ifindex,
        statistics: statistics(root, &folder),
        carrier_changes: root.number(&format!("{folder}/carrier_changes")),
        driver_stats: Reading::absent("not read"),
        queues: Reading::absent("not read"),
        qdiscs: Reading::absent("not read"),
    })
}

fn statistics(root: &Root, folder: &str) -> Reading<Counters> {
    let folder = format!("{folder}/statistics");
    reading(root.entries(&folder)).map(|names| {
        names
            .into_iter()
            .filter_map(|name| {
                let value = root.number(&format!("{folder}/{name}")).into_known()?;
                Some((name, value))
            })
            .collect()
    })
}
