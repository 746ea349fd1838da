//! Clocks: CPU time of threads and of the process, and the monotonic clock of the window.

use model::Reading;

/// `CLOCK_MONOTONIC`, nanoseconds. Through the vDSO, so it costs no system call.
#[inline]
pub fn monotonic_ns() -> u64 {
    probe::samples::clock::monotonic_ns()
}

/// `PID_MAX_LIMIT` of the kernel's `include/linux/threads.h`.
const MAX_TID: i32 = 4 << 20;

/// The CPU-time clock of a thread of this process, readable from any of its threads.
///
/// **Source**: `make_thread_cpuclock` in the kernel's `include/linux/posix-timers.h`, which
/// `pthread_getcpuclockid` follows: the id inverted, three bits up, `CPUCLOCK_PERTHREAD` (4) and
/// `CPUCLOCK_SCHED` (2).
const fn thread_clock(tid: i32) -> libc::clockid_t {
    (!tid << 3) | 4 | 2
}

/// CPU time that a thread of this process has used since it began.
///
/// Absent if the thread has ended or belongs to another process (the kernel answers `EINVAL` for
/// both).
pub fn thread_ns(tid: i32) -> Reading<u64> {
    // To the kernel, 0 is the calling thread; a number above the maximum would lose bits.
    let known = if (1..=MAX_TID).contains(&tid) { read(thread_clock(tid)) } else { None };
    known.map_or_else(
        || {
            Reading::Absent(format!(
                "CPU clock of thread {tid}: it ended, or is none of this process"
            ))
        },
        Reading::Known,
    )
}

/// CPU time of this process: all its threads, including those that ended.
pub fn process_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec, or nothing and an error.
    let r = unsafe { libc::clock_gettime(clock, &raw mut t) };
    let seconds = u64::try_from(t.tv_sec).ok()?;
    let nanos = u64::try_from(t.tv_nsec).ok()?;
    (r == 0).then(|| seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// All clocks, read one right after the other.
#[derive(Debug, Clone)]
pub struct Clocks {
    /// Value of [`monotonic_ns`], read first.
    pub monotonic_ns: u64,
    /// CPU time of the process, from [`process_ns`].
    pub process_ns: u64,
    /// [`thread_ns`] of each thread, in the order asked.
    pub threads_ns: Vec<Reading<u64>>,
}

impl Clocks {
    /// Reads the clocks: one system call for each thread, 0.4 µs measured.
    pub fn read(tids: &[i32]) -> Self {
        Self {
            monotonic_ns: monotonic_ns(),
            process_ns: process_ns(),
            threads_ns: tids.iter().map(|&tid| thread_ns(tid)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::net::wake::current_tid;

    #[test]
    fn a_threads_clock_is_read_from_another_thread() {
        let (say, hear) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let worker = std::thread::spawn(move || {
            let until = thread_ns(current_tid()).get().unwrap() + 20_000_000;
            while thread_ns(current_tid()).get().unwrap() < until {}
            say.send((current_tid(), thread_ns(current_tid()).get().unwrap())).unwrap();
            let _ = ended.recv();
        });
        let (tid, own) = hear.recv().unwrap();
        let seen = thread_ns(tid).get().unwrap();
        assert!(seen >= own && seen - own < 100_000_000, "{own} {seen}");
        assert!(process_ns() >= own);
        drop(end);
        worker.join().unwrap();
    }

    #[test]
    fn no_thread_of_ours_has_no_clock() {
        for tid in [1, 0, -1, i32::MAX, i32::MIN] {
            assert!(thread_ns(tid).why_not().is_some(), "{tid}");
        }
    }
}
