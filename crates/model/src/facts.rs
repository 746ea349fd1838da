//! The facts of a host at one moment.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Bytes, Reading,
    cpu::{Cache, Cpu, IdleState, NumaNodeFacts},
    host::Host,
    irq::Irq,
    napi::SoftnetRow,
    netns::NetNamespace,
    nic::Nic,
    process::{Listener, Process},
    storage::StorageController,
    sysctl::Sysctl,
    tuner::Tuner,
};

/// The version of the serialised form; grows when a key is added, keys are never renamed.
pub const SCHEMA_VERSION: u32 = 1;

/// What the host is. The order of every list is the order of its ids or names, so that two
/// readings of an unchanged host are equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The kernel, the machine and what it runs in.
    pub host: Host,
    /// Every present CPU, ascending by id; ids may have holes.
    pub cpus: Vec<Cpu>,
    /// Every cache instance once, with who shares it; ascending by level, then by first CPU.
    pub caches: Vec<Cache>,
    /// The idle states, once each per distinct set of CPUs; empty with a note in
    /// `no_access` where the kernel has no cpuidle.
    pub idle_states: Vec<IdleState>,
    /// Every node, with and without CPUs or memory.
    pub numa_nodes: Vec<NumaNodeFacts>,
    /// The NICs of this process's own network namespace, ascending by name.
    pub nics: Vec<Nic>,
    /// All network namespaces that were found, this process's own among them.
    pub namespaces: Reading<Vec<NetNamespace>>,
    /// Every numbered interrupt, ascending.
    pub irqs: Reading<Vec<Irq>>,
    /// Per-CPU backlog counters since boot, ascending by CPU id.
    pub softnet: Reading<Vec<SoftnetRow>>,
    /// Kernel settings by dotted name (`net.core.rmem_max`).
    pub sysctls: BTreeMap<String, Sysctl>,
    /// Programs and files that also change what Netwright judges.
    pub tuners: Vec<Tuner>,
    /// The processes asked for.
    pub processes: Vec<Process>,
    /// Listening TCP sockets of this network namespace.
    pub listeners: Reading<Vec<Listener>>,
    /// NVMe and SCSI host adapters.
    pub storage: Vec<StorageController>,
    /// Memory the kernel manages. **Source**: `/proc/meminfo` MemTotal.
    pub memory_bytes: Reading<Bytes>,
    /// What could not be read and what would grant it, for people; one line per missing
    /// capability or kernel feature rather than one per value.
    pub no_access: Vec<NoAccess>,
}

/// Something that this run could not see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoAccess {
    /// What is missing, such as `RSS tables`.
    pub what: String,
    /// Why, with the path or call.
    pub why: String,
    /// What to do about it: a capability, a kernel option, a package; empty if nothing helps.
    pub remedy: String,
}
