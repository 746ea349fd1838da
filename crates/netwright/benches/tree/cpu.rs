//! Writes `/sys/devices/system/{cpu,node}` of a generated host.

use std::io;

use super::{Tree, TreeShape, list, mask};

const CPUS: &str = "sys/devices/system/cpu";
const NODES: &str = "sys/devices/system/node";

pub fn write(tree: &Tree, shape: &TreeShape) -> io::Result<()> {
    let all = list(&(0..shape.cpus).collect::<Vec<_>>());
    tree.files(
        CPUS,
        &[
            ("online", &all),
            ("possible", &all),
            ("present", &all),
            ("offline", ""),
            ("isolated", ""),
            ("nohz_full", "(null)"),
            ("kernel_max", "8191"),
        ],
    )?;
    tree.files(&format!("{CPUS}/smt"), &[("active", "1"), ("control", "on")])?;
    tree.files(
        &format!("{CPUS}/cpuidle"),
        &[("current_driver", "acpi_idle"), ("current_governor", "menu")],
    )?;
    tree.dir(&format!("{CPUS}/cpufreq"))?;
    for cpu in 0..shape.cpus {
        topology(tree, shape, cpu)?;
        caches(tree, shape, cpu)?;
        power(tree, cpu)?;
    }
    nodes(tree, shape)
}

/// Siblings as lists and as masks; both names of each, as the kernel has both.
fn topology(tree: &Tree, shape: &TreeShape, cpu: usize) -> io::Result<()> {
    let core = shape.core(cpu);
    let package = shape.package_of_core(core);
    let core_cpus = shape.cpus_where(|c| c == core);
    let package_cpus = shape.cpus_where(|c| shape.package_of_core(c) == package);
    let l3_cpus = shape.cpus_where(|c| c / shape.cores_per_l3 == core / shape.cores_per_l3);
    let dir = format!("{CPUS}/cpu{cpu}/topology");
    let core_in_package = core % (shape.cores() / shape.packages).max(1);
    let ids = [
        ("core_id", core_in_package),
        ("physical_package_id", package),
        ("die_id", 0),
        ("cluster_id", core / shape.cores_per_l3),
    ];
    tree.dir(&dir)?;
    for (name, id) in ids {
        tree.file(&format!("{dir}/{name}"), format!("{id}\n"))?;
    }
    for (name, cpus) in [
        ("core_cpus", &core_cpus),
        ("thread_siblings", &core_cpus),
        ("cluster_cpus", &l3_cpus),
        ("die_cpus", &package_cpus),
        ("package_cpus", &package_cpus),
        ("core_siblings", &package_cpus),
    ] {
        tree.file(&format!("{dir}/{name}"), format!("{}\n", mask(cpus, shape.cpus)))?;
        tree.file(&format!("{dir}/{name}_list"), format!("{}\n", list(cpus)))?;
    }
    if cpu > 0 {
        tree.file(&format!("{CPUS}/cpu{cpu}/online"), "1\n")?;
    }
    tree.link(
        &format!("{CPUS}/cpu{cpu}/node{}", shape.node(cpu)),
        &format!("../../node/node{}", shape.node(cpu)),
    )
}

/// L1d, L1i and L2 of a core, L3 of `cores_per_l3` cores.
fn caches(tree: &Tree, shape: &TreeShape, cpu: usize) -> io::Result<()> {
    let core = shape.core(cpu);
    let of_core = shape.cpus_where(|c| c == core);
    let of_l3 = shape.cpus_where(|c| c / shape.cores_per_l3 == core / shape.cores_per_l3);
    for (index, (level, kind, size, ways, sets)) in [
        ("1", "Data", "32K", "8", "64"),
        ("1", "Instruction", "32K", "8", "64"),
        ("2", "Unified", "1024K", "8", "2048"),
        ("3", "Unified", "32768K", "16", "32768"),
    ]
    .into_iter()
    .enumerate()
    {
        let (shared, id) =
            if index == 3 { (&of_l3, core / shape.cores_per_l3) } else { (&of_core, core) };
        let (map, cpus, id) = (mask(shared, shape.cpus), list(shared), id.to_string());
        tree.files(
            &format!("{CPUS}/cpu{cpu}/cache/index{index}"),
            &[
                ("level", level),
                ("type", kind),
                ("size", size),
                ("shared_cpu_map", &map),
                ("shared_cpu_list", &cpus),
                ("id", &id),
                ("coherency_line_size", "64"),
                ("number_of_sets", sets),
                ("ways_of_associativity", ways),
                ("physical_line_partition", "1"),
            ],
        )?;
    }
    Ok(())
}

/// Frequency policy and idle states, as `acpi-cpufreq` and `acpi_idle` show them.
fn power(tree: &Tree, cpu: usize) -> io::Result<()> {
    let policy = format!("{CPUS}/cpufreq/policy{cpu}");
    let own = cpu.to_string();
    tree.files(
        &policy,
        &[
            ("affected_cpus", &own),
            ("related_cpus", &own),
            ("scaling_driver", "acpi-cpufreq"),
            ("scaling_governor", "schedutil"),
            ("scaling_available_governors", "performance schedutil"),
            ("scaling_cur_freq", "2250000"),
            ("scaling_min_freq", "1500000"),
            ("scaling_max_freq", "2250000"),
            ("cpuinfo_min_freq", "1500000"),
            ("cpuinfo_max_freq", "3400000"),
        ],
    )?;
    tree.link(&format!("{CPUS}/cpu{cpu}/cpufreq"), &format!("../cpufreq/policy{cpu}"))?;
    for (n, (name, description, latency, residency)) in [
        ("POLL", "CPUIDLE CORE POLL IDLE", "0", "0"),
        ("C1", "ACPI FFH MWAIT 0x0", "1", "2"),
        ("C2", "ACPI IOPORT 0x814", "800", "1600"),
    ]
    .into_iter()
    .enumerate()
    {
        tree.files(
            &format!("{CPUS}/cpu{cpu}/cpuidle/state{n}"),
            &[
                ("name", name),
                ("desc", description),
                ("latency", latency),
                ("residency", residency),
                ("disable", "0"),
                ("usage", "123456"),
                ("time", "987654321"),
            ],
        )?;
    }
    Ok(())
}

fn nodes(tree: &Tree, shape: &TreeShape) -> io::Result<()> {
    let all = list(&(0..shape.nodes).collect::<Vec<_>>());
    tree.files(
        NODES,
        &[
            ("online", &all),
            ("possible", &all),
            ("has_cpu", &all),
            ("has_memory", &all),
            ("has_normal_memory", &all),
        ],
    )?;
    for node in 0..shape.nodes {
        let cpus = shape.cpus_where(|c| shape.node_of_core(c) == node);
        let local = |a: usize, b: usize| {
            a * shape.packages / shape.nodes == b * shape.packages / shape.nodes
        };
        let distance: Vec<&str> = (0..shape.nodes)
            .map(|n| {
                if n == node {
                    "10"
                } else if local(n, node) {
                    "12"
                } else {
                    "32"
                }
            })
            .collect();
        let meminfo = format!(
            "Node {node} MemTotal:       65861036 kB\nNode {node} MemFree:        63218200 kB\n\
             Node {node} MemUsed:         2642836 kB\nNode {node} HugePages_Total:     0"
        );
        let dir = format!("{NODES}/node{node}");
        tree.files(
            &dir,
            &[
                ("cpulist", &list(&cpus)),
                ("cpumap", &mask(&cpus, shape.cpus)),
                ("distance", &distance.join(" ")),
                ("meminfo", &meminfo),
            ],
        )?;
        for cpu in cpus {
            tree.link(&format!("{dir}/cpu{cpu}"), &format!("../../cpu/cpu{cpu}"))?;
        }
    }
    Ok(())
}
