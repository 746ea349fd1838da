//! Frequency scaling, once for each policy.

use std::collections::BTreeMap;

use model::{CpuId, CpuSet, Reading, cpu::CpuFrequency};

use super::cpu::{CPUS, absent_frequency};
use crate::{Root, error::reading, facts::parallel};

/// A folder of settings and the CPUs they are for.
struct Policy {
    folder: String,
    cpus: CpuSet,
}

/// Frequencies by CPU; a CPU under no policy has the reason.
pub(super) fn read(root: &Root, online: &[CpuId]) -> BTreeMap<CpuId, CpuFrequency> {
    let policies = policies(root, online);
    // There is one driver at a time (`cpufreq_register_driver`).
    let driver = policies.first().map(|p| root.word(&format!("{}/scaling_driver", p.folder)));
    let read = parallel::by_runs(&policies, |run| {
        run.iter().map(|p| policy(root, &p.folder, driver.clone())).collect()
    });
    let none = absent_frequency(&format!("{CPUS}/cpufreq: no policy"));
    let mut by_cpu: BTreeMap<CpuId, CpuFrequency> =
        online.iter().map(|&cpu| (cpu, none.clone())).collect();
    for (policy, frequency) in policies.iter().zip(read) {
        for cpu in policy.cpus.iter() {
            if let Some(slot) = by_cpu.get_mut(&cpu) {
                *slot = frequency.clone();
            }
        }
    }
    by_cpu
}

/// `cpufreq/policyN` with its `affected_cpus`; in trees without, `cpuN/cpufreq`.
fn policies(root: &Root, online: &[CpuId]) -> Vec<Policy> {
    let ids: Vec<u32> = root
        .entries(&format!("{CPUS}/cpufreq"))
        .unwrap_or_default()
        .iter()
        .filter_map(|name| parse::text::id(name.strip_prefix("policy")?))
        .collect();
    let named: CpuSet = ids.iter().map(|&n| CpuId(n)).collect();
    let running: CpuSet = online.iter().copied().collect();
    if ids.is_empty() {
        let own = |cpu: CpuId| format!("{CPUS}/cpu{cpu}/cpufreq");
        return online
            .iter()
            .filter(|&&cpu| root.exists(&own(cpu)))
            .map(|&cpu| Policy { folder: own(cpu), cpus: [cpu].into_iter().collect() })
            .collect();
    }
    // A policy is named after a CPU of it, so a policy named after each CPU is for it alone.
    let alone = running.is_subset(&named);
    ids.into_iter()
        .map(|id| {
            let folder = format!("{CPUS}/cpufreq/policy{id}");
            let listed = || {
                root.parsed(&format!("{folder}/affected_cpus"), parse::text::numbers::<u32>)
                    .into_known()
                    .map(|ids| ids.into_iter().map(CpuId).collect())
            };
            let cpus = if alone { None } else { listed() };
            Policy { cpus: cpus.unwrap_or_else(|| [CpuId(id)].into_iter().collect()), folder }
        })
        .collect()
}

fn policy(root: &Root, folder: &str, driver: Option<Reading<String>>) -> CpuFrequency {
    let file = |name: &str| format!("{folder}/{name}");
    CpuFrequency {
        governor: root.word(&file("scaling_governor")),
        driver: driver.unwrap_or_else(|| Reading::absent("no policy")),
        current_khz: current(root, &file("scaling_cur_freq")),
        min_khz: root.number(&file("scaling_min_freq")),
        max_khz: root.number(&file("scaling_max_freq")),
        hardware_max_khz: root.number(&file("cpuinfo_max_freq")),
        energy_preference: root.word(&file("energy_performance_preference")),
    }
}

/// The kernel writes `<unknown>` where the driver cannot tell.
fn current(root: &Root, path: &str) -> Reading<u64> {
    reading(root.read(path)).and_then(|b| match parse::text::number(&b) {
        Ok(khz) => Reading::Known(khz),
        Err(_) => Reading::Absent(format!("{path}: {}", parse::text::word(&b))),
    })
}
