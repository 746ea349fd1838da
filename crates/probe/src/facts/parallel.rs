//! Reads many small files with several threads.

use std::{
    num::NonZero,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Fewer items than this for a thread cost more to hand out than to do.
const MIN_PER_THREAD: usize = 16;

/// More threads than this wait for each other in the kernel.
const MAX_THREADS: usize = 8;

/// A thread that was held up by others leaves runs to those that were not.
const RUNS_PER_THREAD: usize = 4;

/// Applies `work` to runs of neighbouring `items`; returns the results in the items' order. One
/// thread handles a run, so `work` may reuse what it learned from one item for the next.
pub(super) fn by_runs<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&[T]) -> Vec<R> + Sync,
) -> Vec<R> {
    // Found out once: it reads a handful of cgroup files.
    static CPUS: OnceLock<usize> = OnceLock::new();
    let cpus = *CPUS.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get));
    let threads = cpus.min(MAX_THREADS).min(items.len() / MIN_PER_THREAD);
    if threads < 2 {
        return work(items);
    }
    let size = items.len().div_ceil(threads * RUNS_PER_THREAD).max(MIN_PER_THREAD);
    let runs: Vec<&[T]> = items.chunks(size).collect();
    let done: Vec<Mutex<Option<Vec<R>>>> = runs.iter().map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    let take = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some(run), Some(slot)) = (runs.get(at), done.get(at)) else { return };
            let part = work(run);
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(part);
        }
    };
    thread::scope(|scope| {
        let others: Vec<_> =
            (1..threads).map(|_| thread::Builder::new().spawn_scoped(scope, take)).collect();
        take();
        for other in others.into_iter().flatten() {
            // A panic of ours is met again, by this thread, in the run that it left undone.
            let _ = other.join();
        }
    });
    runs.into_iter()
        .zip(done)
        .flat_map(|(run, done)| {
            let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
            done.unwrap_or_else(|| work(run))
        })
        .collect()
}

/// The results of two independent functions; `there` runs in a new thread where possible.
pub(super) fn both<A: Send, B>(there: impl Fn() -> A + Sync, here: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let there = &there;
        let thread = thread::Builder::new().spawn_scoped(scope, there);
        let b = here();
        let a = thread.ok().and_then(|t| t.join().ok());
        (a.unwrap_or_else(there), b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_done() {
        let text = String::from("a");
        assert_eq!(both(|| text.clone() + "b", || text.len()), ("ab".to_owned(), 1));
    }

    #[test]
    fn keeps_the_order() {
        for n in [0, 1, 15, 16, 33, 1000] {
            let items: Vec<u32> = (0..n).collect();
            let out = by_runs(&items, |run| run.iter().map(|i| i * 2).collect());
            assert_eq!(out, items.iter().map(|i| i * 2).collect::<Vec<_>>());
        }
    }
}
