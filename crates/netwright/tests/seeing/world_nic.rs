//! NIC facts against `ethtool`, `ip`, `lspci`, and sysfs through `cat`. The test covers every
//! interface of this host, and virtual ones in namespaces with settings far from their defaults.

mod compared;

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{NETWRIGHT, Namespace, needs_root, output, run};
use compared::{
    channels_and_rings, coalescing, driver, features, flow_control_and_rules, ip_link, pci, queues,
    rss, sysfs,
};
use serde_json::{Value, json};

/// Where a tool runs: on the host, or inside a namespace.
enum FactSource<'a> {
    Host,
    Inside(&'a Namespace),
}

impl FactSource<'_> {
    /// A tool's output; `None` if it fails.
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

    /// Waits until nothing changes: the kernel reports link changes up to a second late
    /// (`net/core/link_watch.c`).
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

    /// All comparisons for every interface; returns the interfaces.
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

/// An interface's statistics at a moment.
struct Counted {
    /// `ethtool -S`; a repeated name becomes `name#2`.
    driver: Option<BTreeMap<String, u64>>,
    /// The files of `/sys/class/net/X/statistics`, by name.
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

/// Every name, and each value between the tools' readings before and after.
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
    // The values that were set must appear: the comparison above would also pass if both missed
    // them.
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

/// Every virtual kind of this kernel. A missing kind is printed and is no failure, but `ip` must
/// have failed for that reason.
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

/// All ethtool values need no privilege; configuration space beyond its first 64 bytes does, and
/// says so.
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

/// Interfaces that come and go, and statistics that change in number between the calls for names
/// and for values, during netwright's reading.
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
