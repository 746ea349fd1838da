//! The buckets in which the program counts times: up to 64 ns, then four to each power of two.

use model::watch::WaitNs;

const FIRST_EXPONENT: usize = WaitNs::FIRST_POWER;
const EXPONENTS: usize = 28;

pub const BUCKETS: usize = 1 + 4 * EXPONENTS;

/// Where a bucket ends, nanoseconds; the last one has no end and gives its beginning of the next.
fn end(bucket: usize) -> u64 {
    match bucket.checked_sub(1) {
        None => 1 << FIRST_EXPONENT,
        Some(above) => {
            let (exponent, quarter) = (FIRST_EXPONENT + above / 4, (above % 4) as u64);
            (1 << exponent) + (quarter + 1) * (1 << (exponent - 2))
        }
    }
}

/// What a distribution says.
pub fn wait_ns(buckets: &[u64; BUCKETS], sum_ns: u64) -> WaitNs {
    let count: u64 = buckets.iter().sum();
    let quantile = |share: f64| {
        let rank = (count as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let mut passed = buckets.iter().map(|n| {
            seen += n;
            seen
        });
        passed.position(|seen| seen >= rank).map_or(0, end)
    };
    WaitNs {
        count,
        mean: if count == 0 { 0.0 } else { sum_ns as f64 / count as f64 },
        p50: quantile(0.5),
        p90: quantile(0.9),
        p99: quantile(0.99),
        max: buckets.iter().rposition(|n| *n > 0).map_or(0, end),
        by_power: by_power(buckets),
    }
}

/// The four buckets of each power of two together, up to the last one with a value; the first one is
/// alone.
fn by_power(buckets: &[u64; BUCKETS]) -> Vec<u64> {
    let [first, rest @ ..] = buckets;
    let powers = rest.chunks(4).map(|four| four.iter().sum());
    let all: Vec<u64> = std::iter::once(*first).chain(powers).collect();
    let end = all.iter().rposition(|n| *n > 0).map_or(0, |last| last + 1);
    all.into_iter().take(end).collect()
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
        (1 + 4 * (exponent - FIRST_EXPONENT) + ((ns >> (exponent - 2)) & 3) as usize)
            .min(BUCKETS - 1)
    }

    #[test]
    fn ends_bound_what_falls_into_their_bucket() {
        for ns in (0..2_000).chain((11..33).flat_map(|e| [(1 << e) - 1, 1 << e, (5 << e) / 4])) {
            let bucket = bucket_of(ns);
            assert!(ns < end(bucket), "{ns} in {bucket}");
            assert!(bucket == 0 || ns >= end(bucket - 1), "{ns} in {bucket}");
        }
    }

    #[test]
    fn quantiles_are_ends_of_buckets_and_never_below_the_truth() {
        let mut buckets = [0; BUCKETS];
        for ns in 1..=1_000u64 {
            buckets[bucket_of(ns * 100)] += 1;
        }
        let wait = wait_ns(&buckets, 50_050_000);
        assert_eq!(wait.by_power.iter().sum::<u64>(), wait.count);
        // Of 100, 200, … those from 65,536 ns on, below 131,072 ns.
        assert_eq!(wait.by_power[17 - WaitNs::FIRST_POWER], 1000 - 655);
        assert_eq!(wait.count, 1_000);
        assert!((wait.mean - 50_050.0).abs() < 1e-9);
        for (said, truth) in
            [(wait.p50, 50_000), (wait.p90, 90_000), (wait.p99, 99_000), (wait.max, 100_000)]
        {
            assert!(said > truth && said <= truth * 5 / 4 + 1, "{said} for {truth}");
        }
        assert_eq!(wait_ns(&[0; BUCKETS], 0), WaitNs::default());
    }
}
