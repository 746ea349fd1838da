//! Facts, one file per noun; each reads its own sources through the [`Root`].

pub mod irq;
pub mod nic;
pub mod pci;
pub mod softnet;
pub mod sysctl;
#[cfg(test)]
mod testing;
pub mod tuned;

use std::collections::BTreeMap;

use model::{
    Facts, Reading, SCHEMA_VERSION,
    host::{Host, KernelBuild, Reader},
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

/// Reads everything that the host is.
pub fn collect(root: &Root, request: &Request) -> Facts {
    let _ = request;
    let mut nics = nic::read(root);
    let irqs = irq::read(root, &nics);
    irq::attach(&mut nics, irqs.known().map(Vec::as_slice).unwrap_or_default());
    let online = root.list("/sys/devices/system/cpu/online");
    let unread = nic::unread(&nics);
    let none = || Reading::absent("not read");
    Facts {
        schema_version: SCHEMA_VERSION,
        host: Host {
            name: none(),
            kernel: none(),
            kernel_version: none(),
            arch: none(),
            distribution: none(),
            hypervisor: none(),
            container: none(),
            lockdown: none(),
            cmdline: none(),
            machine: none(),
            cpu_model: none(),
            cpus_possible: Reading::absent("not read"),
            cpus_present: Reading::absent("not read"),
            cpus_online: Reading::absent("not read"),
            smt: none(),
            build: KernelBuild {
                hz: Reading::absent("not read"),
                cpu_accounting: none(),
                irq_time_accounting: Reading::absent("not read"),
                btf: Reading::absent("not read"),
                preempt: none(),
            },
            page_size_bytes: Reading::absent("not read"),
            clock_ticks_per_s: Reading::absent("not read"),
            uptime_s: Reading::absent("not read"),
            reader: Reader {
                euid: Reading::absent("not read"),
                capabilities: Reading::absent("not read"),
            },
        },
        cpus: vec![],
        caches: vec![],
        idle_states: vec![],
        numa_nodes: vec![],
        nics,
        namespaces: Reading::absent("not read"),
        irqs,
        softnet: softnet::read(root, &online),
        sysctls: BTreeMap::new(),
        rivals: vec![],
        processes: vec![],
        listeners: Reading::absent("not read"),
        storage: vec![],
        memory_bytes: Reading::absent("not read"),
        unread,
    }
}
