//! NIC facts against the classic tools: `ethtool`, `ip`, `lspci`, and sysfs through `cat`; on
//! every interface of this host, and on virtual ones in namespaces with settings far from
//! their defaults, so that equality is earned.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{NETWRIGHT, Namespace, needs_root, output, run};
use serde_json::{Value, json};

/// Where a tool is run: on the host as it is, or inside a namespace.
enum FactSource<'a> {
    Host,
    Inside(&'a Namespace),
}

impl FactSource<'_> {
    /// What a tool prints; `None` if it fails.
    fn says(&self, program: &str, args: &[&str]) -> Option<String> {
        let out = match self {
            FactSource::Host => output(program, args),
            FactSource::Inside(ns) => ns.output(program, args),
        };
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
    }

    fn cat(&self, path: &str) -> Option<String> {
        self.says("cat", &[path]).map(|t| t.trim_end().to_owned())
    }

    fn sh(&self, script: &str) {
        assert!(self.says("sh", &["-ec", script]).is_some(), "{script}");
    }

    fn nics(&self) -> BTreeMap<String, Value> {
        let text = self.says(NETWRIGHT, &["inspect", "--json"]).expect("netwright failed");
        let facts: Value = serde_json::from_str(&text).unwrap();
        let nics = facts["nics"].as_array().unwrap();
        nics.iter().map(|n| (n["name"].as_str().unwrap().to_owned(), n.clone())).collect()
    }

    /// The statistics of every interface, before netwright looks.
    fn counted(&self) -> BTreeMap<String, Counted> {
        let names = self.says("ls", &["/sys/class/net"]).unwrap();
        names.split_whitespace().map(|n| (n.to_owned(), Counted::now(self, n))).collect()
    }

    /// Waits until nothing changes any more: the kernel tells of link changes up to a second
    /// late (`net/core/link_watch.c`).
    fn settle(&self) {
        let state = || self.says("ip", &["-j", "link", "show"]);
        for _ in 0..10 {
            let before = state();
            std::thread::sleep(std::time::Duration::from_millis(1200));
            if state() == before {
                return;
            }
        }
        panic!("links keep changing");
    }

    /// Every comparison for every interface there is; gives the interfaces.
    fn compare_all(&self) -> BTreeMap<String, Value> {
        let counted = self.counted();
        let nics = self.nics();
        let there: BTreeSet<String> = self
            .says("ls", &["/sys/class/net"])
            .unwrap()
            .split_whitespace()
            .filter(|n| *n != "bonding_masters")
            .map(str::to_owned)
            .collect();
        assert_eq!(nics.keys().cloned().collect::<BTreeSet<_>>(), there);
        for (name, nic) in &nics {
            sysfs(self, name, nic);
            ip_link(self, name, nic);
            driver(self, name, nic);
            channels_and_rings(self, name, nic);
            coalescing(self, name, nic);
            features(self, name, nic);
            rss(self, name, nic);
            flow_control_and_rules(self, name, nic);
            statistics(self, name, nic, &counted[name]);
            queues(self, name, nic);
        }
        nics
    }
}

/// Fails unless `ours` is a reason for absence.
#[track_caller]
fn absent(ours: &Value, what: &str) {
    assert!(ours["absent"].is_string(), "{what}: expected none, netwright has {ours}");
}

/// A value that is a plain number in a file of sysfs, absent where the file gives an error.
fn sysfs(place: &FactSource, name: &str, nic: &Value) {
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
    // What `ethtool X` prints as speed and duplex is the driver's word; sysfs gives the same
    // word, but only while the interface is up.
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

fn ip_link(place: &FactSource, name: &str, nic: &Value) {
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

fn driver(place: &FactSource, name: &str, nic: &Value) {
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
fn channels_and_rings(place: &FactSource, name: &str, nic: &Value) {
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

fn coalescing(place: &FactSource, name: &str, nic: &Value) {
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

fn features(place: &FactSource, name: &str, nic: &Value) {
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

fn rss(place: &FactSource, name: &str, nic: &Value) {
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

fn flow_control_and_rules(place: &FactSource, name: &str, nic: &Value) {
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

/// An interface's statistics at a moment.
struct Counted {
    /// `ethtool -S`; a name that stands there again is `name#2`.
    driver: Option<BTreeMap<String, u64>>,
    /// `/sys/class/net/X/statistics`.
    kernel: BTreeMap<String, u64>,
}

impl Counted {
    fn now(place: &FactSource, name: &str) -> Self {
        let driver = place.says("ethtool", &["-S", name]).map(|text| {
            let mut all = BTreeMap::new();
            for line in text.lines().skip(1) {
                let (key, value) = line.trim().rsplit_once(':').unwrap();
                let again = (2..).map(|n| format!("{key}#{n}"));
                let mut names = std::iter::once(key.to_owned()).chain(again);
                let free = names.find(|k| !all.contains_key(k)).unwrap();
                all.insert(free, value.trim().parse().unwrap());
            }
            all
        });
        let folder = format!("/sys/class/net/{name}/statistics");
        let text = place.says("grep", &["-r", ".", &folder]).unwrap_or_default();
        let counter = |line: &str| {
            let (path, value) = line.split_once(':')?;
            Some((path.rsplit_once('/')?.1.to_owned(), value.parse().ok()?))
        };
        Self { driver, kernel: text.lines().filter_map(counter).collect() }
    }
}

/// Every name, and each value between what the tools said before and say after.
fn statistics(place: &FactSource, name: &str, nic: &Value, before: &Counted) {
    let between = |what: &str, before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>| {
        let ours = nic[what].as_object().unwrap();
        assert!(ours.keys().eq(after.keys()), "{name}: {ours:?} {after:?}");
        for (key, after) in after {
            let (low, high) = (before[key].min(*after), before[key].max(*after));
            let ours = ours[key].as_u64().unwrap();
            assert!((low..=high).contains(&ours), "{name} {key}: {low} <= {ours} <= {high}");
        }
    };
    let after = Counted::now(place, name);
    match (&before.driver, &after.driver) {
        (Some(before), Some(after)) => between("driver_stats", before, after),
        _ => absent(&nic["driver_stats"], "driver_stats"),
    }
    assert!(!after.kernel.is_empty());
    between("statistics", &before.kernel, &after.kernel);
}

/// A mask of at most 64 bits as a cpulist, by another road than netwright's.
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

fn queues(place: &FactSource, name: &str, nic: &Value) {
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

/// The function behind a NIC, as `lspci` sees it.
fn pci(nic: &Value) {
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

#[test]
fn every_interface_of_this_host() {
    needs_root();
    for nic in FactSource::Host.compare_all().values() {
        if nic["pci"]["vendor_id"].is_string() {
            pci(nic);
        }
        let name = nic["name"].as_str().unwrap();
        let behind = std::path::Path::new("/sys/class/net").join(name).join("device").exists();
        assert_eq!(nic["kind"] == "physical", behind, "{name}");
    }
}

#[test]
fn a_veth_pair_with_nothing_left_at_its_default() {
    let ns = Namespace::new();
    let inside = FactSource::Inside(&ns);
    inside.sh(
        "ip link add nwa numtxqueues 4 numrxqueues 4 type veth peer name nwb numtxqueues 4 numrxqueues 4
         ethtool -L nwa rx 2 tx 3
         ethtool -K nwa tso off tx-udp-segmentation off gro on
         ethtool -K nwb gro off tx-checksum-ip-generic off
         ip link set nwa mtu 4000 txqueuelen 777 up
         ip link set nwb up
         cd /sys/class/net/nwa
         echo 3 > queues/rx-1/rps_cpus
         echo 4096 > queues/rx-0/rps_flow_cnt
         echo 2 > queues/tx-2/xps_cpus
         echo 1 > queues/tx-1/xps_rxqs
         echo 20000 > gro_flush_timeout
         echo 2 > napi_defer_hard_irqs",
    );
    inside.settle();
    let nics = inside.compare_all();
    let nic = &nics["nwa"];
    // What was set is what is seen: the comparison above would also hold if both were blind.
    assert_eq!((&nic["channels"]["rx"], &nic["channels"]["tx"]), (&json!(2), &json!(3)));
    assert_eq!((&nic["channels"]["max_rx"], &nic["channels"]["max_tx"]), (&json!(4), &json!(4)));
    assert_eq!((&nic["mtu"], &nic["txqueuelen"]), (&json!(4000), &json!(777)));
    assert_eq!(nic["gro_flush_timeout_ns"], json!(20_000));
    assert_eq!(nic["napi_defer_hard_irqs"], json!(2));
    assert_eq!(nic["features"]["tx-tcp-segmentation"]["active"], json!(false));
    assert_eq!(nic["features"]["rx-gro"]["active"], json!(true));
    assert_eq!(nics["nwb"]["features"]["rx-gro"]["active"], json!(false));
    let queue = |direction: &str, index: u32| {
        let queues = nic["queues"].as_array().unwrap();
        let id = json!({ "direction": direction, "index": index });
        queues.iter().find(|q| q["id"] == id).unwrap().clone()
    };
    assert_eq!(nic["queues"].as_array().unwrap().len(), 5);
    assert_eq!(queue("rx", 1)["rps_cpus"], json!("0-1"));
    assert_eq!(queue("rx", 0)["rfs_flows"], json!(4096));
    assert_eq!(queue("tx", 2)["xps_cpus"], json!("1"));
    assert_eq!(queue("tx", 1)["xps_rxqs"], json!("0"));
    assert_eq!(nic["kind"], json!("veth"));
    assert_eq!(nic["speed_bps"], json!(10_000_000_000_u64));
}

#[test]
fn an_interface_that_is_down_has_no_carrier_and_the_drivers_word_for_its_speed() {
    let ns = Namespace::new();
    let inside = FactSource::Inside(&ns);
    inside.sh("ip link add nwa type veth peer name nwb");
    inside.settle();
    let nics = inside.compare_all();
    absent(&nics["nwa"]["carrier"], "carrier");
    assert_eq!(nics["nwa"]["up"], json!(false));
    assert_eq!(nics["nwa"]["speed_bps"], json!(10_000_000_000_u64), "by ETHTOOL_GLINKSETTINGS");
}

/// Every virtual kind that this kernel has; one that it does not have is named and is no
/// failure, but `ip` must have been refused for just that reason.
#[test]
fn the_virtual_kinds() {
    let ns = Namespace::new();
    let inside = FactSource::Inside(&ns);
    inside.sh("ip link add nwa type veth peer name nwb; ip link set nwa up; ip link set nwb up
         ip link add nwc type veth peer name nwd; ip link set nwc up; ip link set nwd up");
    let kinds: [(&str, &str, &str); 10] = [
        ("bridge", "nwbr0", "type bridge"),
        ("macvlan", "nwmac0", "link nwa type macvlan mode bridge"),
        ("vlan", "nwa.5", "link nwa type vlan id 5"),
        ("vxlan", "nwvx0", "type vxlan id 5 dstport 4789 dev nwa"),
        ("ifb", "nwifb0", "numtxqueues 2 type ifb"),
        ("dummy", "nwdum0", "type dummy"),
        ("bond", "nwbond0", "type bond mode active-backup"),
        ("ipvlan", "nwipv0", "link nwd type ipvlan"),
        ("vrf", "nwvrf0", "type vrf table 10"),
        ("geneve", "nwgen0", "type geneve id 4 remote 192.0.2.1"),
    ];
    let mut made = vec![];
    for (kind, name, how) in kinds {
        let link: Vec<&str> = how.split(' ').collect();
        let (lower, rest) = link.split_at(if link[0] == "link" { 2 } else { 0 });
        let mut args = vec!["link", "add"];
        args.extend(lower);
        args.extend(["name", name]);
        args.extend(rest);
        let out = ns.output("ip", &args);
        let refused = String::from_utf8_lossy(&out.stderr).into_owned();
        if out.status.success() {
            made.push((kind, name));
        } else {
            assert!(refused.contains("Unknown device type"), "{kind}: {refused}");
            eprintln!("this kernel has no {kind}: not compared");
        }
    }
    inside.sh("ip tuntap add mode tap name nwtap0 multi_queue; ip tuntap add mode tun name nwtun0");
    made.extend([("tap", "nwtap0"), ("tun", "nwtun0")]);
    for (_, name) in &made {
        inside.sh(&format!("ip link set {name} up || true"));
    }
    inside.sh("ip link set nwb master nwbr0");
    inside.settle();
    let nics = inside.compare_all();
    for (kind, name) in &made {
        assert_eq!(nics[*name]["kind"], json!(kind), "{name}");
        absent(&nics[*name]["bus_address"], "bus_address");
        absent(&nics[*name]["numa_node"], "numa_node");
    }
    assert_eq!(nics["lo"]["kind"], json!("loopback"));
    assert_eq!(nics["nwb"]["master"], json!("nwbr0"));
    assert_eq!(nics["nwa"]["master"], json!(""));
    assert!(made.len() >= 5, "bridge, macvlan, vxlan, tap and tun are in every kernel: {made:?}");
}

/// Everything ethtool is asked for needs no privilege; configuration space beyond its first
/// 64 bytes does, and says so.
#[test]
fn without_root_only_configuration_space_is_denied() {
    needs_root();
    let dir = tempfile::tempdir().unwrap();
    let binary = dir.path().join("netwright");
    std::fs::copy(NETWRIGHT, &binary).unwrap();
    run("chmod", &["755", dir.path().to_str().unwrap()]);
    let args = ["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"];
    let mut all = args.to_vec();
    all.extend([binary.to_str().unwrap(), "inspect", "--json"]);
    let facts: Value = serde_json::from_str(&run("setpriv", &all)).unwrap();
    let with_root = FactSource::Host.nics();
    let mut denied = false;
    for nic in facts["nics"].as_array().unwrap() {
        let name = nic["name"].as_str().unwrap();
        for key in ["channels", "rings", "coalesce", "features", "pause", "rss", "driver"] {
            assert_eq!(nic[key], with_root[name][key], "{name} {key}");
        }
        // A function without a capability list has nothing beyond the first 64 bytes.
        let listed = |address: &str| {
            let config = std::fs::read(format!("/sys/bus/pci/devices/{address}/config")).unwrap();
            config[6] & 0x10 != 0
        };
        if nic["pci"]["vendor_id"].is_string() && listed(nic["bus_address"].as_str().unwrap()) {
            let why = nic["pci"]["read_request_bytes"]["denied"].as_str().unwrap_or_default();
            assert!(why.contains("CAP_SYS_ADMIN"), "{name}: {}", nic["pci"]);
            denied = true;
        }
    }
    let no_access = facts["no_access"].to_string();
    assert_eq!(no_access.contains("PCI read request"), denied, "{no_access}");
}

/// Interfaces that come and go, and statistics whose number changes between the call for
/// their names and the call for their values, while netwright reads.
#[test]
fn what_changes_meanwhile_is_whole_or_not_there() {
    let ns = Namespace::new();
    let inside = FactSource::Inside(&ns);
    inside.sh(
        "ip link add nwa numtxqueues 8 numrxqueues 8 type veth peer name nwb numtxqueues 8 numrxqueues 8
         ip link set nwa up; ip link set nwb up",
    );
    // How many statistics there are with n receive queues, as ethtool sees it at rest.
    let counts: Vec<usize> = (1..=8)
        .map(|n| {
            inside.sh(&format!("ethtool -L nwa rx {n} tx 8"));
            Counted::now(&inside, "nwa").driver.unwrap().len()
        })
        .collect();
    assert!(counts.windows(2).all(|w| w[0] < w[1]), "{counts:?}");
    let churn = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
           ip link add nwx$i type veth peer name nwy$i
           ethtool -L nwa rx $((i % 8 + 1)) tx 8
           ip link del nwx$i
         done";
    std::thread::scope(|scope| {
        let churning = scope.spawn(|| {
            for _ in 0..4 {
                inside.sh(churn);
            }
        });
        let mut looked = 0;
        while !churning.is_finished() || looked < 5 {
            let nics = inside.nics();
            let stats = &nics["nwa"]["driver_stats"];
            let known = stats.as_object().unwrap();
            let again = stats["absent"].as_str().is_some_and(|why| why.contains("EAGAIN"));
            assert!(again || counts.contains(&known.len()), "{stats}");
            assert_eq!(nics["lo"]["kind"], json!("loopback"));
            looked += 1;
        }
        churning.join().unwrap();
    });
}
