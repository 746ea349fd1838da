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
    /// Name of the agent or profile, or path of the file.
    pub name: String,
    /// Whether it runs now; absent for files.
    pub running: Reading<bool>,
    pub pid: Reading<u32>,
    pub arguments: Reading<Vec<String>>,
    /// Settings that it controls, one term each: `irq affinity`, `sysctl`, `channels`, `mtu`,
    /// `governor`.
    pub owns: Vec<String>,
    /// Files that it reads its settings from on this host, in ascending precedence.
    #[serde(default)]
    pub settings_files: Vec<String>,
    /// Lines as evidence: `/etc/default/irqbalance:3: IRQBALANCE_BANNED_CPULIST=0-1`.
    pub evidence: Vec<String>,
    /// irqbalance: banned CPUs, and the source of that list.
    pub banned_cpus: Reading<CpuSet>,
    /// irqbalance: interrupts that it leaves alone.
    pub banned_irqs: Reading<Vec<IrqId>>,
    /// tuned: the active profile.
    pub profile: Reading<String>,
}
