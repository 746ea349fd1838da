//! `cpu.N.energy_preference`: the energy-performance preference of the hardware's frequency
//! control.

use crate::{
    cpu_attribute::{CpuAttribute, as_is, word},
    knob::Kind,
};

/// **Source**: `/sys/devices/system/cpu/cpuN/cpufreq/energy_performance_preference` (intel_pstate,
/// amd_pstate).
pub const KIND: Kind = Kind {
    name: "cpu_energy_preference",
    spelling: "cpu.N.energy_preference=NAME",
    parse: |target| FILE.at(target),
};

static FILE: CpuAttribute = CpuAttribute {
    setting: "energy_preference",
    shared: Some("cpufreq/affected_cpus"),
    disturbs: None,
    sets: "governor",
    unit: "",
    judge: |_, _, wanted| word(wanted),
    show: as_is,
    kernel: as_is,
};
