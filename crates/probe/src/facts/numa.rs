//! NUMA nodes, with and without CPUs or memory.

use std::collections::BTreeMap;

use model::{CpuId, CpuSet, NumaNode, Reading, cpu::NumaNodeFacts};

use crate::Root;

const NODES: &str = "/sys/devices/system/node";

/// Every node that the kernel has a folder for, ascending; none on a kernel built without
/// NUMA. Of their CPUs those in `running` count.
pub fn read(root: &Root, running: &CpuSet) -> Vec<NumaNodeFacts> {
    let mut ids: Vec<u32> = root
        .entries(NODES)
        .unwrap_or_default()
        .iter()
        .filter_map(|name| parse::text::id(name.strip_prefix("node")?))
        .collect();
    ids.sort_unstable();
    let columns = columns(root, &ids);
    ids.iter().map(|&id| node(root, id, &columns, running)).collect()
}

/// The node of each CPU that has one.
pub(super) fn by_cpu(nodes: &[NumaNodeFacts]) -> BTreeMap<CpuId, NumaNode> {
    nodes.iter().flat_map(|n| n.cpus.iter().map(|c| (c, n.id))).collect()
}

fn node(root: &Root, id: u32, columns: &[u32], running: &CpuSet) -> NumaNodeFacts {
    let file = |name: &str| format!("{NODES}/node{id}/{name}");
    let memory =
        |key: &'static str| root.parsed(&file("meminfo"), |b| parse::meminfo::value(b, key));
    // `cpumap` is what kernels and trees without `cpulist` have.
    let cpus = root.list(&file("cpulist")).or_else(|| root.mask(&file("cpumap")));
    NumaNodeFacts {
        id: NumaNode(id),
        cpus: cpus.into_known().unwrap_or_default().intersection(running),
        memory_bytes: memory("MemTotal"),
        memory_free_bytes: memory("MemFree"),
        distances: distances(root, &file("distance"), columns),
    }
}

/// The nodes that a `distance` file's columns stand for: the online ones in order
/// (`for_each_online_node` in the kernel's `drivers/base/node.c`), not 0, 1, 2….
fn columns(root: &Root, listed: &[u32]) -> Vec<u32> {
    match root.list(&format!("{NODES}/online")) {
        Reading::Known(online) => online.iter().map(|n| n.0).collect(),
        _ => listed.to_vec(),
    }
}

fn distances(root: &Root, path: &str, columns: &[u32]) -> Reading<BTreeMap<NumaNode, u32>> {
    root.parsed(path, parse::text::numbers::<u32>).and_then(|row| {
        if row.len() != columns.len() || row.is_empty() {
            return Reading::Absent(format!(
                "{path}: {} distances for {} online nodes",
                row.len(),
                columns.len()
            ));
        }
        Reading::Known(columns.iter().map(|&n| NumaNode(n)).zip(row).collect())
    })
}
