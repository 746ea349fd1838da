//! A simulated service time: a busy loop of known length.

use std::cell::Cell;

use super::worker_pool::WorkerPool;
use crate::net::now_ns;

/// Spins for the service time, or until the pool ends. Returns by how much longer it took, in
/// nanoseconds: another task or the hypervisor had the CPU when it should have ended.
#[inline]
pub fn serve_for(ns: u64, pool: &WorkerPool) -> u64 {
    if ns > 0 {
        let begun = now_ns();
        let until = begun.saturating_add(ns);
        let mut now = begun;
        while now < until && !pool.stopping() {
            std::hint::spin_loop();
            now = now_ns();
        }
        SERVED.set(SERVED.get() + (now - begun));
        return now.saturating_sub(until);
    }
    0
}

thread_local! {
    static SERVED: Cell<u64> = const { Cell::new(0) };
}

/// Time this thread has spent in such loops: the requested time, plus time when other tasks took
/// the CPU.
pub fn served_ns() -> u64 {
    SERVED.get()
}
