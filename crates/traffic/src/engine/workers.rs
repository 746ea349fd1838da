//! The threads of one round: each is pinned and has its share of connections, schedule and total.

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
    client::{Peer, observer::host_only},
    control::message::PeerReport,
    net::{self, now_ns},
};

/// The task of a round.
#[derive(Clone, Copy)]
pub struct Workers<'a> {
    pub common: &'a Common,
    pub assignments: &'a Assignments,
    /// A responder on the server's host.
    pub observer: Option<&'a Peer>,
    pub connections: u32,
    pub rate_per_s: Option<u64>,
    /// Number of requests or transactions, instead of a duration.
    pub total: Option<u64>,
    /// Interval length; [`INTERVAL`] if not requested.
    pub interval_ns: Option<Nanos>,
}

/// Default length of intervals.
pub const INTERVAL: Nanos = Nanos(1_000_000_000);

/// The task of one thread.
pub struct WorkerTask<'a> {
    pub window: &'a Window,
    pub pool: &'a WorkerPool,
    pub worker: &'a Worker,
    pub pace: Pace,
    /// Numbers of its connections.
    pub connections: Vec<u32>,
    /// Start time of the round.
    pub begun_ns: u64,
}

/// Result of a round.
#[derive(Debug)]
pub struct Round<R> {
    pub recorders: Vec<R>,
    pub course: MeasuredWindow,
    pub seen: ThreadReport,
    /// Report of the responder on the server's host, if there is one.
    pub report: Option<PeerReport>,
    pub broken: Option<Error>,
    pub intervals: Vec<ServedInterval>,
}

impl Workers<'_> {
    /// Runs a round: `recorder` makes a thread's record, `work` is its loop.
    ///
    /// # Errors
    /// The round could not begin, or the responder has gone; later failures are in
    /// [`Round::broken`].
    pub fn work<R: Send>(
        &self,
        run: Run<'_>,
        what: &str,
        recorder: impl Fn() -> R,
        work: impl Fn(&WorkerTask<'_>, &mut R) + Sync,
    ) -> Result<Round<R>> {
        descriptors(self.connections)?;
        if let Some(peer) = self.observer {
            peer.observe(self.common)?;
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
                ended.zip(run.on_interval).into_iter().for_each(|(interval, hear)| hear(interval));
            };
            let course = conduct(run, self.observer, self.common, &pool, &window, what, &mut look);
            over.store(true, Ordering::Release);
            pool.end();
            course
        });
        let broken = pool.broken().or_else(|| course.silent.clone());
        let report = match (self.observer, &broken) {
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
        // The first request of the schedule is due after all threads have begun.
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
            // A thread's CPU time is lost when it ends.
            while !over.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Checks that this process may open this many sockets.
fn descriptors(connections: u32) -> Result<()> {
    net::raise_descriptor_limit();
    let limit = net::descriptor_limit();
    // Reserve for the program's own descriptors and for sockets being closed.
    if u64::from(connections) + 64 > limit {
        return Err(Error::Environment(format!(
            "{connections} connections need more descriptors than the {limit} that this process \
             may have (ulimit -n)"
        )));
    }
    Ok(())
}
