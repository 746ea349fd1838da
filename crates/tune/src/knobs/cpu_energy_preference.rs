//! `cpu.N.energy_preference`: what the hardware's own frequency control leans to.

use crate::cpu_attribute::{CpuAttribute, as_is, word};

/// **Source**: `/sys/devices/system/cpu/cpuN/cpufreq/energy_performance_preference` (intel_pstate,
/// amd_pstate).
pub const KNOB: CpuAttribute = CpuAttribute {
    name: "cpu_energy_preference",
    spelling: "cpu.N.energy_preference=NAME",
    suffix: "energy_preference",
    file: "cpufreq/energy_performance_preference",
    shared: Some("cpufreq/affected_cpus"),
    disturbs: None,
    sets: "governor",
    unit: "",
    judge: |_, _, wanted| word(wanted),
    show: as_is,
    kernel: as_is,
};
