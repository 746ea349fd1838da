//! Tests of `place` on real machines: CPUs, caches, nodes and, where their trees have them, NICs are as
//! the machine gave them (`probe/tests/fixtures/README.md`). The services, their disks and
//! addresses, interrupts, and the NICs of trees without any are made here. Each answer is a golden,
//! and held to what a good placement is, without the code that chose it.

use std::{collections::BTreeSet, fs, path::PathBuf};

use diagnose::{
    Case,
    placement::{PlacementOptions, place},
};
use model::{
    CpuId, CpuSet, Facts, Goal, NumaNode, Reading,
    cpu::Cpu,
    irq::Irq,
    placement::{PlacedService, PlacementDocument, ProcessUse, UsedDevice},
    process::Process,
};
use serde_json::{Value, json};

/// Queues of each NIC, with an interrupt each.
const QUEUES: u32 = 8;

/// A real machine with services of the field: OSDs.
struct Machine {
    facts: Facts,
    uses: Vec<ProcessUse>,
}

/// A value of the host that `diagnose`'s rules are tested on.
fn made(list: &str) -> Value {
    let base = include_str!("../../../diagnose/tests/golden/_base/facts.json");
    serde_json::from_str::<Value>(base).unwrap()[list][0].clone()
}

impl Machine {
    fn of(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../probe/tests/fixtures");
        let root = probe::Root::open(&folder.join(format!("{name}.tar.zst"))).unwrap();
        let mut facts = probe::facts::collect(&root, &probe::facts::Request::default());
        facts.irqs = Reading::Known(vec![]);
        Self { facts, uses: vec![] }
    }

    /// Gives a NIC an address and interrupts, all on CPU 0 as after a reset; one that the tree does
    /// not have is added on a node.
    fn nic(mut self, name: &str, address: &str, added_on: Option<u32>) -> Self {
        if let Some(node) = added_on {
            let mut nic = made("nics");
            (nic["name"], nic["numa_node"], nic["queues"]) = (json!(name), json!(node), json!([]));
            self.facts.nics.push(serde_json::from_value(nic).unwrap());
        }
        let nic = self.facts.nics.iter_mut().find(|n| n.name == name).unwrap();
        nic.addresses = Reading::Known(vec![format!("{address}/24")]);
        let Reading::Known(irqs) = &mut self.facts.irqs else { unreachable!() };
        for queue in 0..QUEUES {
            let mut irq = made("irqs");
            irq["irq"] = json!(200 + irqs.len());
            irq["nic"] = json!(name);
            (irq["affinity"], irq["effective_affinity"]) = (json!("0"), json!("0"));
            irq["queues"] = json!([{"direction": "rx", "index": queue}]);
            irqs.push(serde_json::from_value::<Irq>(irq).unwrap());
        }
        self
    }

    /// Adds an OSD with a disk on a node and a client's address.
    fn osd(mut self, disk_node: u32, address: &str) -> Self {
        let (n, last) = (self.uses.len() as u32, self.facts.cpus.len() - 1);
        let (pid, disk) = (1000 + n, format!("nvme{n}n1"));
        let mut p = made("processes");
        (p["pid"], p["name"]) = (json!(pid), json!("ceph-osd"));
        p["unit"] = json!(format!("ceph-osd@{n}.service"));
        p["cgroup"] = json!(format!("/system.slice/ceph-osd@{n}.service"));
        p["cpuset_cpus"] = json!(format!("0-{last}"));
        p["cpuset_mems"] = json!("");
        self.facts.processes.push(serde_json::from_value::<Process>(p).unwrap());
        let storage = json!({"name": format!("nvme{n}"), "kind": "nvme", "driver": "nvme",
            "model": {"absent": "made"}, "bus_address": {"absent": "made"}, "numa_node": disk_node,
            "disks": [disk], "irqs": []});
        self.facts.storage.push(serde_json::from_value(storage).unwrap());
        self.uses.push(ProcessUse {
            pid,
            disks: Reading::Known(vec![(disk.clone(), format!("/dev/{disk} is open"))]),
            addresses: Reading::Known(vec![address.parse().unwrap()]),
        });
        self
    }

    /// Places, compares with the golden, and holds the answer to [`Machine::is_good`].
    fn placed(&self, golden: &str, options: PlacementOptions) -> PlacementDocument {
        let none = Reading::absent("not sampled");
        let case = Case { facts: &self.facts, samples: &none, goal: Goal::Throughput };
        let d = place(&case, &self.uses, options, golden).unwrap();
        self.is_good(&d);
        let text = report::place::text(&d, report::text::TextStyle::default());
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join(format!("tests/plain/place/{golden}.txt"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&file, &text).unwrap();
        }
        let want = fs::read_to_string(&file).unwrap_or_default();
        assert!(text == want, "{} is not what is printed now:\n{text}", file.display());
        d
    }

    fn cpu(&self, id: CpuId) -> &Cpu {
        self.facts.cpus.iter().find(|c| c.id == id).unwrap()
    }

    fn distance(&self, from: NumaNode, device: &UsedDevice) -> u32 {
        let Some(to) = device.node.get() else { return 0 };
        let node = self.facts.numa_nodes.iter().find(|n| n.id == from).unwrap();
        // What Linux assumes of nodes whose distance the firmware does not give.
        let assumed = if from == to { 10 } else { 20 };
        node.distances.known().map_or(assumed, |d| d[&to])
    }

    /// The distances of a service's NICs and disks on a node.
    fn apart(&self, s: &PlacedService, node: NumaNode) -> u32 {
        s.nics.iter().chain(&s.disks).map(|d| self.distance(node, d)).sum()
    }

    /// Cores of a set, by the lowest CPU of each.
    fn cores(&self, cpus: &CpuSet) -> BTreeSet<CpuId> {
        let lowest = |c: CpuId| self.cpu(c).smt_siblings.known().unwrap().first().unwrap();
        cpus.iter().map(lowest).collect()
    }

    /// What makes a placement good, by the machine's own files.
    fn is_good(&self, d: &PlacementDocument) {
        let mut taken: BTreeSet<CpuId> = BTreeSet::new();
        for i in &d.interrupts {
            for cpu in i.cpus.iter() {
                assert_eq!(self.cpu(cpu).numa_node.get(), i.node.get(), "{i:?}");
                // The other thread of its core serves nobody.
                let core = self.cpu(cpu).smt_siblings.known().unwrap();
                assert!(core.iter().all(|c| taken.insert(c)), "two owners: {i:?}");
            }
        }
        let sizes: BTreeSet<usize> = d.services.iter().map(|s| self.cores(&s.cpus).len()).collect();
        assert_eq!(sizes.len(), 1, "not all have as many cores: {sizes:?}");
        for s in &d.services {
            for cpu in s.cpus.iter() {
                let facts = self.cpu(cpu);
                assert_eq!(facts.numa_node.get(), s.node, "{s:?}");
                assert!(taken.insert(cpu), "CPU {cpu} has two owners");
                assert!(
                    facts.smt_siblings.known().unwrap().is_subset(&s.cpus),
                    "half a core: {s:?}"
                );
            }
        }
        // No two services gain together by changing nodes, and none by moving to free cores.
        let each = sizes.first().copied().unwrap();
        for a in &d.services {
            let own = self.apart(a, a.node.unwrap());
            for node in d.nodes.iter().filter(|n| self.cores(&n.free).len() >= each) {
                assert!(self.apart(a, node.id) >= own, "{} is better on node {}", a.name, node.id);
            }
            for b in &d.services {
                let (x, y) = (a.node.unwrap(), b.node.unwrap());
                let now = own + self.apart(b, y);
                assert!(self.apart(a, y) + self.apart(b, x) >= now, "{} and {}", a.name, b.name);
            }
        }
    }

    /// How many L3 caches a service's CPUs are of.
    fn l3s(&self, s: &PlacedService) -> usize {
        s.cpus.iter().filter_map(|c| self.cpu(c).l3_id.get()).collect::<BTreeSet<_>>().len()
    }
}

/// How many services are on the node of all their NICs, of their disks.
fn near(d: &PlacementDocument) -> (usize, usize) {
    let on = |devices: &[UsedDevice], s: &PlacedService| {
        devices.iter().all(|x| x.node.get() == s.node && s.node.is_some())
    };
    let count = |pick: fn(&PlacedService) -> &[UsedDevice]| {
        d.services.iter().filter(|s| on(pick(s), s)).count()
    };
    (count(|s| &s.nics), count(|s| &s.disks))
}

/// Case M's machine: twelve OSDs, four nodes of 32 cores, NICs on nodes 0 and 2, three disks a node.
#[test]
fn twelve_osds_on_a_kunpeng_920() {
    let mut m = Machine::of("kunpeng-920-128");
    m.facts.nics.clear();
    m = m.nic("eth0", "10.0.0.1", Some(0)).nic("eth1", "10.0.1.1", Some(2));
    for osd in 0..12 {
        m = m.osd(osd / 3, if osd < 6 { "10.0.0.1" } else { "10.0.1.1" });
    }
    let d = m.placed("kunpeng-920-128", PlacementOptions::default());
    assert_eq!(near(&d), (6, 12));
    assert!(d.services.iter().all(|s| s.cpus.len() == 8), "{:?}", d.services);
    assert!(d.interrupts.iter().all(|i| i.cpus.len() == 8));
}

/// Eight nodes, 16 L3 caches of three cores, the second thread of core n is CPU n + 48.
#[test]
fn twelve_osds_on_two_epyc_7451() {
    let mut m = Machine::of("epyc-7451");
    m.facts.nics.clear();
    m = m.nic("eth0", "10.0.0.1", Some(1)).nic("eth1", "10.0.1.1", Some(5));
    for osd in 0..12 {
        m = m.osd(osd * 8 / 12, if osd < 6 { "10.0.0.1" } else { "10.0.1.1" });
    }
    let d = m.placed("epyc-7451", PlacementOptions::default());
    assert!(d.services.iter().all(|s| m.l3s(s) == 1), "a cache is split: {:?}", d.services);
    let halves = d.services.iter().map(|s| s.node.unwrap().0 / 4).collect::<Vec<_>>();
    assert_eq!(halves, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1], "none crosses to the other package");
}

/// A real NIC on node 0, two threads a core: the disks decide for half of the services.
#[test]
fn six_osds_on_two_xeon_silver_4108_with_their_own_nic() {
    let mut m = Machine::of("xeon-silver-4108-devices").nic("enp96s0f0", "10.0.0.1", None);
    for osd in 0..6 {
        m = m.osd(osd / 3, "10.0.0.1");
    }
    let d = m.placed("xeon-silver-4108", PlacementOptions::default());
    assert_eq!(d.interrupts[0].node.get(), Some(NumaNode(0)));
    assert_eq!(d.services.len(), 6);
}

/// Real NICs on either node: eth0 on node 0, ib0 on node 1.
#[test]
fn four_osds_on_two_xeon_e5_2680_with_their_own_nics() {
    let mut m = Machine::of("xeon-e5-2680-devices")
        .nic("eth0", "10.0.0.1", None)
        .nic("ib0", "10.0.1.1", None);
    // The second and the third have their disk on the other node than their NIC.
    for (disk, address) in [(0, "10.0.0.1"), (1, "10.0.0.1"), (0, "10.0.1.1"), (1, "10.0.1.1")] {
        m = m.osd(disk, address);
    }
    let d = m.placed("xeon-e5-2680", PlacementOptions::default());
    assert_eq!(near(&d), (4, 2), "of a NIC and a disk apart the NIC decides");
}

/// Four nodes whose CPUs are numbered in turns, and a NIC of which the firmware names no node.
#[test]
fn twelve_osds_on_a_dell_r910_with_its_own_nics() {
    let mut m = Machine::of("xeon-e7-4870-devices")
        .nic("eth0", "10.0.0.1", None)
        .nic("ib0", "10.0.1.1", None);
    for osd in 0..12 {
        m = m.osd(osd / 3, if osd % 2 == 0 { "10.0.0.1" } else { "10.0.1.1" });
    }
    let d = m.placed("xeon-e7-4870", PlacementOptions::default());
    let of = |nic: &str| d.interrupts.iter().find(|i| i.nic == nic).unwrap();
    assert!(of("eth0").cpus.is_empty(), "no node, so its interrupts stay: {:?}", of("eth0"));
    assert_eq!((of("ib0").node.get(), of("ib0").cpus.len()), (Some(NumaNode(2)), 2));
}
