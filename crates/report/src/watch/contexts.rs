//! Splits a CPU's time for a bar: softirqs by context, or the shares of `/proc/stat` without eBPF.

use model::{
    Reading,
    watch::{CpuWatch, ProcStatNs, WatchInterval},
};

/// Who used the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// In a system call of the task itself.
    Syscall,
    /// In an interrupt of some task.
    OnTask,
    /// While the CPU was idle.
    Idle,
    /// In the CPU's ksoftirqd thread.
    Ksoftirqd,
    Threaded,
    /// User mode by `/proc/stat`.
    User,
    System,
    Irq,
    Softirq,
    /// Steal time by `/proc/stat`.
    Steal,
}

impl Context {
    /// Contexts that eBPF programs measure.
    pub const MEASURED: [Self; 5] =
        [Self::Syscall, Self::OnTask, Self::Idle, Self::Ksoftirqd, Self::Threaded];
    /// States of `/proc/stat`, sampled at ticks.
    pub const CLAIMED: [Self; 5] =
        [Self::User, Self::System, Self::Irq, Self::Softirq, Self::Steal];

    /// Its letter: bars must be readable without colour.
    pub fn letter(self) -> char {
        match self {
            Self::Syscall => 'S',
            Self::OnTask => 'T',
            Self::Idle => 'I',
            Self::Ksoftirqd => 'K',
            Self::Threaded => 'N',
            Self::User => 'u',
            Self::System => 's',
            Self::Irq => 'i',
            Self::Softirq => 'q',
            Self::Steal => 'x',
        }
    }

    /// Its name in the legend.
    pub fn name(self) -> &'static str {
        match self {
            Self::Syscall => "syscall",
            Self::OnTask => "irq on task",
            Self::Idle => "idle",
            Self::Ksoftirqd => "ksoftirqd",
            Self::Threaded => "threaded",
            Self::User => "user",
            Self::System => "system",
            Self::Irq => "irq",
            Self::Softirq => "softirq",
            Self::Steal => "steal",
        }
    }
}

/// Whether any CPU's softirq time was measured; otherwise bars show `/proc/stat`.
pub fn measured(interval: &WatchInterval) -> bool {
    interval.cpus.iter().any(|c| c.softirq_ns.is_known())
}

/// Shares of the interval, 0 to 1, by context in the bar's order; empty where unknown.
pub fn shares(cpu: &CpuWatch, interval_s: f64, measured: bool) -> Vec<(Context, f64)> {
    let share = |ns: u64| if interval_s > 0.0 { ns as f64 / 1e9 / interval_s } else { 0.0 };
    if measured {
        let Some(by) = cpu.softirq_ns.known() else { return vec![] };
        let threaded = by.threaded.known().map_or(0, model::watch::VectorNs::total);
        let ns = [by.syscall.total(), by.interrupting_task.total(), by.idle.total()];
        let ns = ns.into_iter().chain([by.ksoftirqd.total(), threaded]);
        return Context::MEASURED.into_iter().zip(ns.map(share)).collect();
    }
    let Some(stat) = cpu.proc_stat.known() else { return vec![] };
    let whole_ns = whole_ns(&cpu.proc_stat, interval_s);
    let parts = [&stat.user, &stat.system, &stat.irq, &stat.softirq, &stat.steal];
    let ns =
        parts.map(|p| if whole_ns > 0.0 { p.get().unwrap_or(0) as f64 / whole_ns } else { 0.0 });
    Context::CLAIMED.into_iter().zip(ns).collect()
}

/// The total that shares of `/proc/stat` refer to: the interval, or the sum of all states where
/// that is more. The counts are ticks of mostly 10 ms. An interval of 105 ms can hold eleven, which
/// are not 105%.
pub fn whole_ns(claimed: &Reading<ProcStatNs>, interval_s: f64) -> f64 {
    let sum = claimed.known().map_or(0, |c| {
        let parts = [&c.user, &c.system, &c.irq, &c.softirq, &c.idle, &c.steal];
        parts.iter().filter_map(|p| p.get()).sum::<u64>()
    });
    (interval_s * 1e9).max(sum as f64)
}

/// The cells of a bar of `width`, which stands for `scale` of the interval. Ends are rounded so
/// that the bar's length matches the sum.
pub fn cells(shares: &[(Context, f64)], scale: f64, width: usize) -> Vec<(Context, usize)> {
    if scale <= 0.0 {
        return vec![];
    }
    let (mut sum, mut done) = (0.0, 0);
    let mut out = vec![];
    for (context, share) in shares {
        sum += share.max(0.0);
        let end = ((sum / scale * width as f64).round() as usize).min(width);
        if end > done {
            out.push((*context, end - done));
            done = end;
        }
    }
    out
}

/// The share that a full bar stands for: the smallest of 5, 10, 25, 50 and 100% that holds the
/// busiest CPU. Shares of `/proc/stat` include all busy time and always use 100%.
pub fn scale(interval: &WatchInterval) -> f64 {
    if !measured(interval) {
        return 1.0;
    }
    let total = |c| shares(c, interval.interval_s, true).iter().map(|s| s.1).sum::<f64>();
    let most = interval.cpus.iter().map(total).fold(0.0, f64::max);
    [0.05, 0.1, 0.25, 0.5].into_iter().find(|s| most <= *s).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_sum_and_never_longer_than_its_room() {
        let shares = [(Context::Syscall, 0.204), (Context::OnTask, 0.204), (Context::Idle, 0.2)];
        let cells_of = |scale, width| cells(&shares, scale, width);
        assert_eq!(
            cells_of(1.0, 10),
            [(Context::Syscall, 2), (Context::OnTask, 2), (Context::Idle, 2)]
        );
        let full: usize = cells_of(0.5, 10).iter().map(|c| c.1).sum();
        assert_eq!(full, 10);
        assert!(cells_of(0.0, 10).is_empty());
    }
}
