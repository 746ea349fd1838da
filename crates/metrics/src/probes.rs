//! Scheduled probes of peers: the only series with a peer in a label, for each that was asked for.

use crate::{
    Family, Kind,
    family::{Histogram, Value, seconds},
};

/// Upper bounds of round trips: 2^13 ns (8.2 µs) to 2^33 ns (8.6 s), each twice the one before.
const BOUNDS: std::ops::RangeInclusive<u32> = 13..=33;

/// What the probes of one target measured since the exporter started.
#[derive(Debug, Clone)]
pub struct ProbeTotals {
    target: String,
    /// Round trips by bound, not cumulative.
    counts: Vec<u64>,
    above: u64,
    sum_ns: f64,
    succeeded: u64,
    failed: u64,
    last: Option<bool>,
}

impl ProbeTotals {
    /// Nothing yet, of this target as it was asked for.
    pub fn new(target: String) -> Self {
        let counts = vec![0; BOUNDS.count()];
        Self { target, counts, above: 0, sum_ns: 0.0, succeeded: 0, failed: 0, last: None }
    }

    /// A probe that succeeded, with how many round trips took how many nanoseconds.
    pub fn succeed(&mut self, round_trips: impl Iterator<Item = (u64, u64)>) {
        for (ns, count) in round_trips {
            let at = BOUNDS.clone().position(|exponent| ns <= 1 << exponent);
            match at.and_then(|at| self.counts.get_mut(at)) {
                Some(sum) => *sum += count,
                None => self.above += count,
            }
            self.sum_ns += ns as f64 * count as f64;
        }
        self.succeeded += 1;
        self.last = Some(true);
    }

    /// A probe that had no answer.
    pub fn fail(&mut self) {
        self.failed += 1;
        self.last = Some(false);
    }

    fn histogram(&self) -> Histogram {
        let mut count = 0;
        let bounds = BOUNDS.map(|exponent| seconds(1 << exponent));
        let buckets = bounds.zip(&self.counts).map(|(bound, n)| {
            count += n;
            (bound, count)
        });
        let buckets: Vec<(f64, u64)> = buckets.collect();
        Histogram { buckets, sum: self.sum_ns / 1e9, count: count + self.above }
    }
}

/// The families of all probes.
pub fn families(probes: &[ProbeTotals]) -> Vec<Family> {
    let mut success = Family::gauge(
        "netwright_probe_success",
        "Whether the last probe of a target succeeded: 1, otherwise 0.",
    );
    let mut runs = Family::counter(
        "netwright_probes",
        "Probes of a target since the exporter started, by result.",
    );
    let mut times = Family::new(
        Kind::Histogram,
        "netwright_probe_rtt_seconds",
        "Round trips of a target's probes since the exporter started.",
    );
    for probe in probes {
        let target = ("target", probe.target.as_str());
        success.count(&[target], probe.last.map(u64::from));
        runs.count(&[target, ("result", "success")], Some(probe.succeeded));
        runs.count(&[target, ("result", "failure")], Some(probe.failed));
        if probe.succeeded > 0 {
            times.add(&[target], Value::Histogram(probe.histogram()));
        }
    }
    vec![success, runs, times]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_in_the_bucket_that_it_does_not_exceed() {
        let mut probe = ProbeTotals::new("rtt://db1".into());
        probe.succeed([(8_192, 2), (8_193, 1), (20_000_000_000, 1)].into_iter());
        probe.fail();
        let h = probe.histogram();
        assert_eq!(h.buckets.first(), Some(&(8.192e-6, 2)));
        assert_eq!(h.buckets.get(1), Some(&(16.384e-6, 3)));
        assert_eq!((h.buckets.last().map(|b| b.1), h.count), (Some(3), 4));
        assert!((h.sum - 20.000_024_577).abs() < 1e-9, "{}", h.sum);
        let [success, runs, _] = families(&[probe]).try_into().unwrap();
        assert_eq!(success.series[0].value, Value::Count(0), "the last one failed");
        assert_eq!(runs.series.len(), 2);
    }
}
