//! Growth of thread counters.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Reading,
    samples::{Delta, ThreadSample},
};

use super::{grown, grown_readings, ticks_to_ns};
use crate::samples::raw::{Raw, RawThread};

/// Every thread seen in any reading; one that came or went has no known growth.
pub fn all(readings: &[Raw]) -> Vec<ThreadSample> {
    let ids: BTreeSet<(u32, u32)> =
        readings.iter().flat_map(|r| r.threads.keys().copied()).collect();
    ids.into_iter().filter_map(|id| one(readings, id)).collect()
}

/// Time in user mode and in the kernel of every thread of the last reading, by thread id.
pub fn modes(readings: &[Raw]) -> BTreeMap<u32, (Delta, Delta)> {
    let ids = readings.last().into_iter().flat_map(|r| r.threads.keys().copied());
    let hz = ticks_per_s(readings);
    ids.filter_map(|id| {
        let rows: Vec<Option<&RawThread>> = readings.iter().map(|r| r.threads.get(&id)).collect();
        let last = rows.iter().rev().find_map(|r| *r)?;
        let broken = broken(&rows, last);
        let grown = |pick: fn(&RawThread) -> u64| match broken {
            Some(why) => Reading::absent(why),
            None => {
                hz.clone().and_then(|hz| ticks_to_ns(grown(rows.iter().map(|r| r.map(pick))), hz))
            }
        };
        Some((id.1, (grown(|t| t.user_ticks), grown(|t| t.system_ticks))))
    })
    .collect()
}

fn ticks_per_s(readings: &[Raw]) -> Reading<u64> {
    readings.first().map_or_else(|| Reading::absent("no reading"), |r| r.ticks_per_s.clone())
}

fn one(readings: &[Raw], id: (u32, u32)) -> Option<ThreadSample> {
    let rows: Vec<Option<&RawThread>> = readings.iter().map(|r| r.threads.get(&id)).collect();
    let last = rows.iter().rev().find_map(|r| *r)?;
    let broken = broken(&rows, last);
    let growth = |pick: fn(&RawThread) -> &Reading<u64>| match &broken {
        Some(why) => Reading::absent(*why),
        None => grown_readings(rows.iter().filter_map(|r| r.map(pick))),
    };
    let (cpu_ns, run_queue_ns) = match broken {
        Some(why) => (Reading::absent(why), Reading::absent(why)),
        None => times(readings, &rows),
    };
    Some(ThreadSample {
        pid: id.0,
        tid: id.1,
        name: last.name.clone(),
        cpu_ns,
        run_queue_ns,
        migrations: growth(|t| &t.migrations),
        voluntary_switches: growth(|t| &t.voluntary_switches),
        involuntary_switches: growth(|t| &t.involuntary_switches),
        on_cpus: rows.iter().filter_map(|r| r.map(|t| t.last_cpu)).collect(),
        rss_bytes: last.rss_bytes.clone(),
    })
}

/// Why the readings are not of one thread all along.
fn broken(rows: &[Option<&RawThread>], last: &RawThread) -> Option<&'static str> {
    if rows.iter().flatten().any(|t| t.start_ticks != last.start_ticks) {
        Some("another thread took this id within the window")
    } else if rows.last().is_none_or(Option::is_none) {
        Some("the thread ended within the window")
    } else if rows.iter().any(Option::is_none) {
        Some("the thread began within the window")
    } else {
        None
    }
}

/// CPU and waiting time: exact from schedstat; where that is missing or all zeros (accounting
/// switched off), CPU time in ticks.
fn times(readings: &[Raw], rows: &[Option<&RawThread>]) -> (Delta, Delta) {
    let exact: Option<Vec<_>> = rows.iter().map(|r| r.and_then(|t| t.schedstat.get())).collect();
    if let Some(exact) = exact.filter(|e| e.iter().any(|s| s.timeslices > 0)) {
        return (
            grown(exact.iter().map(|s| Some(s.cpu_ns))),
            grown(exact.iter().map(|s| Some(s.run_queue_ns))),
        );
    }
    let why = rows
        .iter()
        .flatten()
        .find_map(|t| t.schedstat.why_not())
        .unwrap_or("schedstat: zeros (it never ran, or scheduler accounting is off)");
    let hz = ticks_per_s(readings);
    let ticks = grown(rows.iter().map(|r| r.map(|t| t.user_ticks.saturating_add(t.system_ticks))));
    (hz.and_then(|hz| ticks_to_ns(ticks, hz)), Reading::absent(why))
}
