//! Storage controllers, for daemons that move data between disks and the network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{IrqId, NumaNode, Reading};

/// An NVMe controller or a SCSI host adapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageController {
    /// `nvme0`, `host2`, or the virtio device.
    pub name: String,
    /// `nvme`, `scsi`, `virtio_blk`.
    pub kind: String,
    /// Kernel driver.
    pub driver: Reading<String>,
    /// Model string.
    pub model: Reading<String>,
    /// PCI address.
    pub bus_address: Reading<String>,
    /// Its node; the kernel's −1 is absent.
    pub numa_node: Reading<NumaNode>,
    /// Block devices on it.
    pub disks: Vec<String>,
    /// Its interrupts.
    pub irqs: Vec<IrqId>,
}
