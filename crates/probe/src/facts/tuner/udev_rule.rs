//! udev rules that set queues, steering, interrupts or settings.

use model::tuner::Tuner;

use super::{conf_dirs, new, scan::Scan, words};

pub fn find(scan: &Scan<'_>) -> Vec<Tuner> {
    conf_dirs::files(scan.root, "udev/rules.d", ".rules")
        .into_iter()
        .filter_map(|path| {
            let bytes = scan.root.read(&path).ok()?;
            let text = String::from_utf8_lossy(&bytes);
            let mut tuner = new("udev_rule", path.clone());
            for (n, line) in text.lines().enumerate() {
                // systemd's own rule hands each new NIC to systemd-sysctl.
                let Some(what) = sets(line).filter(|_| !line.contains("systemd-sysctl")) else {
                    continue;
                };
                if !tuner.owns.iter().any(|o| o == what) {
                    tuner.owns.push(what.into());
                }
                tuner.evidence.push(format!("{path}:{}: {}", n + 1, line.trim()));
            }
            tuner.settings_files = vec![path];
            (!tuner.owns.is_empty()).then_some(tuner)
        })
        .collect()
}

/// `ATTR{mtu}="9000"` assigns, `ATTR{mtu}=="9000"` only compares.
fn sets(line: &str) -> Option<&'static str> {
    if line.trim_start().starts_with('#') {
        return None;
    }
    let assigned = |attribute: &str| {
        line.match_indices(attribute).any(|(i, found)| {
            let after = line.get(i + found.len()..).unwrap_or_default().trim_start();
            after.starts_with('=') && !after.starts_with("==") || after.starts_with("+=")
        })
    };
    for (attribute, what) in [
        ("ATTR{mtu}", "mtu"),
        ("ATTR{tx_queue_len}", "txqueuelen"),
        ("ATTR{threaded}", "threaded napi"),
    ] {
        if assigned(attribute) {
            return Some(what);
        }
        if line.contains(attribute) {
            return None;
        }
    }
    words::tunes(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assigning_is_distinguished_from_comparing() {
        assert_eq!(sets(r#"SUBSYSTEM=="net", ATTR{mtu}=="1500", NAME="x""#), None);
        assert_eq!(sets(r#"SUBSYSTEM=="net", ACTION=="add", ATTR{mtu}="9000""#), Some("mtu"));
        assert_eq!(sets(r#"ACTION=="add", ATTR{tx_queue_len} = "10000""#), Some("txqueuelen"));
        assert_eq!(
            sets(r#"ACTION=="add", SUBSYSTEM=="net", RUN+="/sbin/ethtool -G $name rx 4096""#),
            Some("rings")
        );
        assert_eq!(sets(r#"SUBSYSTEM=="net", ATTR{queues/rx-0/rps_cpus}="ff""#), Some("rps"));
        assert_eq!(sets("# ATTR{mtu}=\"9000\""), None);
    }
}
