//! Finds all processes that a workload started, even in other sessions and process groups: they
//! inherit a tag in their environment.

use std::{
    os::fd::OwnedFd,
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use probe::{Root, facts};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal, test_kill_process,
    },
};

pub const NAME: &str = "NETWRIGHT_WORKLOAD";

/// The tag of one run of a workload.
#[derive(Debug, Clone)]
pub struct ProcessTag(String);

impl ProcessTag {
    /// A tag that no other run has or had.
    pub fn unique() -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        // Ends with a dot, so no tag is the prefix of another.
        Self(format!("{}-{now}-{run}.", process::id()))
    }

    /// A tag from its value.
    pub fn of(value: &str) -> Self {
        Self(value.to_owned())
    }

    /// Its value, without blanks.
    pub fn value(&self) -> &str {
        &self.0
    }

    /// The processes that have it now, as far as we may read their environment. **Source**:
    /// `/proc/PID/environ`.
    pub fn holders(&self) -> Vec<Holder> {
        let wanted = format!("{NAME}={}", self.0).into_bytes();
        let root = Root::live();
        let holds = |pid: u32| {
            // Opened before the environment is read: afterwards the PID cannot pass to another
            // process.
            let holder = Holder::of(pid.try_into().ok()?)?;
            let said = root.read(&format!("/proc/{pid}/environ")).ok()?;
            said.split(|b| *b == 0).any(|word| word == wanted).then_some(holder)
        };
        facts::process::pids(&root).into_iter().filter_map(holds).collect()
    }
}

/// A process with the tag, held by a pidfd where the kernel has them, so a reused PID cannot be
/// hit. **Source**: pidfd_open(2), since 5.3.
#[derive(Debug)]
pub enum Holder {
    Descriptor(OwnedFd),
    Number(Pid),
}

impl Holder {
    fn of(pid: libc::pid_t) -> Option<Self> {
        let pid = Pid::from_raw(pid)?;
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => Some(Self::Descriptor(fd)),
            Err(Errno::NOSYS) => Some(Self::Number(pid)),
            Err(_) => None,
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let _ = match self {
            Self::Descriptor(fd) => pidfd_send_signal(fd, signal),
            Self::Number(pid) => kill_process(*pid, signal),
        };
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        match self {
            Self::Descriptor(fd) => {
                poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&Timespec::default()))
                    .is_ok_and(|ready| ready > 0)
            }
            Self::Number(pid) => test_kill_process(*pid).is_err(),
        }
    }
}
