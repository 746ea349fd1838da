//! Files for other readers of an unpacked snapshot: `lstopo` reads CPU masks where netwright reads
//! lists, and every attribute of a PCI device.

use crate::Root;

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";
const PCI: &str = "/sys/bus/pci/devices";

/// Reads them, so that the recording has them; what is not there is not recorded.
pub fn read(root: &Root) {
    for file in ["/proc/meminfo", "/proc/cpuinfo"] {
        let _ = root.read(file);
    }
    files(root, CPUS);
    for cpu in numbered(root, CPUS, "cpu") {
        let _ = root.read(&format!("{cpu}/online"));
        files(root, &format!("{cpu}/topology"));
        for index in numbered(root, &format!("{cpu}/cache"), "index") {
            files(root, &index);
        }
    }
    files(root, NODES);
    for node in numbered(root, NODES, "node") {
        files(root, &node);
    }
    for device in root.entries(PCI).unwrap_or_default() {
        for name in PCI_FILES {
            let _ = root.read(&format!("{PCI}/{device}/{name}"));
        }
    }
}

const PCI_FILES: [&str; 9] = [
    "class",
    "device",
    "vendor",
    "subsystem_device",
    "subsystem_vendor",
    "revision",
    "local_cpus",
    "local_cpulist",
    "numa_node",
];

/// Every file of a folder, not what is below.
fn files(root: &Root, folder: &str) {
    for name in root.entries(folder).unwrap_or_default() {
        if !is_folder(&name) {
            let _ = root.read(&format!("{folder}/{name}"));
        }
    }
}

/// Names in these folders that are folders or links to some, or that only take writes.
fn is_folder(name: &str) -> bool {
    let numbered = ["cpu", "node", "memory", "index"]
        .iter()
        .any(|p| name.strip_prefix(p).is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit())));
    let folders = [
        "access0",
        "access1",
        "cpufreq",
        "cpuidle",
        "firmware_node",
        "hotplug",
        "hugepages",
        "intel_pstate",
        "microcode",
        "power",
        "smt",
        "subsystem",
        "uevent",
        "vulnerabilities",
    ];
    numbered
        || folders.contains(&name)
        || matches!(name, "compact" | "probe" | "reclaim" | "release")
}

/// Folders `prefix` and a number.
fn numbered(root: &Root, folder: &str, prefix: &str) -> Vec<String> {
    let is_one = |name: &String| {
        name.strip_prefix(prefix)
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let names = root.entries(folder).unwrap_or_default().into_iter().filter(is_one);
    names.map(|n| format!("{folder}/{n}")).collect()
}
