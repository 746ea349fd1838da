//! Scheduled probes of peers: the only series with a peer in a label, for each that was asked for.

use model::measure::Quantiles;

use crate::{
    Family, Kind,
    family::{Summary, Value, seconds},
};

/// What the probes of one target measured since the exporter started.
#[derive(Debug, Clone)]
pub struct ProbeTotals {
    target: String,
    /// Round trips of all probes: how many, and the nanoseconds that they took.
    count: u64,
    sum_ns: f64,
    succeeded: u64,
    failed: u64,
    /// The last probe, where one has ended; its quantiles, where it succeeded.
    last: Option<Option<Quantiles>>,
}

impl ProbeTotals {
    /// No probe yet, of a target that is called as the operator wrote it.
    pub fn new(target: String) -> Self {
        Self { target, count: 0, sum_ns: 0.0, succeeded: 0, failed: 0, last: None }
    }

    /// A probe ended; `None`: without a round trip.
    pub fn add(&mut self, round_trips: Option<Quantiles>) {
        match &round_trips {
            Some(q) => {
                self.succeeded += 1;
                self.count += q.count;
                self.sum_ns += q.mean * q.count as f64;
            }
            None => self.failed += 1,
        }
        self.last = Some(round_trips);
    }

    fn summary(&self) -> Option<Summary> {
        let last = self.last.as_ref().and_then(Option::as_ref);
        let of =
            |q: &Quantiles| [(0.0, q.min), (0.5, q.p50), (0.9, q.p90), (0.99, q.p99), (1.0, q.max)];
        let quantiles = last.map(of).into_iter().flatten().map(|(at, ns)| (at, seconds(ns)));
        let quantiles = quantiles.collect();
        (self.succeeded > 0).then_some(Summary {
            quantiles,
            sum: self.sum_ns / 1e9,
            count: self.count,
        })
    }
}

/// The families of all probes.
pub(crate) fn probe_families(probes: &[ProbeTotals]) -> Vec<Family> {
    let mut success = Family::gauge(
        "netwright_probe_success",
        "Whether the last probe of a target succeeded: 1, otherwise 0.",
    );
    let mut runs = Family::counter(
        "netwright_probes",
        "Probes of a target since the exporter started, by result.",
    );
    let mut times = Family::new(
        Kind::Summary,
        "netwright_probe_rtt_seconds",
        "Round trips of a target: quantiles of its last probe, sum and count of all since the \
         exporter started.",
    );
    for probe in probes {
        let target = ("target", probe.target.as_str());
        success.count(&[target], probe.last.as_ref().map(|last| u64::from(last.is_some())));
        runs.count(&[target, ("result", "success")], Some(probe.succeeded));
        runs.count(&[target, ("result", "failure")], Some(probe.failed));
        if let Some(summary) = probe.summary() {
            times.add(&[target], Value::Summary(summary));
        }
    }
    vec![success, runs, times]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_last_probe_and_the_sum_is_of_all() {
        let mut probe = ProbeTotals::new("rtt://db1".into());
        let of = |count, p50| Quantiles { count, p50, mean: p50 as f64, ..Quantiles::default() };
        probe.add(Some(of(2, 1_000)));
        probe.add(Some(of(3, 2_000)));
        let summary = probe.summary().unwrap();
        assert_eq!((summary.count, summary.sum), (5, 8e-6));
        assert!(summary.quantiles.contains(&(0.5, 2e-6)));
        probe.add(None);
        let summary = probe.summary().unwrap();
        assert_eq!((summary.count, summary.quantiles.len()), (5, 0), "the last one has none");
        let [success, runs, _] = probe_families(&[probe]).try_into().unwrap();
        assert_eq!(success.series[0].value, Value::Count(0), "the last one failed");
        assert_eq!(runs.series.len(), 2);
    }
}
