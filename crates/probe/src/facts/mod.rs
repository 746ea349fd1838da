//! Facts, one file per noun; each reads its own sources through the [`Root`].

#[cfg(test)]
mod archive_tests;
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
pub mod topology;
pub mod tuned;

use std::collections::BTreeMap;

use model::{
    Bytes, Facts, Reading, SCHEMA_VERSION,
    cpu::{Cache, Cpu, IdleState, NumaNodeFacts},
    facts::Unread,
    host::Host,
    irq::Irq,
    netns::NetNamespace,
    nic::Nic,
    process::{Listener, Process},
    rival::Rival,
    storage::StorageController,
    sysctl::Sysctl,
};

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

/// What [`Facts::unread`] calls a `/sys` that belongs to another network namespace.
pub const ELSEWHERE: &str = "interfaces of this network namespace";

/// Why this process's `/sys` is not that of its network namespace, if it is not.
pub fn elsewhere(root: &Root) -> Option<String> {
    link::contradiction(&nic::read(root), &link::Answers::ask(root))
}

/// Reads everything that the host is. The two halves need nothing of each other and are read
/// at the same time: each waits for the kernel, file by file.
pub fn collect(root: &Root, request: &Request) -> Facts {
    let (mut network, machine) = parallel::both(|| Network::read(root), || Machine::read(root));
    let mut unread = std::mem::take(&mut network.unread);
    unread.extend(machine.unread);
    let (processes, missing) = process::read(root, &request.processes);
    unread.extend(missing.into_iter().map(|why| Unread {
        what: NOT_FOUND.into(),
        why,
        remedy: String::new(),
    }));
    unread.extend(apart(&network.namespaces, &processes));
    let softnet = softnet::read(root, &machine.host.cpus_online);
    unread.extend(root.exhausted().map(|e| Unread {
        what: "a part of the host, not known which".into(),
        why: e.to_string(),
        remedy: "raise the limit of open files (ulimit -n) or free memory".into(),
    }));
    Facts {
        schema_version: SCHEMA_VERSION,
        host: machine.host,
        cpus: machine.cpus,
        caches: machine.caches,
        idle_states: machine.idle_states,
        numa_nodes: machine.numa_nodes,
        nics: network.nics,
        namespaces: network.namespaces,
        irqs: network.irqs,
        softnet,
        sysctls: machine.sysctls,
        rivals: machine.rivals,
        processes,
        listeners: network.listeners,
        storage: machine.storage,
        memory_bytes: machine.memory_bytes,
        unread,
    }
}

/// Chosen processes in other network namespaces: what their sockets, drops and interfaces do is
/// counted there, and only the namespace of this process is read in full.
fn apart(namespaces: &Reading<Vec<NetNamespace>>, processes: &[Process]) -> Vec<Unread> {
    let own = namespaces.known().and_then(|all| all.iter().find(|n| n.own));
    let Some(own) = own.map(|n| n.inode) else { return vec![] };
    let mut others: BTreeMap<u64, Vec<&Process>> = BTreeMap::new();
    for p in processes {
        if let Some(inode) = p.net_namespace.get().filter(|inode| *inode != own) {
            others.entry(inode).or_default().push(p);
        }
    }
    let line = |(inode, inside): (u64, Vec<&Process>)| {
        let first = inside.first()?;
        let more = match inside.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        Some(Unread {
            what: format!("counters and NICs as {} ({}){more} has them", first.name, first.pid),
            why: format!("net:[{inode}] is another network namespace than this one"),
            remedy: format!(
                "nsenter -t {} -n unshare -m sh -c 'mount -t sysfs sysfs /sys && exec netwright \
                 doctor' reads it",
                first.pid
            ),
        })
    };
    others.into_iter().filter_map(line).collect()
}

/// NICs, their namespaces and interrupts.
struct Network {
    nics: Vec<Nic>,
    namespaces: Reading<Vec<NetNamespace>>,
    irqs: Reading<Vec<Irq>>,
    listeners: Reading<Vec<Listener>>,
    unread: Vec<Unread>,
}

impl Network {
    fn read(root: &Root) -> Self {
        let mut nics = nic::read(root);
        let mut links = link::Answers::ask(root);
        if link::contradiction(&nics, &links).is_some() {
            // Perhaps the only interface came or went between the two.
            nics = nic::read(root);
            links = link::Answers::ask(root);
        }
        let elsewhere = link::contradiction(&nics, &links);
        let (namespaces, unseen) = netns::read(root, &links);
        let mut unread = link::enrich(root, &mut nics, &links, &namespaces);
        let irqs = irq::read(root, &nics);
        let known = irqs.known().map(Vec::as_slice).unwrap_or_default();
        irq::attach(&mut nics, known);
        unread.extend(irq::unread(known));
        unread.extend(unseen);
        unread.extend(nic::unread(&nics));
        unread.extend(elsewhere.map(|why| Unread {
            what: ELSEWHERE.into(),
            why,
            remedy: String::new(),
        }));
        Self { nics, namespaces, irqs, listeners: listener::read(root), unread }
    }
}

/// The machine, its kernel and what is set on it.
struct Machine {
    host: Host,
    cpus: Vec<Cpu>,
    caches: Vec<Cache>,
    idle_states: Vec<IdleState>,
    numa_nodes: Vec<NumaNodeFacts>,
    memory_bytes: Reading<Bytes>,
    sysctls: BTreeMap<String, Sysctl>,
    rivals: Vec<Rival>,
    storage: Vec<StorageController>,
    unread: Vec<Unread>,
}

impl Machine {
    fn read(root: &Root) -> Self {
        let mut unread = Vec::new();
        let host = host::read(root, &mut unread);
        let layout = cpu::layout(root, &host);
        let numa_nodes = numa::read(root, &layout.running);
        let caches = cache::read(root, &layout, &mut unread);
        let memory_bytes = root.parsed("/proc/meminfo", |b| parse::meminfo::value(b, "MemTotal"));
        let sysctls = sysctl::read(root, &host, &memory_bytes, &mut unread);
        Self {
            cpus: cpu::read(root, &layout, &numa_nodes, &caches),
            caches,
            idle_states: idle::read(root, &layout.online, &mut unread),
            numa_nodes,
            memory_bytes,
            sysctls,
            rivals: rival::read(root),
            storage: storage::read(root),
            host,
            unread,
        }
    }
}
