//! A process's place in the hierarchy of a cgroup controller.

use parse::{cgroup, mountinfo};

use crate::{Host, TuneError};

/// Where a controller's files of a process are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupPlace {
    /// Whether the hierarchy is cgroup v2.
    pub v2: bool,
    /// The group's path in the hierarchy; empty for the root group.
    pub path: String,
    /// Mount point of the hierarchy: the root group's directory.
    pub mount: String,
}

impl CgroupPlace {
    /// The group of a process under this controller: of cgroup v1 where one has it, else of v2.
    ///
    /// # Errors
    /// Absent when the process is gone or no hierarchy is mounted.
    pub fn of(host: &Host, pid: u32, controller: &str) -> Result<Self, TuneError> {
        let file = format!("/proc/{pid}/cgroup");
        let groups = cgroup::parse(host.text(&file)?.as_bytes())
            .map_err(|e| TuneError::Environment(format!("{file}: {e}")))?;
        let mounts = mountinfo::parse(host.text("/proc/self/mountinfo")?.as_bytes());
        let last = |v2: bool| {
            let fits = |m: &&mountinfo::Mount| match v2 {
                true => m.fs_type == "cgroup2",
                false => m.fs_type == "cgroup" && m.super_options.iter().any(|o| o == controller),
            };
            mounts.iter().rev().find(fits)
        };
        let (v2, path, mount) = match (groups.controller(controller), last(false)) {
            (Some(path), Some(mount)) => (false, path, mount),
            _ => match (groups.unified(), last(true)) {
                (Some(path), Some(mount)) => (true, path, mount),
                _ => {
                    return Err(TuneError::Absent(format!("no {controller} hierarchy is mounted")));
                }
            },
        };
        let inside = match mount.root.as_str() {
            "/" => Some(path),
            root => path.strip_prefix(root).filter(|p| p.is_empty() || p.starts_with('/')),
        };
        let Some(inside) = inside.filter(|p| !p.split('/').any(|part| part == "..")) else {
            return Err(TuneError::Absent(format!("cgroup {path}: outside what is mounted here")));
        };
        Ok(Self {
            v2,
            path: inside.trim_end_matches('/').to_owned(),
            mount: mount.mount_point.clone(),
        })
    }

    /// Absolute path of the directory that holds the group's files.
    pub fn folder(&self) -> String {
        format!("{}{}", self.mount.trim_end_matches('/'), self.path)
    }
}
