//! systemd-networkd: whether it runs, and the `.network` files that set MTU or qdiscs.

use model::tuner::Tuner;
use parse::ini;

use super::{conf_dirs, new, running, scan::Scan};

/// Sections that put a qdisc on a link (systemd.network(5)).
const QDISCS: [&str; 10] = [
    "CAKE",
    "ControlledDelay",
    "FairQueueing",
    "FairQueueingControlledDelay",
    "HierarchyTokenBucket",
    "NetworkEmulator",
    "PFIFO",
    "PFIFOFast",
    "QDisc",
    "TokenBucketFilter",
];

pub fn find(scan: &Scan<'_>) -> Vec<Tuner> {
    let pid = scan.by_name("systemd-networkd");
    let mut tuner = new("networkd", "systemd-networkd");
    running(scan, &mut tuner, pid);
    for path in conf_dirs::files(scan.root, "systemd/network", ".network") {
        let Ok(bytes) = scan.root.read(&path) else { continue };
        for e in ini::parse(&bytes).entries {
            let what = match (e.section.as_str(), e.key.as_str()) {
                ("Link", "MTUBytes") => "mtu",
                (section, _) if QDISCS.contains(&section) => "qdisc",
                _ => continue,
            };
            if !tuner.owns.iter().any(|o| o == what) {
                tuner.owns.push(what.into());
            }
            tuner
                .evidence
                .push(format!("{path}:{}: [{}] {}={}", e.line, e.section, e.key, e.value));
        }
    }
    // Files alone have no effect: systemd ships several that no running service reads.
    if pid.is_some() { vec![tuner] } else { vec![] }
}
