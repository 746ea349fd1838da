//! Where services should run: the answer of `netwright place`.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Change, CpuSet, NumaNode, Reading};

/// A device that a service uses, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsedDevice {
    /// The kernel's name, such as `eth0` or `nvme3n1`.
    pub name: String,
    /// Node of the device; absent where the firmware names none.
    pub node: Reading<NumaNode>,
    /// `socket at 10.0.0.5`, `/dev/dm-3 is open`, `files on /var/lib/postgresql`, `the only NIC`.
    pub known_by: String,
}

/// What a process uses, before anything is placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessUse {
    pub pid: u32,
    /// Whole disks behind its open block devices, else behind its open files; with how it is known.
    pub disks: Reading<Vec<(String, String)>>,
    /// Local addresses of its TCP and UDP sockets, without loopback and wildcards; ascending.
    pub addresses: Reading<Vec<IpAddr>>,
}

/// The document of `netwright place --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlacementDocument {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// `live`, or the tree or snapshot that was read.
    pub source: String,
    /// Every service once, in the order of its lowest process id.
    pub services: Vec<PlacedService>,
    /// The NICs of the services, with the CPUs for their queue interrupts; by name.
    pub interrupts: Vec<PlacedInterrupts>,
    /// The nodes with CPUs, by id.
    pub nodes: Vec<PlacedNode>,
    /// What to change, in `tune`'s knobs; empty where all is in place.
    pub changes: Vec<Change>,
    /// What limits the answer, most important first.
    pub notes: Vec<String>,
}

/// A service: the processes of one control group, or one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedService {
    /// Unit, container or process name.
    pub name: String,
    /// The lowest process id among `pids`.
    pub pid: u32,
    /// Ids of the chosen processes in it, ascending.
    pub pids: Vec<u32>,
    /// The knob that places it: `process.PID.cpuset` or `process.PID.affinity`.
    pub knob: String,
    pub nics: Vec<UsedDevice>,
    pub disks: Vec<UsedDevice>,
    /// CPUs that it may use now.
    pub cpus_now: Reading<CpuSet>,
    /// CPUs that it should use; empty where it could not be placed.
    pub cpus: CpuSet,
    /// The node of these CPUs.
    pub node: Option<NumaNode>,
}

/// CPUs for the queue interrupts of a NIC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedInterrupts {
    pub nic: String,
    pub node: Reading<NumaNode>,
    /// Number of its queue interrupts that may be moved.
    pub movable: usize,
    /// CPUs that they use now.
    pub cpus_now: CpuSet,
    /// CPUs that they should use; empty where they stay.
    pub cpus: CpuSet,
}

/// What a node is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedNode {
    pub id: NumaNode,
    /// Online CPUs of the node.
    pub cpus: CpuSet,
    /// Those that neither a service nor an interrupt was given.
    pub free: CpuSet,
    /// NICs and storage controllers of the node.
    pub devices: Vec<String>,
}

impl PlacedService {
    /// Whether all devices of known node are on the node of these CPUs. `None` where no node of
    /// a device is known.
    pub fn is_local(&self, devices: &[UsedDevice]) -> Option<bool> {
        let nodes: Vec<NumaNode> = devices.iter().filter_map(|d| d.node.get()).collect();
        (!nodes.is_empty()).then(|| nodes.iter().all(|n| Some(*n) == self.node))
    }
}
