//! Facts, one file per noun; each reads its own sources through the [`Root`].

#[cfg(test)]
mod archive_tests;
pub mod cache;
pub mod cgroup_mounts;
pub mod cpu;
mod cpu_layout;
mod cpufreq;
mod excerpt;
pub mod host;
mod idle;
pub mod irq;
pub mod kernel_log;
pub mod listener;
pub mod netns;
pub mod nic;
pub mod nic_netlink;
pub mod numa;
mod parallel;
pub mod pci;
pub mod process;
pub mod softnet;
pub mod storage;
pub mod sysctl;
#[cfg(test)]
mod testing;
mod throttle;
pub mod topology;
pub mod tuned;
pub mod tuner;

use std::collections::BTreeMap;

use model::{
    Bytes, Facts, Reading, SCHEMA_VERSION,
    cpu::{Cache, Cpu, IdleState, NumaNodeFacts},
    facts::NoAccess,
    host::Host,
    irq::Irq,
    netns::NetNamespace,
    nic::Nic,
    process::{Listener, Process},
    storage::StorageController,
    sysctl::Sysctl,
    tuner::Tuner,
};

use crate::{Root, ask::rtnl};

/// Which processes to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    Pid(u32),
    /// By short name (`comm`) or the last part of the program's path.
    Name(String),
    /// The processes that listen on this TCP port, or have bound it with UDP.
    Port(u16),
    /// A systemd unit by name, `nginx.service`.
    Unit(String),
    /// A container, by id prefix or name.
    Container(String),
}

/// What to read in addition to the standard facts.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub processes: Vec<Selector>,
}

/// What [`Facts::no_access`] calls a request that no process answers to.
pub const NOT_FOUND: &str = "process";

/// What [`Facts::no_access`] calls a `/sys` that belongs to another network namespace.
pub const ELSEWHERE: &str = "interfaces of this network namespace";

/// Why this process's `/sys` is not that of its network namespace, if it is not.
pub fn elsewhere(root: &Root) -> Option<String> {
    nic_netlink::contradiction(&nic::read(root), &rtnl::Answers::ask(root))
}

/// The document of `inspect --json`, one line without its end. A large host's has megabytes. It is written
/// here because this crate is compiled for speed, which the program is not: docs/decisions/0020-size.md.
///
/// # Errors
/// Those of `serde_json`; facts cause none.
pub fn json(facts: &Facts) -> serde_json::Result<String> {
    serde_json::to_string(facts)
}

/// Reads everything that the host is. The two halves need nothing of each other and are read
/// at the same time: each waits for the kernel, file by file.
pub fn collect(root: &Root, request: &Request) -> Facts {
    let (mut network, machine) = parallel::both(|| Network::read(root), || Machine::read(root));
    let mut no_access = std::mem::take(&mut network.no_access);
    no_access.extend(machine.no_access);
    let (processes, missing) = process::read(root, &request.processes);
    no_access.extend(missing.into_iter().map(|why| NoAccess {
        what: NOT_FOUND.into(),
        why,
        remedy: String::new(),
    }));
    no_access.extend(apart(&network.namespaces, &processes));
    let softnet = softnet::read(root, &machine.host.cpus_online);
    no_access.extend(root.exhausted().map(|e| NoAccess {
        what: "a part of the host, not known which".into(),
        why: e.to_string(),
        remedy: "raise the limit of open files (ulimit -n) or free memory".into(),
    }));
    let kernel_log = kernel_log::read(root, &network.nics);
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
        tuners: machine.tuners,
        processes,
        listeners: network.listeners,
        storage: machine.storage,
        kernel_log,
        applied: Reading::absent("the journal of the host itself has it"),
        memory_bytes: machine.memory_bytes,
        no_access,
    }
}

/// Chosen processes in other network namespaces: what their sockets, drops and interfaces do is
/// counted there, and only the namespace of this process is read in full.
fn apart(namespaces: &Reading<Vec<NetNamespace>>, processes: &[Process]) -> Vec<NoAccess> {
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
        Some(NoAccess {
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
    no_access: Vec<NoAccess>,
}

impl Network {
    fn read(root: &Root) -> Self {
        let mut nics = nic::read(root);
        let mut links = rtnl::Answers::ask(root);
        if nic_netlink::contradiction(&nics, &links).is_some() {
            // Perhaps the only interface came or went between the two.
            nics = nic::read(root);
            links = rtnl::Answers::ask(root);
        }
        let elsewhere = nic_netlink::contradiction(&nics, &links);
        let (namespaces, unseen) = netns::read(root, &links);
        let mut no_access = nic_netlink::enrich(root, &mut nics, &links, &namespaces);
        let irqs = irq::read(root, &nics);
        let known = irqs.known().map(Vec::as_slice).unwrap_or_default();
        irq::attach(&mut nics, known);
        no_access.extend(irq::no_access(known));
        no_access.extend(unseen);
        no_access.extend(nic::no_access(&nics));
        no_access.extend(elsewhere.map(|why| NoAccess {
            what: ELSEWHERE.into(),
            why,
            remedy: String::new(),
        }));
        Self { nics, namespaces, irqs, listeners: listener::read(root), no_access }
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
    tuners: Vec<Tuner>,
    storage: Vec<StorageController>,
    no_access: Vec<NoAccess>,
}

impl Machine {
    fn read(root: &Root) -> Self {
        let mut no_access = Vec::new();
        let host = host::read(root, &mut no_access);
        let layout = cpu_layout::layout(root, &host);
        let numa_nodes = numa::read(root, &layout.running);
        let caches = cache::read(root, &layout, &mut no_access);
        let memory_bytes = root.parsed("/proc/meminfo", |b| parse::meminfo::value(b, "MemTotal"));
        let sysctls = sysctl::read(root, &host, &memory_bytes, &mut no_access);
        Self {
            cpus: cpu::read(root, &layout, &numa_nodes, &caches),
            caches,
            idle_states: idle::read(root, &layout.online, &mut no_access),
            numa_nodes,
            memory_bytes,
            sysctls,
            tuners: tuner::read(root),
            storage: storage::read(root),
            host,
            no_access,
        }
    }
}
