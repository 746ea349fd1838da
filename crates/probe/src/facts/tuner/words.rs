//! What a line of a script or rule tunes, recognised by its words.

/// What the line sets, in the words of [`model::tuner::Tuner::owns`]; `None` where it sets
/// nothing that Netwright judges, or is a comment.
pub fn tunes(line: &str) -> Option<&'static str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';']) {
        return None;
    }
    BY_PATH
        .iter()
        .find(|(needle, _)| line.contains(needle))
        .map(|(_, what)| *what)
        .or_else(|| ethtool(line))
        .or_else(|| command(line))
}

/// Files that are only ever named to set them.
const BY_PATH: [(&str, &str); 14] = [
    ("smp_affinity", "irq affinity"),
    ("set_irq_affinity", "irq affinity"),
    ("rps_cpus", "rps"),
    ("xps_cpus", "xps"),
    ("xps_rxqs", "xps"),
    ("rps_flow_cnt", "rfs"),
    ("rps_sock_flow_entries", "rfs"),
    ("gro_flush_timeout", "gro"),
    ("napi_defer_hard_irqs", "interrupt coalescing"),
    ("tx_queue_len", "txqueuelen"),
    ("txqueuelen", "txqueuelen"),
    ("scaling_governor", "governor"),
    ("transparent_hugepage", "transparent huge pages"),
    ("/proc/sys/net", "sysctl"),
];

/// `ethtool` with an option that sets something.
fn ethtool(line: &str) -> Option<&'static str> {
    let mut words = words(line).skip_while(|w| w.rsplit('/').next() != Some("ethtool"));
    words.next()?;
    words.find_map(|w| {
        Some(match w {
            "-K" | "--features" | "--offload" => "offloads",
            "-G" | "--set-ring" => "rings",
            "-L" | "--set-channels" => "channels",
            "-C" | "--coalesce" => "interrupt coalescing",
            "-A" | "--pause" => "pause",
            "-X" | "--rxfh" | "--set-rxfh-indir" => "rss",
            "-N" | "-U" | "--config-nfc" | "--config-ntuple" => "flow rules",
            "-s" | "--change" => "link settings",
            "--set-priv-flags" | "--set-eee" | "--set-fec" => "link settings",
            _ => return None,
        })
    })
}

/// Other programs, by name and what follows.
fn command(line: &str) -> Option<&'static str> {
    let all: Vec<&str> = words(line).collect();
    all.iter().enumerate().find_map(|(i, word)| {
        let after = |n: usize| all.get(i + n).copied().unwrap_or_default();
        let rest = || all.iter().skip(i + 1);
        match word.rsplit('/').next()? {
            "sysctl" => rest()
                .any(|w| w.contains('=') || ["-w", "-p", "--system", "--load"].contains(w))
                .then_some("sysctl"),
            "ip" | "ifconfig" => rest().any(|w| *w == "mtu").then_some("mtu"),
            "mtu" if i == 0 => Some("mtu"),
            "tc" => (after(1) == "qdisc" && after(2) != "show").then_some("qdisc"),
            "cpupower" => rest().any(|w| *w == "frequency-set").then_some("governor"),
            "x86_energy_perf_policy" => Some("governor"),
            "setpci" => all.iter().any(|w| w.contains('=')).then_some("pci"),
            "tuned-adm" => (after(1) == "profile").then_some("tuned profile"),
            "tuna" => Some("irq affinity"),
            // The file's name is too short to be looked for in any line.
            "threaded" if word.contains("/net/") => Some("threaded napi"),
            // Options of Debian's /etc/network/interfaces that its ethtool scripts act on.
            w if i == 0 && w.starts_with("offload-") => Some("offloads"),
            w if i == 0 && w.starts_with("hardware-dma-ring") => Some("rings"),
            w if i == 0 && w.starts_with("hardware-irq-coalesce") => Some("interrupt coalescing"),
            _ => None,
        }
    })
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '"' | '\'' | '(' | ')'))
        .filter(|w| !w.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_is_distinguished_from_looking() {
        for (line, what) in [
            ("/usr/sbin/ethtool -G eth0 rx 4096", Some("rings")),
            ("ethtool -K $IFACE gro off && true", Some("offloads")),
            ("ethtool --set-channels eth0 combined 4", Some("channels")),
            ("ethtool -i eth0", None),
            ("ethtool eth0", None),
            ("# ethtool -G eth0 rx 4096", None),
            ("echo 3 > /proc/irq/25/smp_affinity_list", Some("irq affinity")),
            (
                "for i in /sys/class/net/eth0/queues/rx-*/rps_cpus; do echo f > $i; done",
                Some("rps"),
            ),
            ("echo 1 > /sys/class/net/eth0/threaded", Some("threaded napi")),
            ("for n in /sys/class/net/*/threaded; do echo 1 >$n; done", Some("threaded napi")),
            ("/opt/threaded --help", None),
            ("sysctl -w net.core.rmem_max=1", Some("sysctl")),
            ("sysctl net.core.rmem_max", None),
            ("/sbin/sysctl -p /etc/x.conf", Some("sysctl")),
            ("ip link set dev eth0 mtu 9000", Some("mtu")),
            ("ip link show", None),
            ("    mtu 9000", Some("mtu")),
            ("tc qdisc replace dev eth0 root fq", Some("qdisc")),
            ("tc qdisc show", None),
            ("cpupower frequency-set -g performance", Some("governor")),
            ("setpci -d 8086:1048 e6.b=2e", Some("pci")),
            ("setpci -s 1:0.0 e6.b", None),
            ("  offload-tso off", Some("offloads")),
            ("echo done", None),
            ("", None),
        ] {
            assert_eq!(tunes(line), what, "{line}");
        }
    }
}
