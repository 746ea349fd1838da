//! Growth of NIC counters.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    QueueId, Reading,
    nic::Qdisc,
    samples::{NicSample, QdiscSample, QueueSample},
};

use super::{all_known, families, grown_readings, present};
use crate::samples::raw::{Counters, Raw, RawNic};

/// NICs that are in the first and the last reading, and what came, went or was replaced.
pub fn nics(readings: &[Raw]) -> (Vec<NicSample>, Vec<String>) {
    let tables = match all_known(readings.iter().map(|r| r.nics.as_ref())) {
        Reading::Known(t) => t,
        Reading::Absent(why) | Reading::Denied(why) => return (Vec::new(), vec![why]),
    };
    let sets: Vec<BTreeSet<(&str, u32)>> = tables
        .iter()
        .map(|t| t.iter().map(|(name, nic)| (name.as_str(), nic.ifindex)).collect())
        .collect();
    // By name and index: a new device under an old name starts its counters anew.
    let (both, changes) =
        present(&sets, |(name, ifindex), what| format!("{name} (ifindex {ifindex}) {what}"));
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

/// Qdiscs of the last reading. One is the same as before when kind, handle and parent are; of
/// several alike (handle `0:` under `mq`) the n-th is.
fn qdiscs(tables: &[&Vec<Qdisc>]) -> Vec<QdiscSample> {
    let Some((last, _)) = tables.split_last() else { return Vec::new() };
    let same =
        |a: &Qdisc, b: &Qdisc| a.kind == b.kind && a.handle == b.handle && a.parent == b.parent;
    last.iter()
        .enumerate()
        .map(|(at, q)| {
            let nth = last.iter().take(at).filter(|other| same(other, q)).count();
            let rows: Vec<Option<&Qdisc>> =
                tables.iter().map(|t| t.iter().filter(|o| same(o, q)).nth(nth)).collect();
            let gone = Reading::absent("the qdisc came within the window");
            let growth = |pick: fn(&Qdisc) -> &Reading<u64>| {
                grown_readings(rows.iter().map(|r| r.map_or(&gone, pick)))
            };
            QdiscSample {
                kind: q.kind.clone(),
                handle: q.handle.clone(),
                parent: q.parent.clone(),
                sent_bytes: growth(|q| &q.sent_bytes),
                sent_packets: growth(|q| &q.sent_packets),
                drops: growth(|q| &q.drops),
                requeues: growth(|q| &q.requeues),
                backlog_bytes: q.backlog_bytes.clone(),
            }
        })
        .collect()
}
