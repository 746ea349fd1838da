//! What is told of an interrupt by files of its own: small ones, for thousands of interrupts,
//! so they are read by several threads.

use std::collections::HashMap;

use super::{CpuSet, IrqId, NumaNode, Reading, Root};
use crate::{error::reading, facts::parallel};

/// The files of one interrupt.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub affinity: Reading<CpuSet>,
    pub effective_affinity: Reading<CpuSet>,
    pub numa_node: Reading<NumaNode>,
    pub managed: Reading<bool>,
}

const DEBUGFS: &str = "/sys/kernel/debug/irq/irqs";

/// An interrupt and the PCI function that raises it.
pub(super) type Raised<'a> = (IrqId, Option<&'a str>);

/// Reads the files of every interrupt, in the order given.
pub(super) fn read(root: &Root, irqs: &[Raised]) -> Vec<Files> {
    // One look at the folder says it for all.
    let debugfs = reading(root.entries(DEBUGFS)).map(drop);
    let nodes = device_nodes(root, irqs);
    parallel::by_runs(irqs, |irqs| {
        let node = |device: Option<&str>| device.and_then(|d| nodes.get(d)?.clone());
        irqs.iter().map(|&(irq, device)| of(root, irq, node(device), &debugfs)).collect()
    })
}

/// The node of each function: one file instead of one for each of its interrupts, which say
/// the same. `None` where a function has no such file.
fn device_nodes<'a>(
    root: &Root,
    irqs: &[Raised<'a>],
) -> HashMap<&'a str, Option<Reading<NumaNode>>> {
    let mut nodes = HashMap::new();
    for device in irqs.iter().filter_map(|i| i.1) {
        nodes.entry(device).or_insert_with(|| {
            let path = format!("/sys/bus/pci/devices/{device}/numa_node");
            root.number::<i64>(&path).into_known().map(|n| node(&path, n))
        });
    }
    nodes
}

fn node(path: &str, n: i64) -> Reading<NumaNode> {
    match u32::try_from(n) {
        Ok(n) => Reading::Known(NumaNode(n)),
        Err(_) => Reading::Absent(format!("{path}: {n}, no node")),
    }
}

fn of(
    root: &Root,
    irq: IrqId,
    device_node: Option<Reading<NumaNode>>,
    debugfs: &Reading<()>,
) -> Files {
    // One path for all, since there are thousands.
    let mut path = format!("/proc/irq/{irq}/");
    let folder = path.len();
    let mut list = |name: &str| {
        path.truncate(folder);
        path.push_str(name);
        root.list(&path)
    };
    Files {
        affinity: list("smp_affinity_list"),
        effective_affinity: list("effective_affinity_list"),
        numa_node: device_node.unwrap_or_else(|| {
            let path = format!("/proc/irq/{irq}/node");
            root.number::<i64>(&path).and_then(|n| node(&path, n))
        }),
        managed: match debugfs {
            Reading::Known(()) => managed(root, irq),
            Reading::Absent(why) => Reading::Absent(why.clone()),
            Reading::Denied(why) => Reading::Denied(why.clone()),
        },
    }
}

/// The state flags are names, one a line.
fn managed(root: &Root, irq: IrqId) -> Reading<bool> {
    let flag = b"IRQD_AFFINITY_MANAGED";
    reading(root.read(&format!("{DEBUGFS}/{irq}")))
        .map(|bytes| bytes.windows(flag.len()).any(|w| w == flag))
}
