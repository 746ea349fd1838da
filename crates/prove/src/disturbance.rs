//! What else went on while a run went on: others' CPU time, and what the hypervisor took.
//!
//! "Others" is all that the host computed less the workload's own processes and us. A server
//! under test is among them, so a run is judged against other runs of the same level.

use std::time::Instant;

use probe::{
    Root,
    samples::host_cpu::{self, HostCpu},
};

/// Steal above this share is no longer a run on this machine.
const MOST_STEAL: f64 = 0.05;

/// Others' CPUs above what is usual at this level.
const MOST_MORE: f64 = 0.5;

/// Runs of a level before what is usual is known.
const USUAL_FROM: usize = 5;

/// The host before a run.
pub(crate) struct Before {
    at: Instant,
    host: Option<HostCpu>,
}

/// What went on during one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct During {
    pub(crate) others_cpus: Option<f64>,
    pub(crate) steal_share: Option<f64>,
}

/// Looks at the host.
pub(crate) fn before(root: &Root) -> Before {
    Before { at: Instant::now(), host: host_cpu::read(root).into_known() }
}

impl Before {
    /// Looks again. `own_s` is the workload's own CPU time.
    pub(crate) fn during(&self, root: &Root, own_s: f64) -> During {
        let passed_s = self.at.elapsed().as_secs_f64();
        let after = host_cpu::read(root).into_known();
        let (Some(before), Some(after)) = (self.host, after) else {
            return During { others_cpus: None, steal_share: None };
        };
        let grown = |of: fn(&HostCpu) -> u64| of(&after).checked_sub(of(&before));
        let busy = grown(|h| h.user.0 + h.nice.0 + h.system.0 + h.irq.0 + h.softirq.0);
        let share = |s: u64| s as f64 / 1e9 / passed_s.max(1e-3);
        // Two ticks of 10 ms are what a short run's reading may be off by.
        let others = busy.map(|b| (share(b) - (own_s + 0.02) / passed_s.max(1e-3)).max(0.0));
        let steal = grown(|h| h.steal.0).map(|s| share(s) / f64::from(after.cpus.max(1)));
        During { others_cpus: others, steal_share: steal }
    }
}

/// Why a run does not count, by what is usual at its level.
pub(crate) fn spoiled(during: During, usual: &[During]) -> Option<String> {
    if usual.len() < USUAL_FROM {
        return None;
    }
    let median = |of: fn(&During) -> Option<f64>| {
        stats::paired::median(&usual.iter().filter_map(of).collect::<Vec<_>>())
    };
    let (steal, others) = (during.steal_share?, during.others_cpus?);
    let (usual_steal, usual_others) = (median(|d| d.steal_share), median(|d| d.others_cpus));
    if steal > MOST_STEAL + usual_steal {
        return Some(format!("{:.0}% of CPU time was stolen", steal * 100.0));
    }
    (others > usual_others + MOST_MORE)
        .then(|| format!("others used {others:.1} CPUs, {usual_others:.1} are usual at this level"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_unusual_at_its_level_spoils_a_run() {
        let run = |others, steal| During { others_cpus: Some(others), steal_share: Some(steal) };
        let usual = [run(1.0, 0.0); 6];
        assert_eq!(spoiled(run(1.2, 0.01), &usual), None);
        assert!(spoiled(run(1.9, 0.0), &usual).unwrap().contains("1.9 CPUs"));
        assert!(spoiled(run(1.0, 0.2), &usual).unwrap().contains("stolen"));
        assert_eq!(spoiled(run(9.0, 0.9), &usual[..4]), None);
    }
}
