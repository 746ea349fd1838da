//! In how much of each interval waits are observed, so that observing them stays cheap.

use model::CpuId;

use crate::bpf::{
    Wanted,
    waits::{CpuState, PROGRAMS},
};

/// Of each CPU's time. A round trip between two CPUs pays on both: together 1%.
const BUDGET: f64 = 0.005;

/// At least this share of an interval, however dear.
const LEAST: f64 = 0.05;

/// And at least this long, nanoseconds.
const LEAST_NS: u64 = 20_000_000;

/// What a run takes where the kernel does not tell, nanoseconds.
const USUAL_NS: f64 = 100.0;

/// The beginning of every interval is observed and tells what the rest would cost.
#[derive(Debug, Default)]
pub struct Share {
    /// Each CPU's runs when the interval began.
    begun: Vec<(CpuId, CpuState)>,
}

/// Until when to observe before it is decided.
pub fn first(begun: u64, end: u64) -> u64 {
    let span = end.saturating_sub(begun) as f64;
    begun.saturating_add(((span * LEAST) as u64).max(LEAST_NS))
}

impl Share {
    /// An interval begins with these runs.
    pub fn begin(&mut self, cpus: Vec<(CpuId, CpuState)>) {
        self.begun = cpus;
    }

    /// Which share of the interval may be observed, by what its first `elapsed` nanoseconds cost
    /// on the CPU that it cost most.
    pub fn affordable(
        &self,
        now: &[(CpuId, CpuState)],
        elapsed: u64,
        ns_per_run: &dyn Fn(&Wanted) -> Option<f64>,
    ) -> f64 {
        let ns: Vec<f64> = PROGRAMS.iter().map(|p| ns_per_run(p).unwrap_or(USUAL_NS)).collect();
        let cost = |(cpu, now): &(CpuId, CpuState)| {
            let then = self.begun.iter().find(|(c, _)| c == cpu).map_or([0; 6], |(_, s)| s.runs);
            let grown = now.runs.iter().zip(then).map(|(now, then)| now.wrapping_sub(then));
            grown.zip(&ns).map(|(runs, ns)| runs as f64 * ns).sum::<f64>()
        };
        let dearest = now.iter().map(cost).fold(0.0, f64::max) / elapsed.max(1) as f64;
        if dearest <= BUDGET { 1.0 } else { (BUDGET / dearest).max(LEAST) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(runs: [u64; 2]) -> Vec<(CpuId, CpuState)> {
        let state = |n| {
            let mut state = CpuState::default();
            state.runs.iter_mut().take(2).for_each(|runs| *runs = n);
            state
        };
        runs.iter().zip(0..).map(|(n, cpu)| (CpuId(cpu), state(*n))).collect()
    }

    #[test]
    fn the_dearest_cpu_decides_and_never_all_is_given_up() {
        let mut share = Share::default();
        share.begin(cpus([1_000, 5_000]));
        let after = |runs| share.affordable(&cpus(runs), 100_000_000, &|_| Some(50.0));
        // 0.5% of 100 ms is 500 µs: 5,000 runs of two programs at 50 ns.
        assert!((after([1_000, 10_000]) - 1.0).abs() < 1e-9);
        assert!((after([1_000, 15_000]) - 0.5).abs() < 1e-9);
        assert!((after([21_000, 15_000]) - 0.25).abs() < 1e-9);
        assert!((after([1_001_000, 5_000]) - LEAST).abs() < 1e-9);
    }

    #[test]
    fn a_short_interval_is_observed_for_a_while_at_least() {
        assert_eq!(first(0, 100_000_000), LEAST_NS);
        assert_eq!(first(7, 1_000_000_007), 50_000_007);
    }
}
