//! The buckets in which the programs count times: up to 64 ns, then 16 to each power of two.

use model::passive::TimesNs;

const FIRST_EXPONENT: usize = 6;
const EXPONENTS: usize = 28;
const STEPS: usize = 16;

pub const BUCKETS: usize = 1 + STEPS * EXPONENTS;

/// Where a bucket begins and ends, nanoseconds; the last one has no end and gives its width's.
fn bounds(bucket: usize) -> (u64, u64) {
    match bucket.checked_sub(1) {
        None => (0, 1 << FIRST_EXPONENT),
        Some(above) => {
            let (exponent, step) = (FIRST_EXPONENT + above / STEPS, (above % STEPS) as u64);
            let width = 1 << (exponent - 4);
            let begin = (1 << exponent) + step * width;
            (begin, begin + width)
        }
    }
}

/// What a distribution says; none of nothing. A quantile is its bucket's middle, at most 3% off;
/// one that so few cannot support is left out.
pub fn times(buckets: &[u32; BUCKETS], sum_ns: u64) -> Option<TimesNs> {
    let count: u64 = buckets.iter().map(|n| u64::from(*n)).sum();
    let quantile = |share: f64| {
        let rank = (count as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let mut passed = buckets.iter().map(|n| {
            seen += u64::from(*n);
            seen
        });
        passed.position(|seen| seen >= rank).map_or(0, |bucket| {
            let (begin, end) = bounds(bucket);
            begin.midpoint(end)
        })
    };
    (count > 0).then(|| TimesNs {
        count,
        mean: sum_ns as f64 / count as f64,
        p50: quantile(0.5),
        p90: (count >= 10).then(|| quantile(0.9)),
        p99: (count >= 100).then(|| quantile(0.99)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the program's `bucket_of` computes it, to compare both.
    fn bucket_of(ns: u64) -> usize {
        if ns < 64 {
            return 0;
        }
        let exponent = ns.ilog2() as usize;
        (1 + STEPS * (exponent - FIRST_EXPONENT) + ((ns >> (exponent - 4)) & 15) as usize)
            .min(BUCKETS - 1)
    }

    #[test]
    fn bounds_hold_what_falls_into_their_bucket() {
        for ns in (0..5_000).chain((13..34).flat_map(|e| [(1 << e) - 1, 1 << e, (5 << e) / 4])) {
            let (begin, end) = bounds(bucket_of(ns));
            assert!((begin..end).contains(&ns), "{ns} in {begin}..{end}");
        }
    }

    #[test]
    fn quantiles_are_near_the_truth_and_only_those_that_are_supported() {
        let mut buckets = [0; BUCKETS];
        for ns in 1..=1_000u64 {
            buckets[bucket_of(ns * 1_000)] += 1;
        }
        let reported = times(&buckets, 500_500_000).unwrap();
        assert_eq!(reported.count, 1_000);
        assert!((reported.mean - 500_500.0).abs() < 1e-9);
        for (said, truth) in [
            (reported.p50, 500_000.0),
            (reported.p90.unwrap(), 900_000.0),
            (reported.p99.unwrap(), 990_000.0),
        ] {
            assert!((said as f64 / truth - 1.0).abs() < 0.035, "{said} for {truth}");
        }
        let mut few = [0; BUCKETS];
        few[bucket_of(7_000)] = 9;
        let reported = times(&few, 63_000).unwrap();
        assert_eq!((reported.p90, reported.p99), (None, None));
        assert_eq!(times(&[0; BUCKETS], 0), None);
    }
}
