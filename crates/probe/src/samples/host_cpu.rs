//! The host's CPU time by state, as the classic tools print it: `%us`, `%sy`, `%si`.

use model::{Nanos, Reading};
use parse::proc_stat::{self, CpuTicks};

use crate::Root;

/// CPU time of all online CPUs together since boot, by state. **Unit**: nanoseconds, in steps of
/// the kernel's tick (`USER_HZ`, 10 ms). **Source**: `/proc/stat`.
///
/// A state that this kernel does not report is 0. The sum falls when a CPU goes offline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostCpu {
    pub cpus: u32,
    /// User mode, guests included.
    pub user: Nanos,
    /// User mode at low priority.
    pub nice: Nanos,
    pub system: Nanos,
    pub idle: Nanos,
    /// Idle with I/O pending.
    pub iowait: Nanos,
    pub irq: Nanos,
    pub softirq: Nanos,
    /// Taken by the hypervisor.
    pub steal: Nanos,
}

pub fn read(root: &Root) -> Reading<HostCpu> {
    let per_s = rustix::param::clock_ticks_per_second();
    let Some(tick_ns) = 1_000_000_000u64.checked_div(per_s) else {
        return Reading::absent("sysconf(_SC_CLK_TCK): no tick rate");
    };
    let ticks = root.parsed("/proc/stat", proc_stat::parse);
    ticks.map(|cpus| {
        let sum = |state: fn(&CpuTicks) -> Option<u64>| {
            let ticks = cpus.values().filter_map(state).fold(0, u64::saturating_add);
            Nanos(ticks.saturating_mul(tick_ns))
        };
        HostCpu {
            cpus: u32::try_from(cpus.len()).unwrap_or(u32::MAX),
            user: sum(|c| c.user),
            nice: sum(|c| c.nice),
            system: sum(|c| c.system),
            idle: sum(|c| c.idle),
            iowait: sum(|c| c.iowait),
            irq: sum(|c| c.irq),
            softirq: sum(|c| c.softirq),
            steal: sum(|c| c.steal),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_the_online_cpus() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        let text =
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu3 10 20 30 40 50 60 70\n";
        std::fs::write(dir.path().join("proc/stat"), text).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let h = read(&root).into_known().unwrap();
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        assert_eq!((h.cpus, h.user.0, h.softirq.0), (2, 11 * tick, 77 * tick));
        assert_eq!((h.idle.0, h.steal.0), (44 * tick, 8 * tick));
    }

    #[test]
    fn a_tree_without_the_file_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert!(read(&root).why_not().unwrap().contains("/proc/stat"));
    }
}
