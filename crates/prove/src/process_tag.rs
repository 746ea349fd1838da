//! Whom a workload started, also in sessions and groups of their own: all of them inherit a word in their
//! environment.

use std::{
    fs,
    os::fd::OwnedFd,
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

pub(crate) const NAME: &str = "NETWRIGHT_WORKLOAD";

/// What one run of a workload is known by.
#[derive(Debug, Clone)]
pub(crate) struct ProcessTag(String);

impl ProcessTag {
    /// One that no other run has or had.
    pub(crate) fn new() -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        // By its end none is the beginning of another.
        Self(format!("{}-{now}-{run}.", process::id()))
    }

    /// Its value, without blanks.
    pub(crate) fn value(&self) -> &str {
        &self.0
    }

    /// Who has it now, of those whose environment we may read. **Source**: `/proc/PID/environ`.
    pub(crate) fn holders(&self) -> Vec<Holder> {
        let wanted = format!("{NAME}={}", self.0).into_bytes();
        let Ok(all) = fs::read_dir("/proc") else { return vec![] };
        let pids =
            all.flatten().filter_map(|e| e.file_name().to_str()?.parse::<libc::pid_t>().ok());
        let holds = |pid: libc::pid_t| {
            // Held before it is read: the number cannot become another's in between.
            let holder = Holder::of(pid)?;
            let said = fs::read(format!("/proc/{pid}/environ")).ok()?;
            said.split(|b| *b == 0).any(|word| word == wanted).then_some(holder)
        };
        pids.filter_map(holds).collect()
    }
}

/// A process, by a descriptor that is never another's. **Source**: pidfd_open(2), since 5.3.
#[derive(Debug)]
pub(crate) struct Holder(OwnedFd);

impl Holder {
    fn of(pid: libc::pid_t) -> Option<Self> {
        pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok().map(Self)
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.0, signal);
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&Timespec::default()))
            .is_ok_and(|ready| ready > 0)
    }
}
