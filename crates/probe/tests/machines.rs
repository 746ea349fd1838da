//! Facts of real machines against their known values. `fixtures/README.md` has the origin of the
//! trees and of the counts.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use model::{
    CpuId, CpuSet, Facts, NumaNode, Reading,
    cpu::{Cpu, NumaNodeFacts},
};
use probe::{Root, facts};

fn facts(name: &str) -> Facts {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.tar.zst"));
    let root = Root::open(&path).unwrap_or_else(|e| panic!("{e}"));
    facts::collect(&root, &facts::Request::default())
}

/// Counts of a machine, in the order: CPUs present, online, cores, packages, clusters, L3s,
/// L2s, nodes.
fn counts(f: &Facts) -> [usize; 8] {
    fn distinct<T: Ord>(f: &Facts, what: impl Fn(&Cpu) -> Option<T>) -> usize {
        f.cpus.iter().filter_map(what).collect::<BTreeSet<T>>().len()
    }
    let level = |n| f.caches.iter().filter(|c| c.level == n).count();
    [
        f.cpus.len(),
        f.cpus.iter().filter(|c| c.online == Reading::Known(true)).count(),
        distinct(f, |c| c.smt_siblings.get()),
        distinct(f, |c| c.package_id.get()),
        distinct(f, |c| c.cluster_id.get()),
        level(3),
        level(2),
        f.numa_nodes.len(),
    ]
}

fn cpu(f: &Facts, id: u32) -> &Cpu {
    f.cpus.iter().find(|c| c.id == CpuId(id)).unwrap_or_else(|| panic!("no CPU {id}"))
}

fn node(f: &Facts, id: u32) -> &NumaNodeFacts {
    f.numa_nodes.iter().find(|n| n.id == NumaNode(id)).unwrap_or_else(|| panic!("no node {id}"))
}

fn set(text: &str) -> CpuSet {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

/// What shipped with the trees as their truth.
const KNOWN: [(&str, [usize; 8]); 12] = [
    // present, online, cores, packages, clusters, L3, L2, nodes
    ("kunpeng-920-128", [128, 128, 128, 2, 32, 4, 128, 4]),
    ("power9-gpu-nodes", [32, 32, 8, 2, 0, 4, 4, 8]),
    // hwloc makes packages of core_siblings there; the kernel numbers them all −1.
    ("power7-256", [256, 256, 64, 0, 0, 64, 64, 8]),
    ("xeon-e5v3-cpu0-offline", [24, 17, 17, 2, 0, 2, 17, 1]),
    ("xeon-silver-4108", [32, 32, 16, 2, 0, 2, 16, 2]),
    ("xeon-e7-4870", [40, 40, 40, 4, 0, 4, 40, 4]),
    ("opteron-48-sparse", [48, 48, 48, 4, 0, 8, 48, 8]),
    ("xeon-e5345-uneven-caches", [8, 8, 8, 2, 0, 0, 3, 1]),
    // On x86 a cluster is who shares an L2.
    ("qemu-memory-tiers", [6, 6, 6, 1, 6, 1, 6, 7]),
    // No node folder; hwloc makes up one node.
    ("s390x-20", [20, 20, 20, 0, 0, 0, 0, 0]),
    ("epyc-7451", [96, 96, 48, 2, 0, 16, 48, 8]),
    ("powermac-qemu-1", [1, 1, 1, 0, 0, 0, 0, 0]),
];

#[test]
fn counts_are_those_that_shipped_with_the_trees() {
    for (name, expected) in KNOWN {
        assert_eq!(counts(&facts(name)), expected, "{name}");
    }
}

#[test]
fn names_of_machines() {
    let reported = |name| {
        let h = facts(name).host;
        let or_none = |r: Reading<String>| r.into_known().unwrap_or_else(|| "-".into());
        [or_none(h.arch), or_none(h.cpu_model), or_none(h.machine), or_none(h.hypervisor)]
    };
    assert_eq!(reported("kunpeng-920-128"), ["aarch64", "Kunpeng-920", "Huawei XA320 V2", "none"]);
    assert_eq!(
        reported("power9-gpu-nodes"),
        ["ppc64", "POWER9, altivec supported", "PowerNV 8335-GTW", "none"]
    );
    assert_eq!(
        reported("epyc-7451"),
        ["x86_64", "AMD EPYC 7451 24-Core Processor", "-", "none"],
        "no DMI in the tree; the CPU's flags are without `hypervisor`"
    );
    let qemu = reported("qemu-memory-tiers");
    assert_eq!(qemu.get(3).map(String::as_str), Some("qemu"));
    let z = reported("s390x-20");
    assert_eq!(z, ["s390x", "IBM/S390", "-", "-"], "nothing tells of a hypervisor: not `none`");
    assert_eq!(reported("powermac-qemu-1"), ["ppc", "740/750", "Power Macintosh", "-"]);
}

#[test]
fn who_shares_what_on_an_epyc() {
    let f = facts("epyc-7451");
    for c in &f.cpus {
        // From lscpu's expected output: 3 cores an L3, the second threads 48 CPUs further.
        let core = c.id.0 % 48;
        assert_eq!(c.smt_siblings, Reading::Known(set(&format!("{core},{}", core + 48))));
        assert_eq!(c.l3_id, Reading::Known(CpuId(core / 3 * 3)), "CPU {}", c.id);
        assert_eq!(c.numa_node, Reading::Known(NumaNode(core / 6)));
        assert_eq!(c.package_id, Reading::Known(i64::from(core / 24)));
        assert_eq!(c.frequency.governor, Reading::Known("performance".into()));
        assert_eq!(c.frequency.hardware_max_khz, Reading::Known(2_300_000));
    }
    let l3: BTreeSet<_> =
        f.caches.iter().filter(|c| c.level == 3).map(|c| c.size_bytes.get().unwrap().0).collect();
    assert_eq!(l3, [8 << 20].into());
    let names: Vec<_> = f.idle_states.iter().map(|s| (s.index, s.name.as_str())).collect();
    assert_eq!(names, [(0, "POLL"), (1, "C1"), (2, "C2")]);
    assert!(f.idle_states.iter().all(|s| s.cpus == set("0-95")));
}

#[test]
fn clusters_of_a_kunpeng() {
    let f = facts("kunpeng-920-128");
    assert_eq!(cpu(&f, 86).cluster_cpus, Reading::Known(set("84-87")));
    assert_eq!(cpu(&f, 86).cluster_id, Reading::Known(11124));
    assert_eq!(cpu(&f, 86).package_id, Reading::Known(8442));
    assert_eq!(cpu(&f, 86).l3_id, Reading::Known(CpuId(64)));
    assert!(!cpu(&f, 86).die_id.is_known(), "−1 is no die");
    assert_eq!(cpu(&f, 86).capacity, Reading::Known(1024));
}

#[test]
fn distances_are_keyed_by_node_and_not_by_column() {
    let f = facts("power9-gpu-nodes");
    let gpu = node(&f, 255);
    assert!(gpu.cpus.is_empty());
    assert_eq!(gpu.memory_bytes.get().map(|b| b.0), Some(15_728_640 * 1024));
    let expected: BTreeMap<NumaNode, u32> = [0, 8, 250, 251, 252, 253, 254, 255]
        .map(|n| (NumaNode(n), if n == 255 { 10 } else { 80 }))
        .into();
    assert_eq!(gpu.distances, Reading::Known(expected));
    // The kernel's list of node 0 is 0-87: most of these are not even present.
    assert_eq!(node(&f, 0).cpus, set("0-15"));
    assert_eq!(cpu(&f, 103).numa_node, Reading::Known(NumaNode(8)));
    let amd = facts("opteron-48-sparse");
    let ids: Vec<u32> = node(&amd, 33).distances.known().unwrap().keys().map(|n| n.0).collect();
    assert_eq!(ids, [0, 1, 2, 33, 34, 45, 72, 73]);
    assert_eq!(node(&amd, 33).distances.known().unwrap().get(&NumaNode(33)), Some(&10));
}

#[test]
fn an_offline_cpu_is_present_and_says_so() {
    let f = facts("xeon-e5v3-cpu0-offline");
    let off = cpu(&f, 0);
    assert_eq!(off.online, Reading::Known(false));
    for why in [off.core_id.why_not(), off.l3_id.why_not(), off.smt_siblings.why_not()] {
        assert!(why.is_some(), "an offline CPU has no place: {off:?}");
    }
    assert_eq!(off.core_id, Reading::absent("CPU 0 is offline"));
    // Old lists name offline CPUs too: the lowest that runs stands for the cache.
    assert_eq!(cpu(&f, 20).l3_id, Reading::Known(CpuId(4)));
    assert_eq!(cpu(&f, 5).l3_id, Reading::Known(CpuId(5)));
    assert!(!cpu(&f, 4).numa_node.is_known(), "its node's folder is not there");
}

#[test]
fn what_a_machine_does_not_tell_is_not_zero() {
    let f = facts("s390x-20");
    for c in &f.cpus {
        assert!(!c.package_id.is_known() && !c.numa_node.is_known() && !c.l3_id.is_known());
    }
    assert!(f.caches.is_empty() && f.numa_nodes.is_empty());
    assert!(f.no_access.iter().any(|u| u.what == "idle states"));
    let p7 = facts("power7-256");
    assert_eq!(cpu(&p7, 5).smt_siblings, Reading::Known(set("4-7")));
}

#[test]
fn throttling_and_idle_states_of_a_xeon() {
    let f = facts("xeon-e7-4870");
    let throttled: BTreeSet<_> = f.cpus.iter().map(|c| c.core_throttle_count.get()).collect();
    assert_eq!(throttled, [Some(0), Some(237)].into());
    let names: Vec<&str> = f.idle_states.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["C0", "NHM-C1", "NHM-C3", "NHM-C6"]);
    let c6 = f.idle_states.last().unwrap();
    assert_eq!(c6.exit_latency_ns.get().map(|n| n.0), Some(200_000));
    assert_eq!(c6.driver, Reading::Known("intel_idle".into()));
    let none = facts("opteron-48-sparse");
    assert!(cpu(&none, 0).core_throttle_count.why_not().is_some());
}
