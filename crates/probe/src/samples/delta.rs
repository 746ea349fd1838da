//! Computes growth from readings. Pure.
//!
//! A counter that went backwards, or is missing from a reading, is unknown: a reset and a wrap of a
//! 32-bit counter look alike, and a wrong guess gives a huge number.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    CpuId, Nanos, Reading, Samples,
    samples::{CpuSample, Delta, HostChange, Presence, ProcStat, SoftnetSample},
};
use parse::proc_stat::CpuTicks;

use super::{Counters, raw::Raw};

mod cgroups;
mod devices;
mod irqs;
mod listeners;
mod neighbours;
mod pressure;
mod sockets;
mod steps;
mod threads;

pub(super) use threads::modes;

/// Values that `/proc/net/snmp` prints among its counters and that go up and down.
const PROTOCOL_GAUGES: [&str; 8] = [
    "Ip.Forwarding",
    "Ip.DefaultTTL",
    "Tcp.RtoAlgorithm",
    "Tcp.RtoMin",
    "Tcp.RtoMax",
    "Tcp.MaxConn",
    "Tcp.CurrEstab",
    "MPTcpExt.MPCurrEstab",
];

/// Growth between the first and the last of two or more readings; `None` for fewer.
pub fn samples(readings: &[Raw]) -> Option<Samples> {
    let (first, rest) = readings.split_first()?;
    let last = rest.last()?;
    Some(over(readings, first, last))
}

/// Growth between two readings.
pub(super) fn between(readings: &[Raw; 2]) -> Samples {
    let [first, last] = readings;
    over(readings, first, last)
}

fn over(readings: &[Raw], first: &Raw, last: &Raw) -> Samples {
    let took = |r: &Raw| r.time.end_ns.saturating_sub(r.time.start_ns);
    let (cpus, cpu_changes) = cpus(readings);
    let (nics, nic_changes) = devices::nics(readings);
    Samples {
        window_ns: Nanos(last.time.start_ns.saturating_sub(first.time.start_ns)),
        reading_ns: Nanos(readings.iter().map(took).max().unwrap_or(0)),
        readings: u32::try_from(readings.len()).unwrap_or(u32::MAX),
        cpus,
        cpu_changes,
        irqs: irqs::all(readings),
        protocols: counters(
            readings,
            |r| r.protocols.as_ref(),
            |name| !PROTOCOL_GAUGES.contains(&name),
        ),
        sockstat: last.sockstat.clone(),
        nics,
        nic_changes,
        threads: threads::all(readings),
        conntrack: counters(readings, |r| r.conntrack.as_ref(), |_| true),
        neighbours: neighbours::all(readings),
        vmstat: counters(
            readings,
            |r| r.vmstat.as_ref(),
            |name| !name.starts_with("nr_") && name != "workingset_nodes",
        ),
        tcp_states: tcp_states(last),
        listeners: listeners::all(readings),
        grew_in: steps::grew_in(readings),
        udp_sockets: sockets::udp(readings),
        connections: sockets::connections(readings),
        cgroups: cgroups::all(readings),
        pressure: pressure::all(readings),
        drops: Reading::absent("not measured"),
        since_boot: false,
    }
}

/// Growth of one counter over its values in the order of the readings.
pub(super) fn grown(values: impl IntoIterator<Item = Option<u64>>) -> Delta {
    let mut seen: Option<(u64, u64)> = None;
    for (n, value) in values.into_iter().enumerate() {
        let Some(value) = value else {
            return Reading::Absent(format!("not in reading {}", n + 1));
        };
        match seen {
            None => seen = Some((value, value)),
            Some((_, before)) if value < before => {
                return Reading::Absent(format!(
                    "went backwards: {before} → {value} (reset or wrap)"
                ));
            }
            Some((first, _)) => seen = Some((first, value)),
        }
    }
    match seen {
        Some((first, last)) => Reading::Known(last - first),
        None => Reading::absent("never read"),
    }
}

/// Growth of one counter that may be missing with a reason; the first reason is kept.
pub(super) fn grown_readings<'a>(values: impl IntoIterator<Item = &'a Reading<u64>>) -> Delta {
    let mut plain = Vec::new();
    for value in values {
        match value {
            Reading::Known(v) => plain.push(Some(*v)),
            missing => return missing.clone(),
        }
    }
    grown(plain)
}

/// Growth of a family of counters; not known as a whole where a reading lacks the family.
pub(super) fn counters<'a>(
    readings: &'a [Raw],
    family: impl Fn(&'a Raw) -> Reading<&'a Counters>,
    wanted: impl Fn(&str) -> bool,
) -> Reading<BTreeMap<String, Delta>> {
    all_known(readings.iter().map(family)).map(|tables| families(&tables, wanted))
}

/// Growth of a family of counters over tables that may be missing.
pub(super) fn growth(tables: &[Reading<Counters>]) -> Reading<BTreeMap<String, Delta>> {
    all_known(tables.iter().map(Reading::as_ref)).map(|tables| families(&tables, |_| true))
}

/// Growth of every counter that any of the tables names.
pub(super) fn families(
    tables: &[&Counters],
    wanted: impl Fn(&str) -> bool,
) -> BTreeMap<String, Delta> {
    let names: BTreeSet<&String> = tables.iter().flat_map(|t| t.keys()).collect();
    names
        .into_iter()
        .filter(|name| wanted(name))
        .map(|name| (name.clone(), grown(tables.iter().map(|t| t.get(name).copied()))))
        .collect()
}

/// All values, or the reason why the first missing one is.
pub(super) fn all_known<T>(values: impl Iterator<Item = Reading<T>>) -> Reading<Vec<T>> {
    let mut all = Vec::new();
    for value in values {
        match value {
            Reading::Known(v) => all.push(v),
            Reading::Absent(why) => return Reading::Absent(why),
            Reading::Denied(why) => return Reading::Denied(why),
        }
    }
    Reading::Known(all)
}

/// The objects that came or went: their names, and what happened to each.
pub(super) fn present<K: Ord + Copy>(
    sets: &[BTreeSet<K>],
    changed: impl Fn(K, Presence) -> HostChange,
) -> (Vec<K>, Vec<HostChange>) {
    let (Some(first), Some(last)) = (sets.first(), sets.last()) else {
        return (Vec::new(), Vec::new());
    };
    let mut both = Vec::new();
    let mut changes = Vec::new();
    let all: BTreeSet<K> = sets.iter().flatten().copied().collect();
    for key in all {
        let change = match (first.contains(&key), last.contains(&key)) {
            (true, true) => {
                both.push(key);
                if sets.iter().all(|s| s.contains(&key)) {
                    continue;
                }
                Presence::WentAndCameBack
            }
            (true, false) => Presence::Went,
            (false, true) => Presence::Came,
            (false, false) => Presence::CameAndWent,
        };
        changes.push(changed(key, change));
    }
    (both, changes)
}

/// CPUs that are online in a reading: those with a line in `/proc/stat`, else a row in
/// `softnet_stat`, else a column in `/proc/interrupts`.
fn online(raw: &Raw) -> BTreeSet<CpuId> {
    if let Reading::Known(stat) = &raw.proc_stat {
        stat.keys().copied().collect()
    } else if let Reading::Known(softnet) = &raw.softnet {
        softnet.keys().copied().collect()
    } else {
        raw.irqs.known().map(|i| i.cpus.iter().copied().collect()).unwrap_or_default()
    }
}

fn cpus(readings: &[Raw]) -> (Vec<CpuSample>, Vec<HostChange>) {
    let sets: Vec<BTreeSet<CpuId>> = readings.iter().map(online).collect();
    let (both, changes) = present(&sets, |cpu, change| HostChange::CpuChanged { cpu, change });
    let softirqs = softirqs(readings);
    let samples = both
        .into_iter()
        .map(|id| CpuSample {
            id,
            proc_stat: proc_stat(readings, id),
            softirqs: softirqs.as_ref().and_then(|by_cpu| {
                by_cpu.get(&id).cloned().map_or_else(
                    || Reading::Absent(format!("/proc/softirqs: no column for CPU {id}")),
                    Reading::Known,
                )
            }),
            softnet: softnet(readings, id, &sets),
            softirq_ns: Reading::absent("not measured"),
        })
        .collect();
    (samples, changes)
}

fn proc_stat(readings: &[Raw], cpu: CpuId) -> Reading<ProcStat> {
    let rows = all_known(readings.iter().map(|r| {
        r.proc_stat.as_ref().and_then(|by_cpu| {
            by_cpu.get(&cpu).map_or_else(
                || Reading::Absent(format!("CPU {cpu} was offline within the window")),
                Reading::Known,
            )
        })
    }));
    let hz =
        readings.first().map_or_else(|| Reading::absent("no reading"), |r| r.ticks_per_s.clone());
    rows.and_then(|rows| {
        hz.map(|hz| {
            let state = |pick: fn(&CpuTicks) -> Option<u64>| {
                ticks_to_ns(grown(rows.iter().map(|&r| pick(r))), hz)
            };
            ProcStat {
                user_ns: state(|t| t.user),
                nice_ns: state(|t| t.nice),
                system_ns: state(|t| t.system),
                idle_ns: state(|t| t.idle),
                iowait_ns: state(|t| t.iowait),
                irq_ns: state(|t| t.irq),
                softirq_ns: state(|t| t.softirq),
                steal_ns: state(|t| t.steal),
            }
        })
    })
}

/// Ticks to nanoseconds, once.
pub(super) fn ticks_to_ns(ticks: Delta, per_s: u64) -> Delta {
    ticks.and_then(|t| {
        let ns = (u128::from(t) * 1_000_000_000).checked_div(u128::from(per_s));
        match ns.and_then(|ns| u64::try_from(ns).ok()) {
            Some(ns) => Reading::Known(ns),
            None => Reading::Absent(format!("{t} ticks at {per_s} a second are no time")),
        }
    })
}

/// Softirqs of every column by CPU and vector.
fn softirqs(readings: &[Raw]) -> Reading<BTreeMap<CpuId, BTreeMap<String, Delta>>> {
    all_known(readings.iter().map(|r| r.softirqs.as_ref())).map(|tables| {
        let vectors: BTreeSet<&String> =
            tables.iter().flat_map(|t| t.vectors.iter().map(|v| &v.0)).collect();
        let columns: Vec<BTreeMap<CpuId, usize>> = tables
            .iter()
            .map(|t| t.cpus.iter().enumerate().map(|(i, &cpu)| (cpu, i)).collect())
            .collect();
        let cpus: BTreeSet<CpuId> = columns.iter().flat_map(|c| c.keys().copied()).collect();
        let mut by_cpu: BTreeMap<CpuId, BTreeMap<String, Delta>> = BTreeMap::new();
        for vector in vectors {
            let rows: Vec<Option<&Vec<u64>>> = tables
                .iter()
                .map(|t| t.vectors.iter().find(|v| &v.0 == vector).map(|v| &v.1))
                .collect();
            for &cpu in &cpus {
                let values = rows
                    .iter()
                    .zip(&columns)
                    .map(|(row, columns)| row.and_then(|r| r.get(*columns.get(&cpu)?).copied()));
                by_cpu.entry(cpu).or_default().insert(vector.clone(), grown(values));
            }
        }
        by_cpu
    })
}

fn softnet(readings: &[Raw], cpu: CpuId, online: &[BTreeSet<CpuId>]) -> Reading<SoftnetSample> {
    let rows = all_known(readings.iter().map(|r| {
        r.softnet.as_ref().and_then(|rows| {
            rows.get(&cpu).map_or_else(
                || Reading::Absent(format!("/proc/net/softnet_stat: no row of CPU {cpu}")),
                Reading::Known,
            )
        })
    }));
    rows.and_then(|rows| {
        let moved = online.windows(2).any(|w| w.first() != w.last());
        if moved && rows.iter().any(|r| r.cpu_from_position) {
            return Reading::absent(
                "/proc/net/softnet_stat: CPUs came or went and this kernel's rows do not name theirs",
            );
        }
        Reading::Known(SoftnetSample {
            processed: grown(rows.iter().map(|r| Some(r.processed))),
            dropped: grown(rows.iter().map(|r| Some(r.dropped))),
            time_squeeze: grown(rows.iter().map(|r| Some(r.time_squeeze))),
            received_rps: grown_readings(rows.iter().map(|r| &r.received_rps)),
            flow_limit_count: grown_readings(rows.iter().map(|r| &r.flow_limit_count)),
        })
    })
}

/// TCP connections by the cheap gauges. `TCP.orphan` is none: it counts every network namespace. The connection table would have every state, at a cost that
/// grows with the connections.
fn tcp_states(last: &Raw) -> Reading<BTreeMap<String, u64>> {
    let gauges = [
        ("time_wait", last.sockstat.as_ref(), "TCP.tw"),
        ("established", last.protocols.as_ref(), "Tcp.CurrEstab"),
    ];
    let states: BTreeMap<String, u64> = gauges
        .iter()
        .filter_map(|(state, table, key)| Some(((*state).to_owned(), *table.known()?.get(*key)?)))
        .collect();
    if states.is_empty() {
        last.sockstat.clone().and_then(|_| Reading::absent("/proc/net/sockstat: no TCP line"))
    } else {
        Reading::Known(states)
    }
}

#[cfg(test)]
mod tests;
