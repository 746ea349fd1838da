//! What the cpuset of a process allows, under cgroup v1 and v2.
//!
//! **Source**: cgroups(7), cpuset(7): under v1 `cpuset.effective_cpus` (since 3.17), under v2
//! `cpuset.cpus.effective` of the nearest cgroup for which the controller is on.

use model::{CpuSet, Reading};
use parse::{cgroup::Cgroups, mountinfo};

use crate::{ReadError, Root, error::reading};

/// Where the reader sees cgroups.
pub struct Mounts {
    v1_cpuset: Option<mountinfo::Mount>,
    v2: Option<mountinfo::Mount>,
}

impl Mounts {
    /// From `/proc/self/mountinfo`; of several mounts of one hierarchy the last hides the
    /// others.
    pub fn read(root: &Root) -> Self {
        let mounts =
            root.read("/proc/self/mountinfo").map(|b| mountinfo::parse(&b)).unwrap_or_default();
        let last = |wanted: &dyn Fn(&mountinfo::Mount) -> bool| {
            mounts.iter().rev().find(|m| wanted(m)).cloned()
        };
        Self {
            v1_cpuset: last(&|m| {
                m.fs_type == "cgroup" && m.super_options.iter().any(|o| o == "cpuset")
            }),
            v2: last(&|m| m.fs_type == "cgroup2"),
        }
    }

    /// CPUs and memory nodes that the cpuset allows.
    pub fn cpuset(
        &self,
        root: &Root,
        cgroups: &Reading<Cgroups>,
    ) -> (Reading<CpuSet>, Reading<CpuSet>) {
        let cgroups = match cgroups {
            Reading::Known(c) => c,
            Reading::Absent(why) => return (Reading::absent(why), Reading::absent(why)),
            Reading::Denied(why) => return (Reading::denied(why), Reading::denied(why)),
        };
        if let (Some(path), Some(mount)) = (cgroups.controller("cpuset"), &self.v1_cpuset) {
            let read = |effective, set| in_v1(root, mount, path, effective, set);
            return (
                read("cpuset.effective_cpus", "cpuset.cpus"),
                read("cpuset.effective_mems", "cpuset.mems"),
            );
        }
        match (cgroups.unified(), &self.v2) {
            (Some(path), Some(mount)) => (
                in_v2(root, mount, path, "cpuset.cpus.effective"),
                in_v2(root, mount, path, "cpuset.mems.effective"),
            ),
            _ => {
                let none =
                    || Reading::absent("/proc/self/mountinfo: no cpuset hierarchy is mounted");
                (none(), none())
            }
        }
    }
}

/// The folder of a cgroup as the reader sees it: the mount shows the hierarchy from its own
/// root on.
fn folder(mount: &mountinfo::Mount, path: &str) -> Option<String> {
    let inside = match mount.root.as_str() {
        "/" => path,
        root => path.strip_prefix(root).filter(|p| p.is_empty() || p.starts_with('/'))?,
    };
    if inside.split('/').any(|part| part == "..") {
        return None; // above the reader's cgroup namespace
    }
    Some(format!("{}{}", mount.mount_point.trim_end_matches('/'), inside.trim_end_matches('/')))
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
