//! Tests of hosts captured in real guests: known configuration, the classic tools' output of the
//! same minute, and the same from the snapshot elsewhere. `captured/README.md` tells how each was
//! made; `scripts/capture-hosts` makes them again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    process::Command,
    sync::atomic::AtomicBool,
};

use crate::support::{NETWRIGHT, run};
use model::{CpuId, CpuSet, Samples};
use serde_json::Value;

const HOSTS: [&str; 10] = [
    "numa-nic",
    "large",
    "smt",
    "offline",
    "unplug",
    "nvme",
    "virtio-blk",
    "bond",
    "vmxnet3",
    "queues",
];

fn path(name: &str, ending: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/captured", &format!("{name}.{ending}")].iter().collect()
}

fn archive(name: &str) -> String {
    path(name, "tar.zst").display().to_string()
}

/// `netwright inspect --json` of a captured host.
fn facts(name: &str) -> Value {
    serde_json::from_str(&run(NETWRIGHT, &["inspect", "--json", "--root", &archive(name)])).unwrap()
}

/// `netwright doctor --json` of a captured host.
fn doctor(name: &str) -> Value {
    serde_json::from_str(&run(NETWRIGHT, &["doctor", "--json", "--root", &archive(name)])).unwrap()
}

fn rules(doctor: &Value, section: &str) -> BTreeSet<String> {
    array(&doctor[section]).iter().map(|f| f["rule"].as_str().unwrap().to_owned()).collect()
}

fn array(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no array: {value}"))
}

fn set(value: &Value) -> CpuSet {
    value.as_str().unwrap_or_else(|| panic!("no CPUs: {value}")).parse().unwrap()
}

fn cpu(facts: &Value, id: u64) -> &Value {
    array(&facts["cpus"]).iter().find(|c| c["id"] == id).unwrap()
}

fn nic<'a>(facts: &'a Value, name: &str) -> &'a Value {
    array(&facts["nics"]).iter().find(|n| n["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

fn irq(facts: &Value, id: u64) -> &Value {
    array(&facts["irqs"]).iter().find(|i| i["irq"] == id).unwrap()
}

/// The output of the classic tools by command, in order.
fn truth(name: &str) -> BTreeMap<String, Vec<String>> {
    let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let text = fs::read_to_string(path(name, "truth.txt")).unwrap();
    // A kernel file may lack the final line end, as softnet_stat does.
    for part in format!("\n{text}").split("\n$ ").skip(1) {
        let (command, output) = part.split_once('\n').unwrap_or((part, ""));
        said.entry(command.to_owned()).or_default().push(output.to_owned());
    }
    said
}

/// `grep . /proc/irq/*/FILE` as interrupt → text.
fn by_irq(output: &str) -> BTreeMap<u64, String> {
    let line = |l: &str| {
        let (path, value) = l.split_once(':')?;
        Some((path.split('/').nth(3)?.parse().ok()?, value.to_owned()))
    };
    output.lines().filter_map(line).collect()
}

/// The interrupt that `/proc/interrupts` names like this.
fn named(truth: &BTreeMap<String, Vec<String>>, name: &str) -> u64 {
    let text = &truth["cat /proc/interrupts"][0];
    let line = text.lines().find(|l| l.split_whitespace().last() == Some(name));
    let line = line.unwrap_or_else(|| panic!("no interrupt {name} in\n{text}"));
    line.trim().split(':').next().unwrap().parse().unwrap()
}

#[test]
fn cpus_are_those_of_lscpu() {
    for name in HOSTS {
        let (facts, truth) = (facts(name), truth(name));
        let mut cores: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        let table = &truth["lscpu -e=cpu,node,socket,core,online"][0];
        assert!(table.lines().count() > 4, "{name}: {table}");
        for line in table.lines().skip(1) {
            let cells: Vec<&str> = line.split_whitespace().collect();
            let id: u64 = cells[0].parse().unwrap();
            let ours = cpu(&facts, id);
            // Facts are from before the window, the table from after it.
            if name == "unplug" && [3, 6].contains(&id) {
                assert_eq!(ours["online"], id == 3);
                continue;
            }
            assert_eq!(ours["online"], cells[4] == "yes", "{name} CPU {id}");
            if cells[4] != "yes" {
                assert!(ours["core_id"].is_object(), "{name}: an offline CPU has no known core");
                continue;
            }
            let number = |cell: usize| cells[cell].parse::<u64>().unwrap();
            assert_eq!(ours["numa_node"], number(1), "{name} CPU {id}");
            assert_eq!(ours["package_id"], number(2), "{name} CPU {id}");
            cores.entry(number(3)).or_default().insert(id);
        }
        // lscpu renumbers cores, so only the sets of siblings are compared.
        for members in cores.values() {
            let expected: CpuSet = members.iter().map(|c| CpuId(*c as u32)).collect();
            for id in members.iter().filter(|_| name != "unplug") {
                assert_eq!(set(&cpu(&facts, *id)["smt_siblings"]), expected, "{name} CPU {id}");
            }
        }
        let online = truth["cat /sys/devices/system/cpu/online"][0].trim();
        if name != "unplug" {
            assert_eq!(facts["host"]["cpus_online"], online, "{name}");
        }
    }
}

#[test]
fn interrupts_go_where_the_kernel_said_before_and_after() {
    for name in HOSTS {
        let (facts, truth) = (facts(name), truth(name));
        let said = &truth["grep . /proc/irq/*/effective_affinity_list"];
        // In this host a CPU went offline between the facts and the table.
        if name == "unplug" {
            continue;
        }
        let (before, after) = (by_irq(&said[0]), by_irq(said.last().unwrap()));
        let mut compared = 0;
        for ours in array(&facts["irqs"]) {
            let id = ours["irq"].as_u64().unwrap();
            let (Some(a), Some(b)) = (before.get(&id), after.get(&id)) else { continue };
            // An interrupt that fired meanwhile moved; either value is valid.
            if a == b {
                assert_eq!(ours["effective_affinity"], a.as_str(), "{name} IRQ {id}");
                compared += 1;
            }
        }
        assert!(compared >= 8, "{name}: only {compared} compared");
        let asked = by_irq(&truth["grep . /proc/irq/*/smp_affinity_list"][0]);
        for ours in array(&facts["irqs"]) {
            assert_eq!(ours["affinity"], asked[&ours["irq"].as_u64().unwrap()].as_str(), "{name}");
        }
    }
}

#[test]
fn drivers_and_channels_are_those_of_ethtool() {
    for name in HOSTS {
        let (facts, truth) = (facts(name), truth(name));
        let mut compared = 0;
        for (command, said) in &truth {
            let cell = |key: &str, nth: usize| {
                let values = said[0].lines().filter_map(|l| l.split_once(':'));
                values.filter(|(k, _)| *k == key).nth(nth).map(|(_, v)| v.trim().to_owned())
            };
            if let Some(dev) = command.strip_prefix("ethtool -i ") {
                let ours = nic(&facts, dev);
                assert_eq!(ours["driver"], cell("driver", 0).unwrap(), "{name} {dev}");
                assert_eq!(ours["bus_address"], cell("bus-info", 0).unwrap(), "{name} {dev}");
                compared += 1;
            } else if let Some(dev) = command.strip_prefix("ethtool -l ") {
                let ours = &nic(&facts, dev)["channels"];
                match (cell("Combined", 0), cell("Combined", 1)) {
                    (Some(most), Some(now)) => {
                        assert_eq!(ours["max_combined"].to_string(), most, "{name} {dev}");
                        assert_eq!(ours["combined"].to_string(), now, "{name} {dev}");
                    }
                    _ => assert!(ours["absent"].is_string(), "{name} {dev}: {ours} {}", said[0]),
                }
            }
        }
        assert!(compared >= 1, "{name}");
    }
}

#[test]
fn virtio_queues_have_the_interrupts_that_bear_their_names() {
    for (name, queues) in [
        ("numa-nic", 4),
        ("large", 8),
        ("smt", 4),
        ("offline", 4),
        ("unplug", 4),
        ("nvme", 4),
        ("virtio-blk", 4),
    ] {
        let (facts, truth) = (facts(name), truth(name));
        let eth0 = nic(&facts, "eth0");
        let ours = array(&eth0["queues"]);
        assert_eq!(ours.len(), 2 * queues, "{name}");
        let device = if name == "virtio-blk" { "virtio3" } else { "virtio2" };
        for q in ours {
            let way = if q["id"]["direction"] == "rx" { "input" } else { "output" };
            let expected = named(&truth, &format!("{device}-{way}.{}", q["id"]["index"]));
            assert_eq!(q["irq"], expected, "{name} {q}");
            let irq = irq(&facts, expected);
            assert_eq!(irq["nic"], "eth0");
            assert_eq!(irq["numa_node"], eth0["numa_node"], "{name}");
        }
        assert_eq!(eth0["numa_node"], if name == "large" { 2 } else { 1 }, "{name}");
        assert_eq!(eth0["channels"]["combined"], queues, "{name}");
    }
}

#[test]
fn nodes_packages_and_caches_are_as_built() {
    for (name, cpus, nodes) in
        [("numa-nic", 4, 2), ("large", 64, 4), ("smt", 8, 2), ("bond", 4, 2), ("vmxnet3", 4, 2)]
    {
        let facts = facts(name);
        assert_eq!(array(&facts["cpus"]).len(), cpus, "{name}");
        assert_eq!(array(&facts["numa_nodes"]).len(), nodes, "{name}");
        let each = cpus / nodes;
        for (at, node) in array(&facts["numa_nodes"]).iter().enumerate() {
            assert_eq!(node["id"], at);
            let expected = format!("{}-{}", at * each, (at + 1) * each - 1);
            assert_eq!(node["cpus"], expected, "{name}");
            // The emulated processor gives each package one L3.
            for c in at * each..(at + 1) * each {
                assert_eq!(
                    cpu(&facts, c as u64)["l3_id"],
                    cpu(&facts, (at * each) as u64)["l3_id"]
                );
                assert_eq!(cpu(&facts, c as u64)["package_id"], at);
            }
        }
        let caches = array(&facts["caches"]).iter();
        let l3s: BTreeSet<String> =
            caches.filter(|c| c["level"] == 3).map(|c| c["cpus"].to_string()).collect();
        assert_eq!(l3s.len(), nodes, "{name}: {l3s:?}");
    }
}

#[test]
fn threads_of_a_core_are_siblings() {
    let facts = facts("smt");
    for id in 0..8 {
        let first = id / 2 * 2;
        assert_eq!(cpu(&facts, id)["smt_siblings"], format!("{first}-{}", first + 1), "CPU {id}");
        assert_eq!(cpu(&facts, id)["core_id"], cpu(&facts, first)["core_id"]);
    }
}

#[test]
fn offline_cpus_leave_holes() {
    let facts = facts("offline");
    assert_eq!(facts["host"]["cpus_online"], "0,2-4,6-7");
    assert_eq!(facts["host"]["cpus_present"], "0-7");
    for id in [1, 5] {
        let off = cpu(&facts, id);
        assert_eq!(off["online"], false);
        for key in ["core_id", "package_id", "l3_id"] {
            assert!(off[key]["absent"].is_string(), "{key} of an offline CPU: {}", off[key]);
        }
    }
    let reported = doctor("offline");
    let findings = reported["findings"].to_string();
    // CPUs 1 and 5 are never proposed: no mask of a change contains them.
    for change in array(&reported["findings"]).iter().flat_map(|f| array(&f["changes"])) {
        if let Some(mask) =
            change["new"].as_str().filter(|_| change["knob"].as_str().unwrap().ends_with("_cpus"))
        {
            let cpus = u64::from_str_radix(mask, 16).unwrap();
            assert_eq!(cpus & 0b10_0010, 0, "{findings}");
        }
    }
}

/// The window of a captured host in the form that rules use.
fn samples(name: &str) -> Samples {
    let root = probe::Root::open(&path(name, "tar.zst")).unwrap();
    let options = probe::samples::Options {
        window: std::time::Duration::from_secs(1),
        readings: 2,
        pids: vec![],
        sockets: probe::samples::Sockets::None,
    };
    probe::samples::take(&root, &options, &AtomicBool::new(false), &mut |_| {}).unwrap()
}

#[test]
fn a_cpu_that_leaves_within_the_window_is_neither_zero_nor_huge() {
    let s = samples("unplug");
    let changes: Vec<String> = s.cpu_changes.iter().map(ToString::to_string).collect();
    let changes = changes.join("\n");
    assert!(changes.contains("CPU 3") && changes.contains("CPU 6"), "{changes}");
    assert_eq!(s.cpu_changes.len(), 2, "{changes}");
    let reported = doctor("unplug");
    assert_eq!(reported["window"]["changes"], serde_json::to_value(&s.cpu_changes).unwrap());
    let text = run(NETWRIGHT, &["doctor", "--root", &archive("unplug")]);
    assert!(text.contains("WARNING: the host changed during the window: CPU 3"), "{text}");
    let ids: Vec<u32> = s.cpus.iter().map(|c| c.id.0).collect();
    assert_eq!(ids, [0, 1, 2, 4, 5, 7], "CPUs of both the first and the last reading");
    // Every number of the window must be possible in 16 s.
    let json = serde_json::to_value(&s).unwrap();
    let mut stack = vec![(String::new(), &json)];
    let mut numbers = 0;
    while let Some((at, value)) = stack.pop() {
        match value {
            Value::Object(map) => stack.extend(map.iter().map(|(k, v)| (format!("{at}.{k}"), v))),
            Value::Array(list) => {
                stack.extend(list.iter().enumerate().map(|(k, v)| (format!("{at}.{k}"), v)));
            }
            Value::Number(n) => {
                numbers += 1;
                let n = n.as_f64().unwrap();
                assert!((0.0..1e12).contains(&n), "{at} is {n}");
            }
            _ => {}
        }
    }
    assert!(numbers > 200, "{numbers}");
    // The timer fires on every remaining CPU: none may look idle because of a lost row.
    for c in &s.cpus {
        let stat = serde_json::to_value(c.proc_stat.known().unwrap()).unwrap();
        let ticks: f64 = stat.as_object().unwrap().values().filter_map(Value::as_f64).sum();
        assert!(ticks > 0.0, "CPU {} did nothing, not even idle: {stat}", c.id.0);
    }
}

#[test]
fn managed_interrupts_are_never_called_movable() {
    for (name, action) in [("nvme", "nvme0q"), ("virtio-blk", "-req.")] {
        let (facts, truth) = (facts(name), truth(name));
        let said = &truth["refused to be moved"][0];
        let refused: Vec<u64> = said.lines().filter_map(|l| l.trim().parse().ok()).collect();
        let ours: Vec<&Value> = refused
            .iter()
            .filter_map(|id| array(&facts["irqs"]).iter().find(|i| i["irq"] == *id))
            .collect();
        let disk = ours.iter().filter(|i| i["name"].as_str().unwrap().contains(action));
        assert_eq!(disk.count(), 4, "{name}: one a CPU: {ours:?}");
        for i in ours {
            // Debian's kernel lacks CONFIG_GENERIC_IRQ_DEBUGFS: unknown, which is not "no".
            assert_ne!(i["managed"], false, "{name}: {i}");
        }
        let no_access = facts["no_access"].to_string();
        assert!(no_access.contains("CONFIG_GENERIC_IRQ_DEBUGFS"), "{no_access}");
    }
}

#[test]
fn a_bond_has_its_members_mode_and_policy() {
    let facts = facts("bond");
    let bond = nic(&facts, "bond0");
    assert_eq!(bond["kind"], "bond");
    let details = &bond["details"]["bond"];
    let details = if details.is_null() { &bond["details"] } else { details };
    let said = truth("bond")["cat /proc/net/bonding/bond0"][0].clone();
    assert!(said.contains("IEEE 802.3ad") && said.contains("layer3+4"), "{said}");
    assert_eq!(details["mode"], "802.3ad", "{details}");
    assert_eq!(details["xmit_hash_policy"], "layer3+4", "{details}");
    let text = details.to_string();
    assert!(text.contains("eth0") && text.contains("eth1"), "{text}");
    for member in ["eth0", "eth1"] {
        assert_eq!(nic(&facts, member)["master"], "bond0");
        assert_eq!(nic(&facts, member)["channels"]["combined"], 2);
    }
    let vlan = nic(&facts, "bond0.100");
    assert_eq!(vlan["kind"], "vlan");
    let text = vlan["details"].to_string();
    assert!(text.contains("100") && text.contains("bond0"), "{text}");
    assert_eq!(nic(&facts, "dummy0")["kind"], "dummy");
    for name in ["bond0", "dummy0"] {
        assert!(nic(&facts, name)["qdiscs"].to_string().contains("fq_codel"), "{name}");
    }
}

#[test]
fn vmxnet3_vectors_are_its_channels() {
    let (facts, truth) = (facts("vmxnet3"), truth("vmxnet3"));
    let eth0 = nic(&facts, "eth0");
    assert_eq!(eth0["driver"], "vmxnet3");
    for q in array(&eth0["queues"]) {
        let expected = named(&truth, &format!("eth0-rxtx-{}", q["id"]["index"]));
        assert_eq!(q["irq"], expected, "{q}");
    }
    assert!(!array(&eth0["queues"]).is_empty());
}

#[test]
fn the_queues_case_under_load_is_diagnosed() {
    let facts = facts("queues");
    let channels = &nic(&facts, "eth0")["channels"];
    assert_eq!((&channels["combined"], &channels["max_combined"]), (&1.into(), &4.into()));
    let reported = doctor("queues");
    let found = rules(&reported, "findings");
    assert!(found.contains("time_squeeze") && found.contains("udp_receive_drops"), "{found:?}");
    // Not full: in the archive's /proc/stat CPU 0 is 59.2% busy; softirqs and ksoftirqd/0 by its
    // schedstat add up to 61.7%. So one channel is enough.
    let passed = array(&reported["passed"]).iter().find(|p| p["rule"] == "few_channels").unwrap();
    let because = passed["because"].as_str().unwrap();
    assert!(because.contains("1 of 4 channels, busiest CPU 0 61.7% busy"), "{because}");
    let s = samples("queues");
    let eth0 = s.nics.iter().find(|n| n.name == "eth0").unwrap();
    let received = eth0.statistics.known().unwrap()["rx_packets"].get().unwrap();
    assert!(received > 5_000, "{received} packets in the window are no load");
}

#[test]
fn an_emulated_device_is_not_judged_by_its_bus() {
    for name in HOSTS {
        let found = rules(&doctor(name), "findings");
        for rule in ["small_read_request", "pcie_degraded"] {
            assert!(!found.contains(rule), "{name}: {rule}");
        }
    }
}

#[test]
fn a_move_that_waits_for_an_interrupt_is_no_fault() {
    for name in HOSTS {
        let facts = facts(name);
        let text = run(NETWRIGHT, &["inspect", "--root", &archive(name)]);
        for i in array(&facts["irqs"])
            .iter()
            .filter(|i| i["counts"].as_array().is_some_and(Vec::is_empty))
        {
            let id = &i["irq"];
            assert!(!text.contains(&format!("! IRQ {id}: affinity")), "{name}: {id}\n{text}");
        }
    }
}

#[test]
fn every_captured_host_can_be_shown_at_any_width() {
    for name in HOSTS {
        for columns in ["40", "80", "200"] {
            for args in [&["inspect"][..], &["inspect", "-v"], &["doctor", "-v"], &["doctor"]] {
                let out = Command::new(NETWRIGHT)
                    .args(args)
                    .args(["--root", &archive(name)])
                    .env("COLUMNS", columns)
                    .output()
                    .unwrap();
                let (said, complained) =
                    (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
                assert_eq!(out.status.code(), Some(0), "{name} {args:?}: {complained}");
                assert!(said.contains(&format!("cap-{name}")), "{name} {args:?}: {said}");
                assert!(!complained.contains("panicked"), "{complained}");
            }
        }
    }
}
