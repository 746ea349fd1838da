//! Counts of thermal throttling.

use std::collections::BTreeMap;

use model::{CpuId, Reading};

use super::cpu_layout::CPUS;
use crate::{Root, facts::parallel};

/// Throttling of the core and of its package since boot.
type Counts = (Reading<u64>, Reading<u64>);

/// Counts by CPU. The kernel counts at each CPU what that CPU saw, so each is asked; but whether
/// there are counts at all is one answer for the machine.
pub(super) fn read(root: &Root, online: &[CpuId]) -> BTreeMap<CpuId, Counts> {
    let file = |cpu: CpuId, name: &str| format!("{CPUS}/cpu{cpu}/thermal_throttle/{name}");
    let counts = |cpu: CpuId| -> Counts {
        let read = |name: &str| root.number(&file(cpu, name));
        (read("core_throttle_count"), read("package_throttle_count"))
    };
    let Some(&first) = online.first() else { return BTreeMap::new() };
    if !root.exists(&format!("{CPUS}/cpu{first}/thermal_throttle")) {
        let none = Reading::Absent(format!("{CPUS}/cpu{first}/thermal_throttle: not there"));
        return online.iter().map(|&cpu| (cpu, (none.clone(), none.clone()))).collect();
    }
    let read = parallel::by_runs(online, |cpus| cpus.iter().map(|&cpu| counts(cpu)).collect());
    online.iter().copied().zip(read).collect()
}
