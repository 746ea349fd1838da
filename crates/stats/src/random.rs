//! A small generator of numbers that look random, for resampling with a fixed seed: the same
//! data give the same interval.

/// SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014. Passes BigCrush; not for secrets.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// From a seed; every seed is good.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Evenly from 0 up to but not 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Evenly from 0 up to but not `n`; 0 when `n` is 0. By multiplication (Lemire 2019)
    /// without its rejection step: the error is below `n / 2^64`.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
pub(crate) mod draws {
    //! Distributions for tests that inject a truth.
    use super::SplitMix64;

    impl SplitMix64 {
        /// Standard normal (Box and Muller 1958).
        pub(crate) fn normal(&mut self) -> f64 {
            let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
            radius * (std::f64::consts::TAU * self.unit()).cos()
        }

        /// Exponential of mean 1.
        pub(crate) fn exponential(&mut self) -> f64 {
            -(1.0 - self.unit()).ln()
        }

        /// Lognormal by its median and the deviation of its logarithm.
        pub(crate) fn lognormal(&mut self, median: f64, sigma: f64) -> f64 {
            median * (sigma * self.normal()).exp()
        }
    }

    /// A stationary first-order autoregressive series of unit variance.
    pub(crate) struct Ar1 {
        random: SplitMix64,
        phi: f64,
        x: f64,
    }

    impl Ar1 {
        pub(crate) fn new(phi: f64, seed: u64) -> Self {
            let mut random = SplitMix64::new(seed);
            let x = random.normal();
            Self { random, phi, x }
        }

        pub(crate) fn draw(&mut self) -> f64 {
            self.x = self.phi * self.x + (1.0 - self.phi * self.phi).sqrt() * self.random.normal();
            self.x
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_published_numbers() {
        // The reference program's first outputs for seed 1234567 (prng.di.unimi.it).
        let mut r = SplitMix64::new(1_234_567);
        let got: Vec<u64> = (0..3).map(|_| r.bits()).collect();
        assert_eq!(
            got,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn draws_are_even_and_within() {
        let mut r = SplitMix64::new(1);
        let mut seen = [0u32; 7];
        (0..70_000).for_each(|_| seen[r.below(7)] += 1);
        assert!(seen.iter().all(|n| (9_500..10_500).contains(n)), "{seen:?}");
        assert_eq!(r.below(0), 0);
        let mean = (0..10_000).map(|_| r.unit()).sum::<f64>() / 10_000.0;
        assert!((0.49..0.51).contains(&mean), "{mean}");
    }
}
