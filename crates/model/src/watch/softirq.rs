//! Softirq time by CPU and context.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Ipc;
use crate::{CpuId, Reading, reading::Delta};

/// Nanoseconds by softirq vector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VectorNs {
    /// `NET_RX`: receiving, and the protocols' work on it.
    pub net_rx: u64,
    /// `NET_TX`: freeing sent packets, and waiting queues.
    pub net_tx: u64,
    /// `HRTIMER` and `TASKLET`: TCP's pacing and small queues are among them. On a sending host
    /// they are mostly network cost. They are shown separately because other subsystems use these
    /// timers, too.
    pub pacing: u64,
    pub other: u64,
}

impl VectorNs {
    pub fn total(&self) -> u64 {
        self.net_rx + self.net_tx + self.pacing + self.other
    }

    pub fn add(&mut self, other: &Self) {
        self.net_rx += other.net_rx;
        self.net_tx += other.net_tx;
        self.pacing += other.pacing;
        self.other += other.other;
    }

    /// Each count multiplied by a factor.
    pub fn times(&self, factor: f64) -> Self {
        let of = |ns: u64| (ns as f64 * factor).round() as u64;
        let Self { net_rx, net_tx, pacing, other } = *self;
        Self { net_rx: of(net_rx), net_tx: of(net_tx), pacing: of(pacing), other: of(other) }
    }

    /// Packet processing: `NET_RX`, `NET_TX` and pacing.
    pub fn network(&self) -> u64 {
        self.net_rx + self.net_tx + self.pacing
    }
}

/// Softirq time by context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ByContext {
    /// At the end of a task's own system call (or another section with softirqs disabled): the
    /// task works for its own packets, and `/proc/stat` calls most of it `system`.
    pub syscall: VectorNs,
    /// Interrupting a task: an interrupt came in the time of some task, which lost that time.
    pub interrupting_task: VectorNs,
    /// In idle: the CPU was idle.
    pub idle: VectorNs,
    /// ksoftirqd: the kernel's thread processed what was too much for an interrupt.
    pub ksoftirqd: VectorNs,
    /// Threaded NAPI: the thread's whole time on the CPU. It is the same work, but not a softirq.
    pub threaded: Reading<VectorNs>,
}

impl ByContext {
    /// All contexts in which a softirq ran; without the threads, which `/proc/stat` counts
    /// as `system`.
    pub fn softirq_ns(&self) -> u64 {
        [self.syscall, self.interrupting_task, self.idle, self.ksoftirqd]
            .iter()
            .map(VectorNs::total)
            .sum()
    }

    /// The same plus NAPI threads, where their time is known: all work of this kind.
    pub fn all_ns(&self) -> u64 {
        self.softirq_ns() + self.threaded.known().map_or(0, VectorNs::total)
    }

    /// Each context multiplied by a factor.
    pub fn times(&self, factor: f64) -> Self {
        Self {
            syscall: self.syscall.times(factor),
            interrupting_task: self.interrupting_task.times(factor),
            idle: self.idle.times(factor),
            ksoftirqd: self.ksoftirqd.times(factor),
            threaded: self.threaded.clone().map(|v| v.times(factor)),
        }
    }

    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.syscall, &other.syscall),
            (&mut self.interrupting_task, &other.interrupting_task),
            (&mut self.idle, &other.idle),
            (&mut self.ksoftirqd, &other.ksoftirqd),
        ];
        pairs.into_iter().for_each(|(sum, more)| sum.add(more));
        if let Reading::Known(more) = &other.threaded {
            let mut sum = self.threaded.get().unwrap_or_default();
            sum.add(more);
            self.threaded = Reading::Known(sum);
        }
    }
}

/// CPU time by state, as `/proc/stat` reports it, nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcStatNs {
    /// User mode, low priority and guests included.
    pub user: Delta,
    /// Kernel mode, without interrupts and softirqs.
    pub system: Delta,
    pub softirq: Delta,
    pub irq: Delta,
    /// Idle, I/O pending included.
    pub idle: Delta,
    /// Time in which the hypervisor ran something else (`steal`).
    pub steal: Delta,
}

/// Softirq time of `/proc/stat` compared with the measured time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SoftirqGap {
    pub measured_ns: u64,
    pub proc_stat_ns: u64,
    /// Reported time divided by measured time: above 1, `/proc/stat` reports too much. Absent below
    /// two ticks of either.
    pub proc_stat_by_measured: Reading<f64>,
}

/// How this kernel accounts the softirq time of `/proc/stat`, and thus the reason for the
/// difference to the measured time. **Source**: the kernel's build options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SoftirqAccounting {
    /// Tick-sampled: each tick is accounted as a whole to the context that it interrupts, a softirq
    /// or the system call at whose end it runs.
    Ticks,
    /// Measured by a clock (`CONFIG_IRQ_TIME_ACCOUNTING`), except that softirqs of ksoftirqd count
    /// as system time of that thread.
    IrqTime,
}

impl SoftirqAccounting {
    /// In a sentence, for people.
    pub fn why(self) -> &'static str {
        match self {
            Self::Ticks => {
                "this kernel charges whole ticks to the interrupted context \
                 (CONFIG_IRQ_TIME_ACCOUNTING is off): more or less than softirqs took"
            }
            Self::IrqTime => {
                "this kernel measures softirqs (CONFIG_IRQ_TIME_ACCOUNTING), but charges \
                 ksoftirqd's as system time"
            }
        }
    }
}

/// One CPU over the interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuWatch {
    pub id: CpuId,
    /// Softirq time by context.
    pub softirq_ns: Reading<ByContext>,
    /// The same by vector (`NET_RX`), all contexts.
    pub softirq_by_vector_ns: Reading<BTreeMap<String, u64>>,
    /// Time by state from `/proc/stat`, tick-sampled.
    pub proc_stat: Reading<ProcStatNs>,
    /// Comparison of the two.
    pub softirq_gap: Reading<SoftirqGap>,
    /// Instructions and cycles, where the machine has counters.
    pub ipc: Reading<Ipc>,
    /// Number of softirq runs that ended for lack of budget or time. **Source**: `softnet_stat`.
    pub time_squeeze: Delta,
    /// Packets dropped because the backlog was full. **Source**: `softnet_stat`.
    pub backlog_drops: Delta,
    /// Interrupts by which another CPU handed packets over (RPS). **Source**: `softnet_stat`.
    pub received_rps: Delta,
    /// Packets dropped by the flow limit. **Source**: `softnet_stat`.
    pub flow_limit_drops: Delta,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_it_is_a_share_of_each_context() {
        let vectors = VectorNs { net_rx: 700, net_tx: 200, pacing: 80, other: 20 };
        let one = ByContext {
            ksoftirqd: vectors,
            idle: vectors,
            threaded: Reading::Known(vectors),
            ..ByContext::default()
        };
        let half = one.times(0.5);
        assert_eq!((half.softirq_ns(), half.all_ns(), half.syscall.total()), (1_000, 1_500, 0));
        assert_eq!(half.ksoftirqd.net_rx, 350);
    }
}
