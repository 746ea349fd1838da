//! The processes of a service, found from those that hold its socket. Every command with a port
//! option uses this.
//!
//! They are the holders and their descendants (PostgreSQL's backends, nginx's workers), except
//! descendants in another cgroup (a login session of `sshd`). If a holder is the first process of a
//! system service or a container, all processes in it belong to it.

use std::collections::{BTreeMap, BTreeSet};

use parse::cgroup::Cgroups;

use crate::Root;

/// More than this are not followed.
const MOST: usize = 100_000;

/// Programs that may hold a service's socket without serving: they pass sockets on.
const SUPERVISORS: [&str; 3] = ["systemd", "init", "s6-svscan"];

/// Those of a socket's holders that serve.
pub fn serving(root: &Root, holders: impl IntoIterator<Item = u32>) -> BTreeSet<u32> {
    let supervises = |pid: &u32| {
        let name = root.word(&format!("/proc/{pid}/comm"));
        name.known().is_some_and(|name| SUPERVISORS.contains(&name.as_str()))
    };
    holders.into_iter().filter(|pid| !supervises(pid)).collect()
}

/// The processes of the service that these hold the socket of, each once.
pub fn of(root: &Root, holders: &BTreeSet<u32>) -> BTreeSet<u32> {
    let mut all = holders.clone();
    for &holder in holders {
        all.extend(beside(root, holder));
    }
    // Without CONFIG_PROC_CHILDREN every process's parent is read; so it is while recording, as the
    // recording will be.
    let own = std::process::id();
    let reported = root.is_live() && !root.is_recorded();
    let parents = match reported && root.exists(&format!("/proc/{own}/task/{own}/children")) {
        true => None,
        false => Some(by_parent(root)),
    };
    let mut left: Vec<(u32, Option<String>)> =
        all.iter().map(|pid| (*pid, group(root, *pid))).collect();
    while let Some((pid, home)) = left.pop() {
        let children = match &parents {
            Some(parents) => parents.get(&pid).cloned().unwrap_or_default(),
            None => children(root, pid),
        };
        for child in children {
            let within = match (&home, group(root, child)) {
                (Some(home), Some(at)) => is_within(&at, home),
                // Not known: a child is its parent's.
                _ => true,
            };
            if within && all.len() < MOST && all.insert(child) {
                left.push((child, home.clone()));
            }
        }
    }
    all
}

/// All processes of the service or container that this is the first process of; empty where it is
/// not, or is in neither.
fn beside(root: &Root, pid: u32) -> Vec<u32> {
    let Some(cgroups) = cgroups(root, pid) else { return vec![] };
    let service = cgroups.units().last().is_some_and(|unit| unit.ends_with(".service"));
    let Some(home) = cgroups.path().filter(|_| service || cgroups.container().is_some()) else {
        return vec![];
    };
    let first = parent(root, pid).and_then(|p| group(root, p)).is_some_and(|at| at != home);
    if !first {
        return vec![];
    }
    let pids = root.entries("/proc").unwrap_or_default();
    let pids = pids.iter().filter_map(|name| name.parse::<u32>().ok());
    pids.filter(|p| group(root, *p).is_some_and(|at| is_within(&at, home))).collect()
}

fn cgroups(root: &Root, pid: u32) -> Option<Cgroups> {
    root.parsed(&format!("/proc/{pid}/cgroup"), parse::cgroup::parse).into_known()
}

/// The control group that a process is in.
fn group(root: &Root, pid: u32) -> Option<String> {
    cgroups(root, pid)?.path().map(str::to_owned)
}

/// Whether a control group is this one or below it.
fn is_within(at: &str, home: &str) -> bool {
    let below = at.strip_prefix(home.trim_end_matches('/'));
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Each thread lists only the children that it created.
fn children(root: &Root, pid: u32) -> Vec<u32> {
    let folder = format!("/proc/{pid}/task");
    let threads = root.entries(&folder).unwrap_or_default();
    let texts = threads.iter().filter_map(|t| root.read(&format!("{folder}/{t}/children")).ok());
    texts.flat_map(|text| numbers(&text)).collect()
}

fn numbers(text: &[u8]) -> Vec<u32> {
    String::from_utf8_lossy(text).split_whitespace().filter_map(|n| n.parse().ok()).collect()
}

fn by_parent(root: &Root) -> BTreeMap<u32, Vec<u32>> {
    let mut all: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let names = root.entries("/proc").unwrap_or_default();
    for pid in names.iter().filter_map(|name| name.parse::<u32>().ok()) {
        if let Some(parent) = parent(root, pid) {
            all.entry(parent).or_default().push(pid);
        }
    }
    all
}

/// **Source**: `/proc/PID/stat`: the fourth word; the second is a name in brackets, which may hold
/// anything.
fn parent(root: &Root, pid: u32) -> Option<u32> {
    let text = root.read(&format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_child_is_found_either_way() {
        let root = Root::live();
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let own = std::process::id();
        let found = of(&root, &BTreeSet::from([own])).contains(&child.id());
        let by_parent = by_parent(&root);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found);
        assert!(by_parent.get(&own).unwrap().contains(&child.id()), "{by_parent:?}");
        let gone = BTreeSet::from([u32::MAX]);
        assert_eq!(of(&root, &gone), gone, "one that is gone");
    }

    /// Each process by its id, its parent's and its control group.
    fn tree(all: &[(u32, u32, &str)]) -> (tempfile::TempDir, Root) {
        let tree = tempfile::tempdir().unwrap();
        for (pid, parent, group) in all {
            let folder = tree.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("stat"), format!("{pid} (a b) S {parent} 0\n")).unwrap();
            std::fs::write(folder.join("cgroup"), format!("0::{group}\n")).unwrap();
        }
        let root = Root::open(tree.path()).unwrap();
        (tree, root)
    }

    fn found(all: &[(u32, u32, &str)], holder: u32) -> Vec<u32> {
        let (_tree, root) = tree(all);
        of(&root, &BTreeSet::from([holder])).into_iter().collect()
    }

    #[test]
    fn a_service_is_its_holder_its_children_and_what_is_in_its_unit() {
        let pg = "/system.slice/postgresql.service";
        let all =
            [(1, 0, "/init.scope"), (10, 1, pg), (11, 10, pg), (12, 1, pg), (13, 1, "/other")];
        assert_eq!(found(&all, 10), [10, 11, 12]);
        // One that a shell of a larger unit started is not the unit's first.
        let agent = "/system.slice/agent.service";
        let all = [(1, 0, "/"), (5, 1, agent), (10, 5, agent), (11, 10, agent), (12, 5, agent)];
        assert_eq!(found(&all, 10), [10, 11]);
    }

    #[test]
    fn a_session_that_it_began_is_not_the_services() {
        let (ssh, session) = ("/system.slice/ssh.service", "/user.slice/session-3.scope");
        let all = [(1, 0, "/"), (10, 1, ssh), (11, 10, session), (12, 11, session)];
        assert_eq!(found(&all, 10), [10]);
    }
}
