//! The threads that move data at one end: each pinned, countable from outside while it runs,
//! and woken when it shall end.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use model::{CpuId, Warning};

use crate::{
    Error,
    net::wake::{self, Sleeper},
};

/// What a thread saw of itself; handed over when it ends.
#[derive(Debug, Default, Clone)]
pub struct ThreadReport {
    /// Messages handled, by the CPU it ran on.
    pub ran_on: BTreeMap<CpuId, u64>,
    /// Looks at the CPU that received its packets.
    pub received_on: BTreeMap<CpuId, u64>,
    /// Looks at the NAPI id that received them.
    pub napi_ids: BTreeMap<u32, u64>,
    /// What moved its bytes.
    pub engines: BTreeSet<&'static str>,
    /// How long it spun on purpose before its responses.
    pub served_ns: u64,
    pub warnings: Vec<Warning>,
}

impl ThreadReport {
    /// Its bytes were moved by this.
    pub fn used(&mut self, engine: &'static str) {
        self.engines.insert(engine);
    }
}

/// One thread, apart in memory from its neighbours: its counters are written in the hot loop.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Worker {
    pub sleeper: Sleeper,
    /// Messages handled so far.
    pub transactions: AtomicU64,
    /// What it asked a server so far, for intervals.
    pub asked: RequestCounts,
    pub seen: Mutex<ThreadReport>,
}

/// What a thread asked a server so far. Only that thread writes: a load and a store are enough.
#[derive(Debug, Default)]
pub struct RequestCounts {
    answered: AtomicU64,
    failed: AtomicU64,
    latency_ns: AtomicU64,
}

impl RequestCounts {
    /// An answer came after so long.
    #[inline]
    pub fn answered(&self, latency_ns: u64) {
        add(&self.answered, 1);
        add(&self.latency_ns, latency_ns);
    }

    /// None came, or an error.
    #[cold]
    pub fn failed(&self) {
        add(&self.failed, 1);
    }
}

#[inline]
fn add(to: &AtomicU64, more: u64) {
    to.store(to.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

/// What all threads asked a server so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct AskedUntilNow {
    pub answered: u64,
    pub failed: u64,
    pub latency_ns: u64,
}

impl Worker {
    /// Counts in the hot loop: a plain store, for no other thread writes.
    #[inline]
    pub fn handled(&self, total: u64) {
        self.transactions.store(total, Ordering::Relaxed);
    }

    /// Changes what it saw.
    pub fn see(&self, change: impl FnOnce(&mut ThreadReport)) {
        change(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// All threads of one end.
#[derive(Debug)]
pub struct WorkerPool {
    /// Set once: all shall end.
    stop: AtomicBool,
    /// The first thing that went wrong.
    broken: Mutex<Option<Error>>,
    /// Threads that did all they were asked for.
    fulfilled: AtomicUsize,
    pub workers: Vec<Worker>,
}

impl WorkerPool {
    /// Of so many threads, none begun.
    pub fn new(threads: usize) -> Self {
        wake::install();
        Self {
            stop: AtomicBool::new(false),
            broken: Mutex::new(None),
            fulfilled: AtomicUsize::new(0),
            workers: (0..threads).map(|_| Worker::default()).collect(),
        }
    }

    /// Whether to end; for the loops.
    #[inline]
    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Tells all to end, without waiting.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends all for a reason; the first one counts, and none once they are ending anyway.
    pub fn break_off(&self, why: Error) {
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.stop.swap(true, Ordering::Relaxed) {
            *broken = Some(why);
        }
    }

    /// Why it broke off.
    pub fn broken(&self) -> Option<Error> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One more thread did all it was asked for; whether it was the last.
    pub fn fulfilled(&self) -> bool {
        self.fulfilled.fetch_add(1, Ordering::AcqRel) + 1 == self.workers.len()
    }

    /// Tells all to end and wakes them until they have.
    pub fn end(&self) {
        self.stop();
        wake::end_all(self.workers.iter().map(|m| &m.sleeper));
    }

    /// Messages handled by all so far.
    pub fn transactions(&self) -> u64 {
        self.workers.iter().map(|m| m.transactions.load(Ordering::Relaxed)).sum()
    }

    /// What all asked a server so far.
    pub fn asked(&self) -> AskedUntilNow {
        let sum = |of: fn(&RequestCounts) -> &AtomicU64| {
            let each = self.workers.iter().map(|m| of(&m.asked).load(Ordering::Relaxed));
            each.fold(0, u64::wrapping_add)
        };
        AskedUntilNow {
            answered: sum(|a| &a.answered),
            failed: sum(|a| &a.failed),
            latency_ns: sum(|a| &a.latency_ns),
        }
    }

    /// Thread ids of those that have begun.
    pub fn tids(&self) -> Vec<i32> {
        self.workers.iter().map(|m| m.sleeper.tid()).filter(|t| *t != 0).collect()
    }

    /// What all saw together.
    pub fn seen(&self) -> ThreadReport {
        let mut all = ThreadReport::default();
        for worker in &self.workers {
            let one = worker.seen.lock().unwrap_or_else(PoisonError::into_inner);
            one.ran_on.iter().for_each(|(k, n)| *all.ran_on.entry(*k).or_default() += n);
            one.received_on.iter().for_each(|(k, n)| *all.received_on.entry(*k).or_default() += n);
            one.napi_ids.iter().for_each(|(k, n)| *all.napi_ids.entry(*k).or_default() += n);
            all.engines.extend(&one.engines);
            all.served_ns += one.served_ns;
            for w in &one.warnings {
                if !all.warnings.contains(w) {
                    all.warnings.push(w.clone());
                }
            }
        }
        all
    }
}
