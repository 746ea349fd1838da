//! The CPU that a thread runs on, and counts by CPU.

use std::collections::BTreeMap;

use model::CpuId;

use super::worker_pool::ThreadReport;
use crate::host::incoming;

/// Stands for an unknown CPU.
pub const UNKNOWN_CPU: u16 = u16::MAX;

/// The CPU this thread runs on. Costs about 2 ns where the C library caches it (glibc 2.35), else
/// 20 ns.
#[inline]
pub fn current_cpu() -> u16 {
    let cpu = incoming::current_cpu().and_then(|cpu| u16::try_from(cpu.0).ok());
    cpu.unwrap_or(UNKNOWN_CPU)
}

/// Counts by CPU; fast while the CPU stays the same.
#[derive(Debug, Default)]
pub struct RanOn {
    cpu: u16,
    count: u64,
    before: BTreeMap<u16, u64>,
}

impl RanOn {
    /// Counts one more on this CPU.
    #[inline]
    pub fn on(&mut self, cpu: u16) {
        if cpu != self.cpu {
            self.flush();
            self.cpu = cpu;
        }
        self.count += 1;
    }

    #[cold]
    fn flush(&mut self) {
        if self.count > 0 {
            *self.before.entry(self.cpu).or_default() += std::mem::take(&mut self.count);
        }
    }

    /// Adds the counts to the thread's report.
    pub fn tell(&mut self, seen: &mut ThreadReport) {
        self.flush();
        for (cpu, n) in &self.before {
            if *cpu != UNKNOWN_CPU {
                *seen.ran_on.entry(CpuId((*cpu).into())).or_default() += n;
            }
        }
    }
}
