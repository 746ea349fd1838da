//! Caches: every instance once, with the CPUs that share it.

use std::collections::BTreeMap;

use model::{Bytes, CpuId, CpuSet, Reading, cpu::Cache, facts::NoAccess};

use super::cpu_layout::{CPUS, Core, Layout};
use crate::{Root, facts::parallel};

/// More indexes than any CPU has: 4 levels, two kinds each.
const MAX_INDEXES: usize = 16;

/// Reads every cache instance, through the first CPU that has it.
pub(super) fn read(root: &Root, layout: &Layout, no_access: &mut Vec<NoAccess>) -> Vec<Cache> {
    let found = parallel::by_runs(&layout.cores, |cores| {
        let mut run = Run::new(root, &layout.running);
        cores.iter().for_each(|core| run.core(core));
        run.found.into_iter().map(Ok).chain(run.lost.map(Err)).collect()
    });
    // Runs on both sides of a shared cache found it twice.
    let mut once: BTreeMap<(u32, CpuId, String, CpuSet), Cache> = BTreeMap::new();
    let mut lost = None;
    for cache in found {
        match cache {
            Ok(c) => {
                let Some(first) = c.cpus.first() else { continue };
                once.insert((c.level, first, c.kind.clone(), c.cpus.clone()), c);
            }
            Err(path) => lost = lost.or(Some(path)),
        }
    }
    if let Some(path) = lost {
        no_access.push(NoAccess {
            what: "caches of some CPUs".into(),
            why: format!("{path}: level, kind or who shares it is not reported"),
            remedy: String::new(),
        });
    }
    once.into_values().collect()
}

/// The lowest CPU that shares the L3 of each CPU.
pub(super) fn l3_ids(caches: &[Cache]) -> BTreeMap<CpuId, CpuId> {
    let mut ids = BTreeMap::new();
    for cache in caches.iter().filter(|c| c.level == 3 && c.kind != "Instruction") {
        let Some(first) = cache.cpus.first() else { continue };
        for cpu in cache.cpus.iter() {
            ids.entry(cpu).or_insert(first);
        }
    }
    ids
}

/// What does not differ between the caches of one index and size: the kernel numbers a core's
/// caches level by level, data before instructions.
#[derive(Clone)]
struct CacheKind {
    level: u32,
    kind: String,
    line_bytes: Reading<Bytes>,
}

struct Run<'a> {
    root: &'a Root,
    running: &'a CpuSet,
    /// Indexes that the core before had.
    indexes: Option<Vec<u32>>,
    /// CPUs with a known cache, for each index.
    covered: BTreeMap<u32, CpuSet>,
    /// What caches of the same index and size have in common.
    kinds: BTreeMap<(u32, Bytes), CacheKind>,
    /// Size last seen of each index, and whether this core's is another.
    sizes: BTreeMap<u32, Option<Bytes>>,
    another: bool,
    found: Vec<Cache>,
    /// A folder without enough information.
    lost: Option<String>,
}

impl<'a> Run<'a> {
    fn new(root: &'a Root, running: &'a CpuSet) -> Self {
        Self {
            root,
            running,
            indexes: None,
            covered: BTreeMap::new(),
            kinds: BTreeMap::new(),
            sizes: BTreeMap::new(),
            another: false,
            found: vec![],
            lost: None,
        }
    }

    /// The caches of a core's CPUs, by the same indexes as the core before unless this one has
    /// fewer or more (small cores without an L2 or L3).
    fn core(&mut self, core: &Core) {
        if let Some(expected) = self.indexes.clone() {
            self.another = false;
            let all_there = expected.iter().all(|&index| self.index(core, index));
            // A core with more caches is of another make: those that both have differ in size.
            let next = expected.last().map_or(0, |i| i + 1);
            if all_there && !(self.another && self.index(core, next)) {
                return;
            }
        }
        let listed = self.listed(core.leader);
        for &index in &listed {
            self.index(core, index);
        }
        // A kernel numbers them without gaps; in a tree with gaps no core speaks for the next.
        let whole = listed.iter().copied().eq(0..listed.len() as u32);
        self.indexes = whole.then_some(listed);
    }

    fn listed(&self, cpu: CpuId) -> Vec<u32> {
        let names = self.root.entries(&format!("{CPUS}/cpu{cpu}/cache")).unwrap_or_default();
        let index = |name: &String| parse::text::id(name.strip_prefix("index")?);
        let mut indexes: Vec<u32> = names.iter().filter_map(index).take(MAX_INDEXES).collect();
        indexes.sort_unstable();
        indexes
    }

    /// Reads the instances of one index; returns whether there are any. Threads of a core may have
    /// separate caches (POWER9 and later pair two small cores), so every CPU that is in no list yet
    /// is read.
    fn index(&mut self, core: &Core, index: u32) -> bool {
        let mut any = false;
        for cpu in core.cpus.iter() {
            if self.covered.get(&index).is_some_and(|c| c.contains(cpu)) {
                any = true;
            } else if let Some(cpus) = self.instance(cpu, index) {
                any = true;
                let covered = self.covered.entry(index).or_default();
                cpus.iter().for_each(|c| covered.insert(c));
            }
        }
        any
    }

    /// One instance; `None` where this CPU has no such index.
    fn instance(&mut self, cpu: CpuId, index: u32) -> Option<CpuSet> {
        let folder = format!("{CPUS}/cpu{cpu}/cache/index{index}");
        let file = |name: &str| format!("{folder}/{name}");
        let shared = self
            .root
            .list(&file("shared_cpu_list"))
            .or_else(|| self.root.mask(&file("shared_cpu_map")));
        if !shared.is_known() && !self.root.exists(&folder) {
            return None;
        }
        let size_bytes = self.root.parsed(&file("size"), parse::cache_size::parse);
        let before = self.sizes.insert(index, size_bytes.get());
        self.another |= before != Some(size_bytes.get());
        let (Reading::Known(cpus), Some(kind)) = (shared, self.kind(&folder, index, &size_bytes))
        else {
            self.lost.get_or_insert(folder);
            return Some([cpu].into_iter().collect());
        };
        let mut cpus = cpus.intersection(self.running);
        // Seen after a CPU went offline and came back: a list without its own CPU.
        cpus.insert(cpu);
        let CacheKind { level, kind, line_bytes } = kind;
        self.found.push(Cache { level, kind, cpus: cpus.clone(), size_bytes, line_bytes });
        Some(cpus)
    }

    fn kind(&mut self, folder: &str, index: u32, size: &Reading<Bytes>) -> Option<CacheKind> {
        // Without a size, equality with another cache is unknown.
        let key = size.get().map(|size| (index, size));
        if let Some(known) = key.and_then(|key| self.kinds.get(&key)) {
            return Some(known.clone());
        }
        let kind = CacheKind {
            level: self.root.number(&format!("{folder}/level")).into_known()?,
            kind: self.root.word(&format!("{folder}/type")).into_known()?,
            line_bytes: self.root.number(&format!("{folder}/coherency_line_size")).map(Bytes),
        };
        if let Some(key) = key {
            self.kinds.insert(key, kind.clone());
        }
        Some(kind)
    }
}
