//! Placement on made hosts: the storage server of the field (Kunpeng, four nodes), and small ones.

use model::{Facts, Goal, Reading, placement::ProcessUse};
use serde_json::{Value, json};

use super::*;

/// A host of `nodes` nodes with `cores` cores of `threads` threads each, four cores an L3; threads
/// of a core are neighbours in number. NICs are on the nodes named, with 8 queues each on all CPUs.
fn host(nodes: u32, cores: u32, threads: u32, nics: &[(&str, Option<u32>)]) -> Value {
    let base = include_str!("../../tests/golden/_base/facts.json");
    let mut facts: Value = serde_json::from_str(base).unwrap();
    let per_node = cores * threads;
    let mut cpus = vec![];
    for id in 0..nodes * per_node {
        let mut cpu = facts["cpus"][0].clone();
        let first = id / threads * threads;
        let node = id / per_node;
        cpu["id"] = json!(id);
        cpu["numa_node"] = json!(node);
        cpu["l3_id"] = json!(id / (4 * threads) * 4 * threads);
        cpu["smt_siblings"] = json!(match threads {
            1 => format!("{first}"),
            _ => format!("{first}-{}", first + threads - 1),
        });
        cpus.push(cpu);
    }
    let numa = (0..nodes).map(|n| {
        let distances: serde_json::Map<String, Value> = (0..nodes)
            .map(|m| {
                (
                    m.to_string(),
                    json!(if n == m {
                        10
                    } else if n / 2 == m / 2 {
                        12
                    } else {
                        20
                    }),
                )
            })
            .collect();
        json!({"id": n, "cpus": format!("{}-{}", n * per_node, (n + 1) * per_node - 1),
               "memory_bytes": 1u64 << 36, "memory_free_bytes": 1u64 << 35, "distances": distances})
    });
    facts["numa_nodes"] = numa.collect();
    let (mut cards, mut irqs) = (vec![], vec![]);
    for (n, (name, node)) in nics.iter().enumerate() {
        let mut nic = facts["nics"][0].clone();
        nic["name"] = json!(name);
        nic["numa_node"] = node.map_or(json!({"absent": "-1"}), |n| json!(n));
        nic["addresses"] = json!([format!("10.0.{n}.1/24")]);
        nic["queues"] = json!([]);
        cards.push(nic);
        for queue in 0..8u32 {
            let mut irq = facts["irqs"][0].clone();
            irq["irq"] = json!(100 + n as u32 * 8 + queue);
            irq["nic"] = json!(name);
            irq["affinity"] = json!("0");
            irq["effective_affinity"] = json!("0");
            irq["queues"] = json!([{"direction": "rx", "index": queue}]);
            irqs.push(irq);
        }
    }
    facts["nics"] = json!(cards);
    facts["irqs"] = json!(irqs);
    facts["cpus"] = json!(cpus);
    facts["tuners"] = json!([]);
    facts
}

/// Adds a service of its own control group that may run everywhere.
fn service(facts: &mut Value, pid: u32, name: &str) {
    let all = format!("0-{}", facts["cpus"].as_array().unwrap().len() - 1);
    let mut p: Value =
        serde_json::from_str::<Value>(include_str!("../../tests/golden/_base/facts.json")).unwrap()
            ["processes"][0]
            .clone();
    p["pid"] = json!(pid);
    p["name"] = json!(name.split('@').next());
    p["unit"] = json!(format!("{name}.service"));
    p["container"] = json!("none");
    p["cgroup"] = json!(format!("/system.slice/{name}.service"));
    p["cpuset_cpus"] = json!(all);
    p["cpuset_mems"] = json!(format!("0-{}", facts["numa_nodes"].as_array().unwrap().len() - 1));
    for thread in p["threads"].as_array_mut().unwrap() {
        thread["affinity"] = json!(all);
    }
    if !facts["processes"].as_array().unwrap().iter().all(|p| p["unit"].is_string()) {
        facts["processes"] = json!([]);
    }
    if facts["processes"].as_array().unwrap().iter().any(|p| p["name"] == "nginx") {
        facts["processes"] = json!([]);
    }
    facts["processes"].as_array_mut().unwrap().push(p);
}

fn placed(facts: Value, uses: &[ProcessUse], options: PlacementOptions) -> PlacementDocument {
    let facts: Facts = serde_json::from_value(facts).unwrap();
    let none = Reading::absent("not sampled");
    let case = Case { facts: &facts, samples: &none, goal: Goal::Throughput };
    let d = place(&case, uses, options, "made").unwrap();
    // No CPU has two owners, unless the services share; no service has CPUs of two nodes.
    for s in d.services.iter().filter(|s| !s.cpus.is_empty()) {
        let node = d.nodes.iter().find(|n| Some(n.id) == s.node).unwrap();
        assert!(s.cpus.is_subset(&node.cpus), "{s:?}");
        for i in &d.interrupts {
            assert!(s.cpus.intersection(&i.cpus).is_empty(), "{s:?} {i:?}");
        }
    }
    d
}

fn uses(pid: u32, disk: &str, address: &str) -> ProcessUse {
    let disks = if disk.is_empty() { vec![] } else { vec![(disk.into(), "is open".into())] };
    let addresses = if address.is_empty() { vec![] } else { vec![address.parse().unwrap()] };
    ProcessUse { pid, disks: Reading::Known(disks), addresses: Reading::Known(addresses) }
}

/// Twelve OSDs, four nodes of 32 cores, two NICs (nodes 0 and 2), three NVMe disks a node. Each OSD
/// belongs to its disk and to the NIC of that half of the machine.
#[test]
fn twelve_osds_stay_with_their_nic_and_disk() {
    let mut facts = host(4, 32, 1, &[("eth0", Some(0)), ("eth1", Some(2))]);
    let mut all = vec![];
    let mut storage = vec![];
    for osd in 0..12u32 {
        service(&mut facts, 1000 + osd, &format!("ceph-osd@{osd}"));
        let disk = format!("nvme{osd}n1");
        storage.push(json!({"name": format!("nvme{osd}"), "kind": "nvme", "driver": "nvme",
            "model": {"absent": "x"}, "bus_address": {"absent": "x"}, "numa_node": osd / 3,
            "disks": [disk], "irqs": []}));
        all.push(uses(1000 + osd, &disk, if osd < 6 { "10.0.0.1" } else { "10.0.1.1" }));
    }
    facts["storage"] = json!(storage);
    let d = placed(facts, &all, PlacementOptions::default());
    let nodes: Vec<u32> = d.services.iter().map(|s| s.node.unwrap().0).collect();
    // The NIC's node takes what it has cores for; nobody crosses to the other package.
    let same_half =
        |s: &PlacedService| s.node.unwrap().0 / 2 == s.nics[0].node.get().unwrap().0 / 2;
    assert!(d.services.iter().all(same_half), "{:#?}", d.services);
    assert_eq!(nodes.iter().filter(|n| **n == 0).count(), 3, "{nodes:?}");
    // With 128 cores less 16 for interrupts there are 9 for each: 24/9 and 32/9 give only 2 and 3
    // places, so all get 8: 3 on the NICs' nodes (24 cores), 3 on the others, with their disks.
    assert!(d.services.iter().all(|s| s.cpus.len() == 8), "{:?}", d.services);
    assert!(d.services.iter().all(|s| s.is_local(&s.disks) == Some(true)), "{nodes:?}");
    let together: Vec<String> = d.services.iter().map(|s| s.cpus.to_string()).collect();
    let distinct: BTreeSet<&String> = together.iter().collect();
    assert_eq!(distinct.len(), 12, "{together:?}");
    // Interrupts: 8 CPUs of the NIC's own node, one a queue.
    for (i, node) in d.interrupts.iter().zip([0..32u32, 64..96]) {
        assert_eq!((i.movable, i.cpus.len()), (8, 8));
        assert!(i.cpus.iter().all(|c| node.contains(&c.0)), "{i:?}");
    }
    let osd = d.changes.iter().find(|c| c.knob == "process.1000.cpuset").unwrap();
    assert_eq!(osd.new, format!("{} mems 0", d.services[0].cpus));
    // `report` prints this document at two widths.
    let golden: PlacementDocument =
        serde_json::from_str(include_str!("../../../report/src/golden/place.json")).unwrap();
    assert_eq!(golden, d, "new: {}", serde_json::to_string(&d).unwrap());
    // 12 services, and 16 interrupts of which one is on CPU 0 already.
    assert_eq!(d.changes.len(), 12 + 15, "{:#?}", d.changes);
}

#[test]
fn threads_of_a_core_stay_together_and_an_l3_is_not_split_without_need() {
    let mut facts = host(1, 16, 2, &[("eth0", Some(0))]);
    for n in 0..3 {
        service(&mut facts, 10 + n, &format!("web@{n}"));
    }
    let all: Vec<ProcessUse> = (0..3).map(|n| uses(10 + n, "", "")).collect();
    let options = PlacementOptions { cores: Some(4), interrupt_cores: Some(4) };
    let d = placed(facts, &all, options);
    for s in &d.services {
        assert_eq!(s.cpus.len(), 8, "four cores of two threads: {s:?}");
        for cpu in s.cpus.iter() {
            assert!(s.cpus.contains(CpuId(cpu.0 ^ 1)), "{s:?}");
        }
    }
    // One interrupt for a core; its sibling stays idle.
    assert_eq!(d.interrupts[0].cpus.len(), 4);
    // The NIC is known as the only one that is up.
    assert_eq!(d.services[0].nics[0].name, "eth0");
}

#[test]
fn more_services_than_cores_share_a_node() {
    let mut facts = host(2, 2, 1, &[("eth0", None)]);
    for n in 0..9 {
        service(&mut facts, 10 + n, &format!("web@{n}"));
    }
    let all: Vec<ProcessUse> = (0..9).map(|n| uses(10 + n, "", "10.0.0.1")).collect();
    let d = placed(facts, &all, PlacementOptions::default());
    assert!(d.services.iter().all(|s| s.cpus.len() == 2), "{:?}", d.services);
    assert!(d.notes.iter().any(|n| n.contains("share")), "{:?}", d.notes);
    // A NIC without a node: its interrupts stay.
    assert!(d.interrupts[0].cpus.is_empty());
    let on_first = d.services.iter().filter(|s| s.node == Some(NumaNode(0))).count();
    assert!((4..=5).contains(&on_first), "{on_first}");
}

#[test]
fn a_host_with_few_cores_keeps_none_for_interrupts() {
    let mut facts = host(1, 2, 1, &[("eth0", Some(0))]);
    service(&mut facts, 10, "web");
    let d = placed(facts, &[uses(10, "", "")], PlacementOptions::default());
    assert!(d.interrupts[0].cpus.is_empty(), "{d:?}");
    assert_eq!(d.services[0].cpus.len(), 2);
    assert!(d.changes.is_empty(), "in place already: {:?}", d.changes);
    assert!(d.notes.iter().any(|n| n.contains("too few")), "{:?}", d.notes);
}

/// The interrupts take a core of the NIC's node: three near cores are better than four far ones.
#[test]
fn a_service_gives_up_a_core_to_be_with_its_nic() {
    let mut facts = host(4, 4, 1, &[("eth0", Some(2))]);
    service(&mut facts, 10, "web");
    let all = [uses(10, "", "10.0.0.1")];
    let d = placed(facts.clone(), &all, PlacementOptions::default());
    assert_eq!(d.services[0].node, Some(NumaNode(2)), "{:?}", d.services);
    assert_eq!(d.services[0].cpus.to_string(), "9-11");
    assert_eq!(d.interrupts[0].cpus.to_string(), "8");
    // As many as were asked for, wherever they are.
    let options = PlacementOptions { cores: Some(4), interrupt_cores: None };
    let d = placed(facts, &all, options);
    assert_eq!((d.services[0].cpus.len(), d.services[0].node == Some(NumaNode(2))), (4, false));
}

/// Eight services, one NIC on a node of eight cores: near it each would have one core, and no other
/// node any work. Each keeps at least half of the four that it could have.
#[test]
fn a_service_keeps_half_of_its_cores() {
    let mut facts = host(4, 8, 1, &[("eth0", Some(0))]);
    for n in 0..8 {
        service(&mut facts, 10 + n, &format!("web@{n}"));
    }
    let all: Vec<ProcessUse> = (0..8).map(|n| uses(10 + n, "", "10.0.0.1")).collect();
    let options = PlacementOptions { cores: None, interrupt_cores: Some(0) };
    let d = placed(facts, &all, options);
    assert!(d.services.iter().all(|s| s.cpus.len() == 2), "{:?}", d.services);
    let near = d.services.iter().filter(|s| s.node == Some(NumaNode(0))).count();
    assert_eq!(near, 4, "{:?}", d.services);
}

#[test]
fn too_many_cores_asked_for_are_reduced_and_said() {
    let mut facts = host(2, 8, 1, &[("eth0", Some(1))]);
    for n in 0..3 {
        service(&mut facts, 10 + n, &format!("web@{n}"));
    }
    let all: Vec<ProcessUse> = (0..3).map(|n| uses(10 + n, "", "10.0.0.1")).collect();
    let options = PlacementOptions { cores: Some(8), interrupt_cores: None };
    let d = placed(facts, &all, options);
    assert!(d.notes.iter().any(|n| n.contains("cannot have 8 cores each")), "{:?}", d.notes);
    assert!(d.services.iter().all(|s| !s.cpus.is_empty()));
}

#[test]
fn what_may_not_use_a_whole_core_is_not_called_in_place() {
    let mut facts = host(2, 4, 2, &[("eth0", Some(0))]);
    service(&mut facts, 10, "web");
    let p = &mut facts["processes"][0];
    p["unit"] = json!({"absent": "in no unit"});
    p["cpuset_cpus"] = json!("3");
    for thread in p["threads"].as_array_mut().unwrap() {
        thread["affinity"] = json!("3");
    }
    let options = PlacementOptions { cores: Some(1), interrupt_cores: Some(0) };
    let d = placed(facts, &[uses(10, "", "10.0.0.1")], options);
    assert!(d.services[0].cpus.is_empty() && d.services[0].node.is_none(), "{:?}", d.services);
    assert!(!d.notes.is_empty() && d.changes.is_empty(), "{:?}", d.notes);
}

#[test]
fn a_change_from_an_unknown_value_is_said_to_be_missing() {
    let mut facts = host(2, 4, 1, &[("eth0", Some(1))]);
    service(&mut facts, 10, "web");
    facts["processes"][0]["cpuset_cpus"] = json!({"denied": "needs root"});
    for thread in facts["processes"][0]["threads"].as_array_mut().unwrap() {
        thread["affinity"] = json!({"denied": "needs root"});
    }
    let options = PlacementOptions { cores: Some(2), interrupt_cores: Some(0) };
    let d = placed(facts, &[uses(10, "", "10.0.0.1")], options);
    assert_eq!(d.services[0].node, Some(NumaNode(1)));
    assert!(d.notes.iter().any(|n| n.contains("no change is proposed")), "{:?}", d.notes);
}
