//! What is told of an interrupt by files of its own: three small ones each, for thousands of
//! interrupts, so they are read by several threads.

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

/// Reads the files of every interrupt, in the order of `ids`.
pub(super) fn read(root: &Root, ids: &[IrqId]) -> Vec<Files> {
    // One look at the folder says it for all.
    let debugfs = reading(root.entries(DEBUGFS)).map(drop);
    parallel::by_runs(ids, |ids| ids.iter().map(|&irq| of(root, irq, &debugfs)).collect())
}

fn of(root: &Root, irq: IrqId, debugfs: &Reading<()>) -> Files {
    // One path for all, since there are thousands.
    let mut path = format!("/proc/irq/{irq}/");
    let folder = path.len();
    let mut list = |name: &str| {
        path.truncate(folder);
        path.push_str(name);
        root.list(&path)
    };
    let affinity = list("smp_affinity_list");
    let effective_affinity = list("effective_affinity_list");
    path.truncate(folder);
    path.push_str("node");
    let numa_node = root.number::<i64>(&path).and_then(|n| match u32::try_from(n) {
        Ok(n) => Reading::Known(NumaNode(n)),
        Err(_) => Reading::Absent(format!("{path}: {n}, no node")),
    });
    Files {
        affinity,
        effective_affinity,
        numa_node,
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
