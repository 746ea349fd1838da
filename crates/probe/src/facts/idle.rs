//! Idle states, once for all CPUs with the same ones.

use std::collections::BTreeMap;

use model::{CpuId, CpuSet, Nanos, Reading, cpu::IdleState, facts::NoAccess};

use super::cpu_layout::CPUS;
use crate::{Root, facts::parallel};

/// One row of the driver's table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct IdleStateFacts {
    index: u32,
    name: String,
    description: Reading<String>,
    exit_latency_ns: Reading<Nanos>,
    residency_ns: Reading<Nanos>,
}

/// Reads the idle states; a kernel without cpuidle is named in `no_access`.
pub(super) fn read(root: &Root, online: &[CpuId], no_access: &mut Vec<NoAccess>) -> Vec<IdleState> {
    let tables = tables(root, online);
    if tables.iter().all(|(_, t)| t.is_empty()) {
        no_access.push(NoAccess {
            what: "idle states".into(),
            why: format!("{CPUS}/cpu*/cpuidle: no states"),
            remedy: "the kernel has no cpuidle, or this guest's hypervisor idles for it".into(),
        });
        return vec![];
    }
    let global = |name: &str| root.word(&format!("{CPUS}/cpuidle/{name}"));
    let driver = global("current_driver");
    let governor = global("current_governor").or_else(|| global("current_governor_ro"));
    let disabled = disabled(root, &tables);
    let mut by_state: BTreeMap<&IdleStateFacts, (CpuSet, CpuSet)> = BTreeMap::new();
    for ((cpu, table), off) in tables.iter().zip(&disabled) {
        for state in table {
            let (cpus, disabled_cpus) = by_state.entry(state).or_default();
            cpus.insert(*cpu);
            if off.contains(&state.index) {
                disabled_cpus.insert(*cpu);
            }
        }
    }
    let state = |(state, (cpus, disabled_cpus)): (&IdleStateFacts, (CpuSet, CpuSet))| IdleState {
        index: state.index,
        name: state.name.clone(),
        description: state.description.clone(),
        exit_latency_ns: state.exit_latency_ns.clone(),
        residency_ns: state.residency_ns.clone(),
        cpus,
        disabled_cpus,
        driver: driver.clone(),
        governor: governor.clone(),
    };
    by_state.into_iter().map(state).collect()
}

/// Each CPU's table. A kernel has one driver with one table for all CPUs, unless it was built
/// for several (`CONFIG_CPU_IDLE_MULTIPLE_DRIVERS`): then each CPU has a `cpuidle/driver`
/// folder, and each is asked.
fn tables(root: &Root, online: &[CpuId]) -> Vec<(CpuId, Vec<IdleStateFacts>)> {
    let Some(&first) = online.first() else { return vec![] };
    let several = root.exists(&format!("{CPUS}/cpu{first}/cpuidle/driver"));
    if several {
        let read = parallel::by_runs(online, |cpus| cpus.iter().map(|&c| table(root, c)).collect());
        return online.iter().copied().zip(read).collect();
    }
    let common = table(root, first);
    online.iter().map(|&cpu| (cpu, common.clone())).collect()
}

fn table(root: &Root, cpu: CpuId) -> Vec<IdleStateFacts> {
    let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
    let mut indexes: Vec<u32> = root
        .entries(&folder)
        .unwrap_or_default()
        .iter()
        .filter_map(|name| parse::text::id(name.strip_prefix("state")?))
        .collect();
    indexes.sort_unstable();
    let state = |index: u32| {
        let file = |name: &str| format!("{folder}/state{index}/{name}");
        // The kernel's own microseconds, converted here once.
        let micros =
            |name: &str| root.number::<u64>(&file(name)).map(|us| Nanos(us.saturating_mul(1000)));
        Some(IdleStateFacts {
            index,
            name: root.word(&file("name")).into_known()?,
            description: root.word(&file("desc")),
            exit_latency_ns: micros("latency"),
            residency_ns: micros("residency"),
        })
    };
    indexes.into_iter().filter_map(state).collect()
}

/// Which states each CPU has switched off: its own, since a person may switch one CPU's.
fn disabled(root: &Root, tables: &[(CpuId, Vec<IdleStateFacts>)]) -> Vec<Vec<u32>> {
    parallel::by_runs(tables, |run| {
        run.iter()
            .map(|(cpu, table)| {
                let off = |index: &u32| {
                    let path = format!("{CPUS}/cpu{cpu}/cpuidle/state{index}/disable");
                    root.number::<u32>(&path).get().is_some_and(|n| n != 0)
                };
                table.iter().map(|s| s.index).filter(off).collect()
            })
            .collect()
    })
}
