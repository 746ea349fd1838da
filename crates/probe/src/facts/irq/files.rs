//! The files of single interrupts. There are thousands of small ones, so several threads read them.

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
        let node = |device: Option<&str>| device.and_then(|d| *nodes.get(d)?);
        irqs.iter().map(|&(irq, device)| of(root, irq, node(device), &debugfs)).collect()
    })
}

/// The node of each function that has one: one file instead of one for each of its interrupts.
/// Those say the same, but for managed ones (the node of the CPUs they are for).
fn device_nodes<'a>(root: &Root, irqs: &[Raised<'a>]) -> HashMap<&'a str, Option<NumaNode>> {
    let mut nodes = HashMap::new();
    for device in irqs.iter().filter_map(|i| i.1) {
        nodes.entry(device).or_insert_with(|| {
            let path = format!("/sys/bus/pci/devices/{device}/numa_node");
            root.number::<i64>(&path).get().and_then(node)
        });
    }
    nodes
}

/// The kernel's −1 is no node.
fn node(n: i64) -> Option<NumaNode> {
    u32::try_from(n).ok().map(NumaNode)
}

fn of(root: &Root, irq: IrqId, device_node: Option<NumaNode>, debugfs: &Reading<()>) -> Files {
    // One path for all, since there are thousands.
    let mut path = format!("/proc/irq/{irq}/");
    let folder = path.len();
    let mut list = |name: &str| {
        path.truncate(folder);
        path.push_str(name);
        root.list(&path)
    };
    Files {
        affinity: whole_list(
            || list("smp_affinity_list"),
            |cpus| cpus.known().is_some_and(CpuSet::is_empty),
        ),
        effective_affinity: list("effective_affinity_list"),
        numa_node: device_node.map_or_else(|| own_node(root, irq), Reading::Known),
        managed: match debugfs {
            Reading::Known(()) => managed(root, irq),
            Reading::Absent(why) => Reading::Absent(why.clone()),
            Reading::Denied(why) => Reading::Denied(why.clone()),
        },
    }
}

/// Reads the CPUs that an interrupt may go to, again where the list is empty: no interrupt goes to no
/// CPU. Kernels that read the list without the interrupt's lock (`show_irq_affinity`, 6.1 among them) print
/// the mask of a move that is being completed while it is cleared.
pub fn whole_list<T>(mut read: impl FnMut() -> T, is_empty: impl Fn(&T) -> bool) -> T {
    const TRIES: usize = 10;
    let list = read();
    (1..TRIES).fold(list, |list, _| if is_empty(&list) { read() } else { list })
}

fn own_node(root: &Root, irq: IrqId) -> Reading<NumaNode> {
    let path = format!("/proc/irq/{irq}/node");
    root.number::<i64>(&path).and_then(|n| match node(n) {
        Some(node) => Reading::Known(node),
        None => Reading::Absent(format!("{path}: {n}, no node")),
    })
}

/// The state flags are names, one a line.
fn managed(root: &Root, irq: IrqId) -> Reading<bool> {
    let flag = b"IRQD_AFFINITY_MANAGED";
    reading(root.read(&format!("{DEBUGFS}/{irq}")))
        .map(|bytes| bytes.windows(flag.len()).any(|w| w == flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_is_read_again_and_one_that_stays_empty_ends() {
        let mut lists = ["", "", "6", "7"].into_iter();
        assert_eq!(whole_list(|| lists.next().unwrap(), |l| l.is_empty()), "6");
        let mut reads = 0;
        let mut read = || {
            reads += 1;
            ""
        };
        assert_eq!(whole_list(&mut read, |l| l.is_empty()), "");
        assert_eq!(reads, 10);
    }
}
