//! Sockets: where to, with which options, and how to wake a thread that sleeps in one.

pub mod data_flow;
pub mod epoll;
pub mod errno;
pub mod options;
pub mod own_files;
pub mod sys;
pub mod target;
pub mod tls;
pub mod unix;
pub mod wake;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The clock of all loops: `CLOCK_MONOTONIC` in nanoseconds, about 20 ns where the kernel maps it.
pub use probe::samples::clock::monotonic_ns as now_ns;

/// The largest UDP payload over IPv4 without options.
pub const LARGEST_DATAGRAM: u64 = 65_507;

/// As many descriptors as this process may have: idle connections hold one each.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// How many descriptors this process may have.
pub fn descriptor_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Has the kernel wake this thread, and those that it starts, from sleeps as exactly as it can:
/// by default it may be 50 µs late on purpose, to wake several at once.
pub fn exact_timers() {
    // Where it is refused, timers stay as they are.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
