//! Interrupts: affinity, counts by CPU, and the queues that they serve.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuId, CpuSet, IrqId, NumaNode, QueueId, Reading};

/// One numbered interrupt.
///
/// **Source**: `/proc/interrupts` for name, chip and counts; `/proc/irq/N` for affinities and node.
/// NMI, LOC and other architecture lines are not IRQs and are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Irq {
    pub irq: IrqId,
    /// The action names as the kernel prints them (`eth0-TxRx-3`, `virtio2-input.0`,
    /// `ahci[0000:00:1f.2]`), empty if nobody registered.
    pub name: String,
    /// The interrupt chip (`PCI-MSIX-0000:00:03.0`, `IO-APIC`, `GICv3`, `ITS-MSI`).
    pub chip: Reading<String>,
    /// Hardware number and trigger as printed (`1-edge`).
    pub hwirq: Reading<String>,
    /// Requested affinity. **Source**: `/proc/irq/N/smp_affinity_list`.
    pub affinity: Reading<CpuSet>,
    /// Effective affinity. **Source**: `/proc/irq/N/effective_affinity_list` (since 4.13).
    pub effective_affinity: Reading<CpuSet>,
    /// Node of the device. **Source**: `numa_node` of its PCI function; where that is −1 or
    /// missing, `/proc/irq/N/node`; −1 in that file is absent.
    pub numa_node: Reading<NumaNode>,
    /// Whether the kernel alone decides its affinity (writes answer EIO). **Source**:
    /// debugfs `irq/irqs/N` (`IRQD_AFFINITY_MANAGED`), needs root and debugfs.
    pub managed: Reading<bool>,
    /// Counts since boot by CPU, only those above zero, ascending by CPU. Absent when a CPU came or
    /// went during every attempt to read the file.
    pub counts: Reading<Vec<IrqCount>>,
    /// The device behind it: a PCI address or platform name. **Source**:
    /// `/sys/bus/pci/devices/*/msi_irqs`, else the chip's name.
    pub device: Reading<String>,
    /// The NIC it serves.
    pub nic: Reading<String>,
    /// Further NICs it serves: ports of one PCI function that share their vectors, or a shared
    /// legacy line. Mostly empty.
    pub also_nics: Vec<String>,
    /// The queues it serves (a combined channel has an rx and a tx queue on one IRQ);
    /// empty if unknown or not a queue's.
    pub queues: Vec<QueueId>,
    /// The queue it serves as text (`rx-0`, `tx-3`, `rx-0+tx-0`); the contract's key.
    pub queue: Reading<String>,
    /// How NIC and queue were found.
    pub mapped_by: Reading<Mapping>,
}

impl Irq {
    /// Whether a requested move is pending: the effective CPU differs from the requested one, and
    /// no interrupt has come yet. The kernel moves a message-signalled interrupt while it handles
    /// one (`irq_move_masked_irq`), so one that never fired stays where it was set up.
    pub fn move_waits(&self) -> bool {
        let fired = self.counts.known().is_none_or(|c| c.iter().any(|n| n.count > 0));
        let elsewhere = match (self.affinity.known(), self.effective_affinity.known()) {
            (Some(asked), Some(real)) => {
                !asked.is_empty() && !real.is_empty() && !real.is_subset(asked)
            }
            _ => false,
        };
        elsewhere && !fired
    }

    /// CPUs of its next interrupts: the effective affinity; the requested one where the kernel
    /// reports no effective one, or where a requested move is pending.
    pub fn target(&self) -> Reading<CpuSet> {
        if self.move_waits() {
            return self.affinity.clone();
        }
        self.effective_affinity.clone().or_else(|| self.affinity.clone())
    }
}

/// One cell of `/proc/interrupts`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IrqCount {
    pub cpu: CpuId,
    pub count: u64,
}

/// How an IRQ was tied to a NIC and queue, most trustworthy first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Mapping {
    /// Reported by the `netdev` generic-netlink family (queue → NAPI → IRQ).
    NetdevNetlink,
    /// `msi_irqs` of the NIC's PCI device (for virtio its parent), queue by name or order.
    MsiIrqs,
    /// By the name in `/proc/interrupts`.
    Name,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Known;

    fn irq(asked: &str, real: Option<&str>, counts: Reading<Vec<IrqCount>>) -> Irq {
        let no = || Reading::absent("not needed");
        Irq {
            irq: IrqId(31),
            name: "virtio2-output.0".into(),
            chip: no(),
            hwirq: no(),
            affinity: Known(asked.parse().unwrap()),
            effective_affinity: real
                .map_or_else(|| Reading::absent("4.12"), |r| Known(r.parse().unwrap())),
            numa_node: Reading::absent("-1"),
            managed: Reading::absent("no debugfs"),
            counts,
            device: no(),
            nic: no(),
            also_nics: vec![],
            queues: vec![],
            queue: no(),
            mapped_by: Reading::absent("not needed"),
        }
    }

    #[test]
    fn goes_where_the_kernel_says_unless_a_move_waits() {
        let fired = || Known(vec![IrqCount { cpu: CpuId(3), count: 5 }]);
        let target = |i: Irq| i.target().get().unwrap().to_string();
        assert_eq!(target(irq("0", Some("3"), Known(vec![]))), "0", "waits for its first");
        assert_eq!(target(irq("0", Some("3"), fired())), "3", "it had its chance to move");
        assert_eq!(target(irq("0", Some("3"), Reading::absent("torn"))), "3", "counts unknown");
        assert_eq!(target(irq("0-3", Some("3"), Known(vec![]))), "3", "as asked");
        assert_eq!(target(irq("0", None, Known(vec![]))), "0", "an old kernel tells no better");
        assert_eq!(target(irq("0", Some(""), Known(vec![]))), "", "shut down");
    }
}
