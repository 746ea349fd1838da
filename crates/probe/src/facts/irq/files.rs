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
    let debugfs = match debugfs {
        Reading::Absent(why) => Reading::Absent(format!(
            "{why}; a kernel with CONFIG_GENERIC_IRQ_DEBUGFS and debugfs mounted would show it"
        )),
        other => other,
    };
    parallel::by_runs(ids, |ids| ids.iter().map(|&irq| of(root, irq, &debugfs)).collect())
}

fn of(root: &Root, irq: IrqId, debugfs: &Reading<()>) -> Files {
    let node = format!("/proc/irq/{irq}/node");
    Files {
        affinity: root.list(&format!("/proc/irq/{irq}/smp_affinity_list")),
        effective_affinity: root.list(&format!("/proc/irq/{irq}/effective_affinity_list")),
        numa_node: root.number::<i64>(&node).and_then(|n| match u32::try_from(n) {
            Ok(n) => Reading::Known(NumaNode(n)),
            Err(_) => Reading::Absent(format!("{node}: {n}, no node")),
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
