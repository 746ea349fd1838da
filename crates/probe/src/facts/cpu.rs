//! CPUs and their place in the topology.

use std::collections::BTreeMap;

use model::{
    CpuId, CpuSet, Reading,
    cpu::{Cache, Cpu, NumaNodeFacts},
};

use super::{
    cpu_layout::{CPUS, Core, Layout},
    cpufreq,
};
use crate::{Root, facts::parallel};

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
    let mut frequencies = cpufreq::read(root, layout);
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
            frequency: frequencies.remove(&id).unwrap_or_else(|| cpufreq::absent(&off())),
            core_throttle_count,
            package_throttle_count,
        }
    };
    layout.present.iter().map(cpu).collect()
}

fn of<T: Copy>(map: &BTreeMap<CpuId, T>, cpu: CpuId, why: impl Fn() -> String) -> Reading<T> {
    map.get(&cpu).map_or_else(|| Reading::Absent(why()), |&v| Reading::Known(v))
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
    // A kernel reports the capacity of all its CPUs or of none.
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

/// The CPUs and the number of `cpu`'s group; read once per group. Kernels before 5.3 have no list,
/// so each core is read.
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
