//! How busy a CPU was, and how much of that was network work.

use model::{
    CpuId, CpuSet,
    watch::{ByContext, VectorNs},
};

use crate::{
    Case,
    rule::{Draft, Missing, need},
    text,
};

/// Busy share from which a CPU with network work counts as saturated. Our proposal.
const SATURATED_BUSY: f64 = 0.90;
/// Busy share above which it counts as hot (the threshold of rule 9).
const HOT_BUSY: f64 = 0.80;
/// The share of interrupts and softirqs from which a busy CPU's load counts as network work: half.
/// Below it, other work keeps the CPU busy, which no network setting changes. Our proposal.
const NETWORK_SHARE: f64 = 0.50;
/// Busy share below which a CPU has room. Our proposal.
const IDLE_BUSY: f64 = 0.50;

/// One CPU over the window; shares of its time, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Load {
    /// Share of time neither idle nor waiting for I/O.
    pub(crate) busy: f64,
    /// Interrupts, softirqs and ksoftirqd.
    pub(crate) network: f64,
}

impl Load {
    /// No time is left, and network work takes at least half of it.
    pub(crate) fn saturated(self) -> bool {
        self.busy >= SATURATED_BUSY && self.network >= NETWORK_SHARE
    }

    pub(crate) fn hot(self) -> bool {
        self.busy > HOT_BUSY && self.network >= NETWORK_SHARE
    }

    /// `97.0% busy, 93.0% in interrupts and softirqs`.
    pub(crate) fn text(self) -> String {
        format!(
            "{} busy, {} in interrupts and softirqs",
            text::percent(self.busy),
            text::percent(self.network)
        )
    }
}

/// The load of one CPU.
///
/// Softirq time is the eBPF measurement where there is one. `/proc/stat` counts softirqs at the end
/// of a task's system call as that task's, or samples them at ticks. With
/// `CONFIG_IRQ_TIME_ACCOUNTING` the kernel counts ksoftirqd's polls as system time, so its thread
/// time is added to softirq. Without it the two overlap, and the larger one counts.
pub(crate) fn load(case: &Case<'_>, cpu: CpuId) -> Result<Load, Missing> {
    let sample = case.cpu_sample(cpu)?;
    let stat = need(&format!("/proc/stat of CPU {cpu}"), &sample.proc_stat)?;
    let unknown = || Missing(format!("/proc/stat of CPU {cpu}: a part of its time is not known"));
    let total = stat.total_ns().filter(|&t| t > 0).ok_or_else(unknown)? as f64;
    let busy = stat.busy_share().ok_or_else(unknown)?;
    let softirq = stat.softirq_share().ok_or_else(unknown)?;
    let irq = stat.irq_ns.get().ok_or_else(unknown)? as f64 / total;
    let thread = ksoftirqd_share(case, cpu).unwrap_or(0.0);
    let apart = case.facts.host.build.irq_time_accounting.get() == Some(true);
    let claimed = if apart { softirq + thread } else { softirq.max(thread) };
    let softirq = match sample.softirq_ns.known() {
        Some(measured) => (measured.all_ns() as f64 / total).min(1.0),
        None => claimed,
    };
    let network = (irq + softirq).min(1.0);
    // The clocks of the scheduler and of the tick may differ: busy time is at least the network's.
    Ok(Load { busy: busy.max(network), network })
}

/// `31.0% of its time: 25.0% in tasks' own system calls, 4.0% upon tasks, 2.0% idle`.
fn measured_text(case: &Case<'_>, measured: &ByContext) -> String {
    let window = case.samples().map_or(1, |s| s.window_ns.0.max(1)) as f64;
    let share = |ns: u64| text::percent(ns as f64 / window);
    let parts = [
        (measured.syscall.total(), "in tasks' own system calls"),
        (measured.interrupting_task.total(), "interrupting tasks"),
        (measured.idle.total(), "while idle"),
        (measured.ksoftirqd.total(), "in ksoftirqd"),
        (measured.threaded.known().map_or(0, VectorNs::total), "in NAPI threads"),
    ];
    let parts = parts.iter().filter(|(ns, _)| *ns as f64 / window >= 0.001);
    let parts: Vec<_> = parts.map(|(ns, what)| format!("{} {what}", share(*ns))).collect();
    let all = format!("{} of its time", share(measured.all_ns()));
    if parts.is_empty() { all } else { format!("{all}: {}", parts.join(", ")) }
}

/// CPU share of `ksoftirqd/N`.
pub(crate) fn ksoftirqd_share(case: &Case<'_>, cpu: CpuId) -> Option<f64> {
    let name = format!("ksoftirqd/{cpu}");
    let samples = case.samples().ok()?;
    let thread = samples.threads.iter().find(|t| t.name == name)?;
    Some(thread.cpu_ns.get()? as f64 / samples.window_ns.0 as f64)
}

/// The median busy share of the housekeeping CPUs outside `without`. A CPU with unknown load counts
/// as busy.
pub(crate) fn median_of_others(case: &Case<'_>, without: &CpuSet) -> Result<f64, Missing> {
    let others = case.housekeeping().difference(without);
    let loads: Vec<_> = others.iter().map(|c| load(case, c)).collect();
    if loads.iter().all(Result::is_err) {
        return Err(Missing("/proc/stat of the other CPUs: none is known".into()));
    }
    let mut shares: Vec<f64> = loads.iter().map(|l| l.as_ref().map_or(1.0, |l| l.busy)).collect();
    shares.sort_by(f64::total_cmp);
    let middle = shares.get(shares.len() / 2).copied();
    middle.ok_or_else(|| Missing("/proc/stat of the other CPUs: none is known".into()))
}

/// Evidence: the load of each of these CPUs.
pub(crate) fn all_others(case: &Case<'_>, without: &CpuSet) -> Result<(), Missing> {
    case.housekeeping().difference(without).iter().try_for_each(|c| load(case, c).map(drop))
}

/// Whether a CPU with this load has room for more work.
pub(crate) fn has_room(median: f64) -> bool {
    median < IDLE_BUSY
}

impl Draft {
    /// Quotes a CPU's load.
    pub(crate) fn show_load(self, case: &Case<'_>, cpu: CpuId, load: Load) -> Self {
        let shown = self.show(
            format!("CPU {cpu} {}", case.over()),
            load.text(),
            format!("/proc/stat, line cpu{cpu}"),
        );
        let shown = match case.cpu_sample(cpu).ok().and_then(|s| s.softirq_ns.known()) {
            Some(measured) => shown.show(
                format!("softirqs on CPU {cpu} {}", case.over()),
                measured_text(case, measured),
                "eBPF, softirq_entry to softirq_exit",
            ),
            None => shown,
        };
        match ksoftirqd_share(case, cpu) {
            Some(share) if share >= 0.05 => shown.show(
                format!("ksoftirqd/{cpu} {}", case.over()),
                format!("{} of one CPU", text::percent(share)),
                "/proc/PID/schedstat",
            ),
            _ => shown,
        }
    }
}
