//! Generated hosts: `/proc` and `/sys` of a machine with any number of CPUs, in a folder.
//!
//! They are no fixtures. Contents follow the kernel's formats to the byte where size and layout
//! matter (`/proc/interrupts`). The topology is that of a real two-socket EPYC: SMT siblings far
//! apart in number, an L3 for eight cores, several nodes per socket.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

mod cpu;
mod irq;
mod nic;
mod proc;
mod storage;

#[derive(Debug, Clone, Copy)]
pub struct TreeShape {
    pub cpus: usize,
    pub threads: usize,
    pub packages: usize,
    /// Nodes, over all sockets.
    pub nodes: usize,
    /// Cores that share an L3.
    pub cores_per_l3: usize,
    pub irqs: usize,
    pub nics: usize,
    /// Combined channels a NIC.
    pub queues: usize,
}

impl TreeShape {
    /// A plausible machine of `cpus` CPUs with 4 NICs of 64 queues and 4,096 interrupts.
    pub const fn of(cpus: usize) -> Self {
        let (packages, nodes) = match cpus {
            ..=2 => (1, 1),
            3..=64 => (2, 2),
            65..=512 => (2, 8),
            _ => (4, 16),
        };
        Self { cpus, threads: 2, packages, nodes, cores_per_l3: 8, irqs: 4096, nics: 4, queues: 64 }
    }

    fn cores(&self) -> usize {
        (self.cpus / self.threads).max(1)
    }

    /// The core of a CPU: siblings are a whole socket's cores apart, as x86 numbers them.
    fn core(&self, cpu: usize) -> usize {
        cpu % self.cores()
    }

    fn node_of_core(&self, core: usize) -> usize {
        core * self.nodes / self.cores()
    }

    fn package_of_core(&self, core: usize) -> usize {
        core * self.packages / self.cores()
    }

    fn node(&self, cpu: usize) -> usize {
        self.node_of_core(self.core(cpu))
    }

    /// CPUs whose core passes.
    fn cpus_where(&self, core: impl Fn(usize) -> bool) -> Vec<usize> {
        (0..self.cpus).filter(|&c| core(self.core(c))).collect()
    }
}

/// A folder being filled.
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// Writes the whole host.
    pub fn generate(root: &Path, shape: &TreeShape) -> io::Result<()> {
        let tree = Self { root: root.to_owned() };
        cpu::write(&tree, shape)?;
        let irqs = irq::plan(shape);
        irq::write(&tree, shape, &irqs)?;
        nic::write(&tree, shape, &irqs)?;
        storage::write(&tree, shape, &irqs)?;
        proc::write(&tree, shape)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn dir(&self, path: &str) -> io::Result<()> {
        fs::create_dir_all(self.path(path))
    }

    /// A file; its folder must be there.
    fn file(&self, path: &str, text: impl AsRef<[u8]>) -> io::Result<()> {
        fs::write(self.path(path), text)
    }

    /// Writes files of one folder, each with one line; makes the folder if missing.
    fn files(&self, dir: &str, files: &[(&str, &str)]) -> io::Result<()> {
        self.dir(dir)?;
        files
            .iter()
            .try_for_each(|(name, text)| self.file(&format!("{dir}/{name}"), format!("{text}\n")))
    }

    fn link(&self, path: &str, target: &str) -> io::Result<()> {
        symlink(target, self.path(path))
    }
}

/// Pseudo-random numbers, the same in every run.
pub struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `n`, by xorshift64*.
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }

    /// A counter of one to nine digits.
    fn count(&mut self) -> usize {
        let digits = 1 + self.below(9);
        1 + self.below(10usize.pow(digits as u32))
    }
}

/// A CPU list in the kernel's format: `0-3,8`.
fn list(ids: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &id in ids {
        match parts.last_mut() {
            Some((_, end)) if *end + 1 == id => *end = id,
            _ => parts.push((id, id)),
        }
    }
    let words = parts.iter().map(|&(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") });
    words.collect::<Vec<_>>().join(",")
}

/// The kernel's `%*pb` of `width` CPUs: groups of eight digits, all of them.
fn mask(ids: &[usize], width: usize) -> String {
    let mut groups = vec![0u32; width.div_ceil(32).max(1)];
    for &id in ids {
        if let Some(group) = groups.get_mut(id / 32) {
            *group |= 1 << (id % 32);
        }
    }
    let digits = if width < 32 { width.div_ceil(4) } else { 8 };
    groups.iter().rev().map(|g| format!("{g:0digits$x}")).collect::<Vec<_>>().join(",")
}
