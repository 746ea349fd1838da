//! The clocks in qperf's block of counters.
//!
//! The real server counts ticks of 10 ms, with `times(2)` for elapsed time and the first line of
//! `/proc/stat` for CPU time, and reports the ticks per second. The client divides by that number,
//! so a larger one makes its figures finer: here elapsed time is exact, and CPU times are the same
//! ticks in the finer unit.

use model::Reading;
use probe::{
    Root,
    samples::host_cpu::{self, HostCpu},
};

use super::wire::Times;

/// Ticks per second as reported: one tick is a microsecond.
pub const TICKS_PER_S: u32 = 1_000_000;
const TICK_NS: u64 = 1_000_000_000 / TICKS_PER_S as u64;

/// The clocks now, and the number of online CPUs. If CPU times cannot be read, they stay constant.
pub fn times(now_ns: u64) -> (u32, Times) {
    let host: Reading<HostCpu> = host_cpu::read(&Root::live());
    let h = host.get().unwrap_or_default();
    let times = Times {
        real: now_ns / TICK_NS,
        user: h.user.0 / TICK_NS,
        nice: h.nice.0 / TICK_NS,
        system: h.system.0 / TICK_NS,
        idle: h.idle.0 / TICK_NS,
        iowait: h.iowait.0 / TICK_NS,
        irq: h.irq.0 / TICK_NS,
        softirq: h.softirq.0 / TICK_NS,
        steal: h.steal.0 / TICK_NS,
    };
    (h.cpus.max(1), times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::samples::clock::monotonic_ns;

    #[test]
    fn the_clocks_go_on_by_what_passed() {
        let start = monotonic_ns();
        let (cpus, a) = times(start);
        while monotonic_ns() < start + 60_000_000 {}
        let end = monotonic_ns();
        let (_, b) = times(end);
        assert!(cpus >= 1);
        assert_eq!(b.real - a.real, end / 1000 - start / 1000);
        // This thread alone was busy for 60 ms; steal time reduces that.
        let busy = |t: &Times| t.user + t.nice + t.system + t.irq + t.softirq + t.steal;
        assert!(busy(&b) - busy(&a) >= 20_000, "{a:?} {b:?}");
    }
}
