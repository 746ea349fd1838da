//! Which CPU a thread runs on, and how often it was where.

use std::collections::BTreeMap;

use model::CpuId;

use super::worker_pool::ThreadReport;
use crate::host::incoming;

/// A CPU that nobody told.
pub const UNKNOWN_CPU: u16 = u16::MAX;

/// The CPU this thread runs on. About 2 ns where the C library keeps it (glibc 2.35), 20 ns
/// elsewhere.
#[inline]
pub fn current_cpu() -> u16 {
    let cpu = incoming::current_cpu().and_then(|cpu| u16::try_from(cpu.0).ok());
    cpu.unwrap_or(UNKNOWN_CPU)
}

/// Counts by CPU without a search while it stays the same.
#[derive(Debug, Default)]
pub struct RanOn {
    cpu: u16,
    count: u64,
    before: BTreeMap<u16, u64>,
}

impl RanOn {
    /// One more on this CPU.
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

    /// Hands the counts over.
    pub fn tell(&mut self, seen: &mut ThreadReport) {
        self.flush();
        for (cpu, n) in &self.before {
            if *cpu != UNKNOWN_CPU {
                *seen.ran_on.entry(CpuId((*cpu).into())).or_default() += n;
            }
        }
    }
}
