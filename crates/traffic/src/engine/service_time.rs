//! A service time that is known, for it is spun.

use std::cell::Cell;

use super::worker_pool::WorkerPool;
use crate::net::now_ns;

/// Spins for the injected service time, or until the pool ends.
#[inline]
pub fn serve_for(ns: u64, pool: &WorkerPool) {
    if ns > 0 {
        let begun = now_ns();
        let until = begun.saturating_add(ns);
        let mut now = begun;
        while now < until && !pool.stopping() {
            std::hint::spin_loop();
            now = now_ns();
        }
        SERVED.set(SERVED.get() + (now - begun));
    }
}

thread_local! {
    static SERVED: Cell<u64> = const { Cell::new(0) };
}

/// How long this thread has spun on purpose: what was asked for, and more where somebody else
/// took the CPU meanwhile.
pub fn served_ns() -> u64 {
    SERVED.get()
}
