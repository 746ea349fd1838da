//! The threads of one end: each is pinned, exposes its counters while running, and can be woken to
//! end.

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

/// A thread's own observations, handed over when it ends.
#[derive(Debug, Default, Clone)]
pub struct ThreadReport {
    /// Messages handled, by CPU of the thread.
    pub ran_on: BTreeMap<CpuId, u64>,
    /// Samples of the CPU that received its packets.
    pub received_on: BTreeMap<CpuId, u64>,
    /// Samples of the NAPI id that received them.
    pub napi_ids: BTreeMap<u32, u64>,
    /// I/O engines that it used.
    pub engines: BTreeSet<&'static str>,
    /// Total service time that it spun.
    pub served_ns: u64,
    pub warnings: Vec<Warning>,
}

impl ThreadReport {
    /// Records the I/O engine that it used.
    pub fn used(&mut self, engine: &'static str) {
        self.engines.insert(engine);
    }
}

/// One thread's shared state, on its own cache line: the hot loop writes its counters.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Worker {
    pub sleeper: Sleeper,
    /// Messages handled so far.
    pub transactions: AtomicU64,
    /// Its requests to a server, for intervals.
    pub asked: RequestCounts,
    pub seen: Mutex<ThreadReport>,
}

/// A thread's requests to a server. Only that thread writes: a load and a store are enough.
#[derive(Debug, Default)]
pub struct RequestCounts {
    answered: AtomicU64,
    failed: AtomicU64,
    latency_ns: AtomicU64,
}

impl RequestCounts {
    /// Counts an answer with this latency.
    #[inline]
    pub fn answered(&self, latency_ns: u64) {
        add(&self.answered, 1);
        add(&self.latency_ns, latency_ns);
    }

    /// Counts a missing answer or an error.
    #[cold]
    pub fn failed(&self) {
        add(&self.failed, 1);
    }
}

#[inline]
fn add(to: &AtomicU64, more: u64) {
    to.store(to.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

/// Requests of all threads so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct AskedUntilNow {
    pub answered: u64,
    pub failed: u64,
    pub latency_ns: u64,
}

impl Worker {
    /// Sets the count in the hot loop: a plain store, since no other thread writes.
    #[inline]
    pub fn handled(&self, total: u64) {
        self.transactions.store(total, Ordering::Relaxed);
    }

    /// Changes what this thread reports of itself.
    pub fn see(&self, change: impl FnOnce(&mut ThreadReport)) {
        change(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// All threads of one end.
#[derive(Debug)]
pub struct WorkerPool {
    /// Set once: all threads must end.
    stop: AtomicBool,
    /// The error of the thread that failed first.
    broken: Mutex<Option<Error>>,
    /// Threads that reached their quota.
    fulfilled: AtomicUsize,
    pub workers: Vec<Worker>,
}

impl WorkerPool {
    /// A pool for this many threads, none begun.
    pub fn new(threads: usize) -> Self {
        wake::install();
        Self {
            stop: AtomicBool::new(false),
            broken: Mutex::new(None),
            fulfilled: AtomicUsize::new(0),
            workers: (0..threads).map(|_| Worker::default()).collect(),
        }
    }

    /// Whether the loops must end.
    #[inline]
    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Makes all threads end, without waiting.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends all threads with an error; only the first error counts, and none after they began to
    /// end.
    pub fn break_off(&self, why: Error) {
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.stop.swap(true, Ordering::Relaxed) {
            *broken = Some(why);
        }
    }

    /// The error that ended the pool.
    pub fn broken(&self) -> Option<Error> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a thread that reached its quota; returns whether it was the last.
    pub fn fulfilled(&self) -> bool {
        self.fulfilled.fetch_add(1, Ordering::AcqRel) + 1 == self.workers.len()
    }

    /// Makes all threads end, waking them until they have.
    pub fn end(&self) {
        self.stop();
        wake::end_all(self.workers.iter().map(|m| &m.sleeper));
    }

    /// Messages handled by all threads so far.
    pub fn transactions(&self) -> u64 {
        self.workers.iter().map(|m| m.transactions.load(Ordering::Relaxed)).sum()
    }

    /// Requests of all threads so far.
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

    /// Thread ids of the threads that have begun.
    pub fn tids(&self) -> Vec<i32> {
        self.workers.iter().map(|m| m.sleeper.tid()).filter(|t| *t != 0).collect()
    }

    /// Combined observations of all threads.
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
