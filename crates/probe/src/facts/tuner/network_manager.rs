//! NetworkManager: whether it runs, and the connections that set MTU or ethtool options.
//!
//! Connection files contain passwords: only those lines are read.

use model::tuner::Tuner;
use parse::{ini, shell_vars};

use super::{super::excerpt::excerpt, new, running, scan::Scan};
use crate::{ReadError, Root};

const KEYFILES: [&str; 3] = [
    "/etc/NetworkManager/system-connections",
    "/run/NetworkManager/system-connections",
    "/usr/lib/NetworkManager/system-connections",
];
const IFCFG: &str = "/etc/sysconfig/network-scripts";

pub fn find(scan: &Scan<'_>) -> Vec<Tuner> {
    let pid = scan.by_name("NetworkManager");
    let lines =
        excerpt(scan.root, "network-manager-connections", |root| Ok::<_, ReadError>(lines(root)))
            .unwrap_or_default();
    if pid.is_none() && lines.is_empty() {
        return vec![];
    }
    let mut tuner = new("network_manager", "NetworkManager");
    running(scan, &mut tuner, pid);
    for line in &lines {
        let what =
            if line.contains("mtu") || line.contains("MTU") { "mtu" } else { "nic settings" };
        if !tuner.owns.iter().any(|o| o == what) {
            tuner.owns.push(what.into());
        }
    }
    tuner.evidence = lines;
    vec![tuner]
}

fn lines(root: &Root) -> Vec<String> {
    let mut found = Vec::new();
    for folder in KEYFILES {
        for name in root.entries(folder).unwrap_or_default() {
            let path = format!("{folder}/{name}");
            let Ok(bytes) = root.read(&path) else { continue };
            for e in ini::parse(&bytes).entries {
                let sets = e.section == "ethtool"
                    || e.key == "mtu" && e.value != "auto" && e.value != "0"
                    || e.section == "tc" && e.key.starts_with("qdisc");
                if sets {
                    found.push(format!("{path}:{}: [{}] {}={}", e.line, e.section, e.key, e.value));
                }
            }
        }
    }
    for name in root.entries(IFCFG).unwrap_or_default() {
        let path = format!("{IFCFG}/{name}");
        if !name.starts_with("ifcfg-") {
            continue;
        }
        let Ok(bytes) = root.read(&path) else { continue };
        for a in shell_vars::parse(&bytes) {
            if a.name == "MTU" || a.name == "ETHTOOL_OPTS" {
                found.push(format!("{path}:{}: {}={}", a.line, a.name, a.value));
            }
        }
    }
    found
}
