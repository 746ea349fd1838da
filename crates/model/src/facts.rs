//! The facts of a host at one moment.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Bytes, Reading,
    applied::AppliedSetting,
    cpu::{Cache, Cpu, IdleState, NumaNodeFacts},
    host::Host,
    irq::Irq,
    kernel_log::NicLogEvent,
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

/// Facts of a host. Every list is ordered by id or name, so that two readings of an unchanged host
/// are equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The kernel, the machine, and its hypervisor and container.
    pub host: Host,
    /// Every present CPU, ascending by id; ids may have holes.
    pub cpus: Vec<Cpu>,
    /// Every cache instance once, with the CPUs that share it; ascending by level, then by first
    /// CPU.
    pub caches: Vec<Cache>,
    /// The idle states, once each per distinct set of CPUs; empty with a note in
    /// `no_access` where the kernel has no cpuidle.
    pub idle_states: Vec<IdleState>,
    /// Every node, with and without CPUs or memory.
    pub numa_nodes: Vec<NumaNodeFacts>,
    /// The NICs of this process's own network namespace, ascending by name.
    pub nics: Vec<Nic>,
    /// All network namespaces that were found, this process's own included.
    pub namespaces: Reading<Vec<NetNamespace>>,
    /// Every numbered interrupt, ascending.
    pub irqs: Reading<Vec<Irq>>,
    /// Per-CPU backlog counters since boot, ascending by CPU id.
    pub softnet: Reading<Vec<SoftnetRow>>,
    /// Kernel settings by dotted name (`net.core.rmem_max`).
    pub sysctls: BTreeMap<String, Sysctl>,
    /// Programs and files that also change the settings that Netwright judges.
    pub tuners: Vec<Tuner>,
    /// The processes asked for (`--pid`, `--process`, `--port`), empty without such an option.
    pub processes: Vec<Process>,
    /// Listening TCP sockets of this network namespace.
    pub listeners: Reading<Vec<Listener>>,
    /// NVMe and SCSI host adapters.
    pub storage: Vec<StorageController>,
    /// What the kernel's log says of NICs; an older document has none.
    #[serde(default)]
    pub kernel_log: Reading<Vec<NicLogEvent>>,
    /// What became of the settings that Netwright applied on this running host; an archive and an
    /// older document have none.
    #[serde(default)]
    pub applied: Reading<Vec<AppliedSetting>>,
    /// Memory the kernel manages. **Source**: `/proc/meminfo` MemTotal.
    pub memory_bytes: Reading<Bytes>,
    /// Values that could not be read and what would grant access, for people; one line per missing
    /// capability or kernel feature, not one per value.
    pub no_access: Vec<NoAccess>,
}

/// A value that this run could not read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoAccess {
    /// The missing value, such as `RSS tables`.
    pub what: String,
    /// The reason, with the path or call.
    pub why: String,
    /// The remedy: a capability, a kernel option, a package; empty if nothing helps.
    pub remedy: String,
}
