//! Threads, and the time that packets take from them.

use std::{cmp::Reverse, collections::BTreeMap};

use model::{Reading, watch::InterruptedTask};

use super::deltas::{Deltas, LastReading, Row};
use crate::bpf::softirq::{InterruptedTaskSums, Name, Sums, text};

/// Time lost to softirqs, time lost to interrupts, time of its own softirqs; the number of
/// softirqs.
type TimeRow = Row<4>;

/// All threads as of the last look.
#[derive(Debug, Default)]
pub struct InterruptedTasks(Deltas<u64, 4>);

/// What packets cost each thread in one interval.
#[derive(Debug, Default)]
pub struct TaskTimes {
    /// By thread, as the kernel's `pid_tgid` has it.
    times: BTreeMap<u64, TimeRow>,
    names: BTreeMap<u64, Name>,
}

fn row(p: &InterruptedTaskSums) -> TimeRow {
    [p.preempted_ns, p.preempted_by_irq_ns, p.own_ns, p.softirqs]
}

impl InterruptedTasks {
    /// What was lost since the last look, and which threads the kernel's map may forget.
    pub fn look(&mut self, sums: &Sums) -> (TaskTimes, Vec<u64>) {
        let mut seen: BTreeMap<u64, LastReading<4>> = BTreeMap::new();
        let mut names = BTreeMap::new();
        for (thread, p) in &sums.interrupted_tasks {
            let stored = LastReading { born: p.thread, stored: row(p), ..LastReading::default() };
            seen.insert(*thread, stored);
            names.insert(*thread, p.name);
        }
        let held =
            sums.cpus.iter().flat_map(|(_, c)| &c.interrupted_tasks).filter(|p| p.thread != 0);
        for p in held {
            seen.entry(p.thread).or_default().add_pending(&row(p));
            names.insert(p.thread, p.name);
        }
        let (times, idle) = self.0.look(&seen);
        (TaskTimes { times, names }, idle)
    }
}

impl TaskTimes {
    /// From what was seen of softirqs in this share of the time to all of it; interrupts' handlers
    /// are always seen.
    pub fn scale(&mut self, share: f64) {
        for [preempted, _, own, softirqs] in self.times.values_mut() {
            for n in [preempted, own, softirqs] {
                *n = super::duty_cycle::scaled(*n, share);
            }
        }
    }

    /// Softirq time within this thread, its own and others'; of a thread that is a process.
    pub fn softirqs_in(&self, pid: u32) -> u64 {
        let thread = u64::from(pid) << 32 | u64::from(pid);
        self.times.get(&thread).map_or(0, |[preempted, _, own, _]| preempted + own)
    }

    /// Interrupt handlers' time within this thread; of a thread that is a process.
    pub fn interrupts_in(&self, pid: u32) -> u64 {
        let thread = u64::from(pid) << 32 | u64::from(pid);
        self.times.get(&thread).map_or(0, |[_, irq, _, _]| *irq)
    }

    /// By lost time, then by the time of own softirqs, descending; the processes have no names yet.
    pub fn ranked(&self) -> Vec<InterruptedTask> {
        let mut all: Vec<InterruptedTask> =
            self.times.iter().map(|(t, times)| self.one(*t, times)).collect();
        let preempted = |p: &InterruptedTask| p.preempted_by_softirq_ns + p.preempted_by_irq_ns;
        all.sort_by_key(|p| (Reverse(preempted(p)), Reverse(p.own_softirq_ns), p.tid));
        all
    }

    fn one(&self, thread: u64, [preempted, irq, own, softirqs]: &TimeRow) -> InterruptedTask {
        InterruptedTask {
            pid: (thread >> 32) as u32,
            process: Reading::default(),
            tid: thread as u32,
            name: self.names.get(&thread).map(text).unwrap_or_default(),
            preempted_by_softirq_ns: *preempted,
            preempted_by_irq_ns: *irq,
            own_softirq_ns: *own,
            softirqs: *softirqs,
        }
    }
}
