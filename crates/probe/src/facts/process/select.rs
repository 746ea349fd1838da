//! Selects processes by id, name, port, unit or container.

use std::collections::{BTreeMap, BTreeSet};

use model::Reading;
use parse::cgroup::Cgroups;

use super::{super::Selector, containers, net_namespace, pids, sockets};
use crate::{ReadError, Root, serving::family};

/// The kernel keeps this much of a process's short name.
const COMM_LENGTH: usize = 15;

#[derive(Debug, Default)]
pub struct Chosen {
    /// By pid, with the requests that chose it.
    pub by_pid: BTreeMap<u32, String>,
    /// Requests that chose nothing.
    pub missing: Vec<String>,
}

pub fn choose(root: &Root, selectors: &[Selector]) -> Chosen {
    let all = pids(root);
    let mut chosen = Chosen::default();
    for selector in selectors {
        let (request, found, none) = match selector {
            Selector::Pid(pid) => (
                format!("pid {pid}"),
                by_pid(root, *pid).into_iter().collect(),
                format!("no process has the id {pid}"),
            ),
            Selector::Name(name) => (
                format!("name {name}"),
                all.iter().copied().filter(|&p| is_named(root, p, name)).collect(),
                format!("no process is named {name}"),
            ),
            Selector::Port(port) => {
                let (found, note) = by_port(root, &all, *port);
                (format!("port {port}"), found, format!("no process listens on port {port}{note}"))
            }
            Selector::Unit(unit) => (
                format!("unit {unit}"),
                in_cgroup(root, &all, |c| is_in_unit(c, unit)),
                format!("no process is in the unit {unit}"),
            ),
            Selector::Container(name) => {
                let ids = containers::ids_by_name(root).remove(name);
                let wanted = ids.unwrap_or_else(|| vec![name.clone()]);
                (
                    format!("container {name}"),
                    in_cgroup(root, &all, |c| wanted.iter().any(|id| is_in_container(c, id))),
                    format!("no process is in the container {name}"),
                )
            }
        };
        if found.is_empty() {
            chosen.missing.push(none);
        }
        for pid in found {
            chosen
                .by_pid
                .entry(pid)
                .and_modify(|by| {
                    by.push_str(", ");
                    by.push_str(&request);
                })
                .or_insert_with(|| request.clone());
        }
    }
    chosen
}

/// The process itself; of a thread's id the process that it belongs to.
fn by_pid(root: &Root, pid: u32) -> Option<u32> {
    let status = root.read(&format!("/proc/{pid}/status")).ok()?;
    match parse::proc_status::value(&status, "Tgid").and_then(|t| t.parse().ok()) {
        Some(process) => Some(process),
        None => Some(pid),
    }
}

/// By short name, or by the last part of the program's path (as started, where the link to
/// the program may not be read).
fn is_named(root: &Root, pid: u32, name: &str) -> bool {
    let Some(comm) = root.word(&format!("/proc/{pid}/comm")).into_known() else { return false };
    let cut = name.char_indices().nth(COMM_LENGTH).map_or(name, |(i, _)| name.split_at(i).0);
    if comm == name {
        return true;
    }
    let program = match root.link(&format!("/proc/{pid}/exe")) {
        Ok(path) => path.trim_end_matches(" (deleted)").to_owned(),
        Err(ReadError::Denied { .. }) => match super::arguments(root, pid) {
            Reading::Known(words) => words.first().cloned().unwrap_or_default(),
            _ => return false,
        },
        // A kernel thread has no program, nor has a process that is gone. A tree may lack the
        // link: there a name cut by the kernel is the best there is.
        Err(_) => return cut.len() < name.len() && comm == cut,
    };
    program.rsplit('/').next() == Some(name)
}

/// The service at the port ([`family`]), in whichever network namespace; and what to say of
/// processes that could not be searched.
fn by_port(root: &Root, all: &[u32], port: u16) -> (Vec<u32>, &'static str) {
    let mut members: BTreeMap<Option<u64>, Vec<u32>> = BTreeMap::new();
    for &pid in all {
        members.entry(net_namespace(root, pid).into_known()).or_default().push(pid);
    }
    let mut found = Vec::new();
    let mut denied = false;
    for (namespace, pids) in &members {
        // One process has the socket tables of its whole namespace; where namespaces cannot be
        // distinguished, the reader's tables apply. If a process ends, the next one is used.
        let holders = pids
            .iter()
            .take(if namespace.is_some() { 8 } else { usize::MAX })
            .find(|pid| root.exists(&format!("/proc/{pid}/net/tcp")))
            .map(|&pid| sockets::holders_of_port(root, pid, port))
            .unwrap_or_default();
        if holders.is_empty() {
            continue;
        }
        for &pid in pids {
            match sockets::inodes(root, pid) {
                Ok(inodes) if !inodes.is_disjoint(&holders) => found.push(pid),
                Err(ReadError::Denied { .. }) => denied = true,
                _ => {}
            }
        }
    }
    let handed_on = !found.is_empty();
    let holders = family::serving(root, found);
    let mut service = family::of(root, &holders);
    // The command that asks may be a child of a selected process, and is excluded.
    if root.is_live() && !holders.contains(&std::process::id()) {
        service.remove(&std::process::id());
    }
    let note = if denied {
        ", or it is another user's: CAP_SYS_PTRACE (or root) would show it"
    } else if handed_on {
        " by itself: whoever holds it only hands it on"
    } else {
        ""
    };
    (service.into_iter().collect(), note)
}

fn in_cgroup(root: &Root, all: &[u32], wanted: impl Fn(&Cgroups) -> bool) -> Vec<u32> {
    let is_in = |pid: &&u32| {
        let cgroups = root.parsed(&format!("/proc/{pid}/cgroup"), parse::cgroup::parse);
        cgroups.known().is_some_and(&wanted)
    };
    all.iter().filter(is_in).copied().collect::<BTreeSet<_>>().into_iter().collect()
}

/// `nginx` means `nginx.service`, and `ceph-osd@*` all instances, as with systemctl.
fn is_in_unit(cgroups: &Cgroups, unit: &str) -> bool {
    let units = cgroups.units();
    let is = |name: &str| match unit.split_once('*') {
        None => name == unit,
        Some((start, end)) => name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
    };
    units.iter().any(|u| is(u) || u.strip_suffix(".service").is_some_and(is))
}

/// The whole name or id, or the beginning of a numbered one.
fn is_in_container(cgroups: &Cgroups, wanted: &str) -> bool {
    let Some(container) = cgroups.container() else { return false };
    let numbered = container.id.len() == 64 && wanted.len() >= 4;
    container.id == wanted || (numbered && container.id.starts_with(wanted))
}
