//! Evidence that may be looked at after every block: a test martingale on the effects' signs.
//!
//! Its value (an e-value) starts at 1 and is multiplied after each block by 1 plus or minus a
//! stake. Where the sign is a fair coin's, it does not grow on average, however the stakes depend
//! on the sizes and on the past. So it exceeds 100 in at most one of 100 experiments, ever
//! (Ville, Étude critique de la notion de collectif, 1939; Ramdas, Grünwald, Vovk and Shafer,
//! "Game-theoretic statistics and safe anytime-valid inference", Statistical Science 38, 2023).
//! That is what lets an experiment stop when the answer is clear.
//!
//! The stake is tanh(c x), where x is the effect over the median size of those so far, cut at 2:
//! an outlier loses no more than a large one. Three c on both sides, by even shares.

/// The c of the stakes: small for small effects, large for clear ones.
const STAKES: [f64; 3] = [0.3, 1.0, 3.0];

/// From here on a size counts no more.
const CUT: f64 = 2.0;

/// Two one-sided test martingales over the blocks' effects.
#[derive(Debug, Clone, Default)]
pub struct TestMartingale {
    sizes: Vec<f64>,
    up: OneSided,
    down: OneSided,
}

/// The martingale that grows with one sign: the mean over the stakes.
#[derive(Debug, Clone)]
struct OneSided {
    e_values: [f64; 3],
    /// The largest mean so far.
    most: f64,
}

impl Default for OneSided {
    fn default() -> Self {
        Self { e_values: [1.0; 3], most: 1.0 }
    }
}

impl OneSided {
    fn take(&mut self, x: f64) {
        for (e_value, c) in self.e_values.iter_mut().zip(STAKES) {
            *e_value *= 1.0 + (c * x).tanh();
        }
        self.most = self.most.max(self.now());
    }

    fn now(&self) -> f64 {
        self.e_values.iter().sum::<f64>() / STAKES.len() as f64
    }
}

impl TestMartingale {
    /// Over all these effects, each less `shift`: against the effect being `shift`.
    pub fn on(effects: &[f64], shift: f64) -> Self {
        let mut all = Self::default();
        effects.iter().for_each(|d| all.take(d - shift));
        all
    }

    pub fn take(&mut self, effect: f64) {
        let size = effect.abs();
        self.sizes.insert(self.sizes.partition_point(|s| *s < size), size);
        let median = self.sizes.get(self.sizes.len() / 2).copied().unwrap_or(0.0);
        let x =
            if median > 0.0 { effect / median } else { effect.signum() * f64::from(size > 0.0) };
        let x = x.clamp(-CUT, CUT);
        self.up.take(x);
        self.down.take(-x);
    }

    /// The p-value against "no effect", valid at any time: one over the largest e-value so far of
    /// both sides by even shares.
    pub fn p_value(&self) -> f64 {
        // The two sides rise at different times; half of the larger is what their mean had at
        // least.
        (2.0 / self.up.most.max(self.down.most)).min(1.0)
    }

    /// The p-value against the effect being the shift or less.
    pub fn p_not_above(&self) -> f64 {
        (1.0 / self.up.most).min(1.0)
    }

    /// The p-value against the effect being the shift or more.
    pub fn p_not_below(&self) -> f64 {
        (1.0 / self.down.most).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    #[test]
    fn whoever_looks_after_each_of_500_coins_is_fooled_as_rarely_as_promised() {
        const RUNS: u64 = 2_000;
        let fooled = (0..RUNS).filter(|seed| {
            let (mut random, mut test) = (SplitMix64::new(*seed), TestMartingale::default());
            (0..500).for_each(|_| test.take(random.normal().powi(3)));
            test.p_value() <= 0.05
        });
        let fooled = fooled.count();
        assert!((10..=100).contains(&fooled), "{fooled} of {RUNS}");
    }

    #[test]
    fn clear_effects_need_about_ten_blocks_and_outliers_cost_little() {
        let needed = |outlier: Option<usize>| {
            let mut test = TestMartingale::default();
            (0..200usize).position(|i| {
                let typical = 1.0 + 0.01 * (i % 7) as f64;
                test.take(if outlier == Some(i) { -100.0 } else { typical });
                test.p_value() <= 0.01
            })
        };
        assert!(needed(None).unwrap() <= 12, "{:?}", needed(None));
        assert!(needed(Some(3)).unwrap() <= 25, "{:?}", needed(Some(3)));
    }

    #[test]
    fn nothing_says_nothing() {
        assert_eq!(TestMartingale::on(&[0.0; 30], 0.0).p_value(), 1.0);
        let above = TestMartingale::on(&[1.0; 30], 0.5);
        assert!(above.p_not_above() < 1e-4 && above.p_not_below() == 1.0);
    }
}
