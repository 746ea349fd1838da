//! `cpu.N.governor`: a CPU's frequency governor; `cpu.governor` sets all CPUs.

use crate::{
    cpu_attribute::{CpuAttribute, as_is, word},
    knob::Kind,
};

/// **Source**: `/sys/devices/system/cpu/cpuN/cpufreq/scaling_governor`, shared by the CPUs of a
/// policy. With intel_pstate and amd_pstate, `performance` also takes the energy preference.
pub const KIND: Kind =
    Kind { name: "cpu_governor", spelling: "cpu.N.governor=NAME", parse: |target| FILE.at(target) };

static FILE: CpuAttribute = CpuAttribute {
    setting: "governor",
    shared: Some("cpufreq/affected_cpus"),
    disturbs: Some("energy_preference"),
    sets: "governor",
    unit: "",
    judge: |_, _, wanted| word(wanted),
    show: as_is,
    kernel: as_is,
};
