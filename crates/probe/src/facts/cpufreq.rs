//! Frequency scaling, once for each policy.

use std::collections::BTreeMap;

use model::{CpuId, CpuSet, Reading, cpu::CpuFrequency};

use super::cpu_layout::{CPUS, Core, Layout};
use crate::{Root, error::reading, facts::parallel};

const PREFERENCE: &str = "energy_performance_preference";

/// A CPU of which no frequency is known.
pub(super) fn absent(why: &str) -> CpuFrequency {
    CpuFrequency {
        governor: Reading::absent(why),
        driver: Reading::absent(why),
        current_khz: Reading::absent(why),
        min_khz: Reading::absent(why),
        max_khz: Reading::absent(why),
        hardware_max_khz: Reading::absent(why),
        energy_preference: Reading::absent(why),
    }
}

/// A folder of settings and the CPUs they are for.
struct Policy {
    folder: String,
    cpus: CpuSet,
}

/// Frequencies by CPU; a CPU under no policy has the reason.
///
/// The threads of a core share its clock, so its frequency and limit are read once a core: on
/// x86 the kernel wakes a CPU to learn its frequency.
pub(super) fn read(root: &Root, layout: &Layout) -> BTreeMap<CpuId, CpuFrequency> {
    let online = &layout.online;
    let policies = policies(root, online);
    let Some(first) = policies.first() else {
        let none = absent(&format!("{CPUS}/cpufreq: no policy"));
        return online.iter().map(|&cpu| (cpu, none.clone())).collect();
    };
    let common = Common::of(root, first);
    let governed: CpuSet = policies.iter().flat_map(|p| p.cpus.iter()).collect();
    let leader = |core: &Core| core.cpus.intersection(&governed).first();
    let leaders: CpuSet = layout.cores.iter().filter_map(leader).collect();
    let asked = |p: &Policy| !p.cpus.intersection(&leaders).is_empty();
    let read = parallel::by_runs(&policies, |run| {
        run.iter().map(|p| policy(root, &p.folder, &common, asked(p))).collect()
    });
    let mut by_cpu: BTreeMap<CpuId, CpuFrequency> = BTreeMap::new();
    for (policy, frequency) in policies.iter().zip(read) {
        for cpu in policy.cpus.iter().filter(|&c| layout.running.contains(c)) {
            by_cpu.insert(cpu, frequency.clone());
        }
    }
    for core in &layout.cores {
        let Some(id) = leader(core) else { continue };
        let Some(leader) = by_cpu.get(&id).cloned() else { continue };
        for cpu in core.cpus.iter().filter(|&c| c != id) {
            if let Some(other) = by_cpu.get_mut(&cpu) {
                other.current_khz = leader.current_khz.clone();
                other.hardware_max_khz = leader.hardware_max_khz.clone();
            }
        }
    }
    for &cpu in online {
        by_cpu.entry(cpu).or_insert_with(|| absent(&format!("{CPUS}/cpufreq: no policy for it")));
    }
    by_cpu
}

/// What the one driver of a kernel (`cpufreq_register_driver`) gives to all policies alike.
struct Common {
    driver: Reading<String>,
    /// Why no policy has an energy preference, where the driver has none.
    no_energy_preference: Option<Reading<String>>,
}

impl Common {
    fn of(root: &Root, first: &Policy) -> Self {
        let preference = root.word(&format!("{}/{PREFERENCE}", first.folder));
        Self {
            driver: root.word(&format!("{}/scaling_driver", first.folder)),
            no_energy_preference: matches!(preference, Reading::Absent(_)).then_some(preference),
        }
    }
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

/// One policy; of a core that was asked already not its clock.
fn policy(root: &Root, folder: &str, common: &Common, clock: bool) -> CpuFrequency {
    let file = |name: &str| format!("{folder}/{name}");
    let elsewhere = || Reading::absent("read at another thread of the core");
    CpuFrequency {
        governor: root.word(&file("scaling_governor")),
        driver: common.driver.clone(),
        current_khz: if clock { current(root, &file("scaling_cur_freq")) } else { elsewhere() },
        min_khz: root.number(&file("scaling_min_freq")),
        max_khz: root.number(&file("scaling_max_freq")),
        hardware_max_khz: if clock { root.number(&file("cpuinfo_max_freq")) } else { elsewhere() },
        energy_preference: match &common.no_energy_preference {
            Some(none) => none.clone(),
            None => root.word(&file(PREFERENCE)),
        },
    }
}

/// The kernel writes `<unknown>` where the driver cannot tell.
fn current(root: &Root, path: &str) -> Reading<u64> {
    reading(root.read(path)).and_then(|b| match parse::text::number(&b) {
        Ok(khz) => Reading::Known(khz),
        Err(_) => Reading::Absent(format!("{path}: {}", parse::text::word(&b))),
    })
}
