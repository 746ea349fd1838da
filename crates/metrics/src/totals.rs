//! Sums over all intervals of what eBPF measured. The kernel keeps no counter of it.

use std::collections::BTreeMap;

use model::{
    CpuId, Reading,
    watch::{ByContext, PacketDrops, ProcessWaits, VectorNs, WatchInterval},
};

use crate::{
    limits::{self, Names, REASONS},
    waits::Waits,
};

/// The contexts of softirq time, in the order of [`CpuTotals::contexts`].
pub(crate) const CONTEXTS: [&str; 5] =
    ["syscall", "interrupting_task", "idle", "ksoftirqd", "threaded_napi"];

/// Softirq time of a CPU, nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuTotals {
    /// By [`CONTEXTS`]; the last one is `None` until NAPI threads were seen.
    pub contexts: [Option<u64>; CONTEXTS.len()],
}

impl CpuTotals {
    fn add(&mut self, more: &ByContext) {
        let threaded = more.threaded.known().map(VectorNs::total);
        let [syscall, interrupting, idle, ksoftirqd] =
            [&more.syscall, &more.interrupting_task, &more.idle, &more.ksoftirqd]
                .map(|v| Some(v.total()));
        let all = [syscall, interrupting, idle, ksoftirqd, threaded];
        for (sum, more) in self.contexts.iter_mut().zip(all) {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0) + more);
            }
        }
    }
}

/// Time for which each part was observed, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Observed {
    /// Length of all intervals.
    pub watched: f64,
    pub softirqs: Option<f64>,
    pub waits: Option<f64>,
    pub drops: Option<f64>,
}

/// The sums of all intervals so far.
#[derive(Debug, Clone)]
pub struct Totals {
    pub(crate) cpus: BTreeMap<CpuId, CpuTotals>,
    /// Packets by the kernel's reason.
    pub(crate) drops: BTreeMap<String, u64>,
    pub(crate) waits: BTreeMap<String, Waits>,
    pub(crate) observed: Observed,
    /// When the last interval ended, seconds since 1970.
    pub(crate) ended_unix_s: Option<f64>,
    /// What the observer cost in the last interval, as a share of the host's CPU time.
    pub(crate) overhead: Option<f64>,
    reasons: Names,
    processes: Names,
}

impl Totals {
    /// Nothing yet. At most this many names of processes have series of their own.
    pub fn new(processes: usize) -> Self {
        Self {
            cpus: BTreeMap::new(),
            drops: BTreeMap::new(),
            waits: BTreeMap::new(),
            observed: Observed::default(),
            ended_unix_s: None,
            overhead: None,
            reasons: Names::new(REASONS),
            processes: Names::new(processes),
        }
    }

    /// Adds what an interval measured to the sums.
    pub fn add(&mut self, interval: &WatchInterval) {
        let length = interval.interval_s;
        self.observed.watched += length;
        self.ended_unix_s = Some(interval.ended_unix_ns.0 as f64 / 1e9);
        self.overhead = interval.observer.share_of_host.get();
        for cpu in &interval.cpus {
            if let Some(by_context) = cpu.softirq_ns.known() {
                self.cpus.entry(cpu.id).or_default().add(by_context);
            }
        }
        let measured = interval.cpus.iter().any(|c| c.softirq_ns.is_known());
        let share = interval.softirq_observed_share;
        observe(&mut self.observed.softirqs, measured.then_some(length * share));
        self.add_drops(&interval.drops, length * interval.drops_observed_share);
        self.add_waits(&interval.waits, length);
    }

    fn add_drops(&mut self, drops: &Reading<Vec<PacketDrops>>, observed_s: f64) {
        let Some(drops) = drops.known() else { return };
        observe(&mut self.observed.drops, Some(observed_s));
        for row in drops {
            let reason = row.reason.known().map_or("unknown", String::as_str);
            *limits::entry(&mut self.drops, &mut self.reasons, reason) += row.packets;
        }
    }

    fn add_waits(&mut self, waits: &Reading<Vec<ProcessWaits>>, length: f64) {
        let Some(processes) = waits.known() else { return };
        // All processes were observed for the same share; of an interval without any it is not known.
        let share = processes.first().map(|p| p.observed_share);
        observe(&mut self.observed.waits, share.map(|s| length * s));
        for process in processes {
            limits::entry(&mut self.waits, &mut self.processes, &process.name).add(process);
        }
    }
}

fn observe(sum: &mut Option<f64>, more: Option<f64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0.0) + more);
    }
}
