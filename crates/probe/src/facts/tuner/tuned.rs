//! tuned: whether it runs, its active profile, and the profile's settings.

use model::{Reading, tuner::Tuner};

use super::{super::tuned, new, running, scan::Scan};

/// Plugins that set what Netwright judges, and how people call it.
const PLUGINS: [(&str, &str); 7] = [
    ("sysctl", "sysctl"),
    ("net", "nic settings"),
    ("cpu", "governor"),
    ("irqbalance", "irqbalance's banned CPUs"),
    ("scheduler", "process affinity"),
    ("irq", "irq affinity"),
    ("script", "whatever its script does"),
];

pub fn find(scan: &Scan<'_>) -> Vec<Tuner> {
    let pid = scan.by_name_or_script("tuned");
    let profile = tuned::active(scan.root);
    if pid.is_none() && profile.is_none() {
        return vec![];
    }
    let mut tuner = new("tuned", "tuned");
    running(scan, &mut tuner, pid);
    match &profile {
        None => tuner.profile = Reading::Absent(format!("{}: none is active", tuned::ACTIVE)),
        Some(p) => {
            tuner.profile = Reading::Known(p.name.clone());
            describe(p, &mut tuner);
        }
    }
    vec![tuner]
}

fn describe(profile: &tuned::Profile, tuner: &mut Tuner) {
    tuner.evidence.push(format!("{}: {}", tuned::ACTIVE, profile.name));
    for name in &profile.missing {
        tuner.evidence.push(format!("profile {name}: its tuned.conf is not there"));
    }
    for l in &profile.lines {
        let Some((_, what)) = PLUGINS.iter().find(|(plugin, _)| *plugin == l.plugin) else {
            continue;
        };
        if !tuner.owns.iter().any(|o| o == what) {
            tuner.owns.push((*what).to_owned());
        }
        if !tuner.settings_files.contains(&l.path) {
            tuner.settings_files.push(l.path.clone());
        }
        tuner.evidence.push(format!("{}:{}: [{}] {}={}", l.path, l.line, l.plugin, l.key, l.value));
    }
}
