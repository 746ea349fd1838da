//! Growth of one process's counts, over all CPUs that it reads on.

use model::{Reading, watch::WaitNs};

use crate::bpf::waits::{BUCKETS, ProcessState, STAGES, wait_ns};

/// What one process's counts grew by.
#[derive(Debug)]
pub struct ProcessDeltas {
    buckets: [[u64; BUCKETS]; STAGES],
    sum_ns: [u64; STAGES],
    /// Reads that found data.
    pub found: u64,
    /// Reads that were late.
    pub late: u64,
    pub reads: u64,
    name: [u8; 16],
}

impl Default for ProcessDeltas {
    fn default() -> Self {
        Self {
            buckets: [[0; BUCKETS]; STAGES],
            sum_ns: [0; STAGES],
            found: 0,
            late: 0,
            reads: 0,
            name: [0; 16],
        }
    }
}

impl ProcessDeltas {
    /// Adds one CPU's growth and says by how many reads.
    pub fn add(&mut self, now: &ProcessState, before: Option<&ProcessState>) -> u64 {
        let none = ProcessState::default();
        let before = before.unwrap_or(&none);
        for (sum, (now, then)) in self.sum_ns.iter_mut().zip(now.sum_ns.iter().zip(&before.sum_ns))
        {
            *sum += now.wrapping_sub(*then);
        }
        let cells = now.buckets.iter().flatten().zip(before.buckets.iter().flatten());
        for (n, (now, then)) in self.buckets.iter_mut().flatten().zip(cells) {
            *n += u64::from(now.wrapping_sub(*then));
        }
        let found = now.found.wrapping_sub(before.found);
        let late = now.late.wrapping_sub(before.late);
        let copies = |s: &ProcessState| {
            s.buckets.last().map_or(0, |b| b.iter().fold(0u32, |a, n| a.wrapping_add(*n)))
        };
        let reads = found + late + u64::from(copies(now).wrapping_sub(copies(before)));
        self.found += found;
        self.late += late;
        self.reads += reads;
        self.name = now.name;
        reads
    }

    /// One stage's distribution; `None` without events.
    pub fn wait(&self, stage: usize) -> Reading<WaitNs> {
        let both = self.buckets.get(stage).zip(self.sum_ns.get(stage));
        match both.map(|(buckets, sum)| wait_ns(buckets, *sum)).filter(|w| w.count > 0) {
            Some(wait) => Reading::Known(wait),
            None => Reading::absent("none was observed in this interval"),
        }
    }

    /// The name of one of its threads that read.
    pub fn name(&self) -> String {
        let name = self.name.split(|b| *b == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_of_which_nothing_was_observed_is_absent() {
        let mut now = ProcessState::default();
        now.buckets[4][9] = 2;
        now.sum_ns[4] = 20;
        let mut grown = ProcessDeltas::default();
        assert_eq!(grown.add(&now, None), 2);
        for stage in 0..4 {
            assert!(!grown.wait(stage).is_known(), "stage {stage}: {:?}", grown.wait(stage));
        }
        assert_eq!(grown.wait(4).known().map(|w| w.count), Some(2));
    }

    #[test]
    fn counts_that_wrap_have_grown_by_what_was_added() {
        let (mut before, mut now) = (ProcessState::default(), ProcessState::default());
        // The programs count in 32 bits, and add time in 64.
        (before.buckets[4][9], now.buckets[4][9]) = (u32::MAX - 1, 3);
        (before.buckets[4][10], now.buckets[4][10]) = (7, 8);
        (before.sum_ns[4], now.sum_ns[4]) = (u64::MAX - 99, 400);
        (before.found, now.found) = (before.found.wrapping_sub(2), 1);
        (before.late, now.late) = (before.late.wrapping_sub(1), 0);
        let mut grown = ProcessDeltas::default();
        assert_eq!(grown.add(&now, Some(&before)), 3 + 1 + 6);
        let wait = grown.wait(4).into_known().unwrap();
        assert_eq!((wait.count, grown.found, grown.late), (6, 3, 1));
        assert!((wait.mean - 500.0 / 6.0).abs() < 1e-9, "{}", wait.mean);
    }
}
