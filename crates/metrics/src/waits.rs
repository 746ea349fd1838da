//! Waits of packets as histograms.
//!
//! eBPF counts in quarters of each power of two (1, 1¼, 1½, 1¾), which are no buckets of a native
//! histogram; their sums by power of two are exact.

use model::{
    Reading,
    watch::{ProcessWaits, WaitNs},
};

use crate::family::{Histogram, seconds};

/// Stages of a packet's way to its reader, in the order of [`Waits`].
pub(crate) const STAGES: [&str; 5] = ["stack", "wakeup", "runqueue", "idle_exit", "copy"];

/// Exponents of the bounds: 2^10 ns (1 µs) to 2^30 ns (1.07 s), each twice the one before.
const BOUNDS: std::ops::RangeInclusive<usize> = 10..=30;

/// One process's waits since the program started, by stage.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waits {
    stages: [Option<Stage>; STAGES.len()],
}

#[derive(Debug, Clone, Default)]
struct Stage {
    /// Observations by power of two, as [`WaitNs::by_power`].
    by_power: Vec<u64>,
    sum_ns: f64,
    count: u64,
}

impl Waits {
    pub fn add(&mut self, more: &ProcessWaits) {
        let all = [&more.stack, &more.wakeup, &more.runqueue, &more.idle_exit, &more.copy];
        for (stage, more) in self.stages.iter_mut().zip(all) {
            if let Reading::Known(more) = more {
                stage.get_or_insert_default().add(more);
            }
        }
    }

    pub fn histogram(&self, stage: usize) -> Option<Histogram> {
        self.stages.get(stage)?.as_ref().map(Stage::histogram)
    }
}

impl Stage {
    fn add(&mut self, more: &WaitNs) {
        if self.by_power.len() < more.by_power.len() {
            self.by_power.resize(more.by_power.len(), 0);
        }
        for (sum, more) in self.by_power.iter_mut().zip(&more.by_power) {
            *sum += more;
        }
        self.count += more.count;
        self.sum_ns += more.mean * more.count as f64;
    }

    fn histogram(&self) -> Histogram {
        let below = |exponent: usize| {
            // The first entry ends at 2^6 ns.
            let entries = (exponent + 1).saturating_sub(WaitNs::FIRST_POWER);
            self.by_power.iter().take(entries).sum()
        };
        Histogram {
            buckets: BOUNDS.map(|e| (seconds(1 << e), below(e))).collect(),
            sum: self.sum_ns / 1e9,
            count: self.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_is_in_each_bucket_that_its_power_of_two_fits_into() {
        let mut stage = Stage::default();
        // One below 64 ns, three from 512 to 1,023 ns, one from 1,024 to 2,047 ns, one of seconds.
        let mut by_power = vec![0; 29];
        (by_power[0], by_power[4], by_power[5], by_power[26]) = (1, 3, 1, 1);
        let wait = WaitNs { count: 6, mean: 500.0, by_power, ..WaitNs::default() };
        stage.add(&wait);
        stage.add(&wait);
        let h = stage.histogram();
        assert_eq!(h.buckets.first(), Some(&(1.024e-6, 8)));
        assert_eq!(h.buckets.get(1), Some(&(2.048e-6, 10)));
        assert_eq!(h.buckets.last(), Some(&(1.073741824, 10)), "seconds are above every bound");
        assert_eq!((h.count, h.sum), (12, 6e-6));
    }
}
