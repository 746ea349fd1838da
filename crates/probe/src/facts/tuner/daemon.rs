//! Smaller daemons that tune by themselves; only running ones.

use model::tuner::Tuner;

use super::{new, running, scan::Scan};

const DAEMONS: [(&str, &str); 6] = [
    ("bpftune", "sysctl"),
    ("numad", "process affinity and memory placement"),
    ("power-profiles-daemon", "governor"),
    ("auto-cpufreq", "governor"),
    ("thermald", "CPU frequency limits"),
    ("mlnx_affinity", "irq affinity"),
];

pub fn find(scan: &Scan<'_>) -> Vec<Tuner> {
    DAEMONS
        .iter()
        .filter_map(|(name, owns)| {
            let pid = scan.by_name_or_script(name)?;
            let mut tuner = new("daemon", *name);
            running(scan, &mut tuner, Some(pid));
            tuner.owns = vec![(*owns).to_owned()];
            tuner.evidence = vec![format!("/proc/{pid}/comm: runs")];
            Some(tuner)
        })
        .collect()
}
