//! A process's place in the cpuset hierarchy, and the sets of its group.

use crate::{Host, TuneError, cgroup_place::CgroupPlace};

/// A process's cgroup in the cpuset hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The process's start time, in ticks since boot.
    pub start: u64,
    /// Whether the hierarchy is cgroup v2.
    pub v2: bool,
    /// Its path in the hierarchy.
    pub path: String,
    /// Mount point of the hierarchy: the root group's directory.
    pub mount: String,
    /// `cpuset.cpus`, without its line end; `None` if the controller is off.
    pub cpus: Option<String>,
    /// `cpuset.mems`, without its line end; `None` if the controller is off.
    pub mems: Option<String>,
    /// Parent directories that do not delegate the controller, the topmost first.
    pub off: Vec<String>,
}

impl Group {
    /// Reads the group of a process.
    ///
    /// # Errors
    /// Absent when the process is gone or no hierarchy is mounted.
    pub fn of(host: &Host, pid: u32) -> Result<Self, TuneError> {
        let start = host.start_ticks(&pid.to_string())?;
        let CgroupPlace { v2, path, mount } = CgroupPlace::of(host, pid, "cpuset")?;
        let mut group = Self { start, v2, path, mount, cpus: None, mems: None, off: vec![] };
        let set = |what| host.text(&group.file(what)).ok().map(|t| t.trim().to_owned());
        // The root of cgroup v2 has no such files and no limit.
        (group.cpus, group.mems) = (set("cpuset.cpus"), set("cpuset.mems"));
        if v2 {
            group.off = group.off(host)?;
        }
        Ok(group)
    }

    /// Whether it is the root group.
    pub fn is_root(&self) -> bool {
        self.path.is_empty()
    }

    pub fn folder(&self) -> String {
        format!("{}{}", self.mount.trim_end_matches('/'), self.path)
    }

    /// Path of one of the group's files.
    pub fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.folder())
    }

    /// Directory of a group for this process alone, below the root.
    pub fn own_folder(&self, pid: u32) -> String {
        format!("{}/netwright-{pid}", self.mount.trim_end_matches('/'))
    }

    /// Directories with the controller off: above the group, or the root itself.
    fn off(&self, host: &Host) -> Result<Vec<String>, TuneError> {
        let mut folder = self.mount.trim_end_matches('/').to_owned();
        let mut above = vec![folder.clone()];
        let parts: Vec<&str> = self.path.split('/').filter(|p| !p.is_empty()).collect();
        for part in parts.iter().take(parts.len().saturating_sub(1)) {
            folder = format!("{folder}/{part}");
            above.push(folder.clone());
        }
        let mut off = Vec::new();
        for folder in above {
            let on = host.text(&format!("{folder}/cgroup.subtree_control"))?;
            if !on.split_whitespace().any(|c| c == "cpuset") {
                off.push(folder);
            }
        }
        Ok(off)
    }

    /// The group as an exact value.
    pub fn text(&self) -> String {
        let mut text = format!(
            "start {}\n{} {}\n{}\n",
            self.start,
            if self.v2 { "v2" } else { "v1" },
            if self.is_root() { "/" } else { &self.path },
            self.mount
        );
        for (name, value) in [("cpus", &self.cpus), ("mems", &self.mems)] {
            if let Some(value) = value {
                text += &format!("{name} {value}\n");
            }
        }
        for folder in &self.off {
            text += &format!("off {folder}\n");
        }
        text
    }

    /// Parses an exact value.
    pub fn parsed(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let start = lines.next()?.strip_prefix("start ")?.parse().ok()?;
        let (version, path) = lines.next()?.split_once(' ')?;
        let mut group = Self {
            start,
            v2: version == "v2",
            path: path.trim_end_matches('/').into(),
            mount: lines.next()?.into(),
            cpus: None,
            mems: None,
            off: vec![],
        };
        for line in lines {
            match line.split_once(' ')? {
                ("cpus", value) => group.cpus = Some(value.into()),
                ("mems", value) => group.mems = Some(value.into()),
                ("off", folder) => group.off.push(folder.into()),
                _ => return None,
            }
        }
        Some(group)
    }

    /// PIDs of a group's directory.
    pub fn members(host: &Host, folder: &str) -> Vec<u32> {
        let text = host.text(&format!("{folder}/cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|l| l.parse().ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_value_is_read_again() {
        let group = Group {
            start: 77,
            v2: true,
            path: "/system.slice/a b.service".into(),
            mount: "/sys/fs/cgroup".into(),
            cpus: Some(String::new()),
            mems: Some("0-1".into()),
            off: vec!["/sys/fs/cgroup".into(), "/sys/fs/cgroup/system.slice".into()],
        };
        assert_eq!(Group::parsed(&group.text()), Some(group.clone()));
        let root = Group { path: String::new(), cpus: None, mems: None, off: vec![], ..group };
        assert_eq!(Group::parsed(&root.text()), Some(root));
        assert_eq!(Group::parsed("0-3 mems 0"), None);
    }
}
