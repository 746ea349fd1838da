//! The page of a host in a mesh: its pairs, and whether its own CPU was throttled.

use model::{Reading, mesh::QuotaUse};

use crate::{
    Family,
    family::seconds,
    host::{self, Process},
    probes::{ProbeTotals, probe_families},
};

/// What one page of `netwright mesh` is made of.
#[derive(Debug)]
pub struct MeshScrape<'a> {
    /// Peers in the list; `None` where it could not be read.
    pub peers: Option<usize>,
    /// The program's CPU quota since its cgroup was made, read for this scrape.
    pub quota: Reading<Option<QuotaUse>>,
    /// The pairs that this host measures.
    pub probes: &'a [ProbeTotals],
    pub process: Process,
    pub version: &'a str,
}

/// The families of a scrape: 7 series and 12 for each target.
pub fn mesh(scrape: &MeshScrape<'_>) -> Vec<Family> {
    let mut all = host::own("mesh", scrape.version, &scrape.process);
    let mut peers = Family::gauge("netwright_mesh_peers", "Peers in the list, this host included.");
    peers.count(&[], scrape.peers.map(|n| n as u64));
    let mut periods = Family::counter(
        "netwright_mesh_throttled_periods",
        "Periods in which the CPU quota of this program was used up, since its cgroup was made.",
    );
    let mut time = Family::counter(
        "netwright_mesh_throttled_seconds",
        "Time for which this program's cgroup was kept from running, since it was made.",
    );
    if let Reading::Known(Some(quota)) = scrape.quota {
        periods.count(&[], Some(quota.throttled_periods));
        time.number(&[], Some(seconds(quota.throttled_ns.0)));
    }
    all.extend([peers, periods, time]);
    all.extend(probe_families(scrape.probes));
    all
}

#[cfg(test)]
mod tests {
    use model::{Nanos, measure::Quantiles};

    use super::*;
    use crate::{family::Value, text};

    fn pair(target: &str) -> ProbeTotals {
        let mut pair = ProbeTotals::of_pair("a".into(), target.into());
        pair.add(Some(Quantiles { count: 90, p50: 2_000, ..Quantiles::default() }));
        pair.sent(90, 10);
        pair
    }

    #[test]
    fn a_page_has_12_series_for_each_target_and_7_others() {
        let quota = QuotaUse { periods: 9, throttled_periods: 4, throttled_ns: Nanos(500_000_000) };
        for count in [1, 3, 16] {
            let probes: Vec<_> = (0..count).map(|n| pair(&format!("peer{n}"))).collect();
            let process = Process { cpu_s: Some(1.0), resident_bytes: Some(1), start_unix_s: 1.0 };
            let quota = Reading::Known(Some(quota));
            let scrape =
                MeshScrape { peers: Some(1000), quota, probes: &probes, process, version: "1" };
            let page = text::page(&mesh(&scrape), text::Format::Prometheus);
            let series = page.lines().filter(|l| !l.starts_with('#')).count();
            assert_eq!(series, 7 + 12 * count, "{page}");
            let of = "{source=\"a\",target=\"peer0\"";
            for line in [
                &format!("netwright_probe_datagrams_total{of},result=\"lost\"}} 10\n"),
                &format!("netwright_probe_success{of}}} 1\n"),
                &format!("netwright_probe_rtt_seconds{of},quantile=\"0.5\"}} 2e-6\n"),
                "netwright_mesh_throttled_seconds_total 0.5\n",
                "netwright_mesh_throttled_periods_total 4\n",
                "netwright_mesh_peers 1000\n",
                "netwright_build_info{command=\"mesh\",version=\"1\"} 1\n",
            ] {
                assert!(page.contains(line), "{line}{page}");
            }
        }
    }

    #[test]
    fn without_a_quota_and_a_list_nothing_is_claimed() {
        let mut down = ProbeTotals::of_pair("a".into(), "b".into());
        down.add(None);
        let scrape = MeshScrape {
            peers: None,
            quota: Reading::Known(None),
            probes: &[down],
            process: Process::default(),
            version: "1",
        };
        let all = mesh(&scrape);
        let series = |name: &str| &all.iter().find(|f| f.name == name).unwrap().series;
        assert!(series("netwright_mesh_throttled_periods").is_empty());
        assert!(series("netwright_mesh_peers").is_empty());
        assert_eq!(series("netwright_probe_success")[0].value, Value::Count(0));
        assert!(series("netwright_probe_rtt_seconds").is_empty());
    }
}
