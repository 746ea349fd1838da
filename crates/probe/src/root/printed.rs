//! What tools printed into a support archive, as the kernel's files that the archive lacks.

use std::collections::BTreeMap;

use parse::{ethtool_text, ip_link_text, proc_stat, sysctl_conf, uptime_text};

/// Reads a file of the archive.
type Read<'a> = &'a dyn Fn(&str) -> Option<Vec<u8>>;

/// Contents by path.
///
/// **Source**: `sos_commands` of a sosreport: `sysctl -a`, `uptime`, `ip -d link`, `ethtool NIC`.
pub(super) fn files(read: Read<'_>) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    settings(read, &mut files);
    if let Some(seconds) = uptime_s(read) {
        files.insert("/proc/uptime".to_owned(), format!("{seconds} 0\n"));
    }
    nics(read, &mut files);
    files
}

fn settings(read: Read<'_>, files: &mut BTreeMap<String, String>) {
    let text = read("/sos_commands/kernel/sysctl_-a").unwrap_or_default();
    for setting in sysctl_conf::parse(&text).settings {
        if let Some(value) = setting.value {
            files.insert(format!("/proc/sys/{}", setting.path), value);
        }
    }
}

/// `uptime` prints minutes and the seconds of the clock. The kernel's time of boot, in seconds, makes
/// it exact, but at the edge of a minute: time zones differ by whole minutes.
fn uptime_s(read: Read<'_>) -> Option<u64> {
    const FILES: [&str; 3] =
        ["/sos_commands/host/uptime", "/sos_commands/general/uptime", "/uptime"];
    let printed = FILES.iter().find_map(|file| uptime_text::parse(&read(file)?))?;
    let least = printed.minutes.checked_mul(60)?;
    let stat = read("/proc/stat").unwrap_or_default();
    let Some(booted) = proc_stat::booted_s(&stat) else { return Some(least + 30) };
    let second = booted.checked_add(least)? % 60;
    Some(least + (60 + printed.second - second) % 60)
}

fn nics(read: Read<'_>, files: &mut BTreeMap<String, String>) {
    const FILES: [&str; 2] =
        ["/sos_commands/networking/ip_-s_-d_link", "/sos_commands/networking/ip_-d_link"];
    let text = FILES.iter().find_map(|file| read(file)).unwrap_or_default();
    for link in ip_link_text::parse(&text) {
        let name = &link.name;
        let mut file = |what: &str, value: Option<String>| {
            if let Some(value) = value {
                files.insert(format!("/sys/class/net/{name}/{what}"), value);
            }
        };
        let of = |key: &str| link.values.get(key).cloned();
        let up = link.flags.iter().any(|f| f == "UP");
        let carrier = link.flags.iter().any(|f| f == "LOWER_UP");
        file("ifindex", Some(link.ifindex.to_string()));
        file("mtu", of("mtu"));
        file("tx_queue_len", of("qlen"));
        file("operstate", link.state.clone());
        file("address", link.mac.clone());
        // The kernel answers EINVAL for an interface that is down.
        file("carrier", up.then(|| u8::from(carrier).to_string()));
        let settings = read(&format!("/sos_commands/networking/ethtool_{name}"));
        let settings = settings.and_then(|text| ethtool_text::link(&text)).unwrap_or_default();
        file("speed", settings.speed_mbit_s.map(|n| n.to_string()));
        file("duplex", settings.duplex);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_and_seconds_make_the_uptime_exact() {
        // Booted at second 41 of a minute, 9:08 h ago or up to a minute more, at second 21.
        let of = |uptime: &str, stat: &str| {
            uptime_s(&|file| match file {
                "/sos_commands/host/uptime" => Some(uptime.as_bytes().to_vec()),
                "/proc/stat" => Some(stat.as_bytes().to_vec()),
                _ => None,
            })
        };
        let printed = " 03:46:21 up  9:08,  0 user,  load average: 5.39";
        assert_eq!(of(printed, "btime 1795631861\n"), Some(9 * 3600 + 8 * 60 + 40));
        assert_eq!(
            of(printed, ""),
            Some(9 * 3600 + 8 * 60 + 30),
            "without a time of boot its middle"
        );
        assert_eq!(of("no uptime", "btime 1795631861\n"), None);
    }
}
