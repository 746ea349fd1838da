//! Where cgroup hierarchies are mounted for the reader.

use parse::mountinfo::{self, Mount};

use crate::Root;

/// The mounts of cgroup hierarchies, in the kernel's order. **Source**: `/proc/self/mountinfo`.
pub struct CgroupMounts(Vec<Mount>);

impl CgroupMounts {
    pub fn read(root: &Root) -> Self {
        let text = root.read("/proc/self/mountinfo").unwrap_or_default();
        Self(mountinfo::of_types(&text, b"cgroup"))
    }

    /// The hierarchy of a v1 controller; of several mounts of one hierarchy the last hides the
    /// others.
    pub fn v1(&self, controller: &str) -> Option<&Mount> {
        self.last(|m| m.fs_type == "cgroup" && m.super_options.iter().any(|o| o == controller))
    }

    /// The mount of the unified (v2) hierarchy; `None` where there is none.
    pub fn v2(&self) -> Option<&Mount> {
        self.last(|m| m.fs_type == "cgroup2")
    }

    fn last(&self, wanted: impl Fn(&Mount) -> bool) -> Option<&Mount> {
        self.0.iter().rev().find(|m| wanted(m))
    }
}

/// The folder of a cgroup as the reader sees it: the mount shows the hierarchy from its own
/// root on. `None` outside of it.
pub fn folder(mount: &Mount, path: &str) -> Option<String> {
    let inside = match mount.root.as_str() {
        "/" => path,
        root => path.strip_prefix(root).filter(|p| p.is_empty() || p.starts_with('/'))?,
    };
    if inside.split('/').any(|part| part == "..") {
        return None; // above the reader's cgroup namespace
    }
    Some(format!("{}{}", mount.mount_point.trim_end_matches('/'), inside.trim_end_matches('/')))
}
