//! Disturbances of the host during a run: other processes' CPU time, steal time, link changes,
//! frequency changes, throttling, clock steps and suspends.
//!
//! "Others" is the host's CPU time less that of the workload's own processes and of netwright. A
//! server under test counts as others, and a workload may bring links up itself. So a run is judged
//! against other runs of the same level.

use std::time::Instant;

use model::{
    Reading, Samples,
    prove::{Discarded, DuringRun},
    samples::HostChange,
};
use probe::{
    Root,
    samples::{
        clock_changes::ClockChanges,
        host_cpu::{self, HostCpu},
    },
};

/// Steal above this share of the CPU time discards a run.
const MOST_STEAL: f64 = 0.05;

/// How many CPUs others may use above what is usual at this level.
const MOST_MORE: f64 = 0.5;

/// How many runs of a level are needed to know what is usual.
const USUAL_FROM: usize = 5;

/// A CPU frequency below this share of the usual one discards a run.
const SLOW: f64 = 0.8;

/// Steps and suspends shorter than this are ignored: the reader may be delayed between reading two
/// clocks.
const CLOCKS_NS: u64 = 10_000_000;

/// The host's CPU time and clocks before a run.
pub(crate) struct Baseline {
    at: Instant,
    host: Option<HostCpu>,
    clocks: ClockChanges,
}

/// The disturbances during one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RunDisturbance {
    pub(crate) others_cpus: Option<f64>,
    pub(crate) steal_share: Option<f64>,
    pub(crate) host: DuringRun,
    /// Each change of a link; `limits` has those of frequency policies.
    pub(crate) links: Vec<HostChange>,
    pub(crate) limits: Vec<HostChange>,
}

/// Reads the host before a run.
pub(crate) fn baseline(root: &Root) -> Baseline {
    let clocks = ClockChanges::read(root);
    Baseline { host: host_cpu::read(root).into_known(), at: Instant::now(), clocks }
}

impl Baseline {
    /// Reads the host after a run. `own_s` is the workload's own CPU time, seconds.
    pub(crate) fn during(&self, root: &Root, own_s: f64) -> RunDisturbance {
        let passed_s = self.at.elapsed().as_secs_f64();
        let after = host_cpu::read(root).into_known();
        let mut during = self.host_changes(&ClockChanges::read(root));
        let (Some(before), Some(after)) = (self.host, after) else { return during };
        let grown = |of: fn(&HostCpu) -> u64| of(&after).checked_sub(of(&before));
        let busy = grown(|h| h.user.0 + h.nice.0 + h.system.0 + h.irq.0 + h.softirq.0);
        let share = |s: u64| s as f64 / 1e9 / passed_s.max(1e-3);
        // Two ticks of 10 ms are the largest error of a short run's reading.
        during.others_cpus =
            busy.map(|b| (share(b) - (own_s + 0.02) / passed_s.max(1e-3)).max(0.0));
        during.steal_share = grown(|h| h.steal.0).map(|s| share(s) / f64::from(after.cpus.max(1)));
        during
    }

    fn host_changes(&self, after: &ClockChanges) -> RunDisturbance {
        let reported = self.clocks.until(after);
        let limits = reported.limits.into_known();
        RunDisturbance {
            host: DuringRun {
                link_changes: None,
                frequency_khz: after.frequency_khz.get(),
                frequency_changes: limits.as_ref().map(|l| l.len() as u64),
                throttles: reported.throttles.into_known(),
                clock_step_ns: reported
                    .clock_step_ns
                    .into_known()
                    .map(|ns| if ns.unsigned_abs() < CLOCKS_NS { 0 } else { ns }),
                suspended_ns: reported
                    .suspended_ns
                    .into_known()
                    .map(|ns| if ns < CLOCKS_NS { 0 } else { ns }),
            },
            limits: limits.unwrap_or_default(),
            ..RunDisturbance::default()
        }
    }
}

impl RunDisturbance {
    /// Adds the link changes from the counters.
    pub(crate) fn with_links(mut self, samples: Option<&Samples>) -> Self {
        let Some(samples) = samples else { return self };
        let mut changes = samples.nic_changes.len() as u64;
        self.links.extend(samples.nic_changes.iter().cloned());
        for nic in &samples.nics {
            if let Reading::Known(n) = nic.carrier_changes
                && n > 0
            {
                changes += n;
                self.links.push(HostChange::CarrierChanged { nic: nic.name.clone(), times: n });
            }
        }
        self.host.link_changes = Some(changes);
        self
    }
}

/// Why a run is discarded, judged by what is usual at its level; `None` where it counts.
pub(crate) fn discarded(during: &RunDisturbance, usual: &[RunDisturbance]) -> Option<Discarded> {
    at_once(during, usual).or_else(|| unusual(during, usual))
}

/// Disturbances that one run shows by itself, unless they are usual at this level.
fn at_once(during: &RunDisturbance, usual: &[RunDisturbance]) -> Option<Discarded> {
    let median = |of: fn(&DuringRun) -> Option<u64>| {
        let all: Vec<f64> = usual.iter().filter_map(|d| of(&d.host)).map(|n| n as f64).collect();
        stats::paired::median(&all)
    };
    let more =
        |of: fn(&DuringRun) -> Option<u64>| of(&during.host).filter(|n| *n as f64 > median(of));
    let host = &during.host;
    if let Some(ns) = host.suspended_ns.filter(|ns| *ns > 0) {
        return Some(Discarded::Suspended { suspended_ns: ns });
    }
    if let Some(ns) = host.clock_step_ns.filter(|ns| *ns != 0) {
        return Some(Discarded::ClockSet { step_ns: ns });
    }
    if more(|h| h.link_changes).is_some() {
        return Some(Discarded::LinksChanged { changes: during.links.clone() });
    }
    if more(|h| h.frequency_changes).is_some() {
        return Some(Discarded::FrequencyLimitsChanged { changes: during.limits.clone() });
    }
    more(|h| h.throttles).map(|times| Discarded::Throttled { times })
}

/// Disturbances that show only in comparison with other runs.
fn unusual(during: &RunDisturbance, usual: &[RunDisturbance]) -> Option<Discarded> {
    if usual.len() < USUAL_FROM {
        return None;
    }
    let median = |of: fn(&RunDisturbance) -> Option<f64>| {
        let all: Vec<f64> = usual.iter().filter_map(of).collect();
        (!all.is_empty()).then(|| stats::paired::median(&all))
    };
    if let (Some(share), Some(usual_share)) = (during.steal_share, median(|d| d.steal_share))
        && share > MOST_STEAL + usual_share
    {
        return Some(Discarded::Stolen { share, usual_share });
    }
    let frequency = |d: &RunDisturbance| d.host.frequency_khz.map(|khz| khz as f64);
    if let (Some(khz), Some(usual_khz)) = (during.host.frequency_khz, median(frequency))
        && (khz as f64) < SLOW * usual_khz
    {
        return Some(Discarded::SlowCpus { khz, usual_khz });
    }
    let (cpus, usual_cpus) = (during.others_cpus?, median(|d| d.others_cpus)?);
    (cpus > usual_cpus + MOST_MORE).then_some(Discarded::OthersBusy { cpus, usual_cpus })
}

#[cfg(test)]
mod tests {
    use model::samples::FrequencyLimit;

    use super::*;

    fn run(others: f64, steal: f64) -> RunDisturbance {
        RunDisturbance {
            others_cpus: Some(others),
            steal_share: Some(steal),
            ..RunDisturbance::default()
        }
    }

    #[test]
    fn only_what_is_unusual_at_its_level_spoils_a_run() {
        let usual = vec![run(1.0, 0.0); 6];
        assert_eq!(discarded(&run(1.2, 0.01), &usual), None);
        assert!(discarded(&run(1.9, 0.0), &usual).unwrap().to_string().contains("1.9 CPUs"));
        assert!(matches!(discarded(&run(1.0, 0.2), &usual), Some(Discarded::Stolen { .. })));
        assert_eq!(discarded(&run(9.0, 0.9), &usual[..4]), None);
        // A kernel without steal time still reports the CPU time of others.
        let quiet = |d: RunDisturbance| RunDisturbance { steal_share: None, ..d };
        let usual: Vec<RunDisturbance> = usual.into_iter().map(quiet).collect();
        let busy = discarded(&quiet(run(1.9, 0.0)), &usual).unwrap();
        assert_eq!(busy, Discarded::OthersBusy { cpus: 1.9, usual_cpus: 1.0 });
    }

    #[test]
    fn links_clocks_sleep_limits_and_heat_spoil_at_once() {
        let limit = |khz| FrequencyLimit { governor: None, max_khz: Some(khz) };
        let with = |host: DuringRun| RunDisturbance {
            host,
            links: vec![HostChange::CarrierChanged { nic: "eth0".into(), times: 2 }],
            limits: vec![HostChange::FrequencyLimitChanged {
                policy: "policy0".into(),
                before: limit(2_000_000),
                after: limit(1_000_000),
            }],
            ..run(0.0, 0.0)
        };
        let none = DuringRun::default;
        for (host, word) in [
            (DuringRun { link_changes: Some(2), ..none() }, "eth0 lost"),
            (DuringRun { clock_step_ns: Some(-3_000_000_000), ..none() }, "set by -3.000 s"),
            (DuringRun { suspended_ns: Some(4_200_000_000), ..none() }, "suspended for 4.2 s"),
            (DuringRun { frequency_changes: Some(1), ..none() }, "policy0"),
            (DuringRun { throttles: Some(3), ..none() }, "heat 3 times"),
        ] {
            let said = discarded(&with(host.clone()), &[]).unwrap().to_string();
            assert!(said.contains(word), "{said}");
        }
        // A workload that takes a link down itself does so in every run.
        let own = DuringRun { link_changes: Some(2), ..none() };
        let usual = vec![with(own.clone()); 3];
        assert_eq!(discarded(&with(own), &usual), None);
        assert_eq!(discarded(&with(none()), &[]), None);
    }

    #[test]
    fn a_slower_clock_is_seen_against_the_usual_one() {
        let at = |khz| RunDisturbance {
            host: DuringRun { frequency_khz: Some(khz), ..DuringRun::default() },
            ..RunDisturbance::default()
        };
        let usual = vec![at(3_000_000); 5];
        let said = discarded(&at(1_200_000), &usual).unwrap().to_string();
        assert!(said.contains("1.2 GHz, 3.0 are usual"), "{said}");
        assert_eq!(discarded(&at(2_900_000), &usual), None);
    }
}
