//! Facts, one file per noun; each reads its own sources through the [`Root`].

pub mod cache;
pub mod cpu;
mod cpufreq;
mod excerpt;
pub mod host;
mod idle;
pub mod irq;
pub mod link;
pub mod listener;
pub mod netns;
pub mod nic;
pub mod numa;
mod parallel;
pub mod pci;
pub mod process;
pub mod rival;
pub mod softnet;
pub mod storage;
pub mod sysctl;
#[cfg(test)]
mod testing;
mod throttle;
pub mod tuned;

use model::{Facts, SCHEMA_VERSION, facts::Unread};

use crate::Root;

/// Which processes to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// By process id.
    Pid(u32),
    /// By short name (`comm`) or the last part of the program's path.
    Name(String),
    /// Whoever listens on this TCP port, or has bound it with UDP.
    Port(u16),
    /// A systemd unit.
    Unit(String),
    /// A container, by id prefix or name.
    Container(String),
}

/// What to read beyond what is always read.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Processes.
    pub processes: Vec<Selector>,
}

/// What [`Facts::unread`] calls a request that no process answers to.
pub const NOT_FOUND: &str = "process";

/// Reads everything that the host is.
pub fn collect(root: &Root, request: &Request) -> Facts {
    let mut nics = nic::read(root);
    let links = link::Answers::ask(root);
    let (namespaces, unseen) = netns::read(root, &links);
    let mut unread = link::enrich(root, &mut nics, &links, &namespaces);
    let irqs = irq::read(root, &nics);
    irq::attach(&mut nics, irqs.known().map(Vec::as_slice).unwrap_or_default());
    unread.extend(unseen);
    unread.extend(nic::unread(&nics));
    let host = host::read(root, &mut unread);
    let layout = cpu::layout(root, &host);
    let numa_nodes = numa::read(root, &layout.running);
    let caches = cache::read(root, &layout, &mut unread);
    let online = host.cpus_online.clone();
    let memory_bytes = root.parsed("/proc/meminfo", |b| parse::meminfo::value(b, "MemTotal"));
    let sysctls = sysctl::read(root, &host, &memory_bytes, &mut unread);
    let (processes, missing) = process::read(root, &request.processes);
    unread.extend(missing.into_iter().map(|why| Unread {
        what: NOT_FOUND.into(),
        why,
        remedy: String::new(),
    }));
    Facts {
        schema_version: SCHEMA_VERSION,
        host,
        cpus: cpu::read(root, &layout, &numa_nodes, &caches),
        caches,
        idle_states: idle::read(root, &layout.online, &mut unread),
        numa_nodes,
        nics,
        namespaces,
        irqs,
        softnet: softnet::read(root, &online),
        sysctls,
        rivals: rival::read(root),
        processes,
        listeners: listener::read(root),
        storage: storage::read(root),
        memory_bytes,
        unread,
    }
}
