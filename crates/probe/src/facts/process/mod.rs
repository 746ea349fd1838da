//! The selected processes: threads and their CPUs, cpuset, memory by node, sockets, namespace, unit
//! and container.

mod containers;
mod cpuset;
pub mod devices;
mod select;
mod sockets;
mod thread;

#[cfg(test)]
mod tests;

use model::{Bytes, Reading, process::Process};

use self::sockets::Tables;
use super::{Selector, cgroup_mounts::CgroupMounts};
use crate::{ReadError, Root, error::reading};

/// The total memory that is walked for its nodes. The kernel visits every page of a process, some
/// 50 million a second, and holds the process's memory map meanwhile.
const MOST_WALKED: Bytes = Bytes(128 << 30);

/// The processes that the selectors choose, ascending by pid, each once; and what was asked
/// for and is not there, for people.
///
/// A process or thread that ends while it is read is left out.
pub fn read(root: &Root, selectors: &[Selector]) -> (Vec<Process>, Vec<String>) {
    if selectors.is_empty() {
        return (vec![], vec![]);
    }
    let chosen = select::choose(root, selectors);
    let mut reader = Reader {
        root,
        mounts: CgroupMounts::read(root),
        tables: Tables::default(),
        walked: Bytes(0),
    };
    let processes =
        chosen.by_pid.into_iter().filter_map(|(pid, by)| reader.process(pid, by)).collect();
    (processes, chosen.missing)
}

/// Every process id, ascending.
pub fn pids(root: &Root) -> Vec<u32> {
    let mut pids: Vec<u32> =
        root.entries("/proc").unwrap_or_default().iter().filter_map(|n| n.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

/// The words of a command line; `None` for kernel threads and zombies.
pub fn arguments(root: &Root, pid: u32) -> Reading<Vec<String>> {
    let path = format!("/proc/{pid}/cmdline");
    reading(root.read(&path)).and_then(|bytes| {
        let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
        if bytes.is_empty() {
            return Reading::Absent(format!("{path}: empty, as a kernel thread's"));
        }
        let word = |w: &[u8]| String::from_utf8_lossy(w).into_owned();
        Reading::Known(bytes.split(|&b| b == 0).map(word).collect())
    })
}

/// The inode of a process's network namespace. **Source**: `/proc/PID/ns/net`, needs
/// `CAP_SYS_PTRACE` for other users' processes.
pub fn net_namespace(root: &Root, pid: u32) -> Reading<u64> {
    let path = format!("/proc/{pid}/ns/net");
    reading(root.link(&path)).and_then(|target| {
        super::netns::inode(&target).map_or_else(
            || Reading::Absent(format!("{path}: {target}: not a network namespace")),
            Reading::Known,
        )
    })
}

struct Reader<'a> {
    root: &'a Root,
    mounts: CgroupMounts,
    tables: Tables,
    walked: Bytes,
}

impl Reader<'_> {
    fn process(&mut self, pid: u32, chosen_by: String) -> Option<Process> {
        let root = self.root;
        let name = root.word(&format!("/proc/{pid}/comm")).into_known()?;
        let threads = thread::read(root, pid);
        if threads.is_empty() {
            return None;
        }
        let cgroups = root.parsed(&format!("/proc/{pid}/cgroup"), parse::cgroup::parse);
        let none = |what: &str| Reading::Absent(format!("/proc/{pid}/cgroup: {what}"));
        let net_namespace = net_namespace(root, pid);
        let (cpuset_cpus, cpuset_mems) = cpuset::read(root, &self.mounts, &cgroups);
        Some(Process {
            pid,
            name,
            arguments: arguments(root, pid),
            chosen_by,
            threads,
            cgroup: cgroups.as_ref().and_then(|c| {
                c.path().map_or_else(|| none("no cgroup"), |p| Reading::Known(p.to_owned()))
            }),
            unit: cgroups
                .as_ref()
                .and_then(|c| c.unit().map_or_else(|| none("in no unit"), Reading::Known)),
            container: cgroups
                .as_ref()
                .map(|c| c.container().map_or_else(|| "none".to_owned(), |c| c.id)),
            cpuset_cpus,
            cpuset_mems,
            memory_by_node: self.memory_by_node(pid),
            sockets: self.tables.summary(root, pid, &net_namespace),
            net_namespace,
        })
    }

    fn memory_by_node(
        &mut self,
        pid: u32,
    ) -> Reading<std::collections::BTreeMap<model::NumaNode, Bytes>> {
        let path = format!("/proc/{pid}/numa_maps");
        let status = reading(self.root.read(&format!("/proc/{pid}/status")));
        let resident = status.known().and_then(|s| parse::proc_status::value(s, "VmRSS"));
        let Some(resident) = resident.and_then(kib) else {
            return Reading::Absent(format!("{path}: no memory of its own, as a kernel thread"));
        };
        if self.walked.0.saturating_add(resident.0) > MOST_WALKED.0 {
            return Reading::Absent(format!(
                "{path}: not read: the kernel would walk {resident} more, and {} were walked for the others; ask for fewer processes",
                self.walked
            ));
        }
        self.walked.0 += resident.0;
        match self.root.read(&path) {
            Ok(bytes) => Reading::Known(parse::numa_maps::memory_by_node(&bytes)),
            Err(ReadError::Absent { .. }) => {
                Reading::Absent(format!("{path}: not there; the kernel needs CONFIG_NUMA"))
            }
            Err(e) => e.into_reading(),
        }
    }
}

/// The bytes of `13824 kB`; `kB` is 1,024 bytes.
fn kib(value: &str) -> Option<Bytes> {
    value.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024).map(Bytes)
}
