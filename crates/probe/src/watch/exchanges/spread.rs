//! Rates from partial observation: each interval counts by its own observed share.
//!
//! A busy interval is observed for a shorter time than an idle one, as it costs more. Dividing all
//! counts by all observed time would overweight idle intervals. So each interval's count is divided
//! by its own share (Horvitz and Thompson, JASA 47, 1952), and the sum by the window.

use std::collections::BTreeMap;

/// Counts by name so far, and what they come to had all of the time been observed.
#[derive(Debug)]
pub struct Spread<K> {
    counted: BTreeMap<K, u64>,
    whole: BTreeMap<K, f64>,
    observed_ns: f64,
}

impl<K> Default for Spread<K> {
    fn default() -> Self {
        Self { counted: BTreeMap::new(), whole: BTreeMap::new(), observed_ns: 0.0 }
    }
}

impl<K: Ord + Copy> Spread<K> {
    /// An interval of this length ended, observed in this share; `counts` are those since the
    /// beginning.
    pub fn add(&mut self, counts: impl Iterator<Item = (K, u64)>, length_ns: u64, share: f64) {
        self.observed_ns += length_ns as f64 * share;
        // Without observation nothing is counted; a count from a race counts once.
        let part = if share > 0.0 { share.min(1.0) } else { 1.0 };
        for (of, count) in counts {
            let before = self.counted.insert(of, count).unwrap_or(0);
            let grown = count.saturating_sub(before) as f64;
            if grown > 0.0 {
                *self.whole.entry(of).or_default() += grown / part;
            }
        }
    }

    /// So much in all of the time.
    pub fn whole(&self, of: &K) -> f64 {
        self.whole.get(of).copied().unwrap_or(0.0)
    }

    /// For how long it was observed, nanoseconds.
    pub fn observed_ns(&self) -> f64 {
        self.observed_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_second_weighs_no_more_than_a_busy_one() {
        let mut spread = Spread::default();
        // 20,000 a second, of which a tenth is seen; then nothing, which is seen whole.
        spread.add([("a", 2_000)].into_iter(), 1_000_000_000, 0.1);
        spread.add([("a", 2_000)].into_iter(), 1_000_000_000, 1.0);
        assert!((spread.whole(&"a") - 20_000.0).abs() < 1e-6);
        assert!((spread.observed_ns() - 1.1e9).abs() < 1.0);
        // Another that began later, and one that never was.
        spread.add([("a", 2_000), ("b", 50)].into_iter(), 1_000_000_000, 0.5);
        assert!((spread.whole(&"b") - 100.0).abs() < 1e-9);
        assert!(spread.whole(&"c").abs() < 1e-9);
    }
}
