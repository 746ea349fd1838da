//! Other tuners: programs and files that set what Netwright judges.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuSet, IrqId, Reading};

/// A program or file that also tunes this host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tuner {
    /// `irqbalance`, `tuned`, `networkd`, `network_manager`, `cloud_agent`, `link_file`,
    /// `udev_rule`, `script`, `sysctl_file`, `daemon` (numad, bpftune and the like).
    pub kind: String,
    /// Its name (the agent's, the file's path, the profile's).
    pub name: String,
    /// Whether it runs now; absent for files.
    pub running: Reading<bool>,
    pub pid: Reading<u32>,
    pub arguments: Reading<Vec<String>>,
    /// What it owns, a word for each: `irq affinity`, `sysctl`, `channels`, `mtu`, `governor`.
    pub owns: Vec<String>,
    /// Files that it really takes its settings from on this host, those that win last.
    #[serde(default)]
    pub settings_files: Vec<String>,
    /// Lines that show it: `/etc/default/irqbalance:3: IRQBALANCE_BANNED_CPULIST=0-1`.
    pub evidence: Vec<String>,
    /// irqbalance: CPUs it keeps IRQs away from, and from where that is known.
    pub banned_cpus: Reading<CpuSet>,
    /// irqbalance: IRQs it does not touch.
    pub banned_irqs: Reading<Vec<IrqId>>,
    /// tuned: the active profile.
    pub profile: Reading<String>,
}
