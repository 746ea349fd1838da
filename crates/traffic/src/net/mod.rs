//! Sockets: addresses, options, and waking a thread that sleeps in one.

pub mod data_flow;
pub mod epoll;
pub mod errno;
pub mod options;
pub mod own_files;
pub mod summed;
pub mod sys;
pub mod target;
pub mod tls;
pub mod unix;
pub mod wake;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The clock of all loops: `CLOCK_MONOTONIC` in nanoseconds, about 20 ns through the vDSO.
pub use probe::samples::clock::monotonic_ns as now_ns;

/// The largest UDP payload over IPv4 without options.
pub const LARGEST_DATAGRAM: u64 = 65_507;

/// Raises the descriptor limit to its maximum: idle connections need one each.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// The descriptor limit of this process.
pub fn descriptor_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Sets the smallest timer slack for this thread and the threads it starts: by default the kernel
/// delays sleeps by up to 50 µs to combine wake-ups.
pub fn exact_timers() {
    // If refused, timers stay as they are.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
