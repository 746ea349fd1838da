//! CPUs, caches, idle states and NUMA nodes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, CpuId, CpuSet, Nanos, NumaNode, Reading};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    pub id: CpuId,
    /// Whether the CPU is online. A present CPU can be offline. **Source**:
    /// `/sys/devices/system/cpu/online`.
    pub online: Reading<bool>,
    /// Excluded from the scheduler's load balancing. **Source**: `/sys/devices/system/cpu/isolated`
    /// (`isolcpus=`, isolated cpuset partitions).
    pub isolated: Reading<bool>,
    /// Runs without the periodic tick. **Source**: `/sys/devices/system/cpu/nohz_full`.
    pub nohz_full: Reading<bool>,
    /// Core number within its package: not unique across packages. **Source**:
    /// `topology/core_id`.
    pub core_id: Reading<i64>,
    /// Cluster within the package (Kunpeng: 4 cores; Intel hybrid: an E-core module).
    /// **Source**: `topology/cluster_id`, since 5.16; −1 is absent.
    pub cluster_id: Reading<i64>,
    /// Die within the package. **Source**: `topology/die_id`, since 5.2; −1 is absent.
    pub die_id: Reading<i64>,
    /// Physical package. **Source**: `topology/physical_package_id`.
    pub package_id: Reading<i64>,
    /// Node the CPU belongs to. **Source**: `/sys/devices/system/node/nodeN/cpulist`.
    pub numa_node: Reading<NumaNode>,
    /// The L3 cache, named by the lowest CPU that shares it: two CPUs share an L3 exactly when
    /// these are equal. **Source**: `cache/indexN/shared_cpu_list`.
    pub l3_id: Reading<CpuId>,
    /// Hardware threads of the same core, this CPU included. **Source**:
    /// `topology/core_cpus_list` (since 5.3) or `thread_siblings_list`.
    pub smt_siblings: Reading<CpuSet>,
    /// CPUs of the same cluster. **Source**: `topology/cluster_cpus_list`.
    pub cluster_cpus: Reading<CpuSet>,
    /// Relative capacity, at most 1,024 (asymmetric machines). **Source**: `cpu_capacity`.
    pub capacity: Reading<u32>,
    pub frequency: CpuFrequency,
    /// Number of times that this core was throttled for heat since boot. **Source**:
    /// `thermal_throttle/core_throttle_count` (x86).
    pub core_throttle_count: Reading<u64>,
    /// Number of times that its package was throttled for heat since boot. **Source**:
    /// `thermal_throttle/package_throttle_count` (x86).
    pub package_throttle_count: Reading<u64>,
}

/// Frequency scaling of one CPU. **Source**: `cpuN/cpufreq`; in a guest usually absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuFrequency {
    /// Name of the governor. **Source**: `scaling_governor`.
    pub governor: Reading<String>,
    /// Name of the cpufreq driver. **Source**: `scaling_driver`.
    pub driver: Reading<String>,
    /// `scaling_cur_freq`, in kHz as the kernel gives it; the threads of a core share its clock.
    pub current_khz: Reading<u64>,
    /// Lowest frequency that the governor may choose. **Source**: `scaling_min_freq`.
    pub min_khz: Reading<u64>,
    /// `scaling_max_freq`. A value below `hardware_max_khz` means that the CPU is limited now.
    pub max_khz: Reading<u64>,
    /// `cpuinfo_max_freq`, of the core.
    pub hardware_max_khz: Reading<u64>,
    /// Absent without hardware P-states. **Source**: `energy_performance_preference`.
    pub energy_preference: Reading<String>,
}

/// One cache instance. **Source**: `cpuN/cache/indexM`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cache {
    /// 1, 2, 3, 4.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    pub cpus: CpuSet,
    pub size_bytes: Reading<Bytes>,
    pub line_bytes: Reading<Bytes>,
}

/// One idle state, for all CPUs that have it with the same figures. **Source**:
/// `cpuN/cpuidle/stateM`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    /// Position in the kernel's table.
    pub index: u32,
    /// `name`, such as `C6` or `POLL`.
    pub name: String,
    /// The driver's text for the state. **Source**: `desc`.
    pub description: Reading<String>,
    /// Worst-case exit latency, from `latency` (µs in the file).
    pub exit_latency_ns: Reading<Nanos>,
    /// Target residency: the shortest stay for which the state saves energy, from `residency` (µs
    /// in the file).
    pub residency_ns: Reading<Nanos>,
    /// CPUs that have this state with these figures.
    pub cpus: CpuSet,
    /// Those CPUs on which the state is disabled (`disable` = 1).
    pub disabled_cpus: CpuSet,
    /// The cpuidle driver. **Source**: `/sys/devices/system/cpu/cpuidle/current_driver`.
    pub driver: Reading<String>,
    /// The governor. **Source**: `cpuidle/current_governor` or `current_governor_ro`.
    pub governor: Reading<String>,
}

/// One NUMA node. **Source**: `/sys/devices/system/node/nodeN`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NumaNodeFacts {
    pub id: NumaNode,
    /// CPUs of the node; empty for memory-only nodes.
    pub cpus: CpuSet,
    /// Memory of the node; zero for nodes without memory. **Source**: `meminfo` MemTotal.
    pub memory_bytes: Reading<Bytes>,
    pub memory_free_bytes: Reading<Bytes>,
    /// ACPI SLIT distances by node id (10 is local).
    pub distances: Reading<BTreeMap<NumaNode, u32>>,
}
