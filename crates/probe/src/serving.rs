//! The processes behind a listening socket of this host, and their CPU time: those that hold the
//! socket, and the rest of their service ([`family`]).

pub mod family;

use std::collections::{BTreeMap, BTreeSet};

use model::{CpuSet, Reading};

use crate::{ReadError, Root, ask, error::reading, facts::listener, samples::clock::monotonic_ns};

/// Why an existing socket has no serving process.
pub const ONLY_HANDS_ON: &str = "whoever holds the server's socket only hands it on";

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At<'a> {
    /// A TCP port, at any address of this network namespace.
    Port(u16),
    /// A Unix socket's path.
    Path(&'a str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serving {
    /// Those that hold the socket.
    holders: BTreeSet<u32>,
}

/// CPU time of each process until one moment, its ended threads included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent {
    /// The middle of reading them, `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// By process. **Source**: its CPU clock (`clock_getcpuclockid`), which needs no right.
    pub by_pid: BTreeMap<u32, u64>,
}

impl Spent {
    /// CPU time since an earlier look. A process that was not there then began in between; what
    /// one has used that ended in between is lost.
    pub fn since(&self, earlier: &Self) -> u64 {
        let grown = self.by_pid.iter().map(|(pid, ns)| {
            // One with less than before is another with the same id.
            let before = earlier.by_pid.get(pid).filter(|before| *before <= ns);
            ns - before.copied().unwrap_or(0)
        });
        grown.sum()
    }
}

impl Serving {
    /// The processes that listen there.
    ///
    /// Absent without a listener, or without one in this PID namespace. Denied where other users'
    /// processes are hidden and no visible process holds the socket.
    pub fn find(root: &Root, at: &At<'_>) -> Reading<Self> {
        let holders = match at {
            At::Port(port) => on_port(root, *port),
            At::Path(path) => on_path(root, path),
        };
        holders.and_then(|pids| {
            let holders = family::serving(root, pids);
            match holders.is_empty() {
                true => Reading::absent(ONLY_HANDS_ON),
                false => Reading::Known(Self { holders }),
            }
        })
    }

    /// Whether any of those that were found is gone: the server was restarted.
    pub fn is_gone(&self, root: &Root) -> bool {
        self.holders.iter().any(|pid| !root.exists(&format!("/proc/{pid}")))
    }

    /// The CPUs that any of them may use; `None` where unknown.
    pub fn allowed(&self, root: &Root) -> Option<CpuSet> {
        let all = family::of(root, &self.holders);
        let sets: Vec<CpuSet> = all.into_iter().filter_map(|pid| allowed(root, pid)).collect();
        (!sets.is_empty()).then(|| sets.iter().flat_map(CpuSet::iter).collect())
    }

    /// CPU time of all of them now. **Cost**: some 40 µs for each process.
    pub fn spent(&self, root: &Root) -> Spent {
        let all = family::of(root, &self.holders);
        let begun = monotonic_ns();
        let clocks = all.into_iter().filter_map(|pid| Some((pid, process_ns(pid)?)));
        let by_pid = clocks.collect();
        Spent { at_ns: begun + (monotonic_ns() - begun) / 2, by_pid }
    }
}

/// The CPUs that a process's first thread may use. **Source**: `Cpus_allowed_list` of
/// `/proc/PID/status`.
pub fn allowed(root: &Root, pid: u32) -> Option<CpuSet> {
    let text = root.read(&format!("/proc/{pid}/status")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().parse().ok()
}

fn on_port(root: &Root, port: u16) -> Reading<Vec<u32>> {
    listener::read(root).and_then(|all| {
        let mut pids = vec![];
        let mut why = None;
        for listener in all.into_iter().filter(|l| l.port == port) {
            match listener.pids {
                Reading::Known(found) => pids.extend(found),
                missing => why = Some(missing),
            }
        }
        match (pids.is_empty(), why) {
            (false, _) => Reading::Known(pids),
            (true, Some(why)) => why,
            (true, None) => {
                Reading::Absent(format!("no process listens on TCP port {port} on this host"))
            }
        }
    })
}

/// **Source**: `/proc/net/unix`: `Num RefCount Protocol Flags Type St Inode Path`.
fn on_path(root: &Root, path: &str) -> Reading<Vec<u32>> {
    reading(root.read("/proc/net/unix")).and_then(|bytes| {
        let text = String::from_utf8_lossy(&bytes);
        let inodes: BTreeSet<u64> = text.lines().filter_map(|line| listens(line, path)).collect();
        if inodes.is_empty() {
            return Reading::Absent(format!("no process listens at {path} on this host"));
        }
        reading(ask::owners::of(root, &inodes)).and_then(|owners| {
            let pids: Vec<u32> = owners.pids.into_values().flatten().collect();
            match (pids.is_empty(), owners.denied) {
                (true, Some(path)) => ReadError::Denied { path }.into_reading(),
                (true, None) => Reading::absent("no process here holds the server's socket"),
                (false, _) => Reading::Known(pids),
            }
        })
    })
}

/// The inode of a socket that listens at this path (`__SO_ACCEPTCON`, 0x10000).
fn listens(line: &str, path: &str) -> Option<u64> {
    let mut words = line.split_whitespace();
    let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
    let inode = words.nth(2)?.parse().ok()?;
    let (_, at) = line.split_once('/')?;
    (flags & 0x1_0000 != 0 && at == path.strip_prefix('/')?).then_some(inode)
}

/// CPU time of a process, ended threads included; `None` where it is gone.
///
/// **Source**: `make_process_cpuclock` in the kernel's `include/linux/posix-timers.h`: the id
/// inverted, three bits up, `CPUCLOCK_SCHED` (2).
pub(crate) fn process_ns(pid: u32) -> Option<u64> {
    let pid = i32::try_from(pid).ok().filter(|pid| (1..1 << 28).contains(pid))?;
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec, or nothing and an error.
    let r = unsafe { libc::clock_gettime((!pid << 3) | 2, &raw mut t) };
    let (s, ns) = (u64::try_from(t.tv_sec).ok()?, u64::try_from(t.tv_nsec).ok()?);
    (r == 0).then(|| s.saturating_mul(1_000_000_000).saturating_add(ns))
}

#[cfg(test)]
mod tests;
