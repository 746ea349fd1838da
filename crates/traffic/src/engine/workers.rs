//! The threads of one round: each pinned, with its part of the connections, of the schedule and
//! of the number that was asked for.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use model::{
    Nanos, Warning,
    measure::{Common, ServedInterval},
};

use super::{
    assignments::{self, Assignments},
    conduct::{MeasuredWindow, Run, conduct},
    intervals::Intervals,
    pace::Pace,
    window::Window,
    worker_pool::{ThreadReport, Worker, WorkerPool},
};
use crate::{
    Error, Result,
    client::{Peer, onlooker::host_only},
    control::message::PeerReport,
    net::{self, now_ns},
};

/// What a round is to do.
#[derive(Clone, Copy)]
pub struct Workers<'a> {
    pub common: &'a Common,
    pub assignments: &'a Assignments,
    /// A responder on the server's host.
    pub onlooker: Option<&'a Peer>,
    pub connections: u32,
    pub rate_per_s: Option<u64>,
    /// So many requests or transactions instead of a duration.
    pub total: Option<u64>,
    /// The length of the intervals; [`INTERVAL`] where none was asked for.
    pub interval_ns: Option<Nanos>,
}

/// The length of intervals where none was asked for.
pub const INTERVAL: Nanos = Nanos(1_000_000_000);

/// What one thread is to do.
pub struct WorkerTask<'a> {
    pub window: &'a Window,
    pub pool: &'a WorkerPool,
    pub worker: &'a Worker,
    pub pace: Pace,
    /// Its connections of all, by their numbers.
    pub connections: Vec<u32>,
    /// When the round was begun.
    pub begun_ns: u64,
}

/// What a round left behind.
#[derive(Debug)]
pub struct Round<R> {
    pub recorders: Vec<R>,
    pub course: MeasuredWindow,
    pub seen: ThreadReport,
    /// Of a responder on the server's host, where there is one.
    pub report: Option<PeerReport>,
    pub broken: Option<Error>,
    pub intervals: Vec<ServedInterval>,
}

impl Workers<'_> {
    /// Runs a round: `recorder` makes what a thread keeps, `work` is what it does.
    ///
    /// # Errors
    /// It could not begin, or the responder is gone; what breaks later is in [`Round::broken`].
    pub fn work<R: Send>(
        &self,
        run: Run<'_>,
        what: &str,
        recorder: impl Fn() -> R,
        work: impl Fn(&WorkerTask<'_>, &mut R) + Sync,
    ) -> Result<Round<R>> {
        descriptors(self.connections)?;
        if let Some(peer) = self.onlooker {
            peer.look_on(self.common)?;
        }
        let (pool, window) = (WorkerPool::new(self.common.threads as usize), Window::closed());
        let mut recorders: Vec<R> = pool.workers.iter().map(|_| recorder()).collect();
        let (begun_ns, over) = (now_ns(), AtomicBool::new(false));
        let every = self.interval_ns.unwrap_or(INTERVAL);
        let mut intervals = Intervals::new(every.0, self.common.duration_ns.0);
        let course = std::thread::scope(|threads| -> MeasuredWindow {
            for (n, recorder) in recorders.iter_mut().enumerate() {
                let (pool, window, over, work) = (&pool, &window, &over, &work);
                let one = move || {
                    let Some(worker) = pool.workers.get(n) else { return };
                    let duty = self.duty(n, begun_ns, window, pool, worker);
                    self.pinned(n, &duty, over, || work(&duty, recorder));
                };
                let named = std::thread::Builder::new().name(format!("nw-client-{n}"));
                if let Err(e) = named.spawn_scoped(threads, one) {
                    pool.break_off(Error::io("no thread", &e));
                }
            }
            while pool.tids().len() < pool.workers.len() && !pool.stopping() {
                std::thread::yield_now();
            }
            let mut look = |since_ns| {
                let ended = intervals.look(since_ns, pool.asked());
                ended.zip(run.heard).into_iter().for_each(|(interval, hear)| hear(interval));
            };
            let course = conduct(run, self.onlooker, self.common, &pool, &window, what, &mut look);
            over.store(true, Ordering::Release);
            pool.end();
            course
        });
        let broken = pool.broken().or_else(|| course.silent.clone());
        let report = match (self.onlooker, &broken) {
            (Some(peer), None) => Some(host_only(peer.finish()?)),
            _ => None,
        };
        let (seen, intervals) = (pool.seen(), intervals.all);
        Ok(Round { recorders, course, seen, report, broken, intervals })
    }

    fn duty<'a>(
        &self,
        n: usize,
        begun_ns: u64,
        window: &'a Window,
        pool: &'a WorkerPool,
        worker: &'a Worker,
    ) -> WorkerTask<'a> {
        let threads = self.common.threads;
        // The first of the schedule is not due before all threads have begun.
        let begin_ns = begun_ns + 1_000_000;
        WorkerTask {
            window,
            pool,
            worker,
            pace: Pace::of(n, threads, self.rate_per_s, self.total, begin_ns),
            connections: (n as u32..self.connections).step_by(threads.max(1) as usize).collect(),
            begun_ns,
        }
    }

    fn pinned(&self, n: usize, duty: &WorkerTask<'_>, over: &AtomicBool, work: impl FnOnce()) {
        let (pool, worker, cpus) = (duty.pool, duty.worker, &self.assignments.cpus);
        if let Some(Err(e)) = cpus.get(n % cpus.len().max(1)).map(|c| assignments::pin(*c)) {
            worker.see(|seen| seen.warnings.push(Warning::NotPinned { why: e.to_string() }));
        }
        let _running = worker.sleeper.begin();
        work();
        if duty.pace.quota.is_some() {
            if pool.fulfilled() {
                pool.stop();
            }
            // What a thread has used of the CPU is lost with its end.
            while !over.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Whether this process may have so many sockets.
fn descriptors(connections: u32) -> Result<()> {
    net::raise_descriptor_limit();
    let limit = net::descriptor_limit();
    // The program's own, and what the kernel has not taken back yet.
    if u64::from(connections) + 64 > limit {
        return Err(Error::Environment(format!(
            "{connections} connections need more descriptors than the {limit} that this process \
             may have (ulimit -n)"
        )));
    }
    Ok(())
}
