//! The facts of one interface against each classic tool's output.

use std::collections::BTreeSet;

use super::{FactSource, absent};
use crate::support::run;
use serde_json::{Value, json};

/// A plain number in a file of sysfs; absent where reading it fails.
pub(super) fn sysfs(place: &FactSource, name: &str, nic: &Value) {
    let cat = |file: &str| place.cat(&format!("/sys/class/net/{name}/{file}"));
    for (key, file) in [
        ("ifindex", "ifindex"),
        ("mtu", "mtu"),
        ("txqueuelen", "tx_queue_len"),
        ("gro_flush_timeout_ns", "gro_flush_timeout"),
        ("napi_defer_hard_irqs", "napi_defer_hard_irqs"),
    ] {
        match cat(file) {
            Some(text) => assert_eq!(nic[key], json!(text.parse::<u64>().unwrap()), "{name} {key}"),
            None => absent(&nic[key], key),
        }
    }
    for (key, file) in [("carrier", "carrier"), ("threaded_napi", "threaded")] {
        match cat(file) {
            Some(text) => assert_eq!(nic[key], json!(text != "0"), "{name} {key}"),
            None => absent(&nic[key], key),
        }
    }
    for (key, file) in [("mac", "address"), ("operstate", "operstate")] {
        match cat(file).filter(|t| !t.is_empty()) {
            Some(text) => assert_eq!(nic[key], json!(text), "{name} {key}"),
            None => absent(&nic[key], key),
        }
    }
    let flags = cat("flags").unwrap();
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap();
    assert_eq!(nic["up"], json!(flags & 1 == 1), "{name} up");
    // `ethtool X` and sysfs report the driver's speed and duplex; sysfs only while the interface is
    // up.
    let settings = place.says("ethtool", &[name]).unwrap_or_default();
    let mbit = field(&settings, "Speed").and_then(|s| s.strip_suffix("Mb/s")?.parse::<u64>().ok());
    match mbit {
        Some(mbit) => assert_eq!(nic["speed_bps"], json!(mbit * 1_000_000), "{name} speed"),
        None => absent(&nic["speed_bps"], "speed"),
    }
    match field(&settings, "Duplex").filter(|d| !d.starts_with("Unknown")) {
        Some(duplex) => assert_eq!(nic["duplex"], json!(duplex.to_lowercase()), "{name} duplex"),
        None => absent(&nic["duplex"], "duplex"),
    }
}

/// The value after `Key:` on its own line.
fn field(text: &str, key: &str) -> Option<String> {
    text.lines()
        .find_map(|l| Some(l.trim().strip_prefix(key)?.strip_prefix(':')?.trim().to_owned()))
}

pub(super) fn ip_link(place: &FactSource, name: &str, nic: &Value) {
    let text = place.says("ip", &["-j", "-d", "link", "show", "dev", name]).unwrap();
    let link = &serde_json::from_str::<Value>(&text).unwrap()[0];
    assert_eq!(nic["ifindex"], link["ifindex"], "{name}");
    assert_eq!(nic["mtu"], link["mtu"], "{name}");
    assert_eq!(
        nic["operstate"],
        json!(link["operstate"].as_str().unwrap().to_lowercase()),
        "{name}"
    );
    assert_eq!(nic["master"], json!(link["master"].as_str().unwrap_or_default()), "{name}");
    if let Some(length) = link.get("txqlen") {
        assert_eq!(nic["txqueuelen"], *length, "{name}");
    }
}

pub(super) fn driver(place: &FactSource, name: &str, nic: &Value) {
    let Some(text) = place.says("ethtool", &["-i", name]) else {
        return absent(&nic["driver"], "driver");
    };
    for (key, theirs) in
        [("driver", "driver"), ("driver_version", "version"), ("firmware", "firmware-version")]
    {
        match field(&text, theirs).filter(|t| !t.is_empty() && t != "N/A") {
            Some(theirs) => assert_eq!(nic[key], json!(theirs), "{name} {key}"),
            None => absent(&nic[key], key),
        }
    }
    let address = field(&text, "bus-info").unwrap();
    if nic["pci"]["vendor_id"].is_string() {
        assert_eq!(nic["bus_address"], json!(address), "{name}");
    }
}

/// `ethtool -l` and `-g`: a section of maxima, then one of settings; `n/a` where the maximum
/// is 0.
pub(super) fn channels_and_rings(place: &FactSource, name: &str, nic: &Value) {
    type Keys = &'static [(&'static str, &'static str)];
    let tables: [(&str, &str, Keys); 2] = [
        (
            "-l",
            "channels",
            &[("RX", "rx"), ("TX", "tx"), ("Other", "other"), ("Combined", "combined")],
        ),
        (
            "-g",
            "rings",
            &[("RX", "rx"), ("RX Mini", "rx_mini"), ("RX Jumbo", "rx_jumbo"), ("TX", "tx")],
        ),
    ];
    for (option, what, keys) in tables {
        let text = place.says("ethtool", &[option, name]).unwrap_or_default();
        let Some((maxima, current)) = text.split_once("Current hardware settings:") else {
            absent(&nic[what], what);
            continue;
        };
        for (theirs, ours) in keys {
            for (section, prefix) in [(maxima, "max_"), (current, "")] {
                let value = field(section, theirs).unwrap();
                let value = if value == "n/a" { 0 } else { value.parse().unwrap() };
                assert_eq!(
                    nic[what][format!("{prefix}{ours}")],
                    json!(value),
                    "{name} {what} {theirs}"
                );
            }
        }
    }
}

pub(super) fn coalescing(place: &FactSource, name: &str, nic: &Value) {
    let ours = &nic["coalesce"];
    let Some(text) = place.says("ethtool", &["-c", name]) else {
        return absent(ours, "coalesce");
    };
    for (theirs, key) in [
        ("rx-usecs", "rx_usecs"),
        ("rx-frames", "rx_max_frames"),
        ("tx-usecs", "tx_usecs"),
        ("tx-frames", "tx_max_frames"),
        ("rx-usecs-irq", "rx_usecs_irq"),
        ("tx-usecs-irq", "tx_usecs_irq"),
        ("stats-block-usecs", "stats_block_usecs"),
    ] {
        match field(&text, theirs).unwrap().parse::<u32>() {
            Ok(n) => assert_eq!(ours[key], json!(n), "{name} {theirs}"),
            Err(_) => absent(&ours[key], theirs),
        }
    }
    let adaptive = field(&text, "Adaptive RX").unwrap();
    let (rx, tx) = adaptive.split_once("TX:").unwrap();
    for (theirs, key) in [(rx, "adaptive_rx"), (tx, "adaptive_tx")] {
        match theirs.trim() {
            "n/a" => absent(&ours[key], key),
            on => assert_eq!(ours[key], json!(on == "on"), "{name} {key}"),
        }
    }
}

pub(super) fn features(place: &FactSource, name: &str, nic: &Value) {
    /// ethtool's own names for some bits.
    const ALIASES: [(&str, &str); 8] = [
        ("rx-checksumming", "rx-checksum"),
        ("generic-segmentation-offload", "tx-generic-segmentation"),
        ("generic-receive-offload", "rx-gro"),
        ("large-receive-offload", "rx-lro"),
        ("rx-vlan-offload", "rx-vlan-hw-parse"),
        ("tx-vlan-offload", "tx-vlan-hw-insert"),
        ("ntuple-filters", "rx-ntuple-filter"),
        ("receive-hashing", "rx-hashing"),
    ];
    /// Sums over several bits.
    const SUMS: [&str; 3] = ["tx-checksumming", "scatter-gather", "tcp-segmentation-offload"];
    let text = place.says("ethtool", &["-k", name]).unwrap();
    let mut seen = BTreeSet::new();
    for line in text.lines().skip(1).filter(|l| l.contains(": ")) {
        let (theirs, value) = line.trim().split_once(": ").unwrap();
        if SUMS.contains(&theirs) {
            continue;
        }
        let key = ALIASES.iter().find(|a| a.0 == theirs).map_or(theirs, |a| a.1);
        let active = value.starts_with("on");
        let fixed = value.ends_with("[fixed]");
        let ours = &nic["features"][key];
        assert_eq!(
            (&ours["active"], &ours["fixed"]),
            (&json!(active), &json!(fixed)),
            "{name} {key}"
        );
        if value.contains("[requested") {
            assert_eq!(ours["requested"], json!(value.contains("[requested on]")), "{name} {key}");
        }
        seen.insert(key.to_owned());
    }
    let ours: BTreeSet<String> = nic["features"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(ours, seen, "{name}: features that only one of both names");
}

pub(super) fn rss(place: &FactSource, name: &str, nic: &Value) {
    let ours = &nic["rss"];
    let Some(text) = place.says("ethtool", &["-x", name]) else {
        return absent(ours, "rss");
    };
    let rings = text.split(" with ").nth(1).and_then(|t| t.split(' ').next()).unwrap();
    assert_eq!(ours["rings"], json!(rings.parse::<u32>().unwrap()), "{name}");
    let row = |line: &str| -> Option<Vec<u32>> {
        let (bucket, queues) = line.split_once(':')?;
        bucket.trim().parse::<u32>().ok()?;
        queues.split_whitespace().map(|q| q.parse().ok()).collect()
    };
    let table: Vec<u32> = text.lines().filter_map(row).flatten().collect();
    assert_eq!(ours["table"], json!(table), "{name}");
    let mut after_key = text.lines().skip_while(|l| !l.starts_with("RSS hash key:"));
    match after_key.nth(1).filter(|k| k.contains(':')) {
        Some(key) => assert_eq!(ours["key"], json!(key.trim()), "{name}"),
        None => absent(&ours["key"], "key"),
    }
    let functions: Vec<&str> = text.lines().filter_map(|l| l.trim().strip_suffix(": on")).collect();
    assert_eq!(ours["functions"], json!(functions), "{name}");
    for flow in ["tcp4", "udp4", "tcp6", "udp6"] {
        let text = place.says("ethtool", &["-n", name, "rx-flow-hash", flow]);
        let Some(text) = text.filter(|t| t.contains("Hash flow key")) else {
            assert!(ours["hash_fields"].get(flow).is_none(), "{name} {flow}");
            continue;
        };
        let fields: Vec<&str> = [
            ("L2DA", "dst_mac"),
            ("VLAN tag", "vlan"),
            ("L3 proto", "l3_proto"),
            ("IP SA", "src_ip"),
            ("IP DA", "dst_ip"),
            ("L4 bytes 0 & 1", "src_port"),
            ("L4 bytes 2 & 3", "dst_port"),
        ]
        .iter()
        .filter(|f| text.lines().any(|l| l.starts_with(f.0)))
        .map(|f| f.1)
        .collect();
        assert_eq!(ours["hash_fields"][flow], json!(fields.join(" ")), "{name} {flow}");
    }
}

pub(super) fn flow_control_and_rules(place: &FactSource, name: &str, nic: &Value) {
    // ethtool exits with 0 and prints nothing where there is no flow control.
    let text = place.says("ethtool", &["-a", name]).unwrap_or_default();
    match field(&text, "Autonegotiate") {
        None => absent(&nic["pause"], "pause"),
        Some(autoneg) => {
            let on = |key: &str| json!(field(&text, key).unwrap() == "on");
            assert_eq!(nic["pause"]["autoneg"], json!(autoneg == "on"), "{name}");
            assert_eq!(
                (&nic["pause"]["rx"], &nic["pause"]["tx"]),
                (&on("RX"), &on("TX")),
                "{name}"
            );
        }
    }
    let text = place.says("ethtool", &["-n", name]).unwrap_or_default();
    match text.lines().find_map(|l| l.strip_prefix("Total ")?.strip_suffix(" rules")) {
        Some(rules) => assert_eq!(nic["ntuple_rules"], json!(rules.parse::<u32>().unwrap())),
        None => absent(&nic["ntuple_rules"], "ntuple_rules"),
    }
}

/// A mask of at most 64 bits as a cpulist, independent of netwright's code.
fn cpulist(mask: &str) -> String {
    let mask = u64::from_str_radix(&mask.replace(',', ""), 16).unwrap();
    let mut ranges: Vec<(u32, u32)> = vec![];
    for cpu in (0..64).filter(|c| mask >> c & 1 == 1) {
        match ranges.last_mut().filter(|r| r.1 + 1 == cpu) {
            Some(range) => range.1 = cpu,
            None => ranges.push((cpu, cpu)),
        }
    }
    let text = |(a, b): &(u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

pub(super) fn queues(place: &FactSource, name: &str, nic: &Value) {
    let folder = format!("/sys/class/net/{name}/queues");
    let names = place.says("ls", &[&folder]).unwrap();
    let theirs: BTreeSet<String> = names.split_whitespace().map(str::to_owned).collect();
    let ours = nic["queues"].as_array().unwrap();
    let id = |q: &Value| format!("{}-{}", q["id"]["direction"].as_str().unwrap(), q["id"]["index"]);
    assert_eq!(ours.iter().map(id).collect::<BTreeSet<_>>(), theirs, "{name}");
    for queue in ours {
        let id = id(queue);
        let rx = id.starts_with("rx");
        for (key, file, of_rx) in [
            ("rps_cpus", "rps_cpus", true),
            ("rfs_flows", "rps_flow_cnt", true),
            ("xps_cpus", "xps_cpus", false),
            ("xps_rxqs", "xps_rxqs", false),
        ] {
            let theirs = place.cat(&format!("{folder}/{id}/{file}")).filter(|_| rx == of_rx);
            match theirs {
                None => absent(&queue[key], key),
                Some(n) if key == "rfs_flows" => {
                    assert_eq!(queue[key], json!(n.parse::<u32>().unwrap()), "{name} {id}");
                }
                Some(mask) => assert_eq!(queue[key], json!(cpulist(&mask)), "{name} {id} {key}"),
            }
        }
    }
}

/// The PCI function of a NIC, by `lspci`.
pub(super) fn pci(nic: &Value) {
    let address = nic["bus_address"].as_str().unwrap();
    let pci = &nic["pci"];
    // 00:03.0 0200: 1af4:1041 (rev 01)
    let ids = run("lspci", &["-D", "-n", "-s", address]);
    let mut words = ids.split_whitespace().skip(1);
    let class = words.next().unwrap().trim_end_matches(':');
    assert!(pci["class"].as_str().unwrap().starts_with(class), "{address}");
    let device =
        format!("{}:{}", pci["vendor_id"].as_str().unwrap(), pci["device_id"].as_str().unwrap());
    assert_eq!(words.next(), Some(device.as_str()), "{address}");

    let text = run("lspci", &["-vvv", "-s", address]);
    let bytes = |key: &str| -> Option<u64> {
        let (_, rest) = text.split_once("DevCtl:")?.1.split_once(key)?;
        rest.split_whitespace().next()?.parse().ok()
    };
    for (ours, theirs) in
        [("read_request_bytes", "MaxReadReq "), ("max_payload_bytes", "MaxPayload ")]
    {
        match bytes(theirs) {
            Some(n) => assert_eq!(pci[ours], json!(n), "{address} {theirs}"),
            None => absent(&pci[ours], ours),
        }
    }
    let link = |line: &str, key: &str| -> Option<String> {
        let (_, rest) = text.split_once(line)?.1.lines().next()?.split_once(key)?;
        Some(rest.split([',', ' ']).next()?.to_owned())
    };
    for (line, speed, width) in [
        ("LnkSta:", "link_speed_mts", "link_width"),
        ("LnkCap:", "max_link_speed_mts", "max_link_width"),
    ] {
        let mts = link(line, "Speed ").and_then(|s| s.strip_suffix("GT/s")?.parse::<f64>().ok());
        match mts {
            Some(gts) => assert_eq!(pci[speed], json!((gts * 1000.0).round() as u64), "{address}"),
            None => absent(&pci[speed], speed),
        }
        match link(line, "Width x").and_then(|w| w.parse::<u32>().ok()).filter(|&w| w > 0) {
            Some(lanes) => assert_eq!(pci[width], json!(lanes), "{address}"),
            None => absent(&pci[width], width),
        }
    }
}
