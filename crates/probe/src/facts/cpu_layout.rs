//! The present CPUs, and their grouping into cores.

use std::collections::BTreeMap;

use model::{CpuId, CpuSet, Reading, host::Host};

use crate::Root;

pub(super) const CPUS: &str = "/sys/devices/system/cpu";

/// The CPUs before anything but their numbers and cores is known.
pub(super) struct Layout {
    /// Present CPUs in ascending order, offline ones included.
    pub present: Vec<CpuId>,
    pub online: Vec<CpuId>,
    /// The same as a set. Kernels before 4.18 also name CPUs that do not run in the lists of
    /// nodes and caches; later ones do not, and so no list here does.
    pub running: CpuSet,
    /// Hardware threads of each core, by core.
    pub cores: Vec<Core>,
    pub is_online: BTreeMap<CpuId, Reading<bool>>,
}

/// Hardware threads of one core.
pub(super) struct Core {
    /// The CPU that was asked.
    pub leader: CpuId,
    /// Online CPUs of the core, the leader among them.
    pub cpus: CpuSet,
    /// What the kernel said; `cpus` is the leader alone where it said nothing.
    pub said: Reading<CpuSet>,
}

/// Finds the CPUs and their cores.
///
/// A sibling's own list says the same, so each core is asked once: half the reads on machines
/// with SMT.
pub(super) fn layout(root: &Root, host: &Host) -> Layout {
    let present = present(root, host);
    let is_online: BTreeMap<CpuId, Reading<bool>> =
        present.iter().map(|&cpu| (cpu, online(root, host, cpu))).collect();
    // Without a list in the tree, the CPUs' own folders are read.
    let off = |cpu: &CpuId| is_online.get(cpu).and_then(|r| r.get()) == Some(false);
    let online: Vec<CpuId> = present.iter().copied().filter(|c| !off(c)).collect();
    let running: CpuSet = online.iter().copied().collect();
    let mut seen = CpuSet::new();
    let mut cores = Vec::new();
    for &leader in &online {
        if seen.contains(leader) {
            continue;
        }
        let said = siblings(root, leader);
        let mut cpus = said.known().map(|s| s.intersection(&running)).unwrap_or_default();
        cpus.insert(leader);
        cpus.iter().for_each(|c| seen.insert(c));
        cores.push(Core { leader, cpus, said });
    }
    Layout { present, online, running, cores, is_online }
}

/// `core_cpus_list` since 5.3, `thread_siblings_list` before, masks in trees without lists.
pub(super) fn siblings(root: &Root, cpu: CpuId) -> Reading<CpuSet> {
    let file = |name: &str| format!("{CPUS}/cpu{cpu}/topology/{name}");
    root.list(&file("core_cpus_list"))
        .or_else(|| root.list(&file("thread_siblings_list")))
        .or_else(|| root.mask(&file("core_cpus")))
        .or_else(|| root.mask(&file("thread_siblings")))
}

/// `present`, else the folders, else the CPUs that run.
fn present(root: &Root, host: &Host) -> Vec<CpuId> {
    if let Some(set) = host.cpus_present.known() {
        return set.iter().collect();
    }
    let running = || host.cpus_online.known().into_iter().flat_map(|s| s.iter()).collect();
    let mut ids: Vec<CpuId> = root
        .entries(CPUS)
        .unwrap_or_default()
        .iter()
        .filter_map(|name| parse::text::id(name.strip_prefix("cpu")?))
        .map(CpuId)
        .collect();
    ids.sort_unstable();
    if ids.is_empty() { running() } else { ids }
}

/// `online`, else the CPU's own file, which is not there where it cannot be switched off.
fn online(root: &Root, host: &Host, cpu: CpuId) -> Reading<bool> {
    if let Some(set) = host.cpus_online.known() {
        return Reading::Known(set.contains(cpu));
    }
    match root.number::<u8>(&format!("{CPUS}/cpu{cpu}/online")) {
        Reading::Absent(_) if root.exists(&format!("{CPUS}/cpu{cpu}/topology")) => {
            Reading::Known(true)
        }
        said => said.map(|n| n != 0),
    }
}
