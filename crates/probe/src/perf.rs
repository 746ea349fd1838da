//! Instructions and cycles, by the processor's counters. **Source**: `perf_event_open(2)`.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::FromRawFd,
};

mod children;

pub use children::ChildMoves;

use model::{CpuId, Reading, watch::Ipc};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const HARDWARE: u32 = 0;
const CYCLES: u64 = 0;
const INSTRUCTIONS: u64 = 1;
/// Both times, and all of a group at once.
const FORMAT: u64 = 1 | 2 | 8;
/// Closes the descriptor on exec: `PERF_FLAG_FD_CLOEXEC` of `linux/perf_event.h`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// `exclude_kernel` and `exclude_hv`, bits of the attributes' flags.
const USER_ONLY: u64 = 0x60;
/// Descriptors left to everything else.
const SPARED: libc::rlim_t = 256;

/// `struct perf_event_attr` of its first version, which every kernel takes.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
}

/// The target of a counter.
#[derive(Debug, Clone, Copy)]
pub enum CountTarget {
    /// All that runs on a CPU.
    Cpu(CpuId),
    /// A thread, wherever it runs.
    Thread(u32),
}

/// What a group said at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Time for which it was wanted, ns.
    pub enabled_ns: u64,
    /// Time for which the processor had counters for it, ns: less where others count, too.
    pub running_ns: u64,
    /// Cycles while it ran.
    pub cycles: u64,
    /// Instructions while it ran.
    pub instructions: u64,
}

/// Cycles and instructions, counted together or not at all.
#[derive(Debug)]
pub struct Group {
    cycles: File,
    _instructions: File,
}

impl Group {
    /// Counts from now on.
    ///
    /// # Errors
    /// `ENOENT` and `EOPNOTSUPP`: the machine has no counters; `EACCES`, `EPERM`: not permitted;
    /// `ESRCH`: the thread is gone; `ENODEV`: the CPU is.
    pub fn open(of: CountTarget) -> io::Result<Self> {
        let cycles = event(of, CYCLES, -1, 0)?;
        let leader = std::os::fd::AsRawFd::as_raw_fd(&cycles);
        let instructions = event(of, INSTRUCTIONS, leader, 0)?;
        Ok(Self { cycles, _instructions: instructions })
    }

    /// What it counted until now.
    ///
    /// # Errors
    /// The kernel gives less than was asked for: the counters could not be had.
    pub fn read(&self) -> io::Result<Counts> {
        let mut bytes = [0; 40];
        (&self.cycles).read_exact(&mut bytes)?;
        let mut words = bytes.chunks_exact(8).map(|w| {
            let mut word = [0; 8];
            word.copy_from_slice(w);
            u64::from_ne_bytes(word)
        });
        let mut next = || words.next().unwrap_or(0);
        let _members = next();
        Ok(Counts { enabled_ns: next(), running_ns: next(), cycles: next(), instructions: next() })
    }
}

/// How many of this many groups can be open. Raises this process's limit of descriptors as far as
/// possible, so that the rest of the program can still open files.
pub fn room(groups: usize) -> usize {
    let wanted = u64::try_from(groups).unwrap_or(u64::MAX).saturating_mul(2).saturating_add(SPARED);
    let limit = getrlimit(Resource::Nofile);
    let (mut now, most) = (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX));
    let raised = wanted.min(most);
    let new = Rlimit { current: Some(raised), maximum: limit.maximum };
    if raised > now && setrlimit(Resource::Nofile, new).is_ok() {
        now = raised;
    }
    let room = now.saturating_sub(SPARED) / 2;
    usize::try_from(room).unwrap_or(usize::MAX).min(groups)
}

fn event(of: CountTarget, config: u64, leader: i32, flags: u64) -> io::Result<File> {
    let attributes = Attributes {
        kind: HARDWARE,
        size: 64,
        config,
        period: 0,
        sample: 0,
        format: FORMAT,
        flags,
        wakeup: 0,
        breakpoint: 0,
        config1: 0,
    };
    let (pid, cpu) = match of {
        CountTarget::Cpu(cpu) => (-1, i32::try_from(cpu.0).map_err(io::Error::other)?),
        CountTarget::Thread(tid) => (i32::try_from(tid).map_err(io::Error::other)?, -1),
    };
    // SAFETY: the kernel reads `size` bytes of the attributes, which outlive the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            pid,
            cpu,
            leader,
            CLOSE_ON_EXEC,
        )
    };
    match i32::try_from(fd) {
        // SAFETY: a descriptor that the kernel just created, owned here alone.
        Ok(fd) if fd >= 0 => Ok(unsafe { File::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Counts {
    /// What was added since then.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            enabled_ns: self.enabled_ns.wrapping_sub(before.enabled_ns),
            running_ns: self.running_ns.wrapping_sub(before.running_ns),
            cycles: self.cycles.wrapping_sub(before.cycles),
            instructions: self.instructions.wrapping_sub(before.instructions),
        }
    }

    /// As if the counters had run all the time (perf_event_open(2), `PERF_FORMAT_TOTAL_TIME_*`):
    /// `None` if they never did. Both were counted over the same time, so their ratio needs no
    /// scaling.
    pub fn whole(&self) -> Option<(u64, u64)> {
        let whole = |n: u64| {
            let scaled = u128::from(n) * u128::from(self.enabled_ns.max(self.running_ns));
            let scaled = scaled.checked_div(u128::from(self.running_ns))?;
            u64::try_from(scaled).ok()
        };
        Some((whole(self.instructions)?, whole(self.cycles)?))
    }
}

/// IPC of one or more groups together.
pub fn ipc(grown: &[Counts]) -> Reading<Ipc> {
    let whole: Vec<(u64, u64)> = grown.iter().filter_map(Counts::whole).collect();
    let instructions: u64 = whole.iter().map(|w| w.0).sum();
    let cycles: u64 = whole.iter().map(|w| w.1).sum();
    match (whole.len(), cycles) {
        (0, _) => Reading::absent("the processor had no counter free in this interval"),
        (_, 0) => Reading::absent("no cycle was counted in this interval"),
        _ => Reading::Known(Ipc {
            instructions,
            cycles,
            per_cycle: instructions as f64 / cycles as f64,
        }),
    }
}

/// The error to report for a denied counter: that there is none, where an attempt shows it.
///
/// The kernel checks permission first, so an unprivileged user would be told to get a right that is
/// useless without counters. A process may count its own user time (up to
/// `kernel.perf_event_paranoid=2`); this attempt fails where there is no counter.
pub fn rather(denied: io::Error) -> io::Error {
    match event(CountTarget::Thread(0), CYCLES, -1, USER_ONLY) {
        Err(e) if is_none(&e) => e,
        _ => denied,
    }
}

fn is_none(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENOSYS))
}

/// Why counting cannot be had; `paranoid` is `kernel.perf_event_paranoid`.
pub fn why<T>(e: &io::Error, paranoid: Option<i64>) -> Reading<T> {
    match e.raw_os_error() {
        _ if is_none(e) => Reading::absent(
            "performance counters: this machine has none (a virtual one is often given none)",
        ),
        Some(libc::EACCES | libc::EPERM) => Reading::denied(format!(
            "performance counters: not permitted at kernel.perf_event_paranoid={}; it takes root, or CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8), or at most 0 there",
            paranoid.map_or_else(|| "?".to_owned(), |n| n.to_string())
        )),
        _ => Reading::absent(format!("performance counters: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(enabled_ns: u64, running_ns: u64, cycles: u64, instructions: u64) -> Counts {
        Counts { enabled_ns, running_ns, cycles, instructions }
    }

    #[test]
    fn a_group_that_ran_a_quarter_of_the_time_counts_four_times() {
        let ipc = ipc(&[counts(1_000, 250, 4_000, 3_000)]);
        let ipc = ipc.known().unwrap();
        assert_eq!((ipc.instructions, ipc.cycles), (12_000, 16_000));
        assert!((ipc.per_cycle - 0.75).abs() < 1e-12);
    }

    #[test]
    fn threads_count_together_each_scaled_by_its_own_time() {
        let all =
            ipc(&[counts(100, 100, 1_000, 2_000), counts(100, 50, 1_000, 500), counts(9, 0, 0, 0)]);
        let all = all.known().unwrap();
        assert_eq!((all.instructions, all.cycles), (3_000, 3_000));
    }

    #[test]
    fn without_a_counter_or_a_cycle_there_is_no_ratio() {
        assert!(ipc(&[counts(100, 0, 0, 0)]).why_not().unwrap().contains("no counter free"));
        assert!(ipc(&[counts(100, 100, 0, 0)]).why_not().unwrap().contains("no cycle"));
        assert!(!ipc(&[]).is_known());
    }

    #[test]
    fn growth_over_a_wrap() {
        let before = counts(u64::MAX, 5, u64::MAX - 1, 7);
        assert_eq!(counts(9, 15, 8, 9).since(&before), counts(10, 10, 10, 2));
    }

    #[test]
    fn no_more_groups_than_descriptors_allow() {
        assert_eq!(room(0), 0);
        assert!(room(8) <= 8);
        assert!(room(usize::MAX) < usize::MAX);
    }

    #[test]
    fn the_reason_says_what_to_grant() {
        let of = |errno| why::<()>(&io::Error::from_raw_os_error(errno), Some(3));
        assert!(matches!(of(libc::EACCES), Reading::Denied(w) if w.contains("paranoid=3")));
        assert!(matches!(of(libc::ENOENT), Reading::Absent(w) if w.contains("has none")));
    }
}
