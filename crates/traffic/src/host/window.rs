//! Changes at one end between two snapshots.

use std::collections::BTreeMap;

use model::{
    CpuId, Nanos, Reading,
    measure::{EndCpu, Moved},
    samples::{HostChange, ProcStat},
};
use probe::samples::brief::Growth;

use super::{CounterSnapshot, evidence, softirq};

/// One end between two snapshots.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    pub cpu: EndCpu,
    /// Kernel counters that changed, see [`evidence`].
    pub moved: Moved,
    /// Figures that the result shows elsewhere.
    pub extras: Extras,
}

/// Further figures of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Extras {
    /// Migrations of the threads, summed.
    pub migrations: Reading<u64>,
    /// Figures of each thread, in the order of the first snapshot.
    pub threads: Vec<ThreadWindow>,
    /// Steal time, summed over CPUs. **Source**: `/proc/stat`, in ticks.
    pub steal_ns: Reading<u64>,
    /// Duration of the slower of the two snapshots: the counters may cover this much beyond the
    /// window at each end. More than 1 ms gives a warning: another process held the kernel's lock
    /// for configuring interfaces.
    pub reading_ns: u64,
    /// CPUs that went online or offline within the window.
    pub cpu_changes: Vec<HostChange>,
    /// Counters that could not be read, each with the reason.
    pub unread: Vec<String>,
    /// CPU time of all threads on each CPU (user, nice, system), for CPUs that report it.
    pub busy_ns: BTreeMap<CpuId, u64>,
}

/// One measuring thread within the window.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadWindow {
    pub tid: i32,
    /// CPU time from the thread's clock.
    pub cpu_ns: Reading<u64>,
    /// Time runnable without a CPU. **Source**: `schedstat`.
    pub run_queue_ns: Reading<u64>,
    /// Migrations to another CPU. **Source**: `sched`, with `CONFIG_SCHED_DEBUG`.
    pub migrations: Reading<u64>,
    /// Number of voluntary context switches: the thread slept.
    pub voluntary_switches: Reading<u64>,
    /// Number of involuntary context switches: the kernel took the CPU away.
    pub involuntary_switches: Reading<u64>,
}

/// Changes from `first` to `last`, for threads in both snapshots.
pub fn between(first: &CounterSnapshot, last: &CounterSnapshot) -> Window {
    let growth = first.counters.growth(&last.counters);
    let threads: Vec<ThreadWindow> = first
        .tids
        .iter()
        .enumerate()
        .map(|(i, &tid)| thread(first, last, i, tid, &growth))
        .collect();
    let (mut moved, unread) = evidence::moved(&growth);
    if let (Some(first), Some(last)) = (&first.softirq, &last.softirq) {
        softirq::moved(first, last, &mut moved);
    }
    let host_ns = host(&growth);
    let modes = |user: bool| {
        sum(first.tids.iter().map(|&tid| {
            let found = u32::try_from(tid).ok().and_then(|t| growth.modes.get(&t));
            let mode = found.map(|(u, s)| if user { u.clone() } else { s.clone() });
            mode.unwrap_or_else(|| gone(tid))
        }))
    };
    let cpu = EndCpu {
        window_ns: Nanos(last.ends_ns().saturating_sub(first.begins_ns())),
        threads_ns: sum(threads.iter().map(|t| t.cpu_ns.clone())),
        threads_user_ns: modes(true),
        threads_system_ns: modes(false),
        process_ns: Reading::Known(last.before.process_ns.saturating_sub(first.after.process_ns)),
        host_busy_per_unit_ns: Reading::absent("not set against anything"),
        threads_per_unit_ns: Reading::absent("not set against anything"),
        voluntary_switches: sum(threads.iter().map(|t| t.voluntary_switches.clone())),
        involuntary_switches: sum(threads.iter().map(|t| t.involuntary_switches.clone())),
        host_ns: host_ns.clone(),
    };
    let extras = Extras {
        migrations: sum(threads.iter().map(|t| t.migrations.clone())),
        steal_ns: host_ns.and_then(|h| match h.get("steal") {
            Some(&ns) => Reading::Known(ns),
            None => Reading::absent("/proc/stat: no steal time"),
        }),
        reading_ns: [first, last]
            .map(|m| m.after.monotonic_ns.saturating_sub(m.before.monotonic_ns))
            .into_iter()
            .max()
            .unwrap_or(0),
        cpu_changes: growth.samples.cpu_changes.clone(),
        busy_ns: busy(&growth),
        threads,
        unread,
    };
    Window { cpu, moved, extras }
}

fn gone<T>(tid: i32) -> Reading<T> {
    Reading::Absent(format!("/proc/self/task/{tid}: not there within the whole window"))
}

fn thread(
    first: &CounterSnapshot,
    last: &CounterSnapshot,
    index: usize,
    tid: i32,
    growth: &Growth,
) -> ThreadWindow {
    let seen = u32::try_from(tid).ok().and_then(|t| growth.thread(t));
    let counter = |pick: fn(&model::samples::ThreadSample) -> &Reading<u64>| {
        seen.map_or_else(|| gone(tid), |t| pick(t).clone())
    };
    let began = first.after.threads_ns.get(index).cloned().unwrap_or_default();
    let at = last.tids.iter().position(|&t| t == tid);
    let ended = at.and_then(|i| last.before.threads_ns.get(i).cloned());
    let ended = ended.unwrap_or_else(|| {
        Reading::Absent(format!("thread {tid}: the window's last snapshot does not name it"))
    });
    ThreadWindow {
        tid,
        cpu_ns: began.and_then(|b| {
            ended.and_then(|e| match e.checked_sub(b) {
                Some(ns) => Reading::Known(ns),
                None => Reading::Absent(format!("thread {tid}: another one took its id")),
            })
        }),
        run_queue_ns: counter(|t| &t.run_queue_ns),
        migrations: counter(|t| &t.migrations),
        voluntary_switches: counter(|t| &t.voluntary_switches),
        involuntary_switches: counter(|t| &t.involuntary_switches),
    }
}

/// The sum; unknown if one part is, with that part's reason.
fn sum(parts: impl Iterator<Item = Reading<u64>>) -> Reading<u64> {
    let mut total = None;
    for part in parts {
        match part {
            Reading::Known(n) => total = Some(total.unwrap_or(0u64).saturating_add(n)),
            missing => return missing,
        }
    }
    total.map_or_else(|| Reading::absent("no measuring thread was named"), Reading::Known)
}

/// CPU states by their proc_stat(5) names, and whether the CPU is busy in each.
type CpuTimeState = (&'static str, bool, fn(&ProcStat) -> &Reading<u64>);
const STATES: [CpuTimeState; 8] = [
    ("user", true, |p| &p.user_ns),
    ("nice", true, |p| &p.nice_ns),
    ("system", true, |p| &p.system_ns),
    ("irq", true, |p| &p.irq_ns),
    ("softirq", true, |p| &p.softirq_ns),
    ("steal", true, |p| &p.steal_ns),
    ("iowait", false, |p| &p.iowait_ns),
    ("idle", false, |p| &p.idle_ns),
];

/// Every state, summed over CPUs online for the whole window. A state that one of them does not
/// report is left out: `iowait` may decrease, and then its change is unknown.
fn host(growth: &Growth) -> Reading<BTreeMap<String, u64>> {
    let mut rows = Vec::new();
    for (_, row) in growth.cpus() {
        match row {
            Reading::Known(row) => rows.push(row),
            Reading::Absent(why) => return Reading::Absent(why.clone()),
            Reading::Denied(why) => return Reading::Denied(why.clone()),
        }
    }
    if rows.is_empty() {
        return Reading::absent("/proc/stat: no CPU was seen at both ends of the window");
    }
    let of = |(name, _, pick): &CpuTimeState| {
        let total = sum(rows.iter().map(|&row| pick(row).clone())).into_known()?;
        Some(((*name).to_owned(), total))
    };
    Reading::Known(STATES.iter().filter_map(of).collect())
}

/// CPU time of threads on each CPU. Softirqs and interrupts are left out: they may belong to the
/// traffic.
fn busy(growth: &Growth) -> BTreeMap<CpuId, u64> {
    let of = |p: &ProcStat| {
        [&p.user_ns, &p.nice_ns, &p.system_ns]
            .into_iter()
            .try_fold(0u64, |all, part| part.get().map(|ns: u64| all.saturating_add(ns)))
    };
    growth.cpus().filter_map(|(cpu, row)| Some((cpu, of(row.known()?)?))).collect()
}

/// Tick length of `/proc` and `getrusage`, `USER_HZ`.
const TICK_NS: u64 = 10_000_000;
/// Below this number of ticks, a share of one half has a standard error above 7 points.
const FEWEST_TICKS: u64 = 50;

/// The split into user and system time, if it is significant.
///
/// The kernel knows a thread's CPU time exactly, but splits it by the ticks that hit each mode
/// (`CONFIG_TICK_CPU_ACCOUNTING`, `cputime_adjust`). With few ticks the split is random, 100% in
/// one run and 0% in the next. A process has no exact source: `schedstat` has no split.
fn split(cpu: &EndCpu) -> Option<String> {
    let both = cpu.threads_user_ns.get()?.saturating_add(cpu.threads_system_ns.get()?);
    let exact = cpu.threads_ns.get().unwrap_or(both);
    let ticks = exact / TICK_NS;
    if ticks < FEWEST_TICKS {
        return Some(format!(
            "split by ticks of 10 ms, of which there were {ticks}; {FEWEST_TICKS} are needed"
        ));
    }
    // Each thread's part is rounded down to whole ticks: many threads with little time add up to
    // none.
    (both.abs_diff(exact) > exact / 10)
        .then(|| format!("split by ticks of 10 ms, which say {} of {}", Nanos(both), Nanos(exact)))
}

/// The same with costs divided by the units achieved (transactions or bytes received). Includes the
/// user/system split only with enough ticks.
///
/// The host's busy time is all time except `idle` and `iowait`, steal time included. It is unknown
/// if one of its parts is.
#[must_use]
pub fn per_unit(cpu: EndCpu, units: u64) -> EndCpu {
    let divided = |ns: Reading<u64>| {
        ns.and_then(|ns| match units {
            0 => Reading::absent("nothing was moved"),
            n => Reading::Known(ns as f64 / n as f64),
        })
    };
    let busy = cpu.host_ns.as_ref().and_then(|host| {
        sum(STATES.iter().filter(|s| s.1).map(|(name, ..)| match host.get(*name) {
            Some(&ns) => Reading::Known(ns),
            None => Reading::Absent(format!("/proc/stat: no {name} time")),
        }))
    });
    let unsplit = split(&cpu);
    let reported = |part: Reading<u64>| unsplit.clone().map_or(part, Reading::Absent);
    EndCpu {
        host_busy_per_unit_ns: divided(busy),
        threads_per_unit_ns: divided(cpu.threads_ns.clone()),
        threads_user_ns: reported(cpu.threads_user_ns),
        threads_system_ns: reported(cpu.threads_system_ns),
        ..cpu
    }
}

/// Sums the costs of two windows; figures by unit are dropped.
#[must_use]
pub fn added(a: EndCpu, b: EndCpu) -> EndCpu {
    let two = |a: Reading<u64>, b: Reading<u64>| a.and_then(|a| b.map(|b| a + b));
    let by_unit = || Reading::absent("not divided");
    EndCpu {
        window_ns: Nanos(a.window_ns.0 + b.window_ns.0),
        threads_ns: two(a.threads_ns, b.threads_ns),
        threads_user_ns: two(a.threads_user_ns, b.threads_user_ns),
        threads_system_ns: two(a.threads_system_ns, b.threads_system_ns),
        process_ns: two(a.process_ns, b.process_ns),
        host_ns: a.host_ns.and_then(|mut a| {
            b.host_ns.map(|b| {
                b.into_iter().for_each(|(state, ns)| *a.entry(state).or_default() += ns);
                a
            })
        }),
        host_busy_per_unit_ns: by_unit(),
        threads_per_unit_ns: by_unit(),
        voluntary_switches: two(a.voluntary_switches, b.voluntary_switches),
        involuntary_switches: two(a.involuntary_switches, b.involuntary_switches),
    }
}

#[cfg(test)]
mod tests;
