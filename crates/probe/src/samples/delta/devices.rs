//! Growth of NIC counters.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    QueueId, Reading,
    samples::{HostChange, NicSample, QdiscSample, QueueSample},
};

use parse::rtnl_qdisc::{self, QdiscMessage};

use super::{all_known, families, grown, grown_readings, present};
use crate::samples::{
    Counters,
    raw::{Raw, RawNic},
};

/// NICs that are in the first and the last reading, and what came, went or was replaced.
pub fn nics(readings: &[Raw]) -> (Vec<NicSample>, Vec<HostChange>) {
    let tables = match all_known(readings.iter().map(|r| r.nics.as_ref())) {
        Reading::Known(t) => t,
        Reading::Absent(why) | Reading::Denied(why) => {
            return (Vec::new(), vec![HostChange::NicsNotRead { why }]);
        }
    };
    let sets: Vec<BTreeSet<(&str, u32)>> = tables
        .iter()
        .map(|t| t.iter().map(|(name, nic)| (name.as_str(), nic.ifindex)).collect())
        .collect();
    // By name and index: a new device under an old name starts its counters anew.
    let (both, changes) = present(&sets, |(name, ifindex), change| HostChange::NicChanged {
        nic: name.to_owned(),
        ifindex,
        change,
    });
    let samples = both
        .into_iter()
        .filter_map(|(name, ifindex)| {
            let rows: Vec<&RawNic> = tables
                .iter()
                .filter_map(|t| t.get(name).filter(|nic| nic.ifindex == ifindex))
                .collect();
            (rows.len() == tables.len()).then(|| one(name, &rows))
        })
        .collect();
    (samples, changes)
}

fn one(name: &str, rows: &[&RawNic]) -> NicSample {
    let family = |pick: fn(&RawNic) -> &Reading<Counters>| {
        all_known(rows.iter().map(|&r| pick(r).as_ref())).map(|t| families(&t, |_| true))
    };
    NicSample {
        name: name.to_owned(),
        statistics: family(|n| &n.statistics),
        driver_stats: family(|n| &n.driver_stats),
        queues: all_known(rows.iter().map(|n| n.queues.as_ref())).map(|t| queues(&t)),
        qdiscs: all_known(rows.iter().map(|n| n.qdiscs.as_ref())).map(|t| qdiscs(&t)),
        fec: family(|n| &n.fec),
        carrier_changes: grown_readings(rows.iter().map(|n| &n.carrier_changes)),
    }
}

/// Queues of the last reading; one that was not there before has no known growth.
fn queues(tables: &[&BTreeMap<QueueId, Counters>]) -> Vec<QueueSample> {
    let Some(last) = tables.last() else { return Vec::new() };
    let none = Counters::new();
    last.keys()
        .map(|id| {
            let rows: Vec<&Counters> = tables.iter().map(|t| t.get(id).unwrap_or(&none)).collect();
            QueueSample { id: *id, counters: families(&rows, |_| true) }
        })
        .collect()
}

/// One is the same as before when kind, handle and parent are; of several alike (handle `0:`
/// under `mq`) the n-th is.
type QdiscKey<'a> = (&'a str, u32, u32, u32);

fn keyed(table: &[QdiscMessage]) -> Vec<(QdiscKey<'_>, &QdiscMessage)> {
    let mut alike: BTreeMap<(&str, u32, u32), u32> = BTreeMap::new();
    let mut rows = Vec::with_capacity(table.len());
    for q in table {
        let nth = alike.entry((&q.kind, q.handle, q.parent)).or_default();
        rows.push(((q.kind.as_str(), q.handle, q.parent, *nth), q));
        *nth += 1;
    }
    rows
}

/// Qdiscs of the last reading, in its order.
fn qdiscs(tables: &[&Vec<QdiscMessage>]) -> Vec<QdiscSample> {
    let Some(last) = tables.last() else { return Vec::new() };
    let by_key: Vec<BTreeMap<QdiscKey<'_>, &QdiscMessage>> =
        tables.iter().map(|t| keyed(t).into_iter().collect()).collect();
    let mut samples = Vec::with_capacity(last.len());
    for (key, q) in keyed(last) {
        let rows: Vec<Option<&QdiscMessage>> =
            by_key.iter().map(|t| t.get(&key).copied()).collect();
        let growth = |pick: fn(&QdiscMessage) -> Option<u64>| {
            if rows.iter().flatten().any(|q| pick(q).is_none()) {
                return Reading::absent("this kernel does not say");
            }
            grown(rows.iter().map(|r| r.and_then(pick)))
        };
        samples.push(QdiscSample {
            kind: q.kind.clone(),
            handle: rtnl_qdisc::handle(q.handle),
            parent: rtnl_qdisc::parent(q.parent),
            sent_bytes: growth(|q| q.sent_bytes),
            sent_packets: growth(|q| q.sent_packets),
            drops: growth(|q| q.drops.map(u64::from)),
            requeues: growth(|q| q.requeues.map(u64::from)),
            backlog_bytes: match q.backlog_bytes {
                Some(n) => Reading::Known(u64::from(n)),
                None => Reading::absent("this kernel does not say"),
            },
        });
    }
    samples
}
