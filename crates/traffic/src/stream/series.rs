//! Received bytes over time, for the rate's confidence interval: sampled by another thread, in
//! bounded memory.

/// Most samples kept; beyond that every second one is dropped.
const MOST: usize = 512;

/// Initial time between two samples.
pub const EVERY_NS: u64 = 50_000_000;

/// Sample times, and bytes received until each.
#[derive(Debug, Clone)]
pub struct Series {
    looks: Vec<(u64, u64)>,
    every_ns: u64,
}

impl Default for Series {
    fn default() -> Self {
        Self { looks: Vec::with_capacity(MOST), every_ns: EVERY_NS }
    }
}

impl Series {
    /// Adds a sample, unless the last one is too recent.
    pub fn note(&mut self, at_ns: u64, bytes: u64) {
        let last = self.looks.last().map_or(0, |l| l.0);
        if !self.looks.is_empty() && at_ns.saturating_sub(last) < self.every_ns - EVERY_NS / 2 {
            return;
        }
        if self.looks.len() >= MOST {
            let mut at = 0;
            self.looks.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every_ns *= 2;
        }
        self.looks.push((at_ns, bytes));
    }

    /// Samples within a window.
    pub fn within(&self, from_ns: u64, to_ns: u64) -> Vec<(u64, u64)> {
        let inside = |l: &&(u64, u64)| l.0 >= from_ns && l.0 <= to_ns;
        self.looks.iter().filter(inside).copied().collect()
    }
}

/// Bits per second between neighboring samples, and their mean spacing in nanoseconds.
pub fn rates(looks: &[(u64, u64)]) -> (Vec<f64>, u64) {
    let rate = |pair: &[(u64, u64)]| match pair {
        [(t, b), (u, c)] if u > t => Some(c.saturating_sub(*b) as f64 * 8e9 / (u - t) as f64),
        _ => None,
    };
    let all: Vec<f64> = looks.windows(2).filter_map(rate).collect();
    let span = match (looks.first(), looks.last()) {
        (Some((a, _)), Some((b, _))) => b.saturating_sub(*a),
        _ => 0,
    };
    let each = span / (all.len() as u64).max(1);
    (all, each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_does_not_grow_and_rates_stay() {
        let mut s = Series::default();
        for n in 0..10_000u64 {
            s.note(n * EVERY_NS, n * 1000);
            s.note(n * EVERY_NS + 1, n * 1000);
        }
        let looks = s.within(0, u64::MAX);
        assert!(looks.len() <= MOST && looks.len() >= MOST / 2 - 1, "{}", looks.len());
        let (rates, each) = rates(&looks);
        assert!(rates.iter().all(|r| (r - 160_000.0).abs() < 1.0), "{rates:?}");
        assert!(each.is_multiple_of(EVERY_NS) && each >= 16 * EVERY_NS, "{each}");
        assert_eq!(super::rates(&[]), (vec![], 0));
    }

    #[test]
    fn only_what_lies_within() {
        let mut s = Series::default();
        (1..10u64).for_each(|n| s.note(n * EVERY_NS, n));
        assert_eq!(s.within(2 * EVERY_NS, 3 * EVERY_NS), [(2 * EVERY_NS, 2), (3 * EVERY_NS, 3)]);
    }
}
