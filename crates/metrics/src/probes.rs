//! Scheduled probes of peers: the only series with a peer in a label, for each that was asked for, and
//! for each target of a host in a mesh.

use model::measure::Quantiles;

use crate::{
    Family, Kind,
    family::{Summary, Value, seconds},
};

/// What the probes of one target measured since the exporter started.
#[derive(Debug, Clone)]
pub struct ProbeTotals {
    /// `target`; in a mesh before it `source`, which is this host.
    labels: Vec<(&'static str, String)>,
    /// Round trips of all probes: how many, and the nanoseconds that they took.
    count: u64,
    sum_ns: f64,
    succeeded: u64,
    failed: u64,
    /// The last probe, where one has ended; its quantiles, where it succeeded.
    last: Option<Option<Quantiles>>,
    /// Datagrams of all probes, answered and lost; `None` where none are sent.
    datagrams: Option<[u64; 2]>,
}

impl ProbeTotals {
    /// No probe yet, of a target that is called as the operator wrote it.
    pub fn new(target: String) -> Self {
        Self {
            labels: vec![("target", target)],
            count: 0,
            sum_ns: 0.0,
            succeeded: 0,
            failed: 0,
            last: None,
            datagrams: None,
        }
    }

    /// No probe yet, of a pair in a mesh, which are called as the list of peers calls them.
    pub fn of_pair(source: String, target: String) -> Self {
        let labels = vec![("source", source), ("target", target)];
        Self { labels, datagrams: Some([0; 2]), ..Self::new(String::new()) }
    }

    /// Counts the datagrams of a probe.
    pub fn sent(&mut self, answered: u64, lost: u64) {
        let [answered_before, lost_before] = self.datagrams.unwrap_or_default();
        self.datagrams = Some([answered_before + answered, lost_before + lost]);
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
    let mut datagrams = Family::counter(
        "netwright_probe_datagrams",
        "Datagrams to a target since the exporter started, by result: an answer in time, or none.",
    );
    for probe in probes {
        let of: Vec<(&str, &str)> = probe.labels.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let result = |result| [&of[..], &[("result", result)]].concat();
        success.count(&of, probe.last.as_ref().map(|last| u64::from(last.is_some())));
        runs.count(&result("success"), Some(probe.succeeded));
        runs.count(&result("failure"), Some(probe.failed));
        if let Some(summary) = probe.summary() {
            times.add(&of, Value::Summary(summary));
        }
        if let Some([answered, lost]) = probe.datagrams {
            datagrams.count(&result("answered"), Some(answered));
            datagrams.count(&result("lost"), Some(lost));
        }
    }
    vec![success, runs, times, datagrams]
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
        let [success, runs, ..] = &probe_families(&[probe])[..] else { panic!() };
        assert_eq!(success.series[0].value, Value::Count(0), "the last one failed");
        assert_eq!(runs.series.len(), 2);
    }
}
