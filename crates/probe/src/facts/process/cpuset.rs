//! The CPUs and nodes that a process's cpuset allows, under cgroup v1 and v2.
//!
//! **Source**: cgroups(7), cpuset(7): under v1 `cpuset.effective_cpus` (since 3.17), under v2
//! `cpuset.cpus.effective` of the nearest cgroup with the controller.

use model::{CpuSet, Reading};
use parse::{cgroup::Cgroups, mountinfo};

use crate::{
    ReadError, Root,
    error::reading,
    facts::cgroup_mounts::{CgroupMounts, folder},
};

/// CPUs and memory nodes that the cpuset allows.
pub fn read(
    root: &Root,
    mounts: &CgroupMounts,
    cgroups: &Reading<Cgroups>,
) -> (Reading<CpuSet>, Reading<CpuSet>) {
    let cgroups = match cgroups {
        Reading::Known(c) => c,
        Reading::Absent(why) => return (Reading::absent(why), Reading::absent(why)),
        Reading::Denied(why) => return (Reading::denied(why), Reading::denied(why)),
    };
    if let (Some(path), Some(mount)) = (cgroups.controller("cpuset"), mounts.v1("cpuset")) {
        let read = |effective, set| in_v1(root, mount, path, effective, set);
        return (
            read("cpuset.effective_cpus", "cpuset.cpus"),
            read("cpuset.effective_mems", "cpuset.mems"),
        );
    }
    match (cgroups.unified(), mounts.v2()) {
        (Some(path), Some(mount)) => (
            in_v2(root, mount, path, "cpuset.cpus.effective"),
            in_v2(root, mount, path, "cpuset.mems.effective"),
        ),
        _ => {
            let none = || Reading::absent("/proc/self/mountinfo: no cpuset hierarchy is mounted");
            (none(), none())
        }
    }
}

fn outside<T>(path: &str) -> Reading<T> {
    Reading::Absent(format!("cgroup {path}: outside what is mounted here"))
}

fn in_v1(
    root: &Root,
    mount: &mountinfo::Mount,
    path: &str,
    effective: &str,
    set: &str,
) -> Reading<CpuSet> {
    let Some(folder) = folder(mount, path) else { return outside(path) };
    root.list(&format!("{folder}/{effective}")).or_else(|| root.list(&format!("{folder}/{set}")))
}

/// Where the controller is off, a cgroup has no such file and its parent's applies.
fn in_v2(root: &Root, mount: &mountinfo::Mount, path: &str, file: &str) -> Reading<CpuSet> {
    let Some(mut here) = folder(mount, path) else { return outside(path) };
    let top = mount.mount_point.trim_end_matches('/');
    loop {
        let candidate = format!("{here}/{file}");
        match root.read(&candidate) {
            Err(ReadError::Absent { .. }) if here.len() > top.len() => {
                here.truncate(here.rfind('/').unwrap_or(0));
            }
            Err(ReadError::Absent { .. }) => {
                return Reading::Absent(format!(
                    "{candidate}: not there; no cgroup above limits CPUs"
                ));
            }
            other => {
                return reading(other).and_then(|b| {
                    parse::list::parse(&b).map_or_else(
                        |e| Reading::Absent(format!("{candidate}: {e}")),
                        Reading::Known,
                    )
                });
            }
        }
    }
}
