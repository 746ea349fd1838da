//! Sockets: where to, with which options, and how to wake a thread that sleeps in one.

pub mod epoll;
pub mod incoming;
pub mod options;
pub mod own_files;
pub mod target;
pub mod tls;
pub mod wake;

/// The clock of all loops: `CLOCK_MONOTONIC` in nanoseconds, about 20 ns where the kernel maps it.
pub use probe::samples::clock::monotonic_ns as now_ns;

/// As many descriptors as this process may have: idle connections hold one each.
pub fn raise_descriptor_limit() {
    // SAFETY: a zeroed limit is valid; the calls read and write it.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// How many descriptors this process may have.
pub fn descriptor_limit() -> u64 {
    // SAFETY: a zeroed limit is valid; the call fills it.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        match libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) {
            0 => limit.rlim_cur,
            _ => u64::MAX,
        }
    }
}

/// Has the kernel wake this thread, and those that it starts, from sleeps as exactly as it can:
/// by default it may be 50 µs late on purpose, to wake several at once.
pub fn exact_timers() {
    // SAFETY: a plain call; where it is refused, timers stay as they are.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}
