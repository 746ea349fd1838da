//! Other tuners: programs and files that also set what Netwright judges. One file each.

mod cloud_agent;
mod conf_dirs;
mod daemon;
mod irqbalance;
mod link_file;
mod network_manager;
mod networkd;
mod scan;
mod script;
mod sysctl_file;
mod tuned;
mod udev_rule;
pub mod unit;
mod words;

#[cfg(test)]
mod tests;

use model::{Reading, tuner::Tuner};

use self::scan::Scan;
use crate::Root;

/// Looks for one kind.
type Find = fn(&Scan<'_>) -> Vec<Tuner>;

/// How each kind is looked for; adding one is adding a file and naming it here.
const KINDS: &[(&str, Find)] = &[
    ("irqbalance", irqbalance::find),
    ("tuned", tuned::find),
    ("daemon", daemon::find),
    ("cloud_agent", cloud_agent::find),
    ("network_manager", network_manager::find),
    ("networkd", networkd::find),
    ("link_file", link_file::find),
    ("udev_rule", udev_rule::find),
    ("script", script::find),
    ("sysctl_file", sysctl_file::find),
];

/// Everyone who was found: programs first, then files.
pub fn read(root: &Root) -> Vec<Tuner> {
    let scan = Scan::new(root);
    KINDS.iter().flat_map(|(_, find)| find(&scan)).collect()
}

/// A tuner of which nothing but its name is known.
fn new(kind: &str, name: impl Into<String>) -> Tuner {
    let name = name.into();
    let not = |what: &str| format!("{name}: {what}");
    Tuner {
        kind: kind.to_owned(),
        running: Reading::Absent(not("a file, not a program")),
        pid: Reading::Absent(not("not running")),
        arguments: Reading::Absent(not("not running")),
        owns: vec![],
        settings_files: vec![],
        evidence: vec![],
        banned_cpus: Reading::Absent(not("only irqbalance bans CPUs")),
        banned_irqs: Reading::Absent(not("only irqbalance bans IRQs")),
        profile: Reading::Absent(not("only tuned has profiles")),
        name,
    }
}

/// Marks it as running as this process, or as installed and not running.
fn running(scan: &Scan<'_>, tuner: &mut Tuner, pid: Option<u32>) {
    tuner.running = Reading::Known(pid.is_some());
    if let Some(pid) = pid {
        tuner.pid = Reading::Known(pid);
        tuner.arguments = super::process::arguments(scan.root, pid);
    }
}
