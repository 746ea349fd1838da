//! Storage controllers, for daemons that move data between disks and the network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{IrqId, NumaNode, Reading};

/// An NVMe controller or a SCSI host adapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageController {
    /// `nvme0`, `host2`, or the virtio device.
    pub name: String,
    /// Kind of controller: `nvme`, `scsi`, `virtio_blk`.
    pub kind: String,
    pub driver: Reading<String>,
    pub model: Reading<String>,
    pub bus_address: Reading<String>,
    /// NUMA node; the kernel's −1 is absent.
    pub numa_node: Reading<NumaNode>,
    /// Block devices on it.
    pub disks: Vec<String>,
    pub irqs: Vec<IrqId>,
}
