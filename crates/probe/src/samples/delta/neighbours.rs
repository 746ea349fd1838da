//! Growth of the neighbour tables' counters.

use model::{Reading, samples::NeighbourTable};
use parse::proc_net_stat::TableStat;

use super::grown_readings;
use crate::samples::raw::Raw;

/// Both tables over the window.
pub fn all(readings: &[Raw]) -> Reading<Vec<NeighbourTable>> {
    let Some(last) = readings.last() else { return Reading::absent("never read") };
    let tables = last.neighbours.iter().enumerate().map(|(n, now)| {
        let fulls: Vec<Reading<u64>> = readings
            .iter()
            .filter_map(|r| r.neighbours.get(n))
            .map(|table| table.stat.as_ref().and_then(table_fulls))
            .collect();
        NeighbourTable {
            family: now.family.to_owned(),
            entries: now.stat.as_ref().and_then(|stat| match stat.entries {
                Some(entries) => Reading::Known(entries),
                None => Reading::absent("the number of entries is not known"),
            }),
            most: now.most.clone(),
            table_fulls: grown_readings(&fulls),
        }
    });
    Reading::Known(tables.collect())
}

fn table_fulls(stat: &TableStat) -> Reading<u64> {
    match stat.counters.get("table_fulls") {
        Some(count) => Reading::Known(*count),
        None => Reading::absent("this kernel does not count table_fulls"),
    }
}
