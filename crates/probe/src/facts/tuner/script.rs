//! Scripts and tables that tune by themselves, quoted line by line.
//!
//! Such files may contain anything: only lines that tune are kept.

use std::collections::BTreeMap;

use model::tuner::Tuner;

use super::{super::excerpt::excerpt, new, scan::Scan, words};
use crate::{ReadError, Root};

const FILES: [&str; 6] = [
    "/etc/rc.local",
    "/etc/rc.d/rc.local",
    "/etc/network/interfaces",
    "/etc/crontab",
    "/etc/sysconfig/network",
    "/etc/conf.d/net",
];

/// Folders of scripts, and of tables of commands.
const FOLDERS: [&str; 24] = [
    "/etc/network/interfaces.d",
    "/etc/network/if-pre-up.d",
    "/etc/network/if-up.d",
    "/etc/network/if-down.d",
    "/etc/network/if-post-down.d",
    "/etc/NetworkManager/dispatcher.d",
    "/etc/NetworkManager/dispatcher.d/pre-up.d",
    "/usr/lib/NetworkManager/dispatcher.d",
    "/etc/networkd-dispatcher/routable.d",
    "/etc/networkd-dispatcher/configured.d",
    "/etc/networkd-dispatcher/carrier.d",
    "/etc/networkd-dispatcher/configuring.d",
    "/etc/ifup-local",
    "/etc/local.d",
    "/etc/cron.d",
    "/etc/cron.hourly",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
    "/var/spool/cron",
    "/var/spool/cron/crontabs",
    "/etc/systemd/system",
    "/usr/local/lib/systemd/system",
    "/etc/modprobe.d",
];

/// Debian's own scripts in `if-*.d`: they act on lines of `/etc/network/interfaces`, which are
/// quoted from there.
const STOCK: [&str; 2] = ["/etc/network/if-pre-up.d/ethtool", "/etc/network/if-up.d/ethtool"];

/// A file larger than this is no hand-written script.
const LARGEST: usize = 1 << 20;

/// Lines by file: number from 1 and text.
type Lines = BTreeMap<String, Vec<(u32, String)>>;

pub fn find(scan: &Scan<'_>) -> Vec<Tuner> {
    let lines = excerpt(scan.root, "tuning-scripts", |root| Ok::<_, ReadError>(lines(root)));
    lines.unwrap_or_default().into_iter().map(|(path, lines)| tuner(path, &lines)).collect()
}

fn tuner(path: String, lines: &[(u32, String)]) -> Tuner {
    let mut tuner = new("script", path.clone());
    for (n, line) in lines {
        if let Some(what) = words::tunes(line)
            && !tuner.owns.iter().any(|o| o == what)
        {
            tuner.owns.push(what.into());
        }
        tuner.evidence.push(format!("{path}:{n}: {line}"));
    }
    tuner.settings_files = vec![path];
    tuner
}

fn lines(root: &Root) -> Lines {
    let mut found = Lines::new();
    let in_folders = FOLDERS.iter().flat_map(|folder| {
        let names = root.entries(folder).unwrap_or_default();
        names.into_iter().map(move |n| format!("{folder}/{n}"))
    });
    for path in FILES.iter().map(|f| (*f).to_owned()).chain(in_folders) {
        if STOCK.contains(&path.as_str()) || path.ends_with('~') || path.ends_with(".dpkg-old") {
            continue;
        }
        // A folder, a device or a broken link is no script.
        let Ok(bytes) = root.read(&path) else { continue };
        if bytes.len() > LARGEST || bytes.contains(&0) {
            continue;
        }
        let mine = tuning_lines(&bytes);
        if !mine.is_empty() {
            found.insert(path, mine);
        }
    }
    found
}

fn tuning_lines(bytes: &[u8]) -> Vec<(u32, String)> {
    String::from_utf8_lossy(bytes)
        .lines()
        .enumerate()
        .filter(|(_, line)| words::tunes(line).is_some())
        .map(|(n, line)| {
            (u32::try_from(n + 1).unwrap_or(u32::MAX), line.trim().chars().take(200).collect())
        })
        .collect()
}
