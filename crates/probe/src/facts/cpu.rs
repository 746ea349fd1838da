//! CPUs: which there are, and where each stands.

use std::collections::BTreeMap;

use model::{
    CpuId, CpuSet, Reading,
    cpu::{Cache, Cpu, CpuFrequency, NumaNodeFacts},
    host::Host,
};

use crate::{Root, facts::parallel};

pub(super) const CPUS: &str = "/sys/devices/system/cpu";

/// The CPUs before anything but their numbers and cores is known.
pub(super) struct Layout {
    /// Present CPUs, ascending; some may be offline.
    pub present: Vec<CpuId>,
    pub online: Vec<CpuId>,
    /// The same as a set. Kernels before 4.18 also name CPUs that do not run in the lists of
    /// nodes and caches; later ones do not, and so no list here does.
    pub running: CpuSet,
    /// Hardware threads of each core, by core.
    pub cores: Vec<Core>,
    is_online: BTreeMap<CpuId, Reading<bool>>,
}

/// Hardware threads of one core.
pub(super) struct Core {
    /// The CPU that was asked.
    pub leader: CpuId,
    /// Online CPUs of the core, the leader among them.
    pub cpus: CpuSet,
    /// What the kernel said; `cpus` is the leader alone where it said nothing.
    said: Reading<CpuSet>,
}

/// Finds the CPUs and their cores.
///
/// A sibling's own list says the same, so each core is asked once: half the reads on machines
/// with SMT.
pub(super) fn layout(root: &Root, host: &Host) -> Layout {
    let present = present(root, host);
    let is_online: BTreeMap<CpuId, Reading<bool>> =
        present.iter().map(|&cpu| (cpu, online(root, host, cpu))).collect();
    // Where the tree does not tell, the CPU's own folders are tried.
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

/// Reads every present CPU.
pub(super) fn read(
    root: &Root,
    layout: &Layout,
    nodes: &[NumaNodeFacts],
    caches: &[Cache],
) -> Vec<Cpu> {
    let asked = |file: &str, parameter: &str| {
        let said = super::host::list_or_null(root, &format!("{CPUS}/{file}"));
        // A copied tree may have the kernel cmdline alone; a kernel without the file has no such thing.
        if root.is_whole() {
            said
        } else {
            said.or_else(|| super::host::boot_list(root, parameter))
        }
    };
    let isolated = asked("isolated", "isolcpus");
    let nohz_full = asked("nohz_full", "nohz_full");
    let node_of = super::numa::by_cpu(nodes);
    let l3_of = super::cache::l3_ids(caches);
    let mut places = places(root, layout);
    let mut frequencies = super::cpufreq::read(root, layout);
    let mut throttles = super::throttle::read(root, &layout.online);
    let in_set = |set: &Reading<CpuSet>, cpu| set.as_ref().map(|s| s.contains(cpu));
    let cpu = |&id: &CpuId| {
        let off = || format!("CPU {id} is offline");
        let place = places.remove(&id).unwrap_or_else(|| CpuIds::absent(&off()));
        let (core_throttle_count, package_throttle_count) = throttles
            .remove(&id)
            .unwrap_or_else(|| (Reading::Absent(off()), Reading::Absent(off())));
        Cpu {
            id,
            online: layout
                .is_online
                .get(&id)
                .cloned()
                .unwrap_or_else(|| Reading::absent("not a present CPU")),
            isolated: in_set(&isolated, id),
            nohz_full: in_set(&nohz_full, id),
            core_id: place.core_id,
            cluster_id: place.cluster_id,
            die_id: place.die_id,
            package_id: place.package_id,
            numa_node: of(&node_of, id, || {
                format!("/sys/devices/system/node: no node has CPU {id}")
            }),
            l3_id: of(&l3_of, id, || format!("{CPUS}/cpu{id}/cache: no level 3")),
            smt_siblings: place.smt_siblings,
            cluster_cpus: place.cluster_cpus,
            capacity: place.capacity,
            frequency: frequencies.remove(&id).unwrap_or_else(|| absent_frequency(&off())),
            core_throttle_count,
            package_throttle_count,
        }
    };
    layout.present.iter().map(cpu).collect()
}

fn of<T: Copy>(map: &BTreeMap<CpuId, T>, cpu: CpuId, why: impl Fn() -> String) -> Reading<T> {
    map.get(&cpu).map_or_else(|| Reading::Absent(why()), |&v| Reading::Known(v))
}

pub(super) fn absent_frequency(why: &str) -> CpuFrequency {
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

/// Where one CPU stands.
#[derive(Clone)]
struct CpuIds {
    core_id: Reading<i64>,
    cluster_id: Reading<i64>,
    die_id: Reading<i64>,
    package_id: Reading<i64>,
    smt_siblings: Reading<CpuSet>,
    cluster_cpus: Reading<CpuSet>,
    capacity: Reading<u32>,
}

impl CpuIds {
    fn absent(why: &str) -> Self {
        Self {
            core_id: Reading::absent(why),
            cluster_id: Reading::absent(why),
            die_id: Reading::absent(why),
            package_id: Reading::absent(why),
            smt_siblings: Reading::absent(why),
            cluster_cpus: Reading::absent(why),
            capacity: Reading::absent(why),
        }
    }
}

/// Everything of `topology/`, read once for each core: its threads share it.
fn places(root: &Root, layout: &Layout) -> BTreeMap<CpuId, CpuIds> {
    // A kernel tells the capacity of all its CPUs or of none.
    let capacity = |cpu: CpuId| root.number(&format!("{CPUS}/cpu{cpu}/cpu_capacity"));
    let first = layout.cores.first().map(|core| capacity(core.leader));
    let no_capacity = first.filter(|r| matches!(r, Reading::Absent(_)));
    let per_core = parallel::by_runs(&layout.cores, |cores| {
        let mut groups = Groups::new(root, no_capacity.clone());
        cores.iter().map(|core| groups.place(core)).collect()
    });
    layout
        .cores
        .iter()
        .zip(per_core)
        .flat_map(|(core, place)| {
            let ids: Vec<CpuId> = core.cpus.iter().collect();
            ids.into_iter().map(move |id| (id, place.clone()))
        })
        .collect()
}

/// What was learned of packages, dies and clusters: the CPUs of one share its number.
struct Groups<'a> {
    root: &'a Root,
    packages: Vec<(CpuSet, Reading<i64>)>,
    dies: Vec<(CpuSet, Reading<i64>)>,
    clusters: Vec<(CpuSet, Reading<i64>)>,
    no_capacity: Option<Reading<u32>>,
}

impl<'a> Groups<'a> {
    fn new(root: &'a Root, no_capacity: Option<Reading<u32>>) -> Self {
        Self { root, packages: vec![], dies: vec![], clusters: vec![], no_capacity }
    }

    fn place(&mut self, core: &Core) -> CpuIds {
        let cpu = core.leader;
        let root = self.root;
        let (_, package_id) =
            shared(root, &mut self.packages, cpu, "package_cpus_list", "physical_package_id");
        let (_, die_id) = shared(root, &mut self.dies, cpu, "die_cpus_list", "die_id");
        let (cluster_cpus, cluster_id) =
            shared(root, &mut self.clusters, cpu, "cluster_cpus_list", "cluster_id");
        // Where there is no cluster the kernel still prints a list: of the core, or of the CPU.
        let cluster_cpus = match &cluster_id {
            Reading::Known(_) => cluster_cpus,
            missing => missing.as_ref().and_then(|_| Reading::absent("no cluster")),
        };
        CpuIds {
            core_id: id(root, cpu, "core_id"),
            cluster_id,
            die_id,
            package_id,
            smt_siblings: core.said.clone(),
            cluster_cpus,
            capacity: match &self.no_capacity {
                Some(none) => none.clone(),
                None => root.number(&format!("{CPUS}/cpu{cpu}/cpu_capacity")),
            },
        }
    }
}

/// The CPUs and the number of the group that `cpu` is in, read unless a CPU of the same group
/// was read before. Kernels before 5.3 have no list to tell, so there each core is read.
fn shared(
    root: &Root,
    known: &mut Vec<(CpuSet, Reading<i64>)>,
    cpu: CpuId,
    list: &str,
    number: &str,
) -> (Reading<CpuSet>, Reading<i64>) {
    if let Some((cpus, id)) = known.iter().rev().find(|(cpus, _)| cpus.contains(cpu)) {
        return (Reading::Known(cpus.clone()), id.clone());
    }
    let id = id(root, cpu, number);
    if !id.is_known() {
        return (Reading::absent("no such group"), id);
    }
    let cpus = root.list(&format!("{CPUS}/cpu{cpu}/topology/{list}"));
    if let Some(set) = cpus.known() {
        known.push((set.clone(), id.clone()));
    }
    (cpus, id)
}

/// "No APIC id" on x86 (`BAD_APICID`), which `cluster_id` shows where CPUID names no cluster.
const NO_CLUSTER: i64 = 0xffff;

/// A number of `topology/`; the kernel's −1 is "none".
fn id(root: &Root, cpu: CpuId, name: &str) -> Reading<i64> {
    let path = format!("{CPUS}/cpu{cpu}/topology/{name}");
    root.number::<i64>(&path).and_then(|n| match n {
        NO_CLUSTER if name == "cluster_id" => {
            Reading::Absent(format!("{path}: {n}, the CPU names none"))
        }
        0.. => Reading::Known(n),
        _ => Reading::Absent(format!("{path}: {n}, the kernel knows none")),
    })
}
