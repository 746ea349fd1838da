//! CPU, cache and node facts against `lscpu` and `lstopo`, CPU by CPU: on this host, and on
//! fixtures of real machines in `probe`, which both tools can read.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

use crate::support::NETWRIGHT;
use serde_json::Value;

type Cpus = BTreeSet<u32>;

/// One tool's view of a machine.
#[derive(Debug, Default, PartialEq)]
struct KernelCpu {
    online: Cpus,
    /// The CPUs of each core.
    cores: BTreeSet<Cpus>,
    /// By the kernel's number; packages without a number are omitted.
    packages: BTreeMap<i64, Cpus>,
    /// By package and die number.
    dies: BTreeSet<Cpus>,
    nodes: BTreeMap<u32, Cpus>,
    node_memory: BTreeMap<u32, u64>,
    /// Level, instruction cache or not, size, CPUs.
    caches: BTreeSet<(u64, bool, u64, Cpus)>,
}

/// A command's standard output; panics if it fails.
fn says(program: &str, args: &[&str], env: &[(&str, &str)]) -> String {
    let out = Command::new(program)
        .args(args)
        .env("LC_ALL", "C")
        .envs(env.iter().copied())
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}; `make test-deps` installs it"));
    assert!(
        out.status.success(),
        "{program} {args:?}: {}\n{}",
        out.status,
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8(out.stdout).unwrap()
}

// ---------------------------------------------------------------- netwright

fn netwright(root: Option<&Path>) -> KernelCpu {
    let mut args = vec!["inspect", "--json"];
    if let Some(dir) = root {
        args.extend(["--root", dir.to_str().unwrap()]);
    }
    let facts: Value = serde_json::from_str(&says(NETWRIGHT, &args, &[])).unwrap();
    let list = |v: &Value| cpulist(v.as_str().unwrap());
    let mut seen = KernelCpu::default();
    let mut dies: BTreeMap<(i64, i64), Cpus> = BTreeMap::new();
    for cpu in facts["cpus"].as_array().unwrap() {
        if cpu["online"] != Value::Bool(true) {
            continue;
        }
        let id = u32::try_from(cpu["id"].as_u64().unwrap()).unwrap();
        seen.online.insert(id);
        if let Some(siblings) = cpu["smt_siblings"].as_str() {
            seen.cores.insert(cpulist(siblings));
        }
        if let Some(package) = cpu["package_id"].as_i64() {
            seen.packages.entry(package).or_default().insert(id);
            if let Some(die) = cpu["die_id"].as_i64() {
                dies.entry((package, die)).or_default().insert(id);
            }
        }
    }
    seen.dies = dies.into_values().collect();
    for node in facts["numa_nodes"].as_array().unwrap() {
        let id = u32::try_from(node["id"].as_u64().unwrap()).unwrap();
        seen.nodes.insert(id, list(&node["cpus"]));
        if let Some(bytes) = node["memory_bytes"].as_u64() {
            seen.node_memory.insert(id, bytes);
        }
    }
    for cache in facts["caches"].as_array().unwrap() {
        seen.caches.insert((
            cache["level"].as_u64().unwrap(),
            cache["kind"] == "Instruction",
            cache["size_bytes"].as_u64().unwrap_or(0),
            list(&cache["cpus"]),
        ));
    }
    // Two CPUs share an L3 exactly when their L3 ids are equal, and it is one of theirs.
    let mut by_l3: BTreeMap<u64, Cpus> = BTreeMap::new();
    for cpu in facts["cpus"].as_array().unwrap() {
        if let Some(l3) = cpu["l3_id"].as_u64() {
            by_l3
                .entry(l3)
                .or_default()
                .insert(u32::try_from(cpu["id"].as_u64().unwrap()).unwrap());
        }
    }
    let l3s: BTreeSet<Cpus> =
        seen.caches.iter().filter(|c| c.0 == 3).map(|c| c.3.clone()).collect();
    assert_eq!(by_l3.values().cloned().collect::<BTreeSet<_>>(), l3s);
    for (first, cpus) in by_l3 {
        assert_eq!(Some(first), cpus.first().map(|&c| u64::from(c)));
    }
    seen
}

fn cpulist(text: &str) -> Cpus {
    text.parse::<model::CpuSet>().unwrap().iter().map(|c| c.0).collect()
}

// ------------------------------------------------------------------- lstopo

/// hwloc's view of the same files. `HWLOC_COMPONENTS`: only the kernel's information, not this
/// machine's CPUID.
fn lstopo(root: Option<&Path>) -> KernelCpu {
    let mut env = vec![("HWLOC_COMPONENTS", "linux,stop")];
    if let Some(dir) = root {
        env.push(("HWLOC_FSROOT", dir.to_str().unwrap()));
        env.push(("HWLOC_THISSYSTEM", "0"));
        // hwloc hides GPU memory by default; the kernel lists it as nodes.
        env.push(("HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES", "1"));
    }
    let args = ["--no-io", "--whole-system", "--filter", "all:all", "--of", "xml", "-"];
    let xml = says("lstopo-no-graphics", &args, &env);
    let mut seen = KernelCpu::default();
    for object in xml.split("<object ").skip(1) {
        let attributes = object.split_once('>').unwrap().0;
        let attribute = |name: &str| {
            let (_, rest) = attributes.split_once(&format!(" {name}=\""))?;
            Some(rest.split_once('"').unwrap().0)
        };
        let kind = attributes.strip_prefix("type=\"").unwrap().split_once('"').unwrap().0;
        let Some(cpus) = attribute("cpuset").map(hwloc_set) else { continue };
        let index = attribute("os_index").map(|n| n.parse::<i64>().unwrap());
        match (kind, index) {
            ("PU", Some(id)) => {
                seen.online.insert(u32::try_from(id).unwrap());
            }
            ("Core", _) => {
                seen.cores.insert(cpus);
            }
            ("Package", Some(id)) => {
                seen.packages.insert(id, cpus);
            }
            ("Die", _) => {
                seen.dies.insert(cpus);
            }
            ("NUMANode", Some(id)) => {
                let id = u32::try_from(id).unwrap();
                seen.nodes.insert(id, cpus);
                let memory = attribute("local_memory").map_or(0, |m| m.parse().unwrap());
                seen.node_memory.insert(id, memory);
            }
            (cache, _) if cache.ends_with("Cache") => {
                let level = u64::from(cache.as_bytes()[1] - b'0');
                let size = attribute("cache_size").unwrap().parse().unwrap();
                seen.caches.insert((level, cache.ends_with("iCache"), size, cpus));
            }
            _ => {}
        }
    }
    seen
}

/// `0x0000ffff,,0x1`: 32 bits a group, highest first, an empty group is zero.
fn hwloc_set(text: &str) -> Cpus {
    let groups = text.rsplit(',').enumerate();
    groups
        .flat_map(|(i, group)| {
            let digits = group.trim_start_matches("0x");
            let bits = if digits.is_empty() { 0 } else { u32::from_str_radix(digits, 16).unwrap() };
            (0..32).filter(move |b| bits >> b & 1 == 1).map(move |b| i as u32 * 32 + b)
        })
        .collect()
}

// -------------------------------------------------------------------- lscpu

/// `lscpu` in the kernel's numbers (`--physical`), by lower-case column; unknown values are empty.
/// It is the `--parse` form, as the JSON is sometimes invalid (a bare `-` for an unknown number in
/// 2.38).
fn lscpu(root: Option<&Path>, columns: &str) -> Vec<BTreeMap<String, String>> {
    let parse = format!("--parse={columns}");
    let mut args = vec!["--all", "--physical", &parse];
    if let Some(dir) = root {
        args.extend(["--sysroot", dir.to_str().unwrap()]);
    }
    let text = says("lscpu", &args, &[]);
    let header = text.lines().rfind(|l| l.starts_with("# ")).unwrap();
    let names: Vec<String> =
        header.trim_start_matches("# ").split(',').map(str::to_lowercase).collect();
    let row = |line: &str| names.iter().cloned().zip(line.split(',').map(str::to_owned)).collect();
    text.lines().filter(|l| !l.starts_with('#')).map(row).collect()
}

/// Compares online, packages and nodes CPU by CPU.
fn compare_with_lscpu(name: &str, root: Option<&Path>, ours: &KernelCpu) {
    for row in lscpu(root, "CPU,CORE,SOCKET,NODE,ONLINE") {
        let cpu: u32 = row["cpu"].parse().unwrap();
        let cell = |key: &str| row.get(key).and_then(|t| t.parse::<i64>().ok()).filter(|&n| n >= 0);
        let online = row["online"] == "Y";
        assert_eq!(ours.online.contains(&cpu), online, "{name}: CPU {cpu} online");
        if !online {
            continue;
        }
        let of = |map: &BTreeMap<i64, Cpus>| {
            map.iter().find(|(_, cpus)| cpus.contains(&cpu)).map(|(id, _)| *id)
        };
        let nodes = ours.nodes.iter().map(|(id, c)| (i64::from(*id), c.clone())).collect();
        assert_eq!(of(&ours.packages), cell("socket"), "{name}: package of CPU {cpu}");
        assert_eq!(of(&nodes), cell("node"), "{name}: node of CPU {cpu}");
    }
}

// -------------------------------------------------------------------- tests

#[test]
fn this_host_as_lscpu_and_lstopo_see_it() {
    // Memory changes where a balloon or hot-plug is active: our reading must equal one of the two
    // around it.
    let before = netwright(None);
    let mut theirs = lstopo(None);
    let mut ours = netwright(None);
    assert_eq!(
        before.node_memory.keys().collect::<Vec<_>>(),
        theirs.node_memory.keys().collect::<Vec<_>>()
    );
    for (node, bytes) in &theirs.node_memory {
        let around = [before.node_memory[node], ours.node_memory[node]];
        let (least, most) = (around[0].min(around[1]), around[0].max(around[1]));
        assert!((least..=most).contains(bytes), "node {node}: {bytes} is not in {around:?}");
    }
    theirs.node_memory.clear();
    ours.node_memory.clear();
    same(&ours, &mut theirs, None);

    compare_with_lscpu("this host", None, &ours);
    // Sharing by lscpu's own cache numbers.
    let mut by_number: BTreeMap<(String, String), Cpus> = BTreeMap::new();
    for row in lscpu(None, "CPU,CACHE") {
        for (name, number) in row.iter().filter(|(name, _)| name.starts_with('l')) {
            let cpus = by_number.entry((name.clone(), number.clone())).or_default();
            cpus.insert(row["cpu"].parse().unwrap());
        }
    }
    let theirs: BTreeSet<(u64, bool, Cpus)> = by_number
        .into_iter()
        .map(|((name, _), cpus)| (u64::from(name.as_bytes()[1] - b'0'), name.ends_with('i'), cpus))
        .collect();
    let ours: BTreeSet<_> = ours.caches.into_iter().map(|c| (c.0, c.1, c.3)).collect();
    assert_eq!(ours, theirs, "caches, against lscpu");
}

#[test]
fn real_machines_as_lscpu_and_lstopo_see_them() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../probe/tests/fixtures");
    let mut names: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.to_str().unwrap().ends_with(".tar.zst"))
        .collect();
    names.sort();
    assert!(names.len() >= 12, "fixtures are missing from {}", folder.display());
    for archive in names {
        let name = archive.file_name().unwrap().to_str().unwrap().to_owned();
        // Thousands of files each: in a memory file system where possible.
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let dir = dir.unwrap();
        let (into, from) = (dir.path().to_str().unwrap(), archive.to_str().unwrap());
        says("tar", &["--zstd", "-xf", from, "-C", into], &[]);
        let root = Some(dir.path());
        let ours = netwright(root);
        assert_eq!(ours, netwright(Some(&archive)), "{name}: archive and directory differ");
        println!("{name}");
        let mut theirs = lstopo(root);
        same(&ours, &mut theirs, root);
        // lscpu reads no tree without this file, which kernels have since 2.6.29.
        let for_lscpu = dir.path().join("sys/devices/system/cpu/possible").exists();
        assert_eq!(for_lscpu, !name.starts_with("power7-256"), "{name}");
        if for_lscpu {
            compare_with_lscpu(&name, root, &ours);
        }
    }
}

/// Compares with hwloc, except for what hwloc adds itself; each exception is verified in the tree
/// first.
fn same(ours: &KernelCpu, theirs: &mut KernelCpu, root: Option<&Path>) {
    let sys = root.unwrap_or(Path::new("/")).join("sys/devices/system");
    let text = |path: &str| std::fs::read_to_string(sys.join(path)).unwrap_or_default();
    // A kernel without NUMA has no node; hwloc makes up one for all CPUs.
    if !sys.join("node").exists() {
        assert_eq!(theirs.nodes.keys().collect::<Vec<_>>(), [&0]);
        theirs.nodes.clear();
        theirs.node_memory.clear();
    }
    for (id, cpus) in &mut theirs.nodes {
        // hwloc assigns memory without CPUs to the nearest CPUs; the kernel's list is empty.
        if ours.nodes.get(id).is_some_and(Cpus::is_empty) {
            let list = text(&format!("node/node{id}/cpulist"));
            assert_eq!(list.trim_matches(['\n', '\0']), "", "node {id} has CPUs");
            cpus.clear();
        }
    }
    theirs.node_memory.retain(|id, bytes| {
        // A tree without meminfo: hwloc says 0, we say unknown.
        let reported = ours.node_memory.contains_key(id) || root.is_none();
        assert!(reported || *bytes == 0 && text(&format!("node/node{id}/meminfo")).is_empty());
        reported && root.is_some()
    });
    // hwloc omits dies where each is a whole package.
    let packages: BTreeSet<Cpus> = ours.packages.values().cloned().collect();
    if theirs.dies.is_empty() {
        assert!(ours.dies.is_empty() || ours.dies == packages, "{:?}", ours.dies);
    } else {
        assert_eq!(ours.dies, theirs.dies, "dies");
    }
    assert_eq!(ours.online, theirs.online, "online CPUs");
    assert_eq!(ours.cores, theirs.cores, "cores");
    assert_eq!(ours.packages, theirs.packages, "packages");
    assert_eq!(ours.nodes, theirs.nodes, "nodes");
    assert_eq!(ours.node_memory, theirs.node_memory, "memory of nodes");
    assert_eq!(ours.caches, theirs.caches, "caches");
}
