//! The running processes, read once for all tuners.

use model::Reading;

use super::super::process;
use crate::Root;

/// The root and its processes by short name.
pub struct Scan<'a> {
    /// Where everything is read from.
    pub root: &'a Root,
    processes: Vec<(u32, String)>,
}

impl<'a> Scan<'a> {
    /// Reads the short name of every process.
    pub fn new(root: &'a Root) -> Self {
        let named = |pid| Some((pid, root.word(&format!("/proc/{pid}/comm")).into_known()?));
        Self { root, processes: process::pids(root).into_iter().filter_map(named).collect() }
    }

    /// The lowest process of that short name; the kernel keeps 15 bytes of it.
    pub fn by_name(&self, name: &str) -> Option<u32> {
        let cut = name.get(..15).unwrap_or(name);
        self.processes.iter().find(|(_, comm)| comm == cut).map(|(pid, _)| *pid)
    }

    /// The lowest process of that name, also where an interpreter runs it: one of its first
    /// words is a path that ends so.
    pub fn by_name_or_script(&self, name: &str) -> Option<u32> {
        self.by_name(name).or_else(|| {
            let interpreted = |comm: &str| {
                ["python", "platform-python", "perl"].iter().any(|i| comm.starts_with(i))
            };
            let runs = |pid: u32| match process::arguments(self.root, pid) {
                Reading::Known(words) => {
                    words.iter().take(4).any(|w| w.rsplit('/').next() == Some(name))
                }
                _ => false,
            };
            self.processes.iter().find(|(pid, c)| interpreted(c) && runs(*pid)).map(|(pid, _)| *pid)
        })
    }

    /// The first of these paths that is there.
    pub fn installed(&self, paths: &[&str]) -> Option<String> {
        paths.iter().find(|p| self.root.exists(p)).map(|p| (*p).to_owned())
    }
}
