#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{fs, os::unix::fs::symlink, path::Path};

use super::*;

fn put(dir: &Path, path: &str, text: &str) {
    let file = dir.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn list(text: &str) -> CpuSet {
    text.parse().unwrap()
}

/// Two nodes of two cores with two threads, numbered as PCs do, CPU 6 offline.
fn two_nodes() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let p = dir.path();
    put(p, "sys/devices/system/cpu/online", "0-5,7\n");
    for cpu in [0u32, 1, 2, 3, 4, 5, 7] {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}");
        let core = cpu % 4;
        put(
            p,
            &format!("{folder}/topology/thread_siblings_list"),
            &format!("{core},{}\n", core + 4),
        );
        put(p, &format!("{folder}/cache/index3/level"), "3\n");
        let l3 = if core < 2 { "0-1,4-5" } else { "2-3,6-7" };
        put(p, &format!("{folder}/cache/index3/shared_cpu_list"), l3);
    }
    put(p, "sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
    put(p, "sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
    put(p, "sys/devices/system/node/has_cpu", "0-1\n");
    dir
}

#[test]
fn cores_caches_and_nodes_of_the_wanted_cpus() {
    let dir = two_nodes();
    let root = Root::open(dir.path()).unwrap();
    assert_eq!(online(&root), Some(list("0-5,7")));
    let places = read(&root, &list("1-2,5"));
    assert_eq!(places.iter().map(|p| p.cpu.0).collect::<Vec<_>>(), [1, 2, 5]);
    assert_eq!(
        (&places[0].core, places[0].l3, places[0].node),
        (&list("1,5"), Some(CpuId(0)), Some(NumaNode(0)))
    );
    // Its sibling is offline.
    assert_eq!(
        (&places[1].core, places[1].l3, places[1].node),
        (&list("2"), Some(CpuId(2)), Some(NumaNode(1)))
    );
    assert_eq!(places[2].core, places[0].core);
}

#[test]
fn a_tree_that_tells_nothing_leaves_each_cpu_alone() {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(dir.path()).unwrap();
    assert_eq!(online(&root), None);
    let places = read(&root, &list("3,9"));
    assert_eq!(places[1], CpuLocation { cpu: CpuId(9), core: list("9"), l3: None, node: None });
}

#[test]
fn an_l3_under_another_index_is_found() {
    let dir = tempfile::tempdir().unwrap();
    for (index, level) in [(0, 1), (1, 2), (2, 3)] {
        let folder = format!("sys/devices/system/cpu/cpu0/cache/index{index}");
        put(dir.path(), &format!("{folder}/level"), &level.to_string());
        put(dir.path(), &format!("{folder}/shared_cpu_list"), "0-7");
    }
    let places = read(&Root::open(dir.path()).unwrap(), &list("0"));
    assert_eq!(places[0].l3, Some(CpuId(0)));
}

#[test]
fn this_host_is_read() {
    let root = Root::live();
    let all = online(&root).unwrap();
    let places = read(&root, &all);
    assert_eq!(places.len(), all.len());
    assert!(places.iter().all(|p| p.core.contains(p.cpu)));
}

#[test]
fn a_nic_under_a_vlan_with_its_node_and_interrupts() {
    let dir = tempfile::tempdir().unwrap();
    let p = dir.path();
    let function = "sys/devices/pci0000:00/0000:00:03.0";
    put(p, &format!("{function}/numa_node"), "1\n");
    put(p, &format!("{function}/msi_irqs/40"), "msix\n");
    put(p, &format!("{function}/msi_irqs/41"), "msix\n");
    put(p, "proc/irq/40/effective_affinity_list", "5\n");
    put(p, "proc/irq/41/effective_affinity_list", "\n");
    put(p, "proc/irq/41/smp_affinity_list", "6-7\n");
    fs::create_dir_all(p.join("sys/bus/pci")).unwrap();
    symlink("../../../bus/pci", p.join(function).join("subsystem")).unwrap();
    for nic in ["eth0", "eth0.7", "lo"] {
        fs::create_dir_all(p.join("sys/class/net").join(nic)).unwrap();
    }
    symlink("../../../devices/pci0000:00/0000:00:03.0", p.join("sys/class/net/eth0/device"))
        .unwrap();
    symlink("../eth0", p.join("sys/class/net/eth0.7/lower_eth0")).unwrap();
    let root = Root::open(p).unwrap();
    let place = nic(&root, "eth0.7").unwrap();
    assert_eq!(
        (place.name.as_str(), place.node, place.irq_cpus),
        ("eth0", Some(NumaNode(1)), list("5-7"))
    );
    assert_eq!(nic(&root, "lo"), None);
    assert_eq!(nic(&root, "../class/net/eth0"), None);
}
