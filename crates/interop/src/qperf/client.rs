//! What round trips and streams to a qperf server share: the server found once, a run for each size,
//! and the thread that moves the data.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use model::{Warning, measure::Common};
use traffic::{
    Error, Result,
    engine::{
        assignments::{self, Assignments},
        floor::{Calibration, calibrate},
        measured::Measured,
        worker_pool::{Worker, WorkerPool},
    },
};

use super::local::{PlacedEnd, find};

/// This end, and the server that it found.
pub struct Client {
    pub place: PlacedEnd,
    pub assignments: Assignments,
    pub calibration: Calibration,
}

impl Client {
    /// Finds the server and places this end.
    ///
    /// # Errors
    /// As [`find`], and a CPU that cannot be.
    pub fn new(common: &Common, stop: &AtomicBool) -> Result<Self> {
        let place = find(common, stop)?;
        let (same_host, to) = (place.same_host, Some(place.address));
        let assignments = assignments::local(&common.pin, 1, same_host, to)?;
        let calibration = calibrate(assignments.cpus.first().copied())?;
        Ok(Self { place, assignments, calibration })
    }

    /// Does `work` in a thread of its own and `meanwhile` in this one, once that has begun. The end of
    /// `meanwhile` ends the pool.
    pub fn in_thread<T>(
        &self,
        pool: &WorkerPool,
        work: impl FnOnce(&Worker) + Send,
        meanwhile: impl FnOnce() -> T,
    ) -> T {
        let cpu = self.assignments.cpus.first().copied();
        let work = || {
            let Some(worker) = pool.workers.first() else { return };
            if let Some(Err(e)) = cpu.map(assignments::pin) {
                worker.see(|seen| seen.warnings.push(Warning::NotPinned { why: e.to_string() }));
            }
            let _running = worker.sleeper.begin();
            work(worker);
        };
        thread::scope(|threads| {
            let builder = thread::Builder::new().name("nw-client-0".into());
            if let Err(e) = builder.spawn_scoped(threads, work) {
                pool.break_off(Error::io("no thread", &e));
            }
            while pool.tids().is_empty() && !pool.stopping() {
                thread::yield_now();
            }
            let done = meanwhile();
            pool.end();
            done
        })
    }
}

/// The runs of all sizes until one breaks off or the operator ends it, and why it broke off.
///
/// # Errors
/// There is no run.
pub fn each_size<R>(
    sizes: &[u64],
    stop: &AtomicBool,
    mut one: impl FnMut(u64) -> Result<Measured<R>>,
) -> Result<(Vec<R>, Option<Error>)> {
    let (mut runs, mut broken) = (vec![], None);
    for &bytes in sizes {
        if broken.is_some() || stop.load(Ordering::Relaxed) {
            break;
        }
        match one(bytes) {
            Ok(done) => {
                runs.push(done.document);
                broken = done.broken;
            }
            Err(e) => broken = Some(e),
        }
    }
    match (runs.is_empty(), broken) {
        (true, Some(why)) => Err(why),
        (_, broken) => Ok((runs, broken)),
    }
}
