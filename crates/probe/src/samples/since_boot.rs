//! Growth without a window: since the host booted, from one reading; or between two archives of one
//! host.

use std::collections::BTreeMap;

use model::{Reading, Samples, snapshot::SampleTime};
use parse::{cgroup_cpu::CpuStat, proc_stat::CpuTicks};

use super::{Options, Sockets, delta, raw::Raw};
use crate::{Root, facts};

/// What the counters of one reading grew by since the host booted; `None` where the time since then is
/// not known. An interface or a queue may be younger than that.
pub(super) fn samples(root: &Root) -> Option<Samples> {
    grown(reading(root, Sockets::All)?)
}

/// The same of this moment, for those who read again and again: without the sockets one by one. The
/// deltas are the counters themselves.
pub fn counters_now(root: &Root) -> Option<Samples> {
    grown(reading(root, Sockets::None)?)
}

fn grown(now: Raw) -> Option<Samples> {
    let mut samples = delta::samples(&[at_boot(&now), now])?;
    samples.since_boot = true;
    Some(samples)
}

/// What happened on one host between two archives of it.
///
/// # Errors
/// They are of two hosts or two boots, in the wrong order, or lack the time since boot.
pub fn between(first: &Root, second: &Root) -> Result<Samples, String> {
    let whole = |root| reading(root, Sockets::All);
    let no_time = || "/proc/uptime: not in both of them".to_owned();
    let (mut before, mut now) =
        (whole(first).ok_or_else(no_time)?, whole(second).ok_or_else(no_time)?);
    // Two snapshots have the very times of these readings, by one clock.
    if let (Some(a), Some(b)) = (first_sample(first), first_sample(second)) {
        (before.time, now.time) = (a, b);
    }
    let names = [first, second].map(|r| r.word("/proc/sys/kernel/hostname").into_known());
    if let [Some(a), Some(b)] = &names
        && a != b
    {
        return Err(format!("they are of two hosts, {a} and {b}"));
    }
    match one_boot(first, second) {
        Some(true) => {}
        Some(false) => return Err("the host rebooted between them: its counters restarted".into()),
        None => return Err("nothing in them says that they are of one boot (/proc/stat)".into()),
    }
    if before.time.start_ns >= now.time.start_ns {
        return Err("the first was not taken before the second".into());
    }
    delta::samples(&[before, now]).ok_or_else(no_time)
}

/// Whether both are of one boot, by its id, else by its time; `None` where neither is known.
fn one_boot(first: &Root, second: &Root) -> Option<bool> {
    let id = |root: &Root| root.word("/proc/sys/kernel/random/boot_id").into_known();
    match (id(first), id(second)) {
        (Some(a), Some(b)) => Some(a == b),
        _ => Some(booted_s(first)?.abs_diff(booted_s(second)?) <= CLOCK_STEP_S),
    }
}

/// How far the kernel's boot time may move when the clock is set.
const CLOCK_STEP_S: u64 = 5;

/// When it booted, seconds since 1970. **Source**: `btime` of `/proc/stat`.
fn booted_s(root: &Root) -> Option<u64> {
    parse::proc_stat::booted_s(&counters(root).read("/proc/stat").ok()?)
}

/// When the first sample of a snapshot was taken; `None` for a tree without samples.
fn first_sample(root: &Root) -> Option<SampleTime> {
    root.manifest()?.samples.first().cloned()
}

/// Where the counters stand: in a snapshot in its first sample.
fn counters(root: &Root) -> Root {
    if first_sample(root).is_some() { root.at_sample(0) } else { root.clone() }
}

/// All counters of a tree, at the time since boot at which they were read.
fn reading(root: &Root, sockets: Sockets) -> Option<Raw> {
    // A fact, which stands beside the samples.
    let up_ns = (facts::host::uptime_s(root)? * 1e9) as u64;
    let options = Options { sockets, ..Options::default() };
    Some(Raw::read(&counters(root), SampleTime { start_ns: up_ns, end_ns: up_ns }, &options))
}

/// The same counters when all of them were zero.
fn at_boot(now: &Raw) -> Raw {
    let mut boot = now.clone();
    boot.time = SampleTime { start_ns: 0, end_ns: 0 };
    let zero = |n: &mut Option<u64>| *n = n.map(|_| 0);
    for_known(&mut boot.proc_stat, |cpus| {
        for CpuTicks { user, nice, system, idle, iowait, irq, softirq, steal } in cpus.values_mut()
        {
            [user, nice, system, idle, iowait, irq, softirq, steal].into_iter().for_each(zero);
        }
    });
    for_known(&mut boot.softirqs, |table| {
        table.vectors.iter_mut().for_each(|(_, counts)| counts.fill(0));
    });
    for_known(&mut boot.softnet, |rows| {
        for row in rows.values_mut() {
            (row.processed, row.dropped, row.time_squeeze) = (0, 0, 0);
            for_known(&mut row.received_rps, |n| *n = 0);
            for_known(&mut row.flow_limit_count, |n| *n = 0);
        }
    });
    for_known(&mut boot.irqs, |table| {
        table.rows.values_mut().flatten().for_each(Vec::clear);
    });
    for counters in [&mut boot.protocols, &mut boot.conntrack, &mut boot.vmstat] {
        for_known(counters, |all| all.values_mut().for_each(|n| *n = 0));
    }
    for table in &mut boot.neighbours {
        for_known(&mut table.stat, |stat| stat.counters.values_mut().for_each(|n| *n = 0));
    }
    for_known(&mut boot.nics, |nics| {
        for nic in nics.values_mut() {
            for counters in [&mut nic.statistics, &mut nic.driver_stats, &mut nic.fec] {
                for_known(counters, |all| all.values_mut().for_each(|n| *n = 0));
            }
            for_known(&mut nic.carrier_changes, |n| *n = 0);
            for_known(&mut nic.queues, |queues| {
                queues.values_mut().flat_map(|q| q.values_mut()).for_each(|n| *n = 0);
            });
            for_known(&mut nic.qdiscs, |all| {
                for q in all {
                    [&mut q.sent_bytes, &mut q.sent_packets].into_iter().for_each(zero);
                    for n in [&mut q.drops, &mut q.overlimits, &mut q.requeues] {
                        *n = n.map(|_| 0);
                    }
                }
            });
        }
    });
    for_known(&mut boot.cgroups, |all| {
        for cgroup in all.values_mut() {
            for_known(&mut cgroup.stat, |stat| *stat = CpuStat::default());
        }
    });
    for one in &mut boot.pressure {
        for_known(&mut one.totals, |t| {
            t.some_us = 0;
            t.full_us = t.full_us.map(|_| 0);
        });
    }
    // Sockets are younger than the host: all that they counted is since it booted.
    for_known(&mut boot.connections, BTreeMap::clear);
    for_known(&mut boot.udp, Vec::clear);
    // Threads are younger than the host, and their ids are used again.
    boot.threads.clear();
    boot
}

fn for_known<T>(reading: &mut Reading<T>, change: impl FnOnce(&mut T)) {
    if let Reading::Known(value) = reading {
        change(value);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use model::Nanos;

    use super::*;
    use crate::samples::take;

    fn tree(uptime: &str, btime: u64, dropped: u32, retransmitted: u64) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: String| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/uptime", format!("{uptime} 1.00\n"));
        put("proc/sys/kernel/hostname", "db1\n".into());
        put("proc/stat", format!("cpu0 100 0 200 300 0 0 50 7 0 0\nbtime {btime}\n"));
        let softnet =
            format!("00001000 {dropped:08x} 00000003{} 00000000\n", " 00000000".repeat(9));
        put("proc/net/softnet_stat", softnet);
        put("proc/net/snmp", format!("Tcp: OutSegs RetransSegs\nTcp: 50000 {retransmitted}\n"));
        dir
    }

    #[test]
    fn one_reading_is_since_boot() {
        let dir = tree("86400.00", 1_700_000_000, 40, 900);
        let root = Root::open(dir.path()).unwrap();
        let s = take(&root, &Options::default(), &AtomicBool::new(false), &mut |_| {}).unwrap();
        assert!(s.since_boot);
        assert_eq!((s.window_ns, s.readings), (Nanos(86_400_000_000_000), 2));
        assert_eq!(s.cpus[0].softnet.known().unwrap().dropped, Reading::Known(40));
        assert_eq!(s.protocols.known().unwrap()["Tcp.RetransSegs"], Reading::Known(900));
        assert!(s.threads.is_empty());
    }

    #[test]
    fn two_archives_of_one_boot_are_a_window() {
        let (a, b) =
            (tree("1000.00", 1_700_000_000, 40, 900), tree("1060.00", 1_700_000_001, 45, 1_900));
        let open = |d: &tempfile::TempDir| Root::open(d.path()).unwrap();
        let s = between(&open(&a), &open(&b)).unwrap();
        assert!(!s.since_boot);
        assert_eq!(s.window_ns, Nanos(60_000_000_000));
        assert_eq!(s.cpus[0].softnet.known().unwrap().dropped, Reading::Known(5));
        assert_eq!(s.protocols.known().unwrap()["Tcp.RetransSegs"], Reading::Known(1_000));
        let why = between(&open(&b), &open(&a)).unwrap_err();
        assert!(why.contains("not taken before"), "{why}");
        let other = tree("2000.00", 1_700_005_000, 1, 1);
        assert!(between(&open(&a), &open(&other)).unwrap_err().contains("booted between"));
        let unsaid = tree("2000.00", 1, 1, 1);
        std::fs::write(unsaid.path().join("proc/stat"), "cpu0 100 0 200 300 0 0 50 7 0 0\n")
            .unwrap();
        assert!(between(&open(&a), &open(&unsaid)).unwrap_err().contains("of one boot"));
        std::fs::write(other.path().join("proc/sys/kernel/hostname"), "db2\n").unwrap();
        assert!(between(&open(&a), &open(&other)).unwrap_err().contains("two hosts"));
    }
}
