//! cgroups of container-like hosts, for v1 (one tree for each controller) and v2.

use std::{
    fs,
    path::{Path, PathBuf},
};

use probe::Root;

use crate::{
    LabError,
    state::{Lab, Resource},
};

/// This machine's cgroup hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hierarchy {
    /// One tree for each controller: that of cpuset, and others worth joining.
    V1 {
        /// Mount point of the cpuset controller.
        cpuset: PathBuf,
        /// Mount points of further trees (named systemd, unified); processes join them so that
        /// `/proc/PID/cgroup` looks as with a container engine.
        others: Vec<PathBuf>,
    },
    /// The unified tree with the cpuset controller.
    V2 { root: PathBuf },
}

/// Finds the hierarchy in the text of `/proc/mounts`; `controllers` reads `cgroup.controllers` of a
/// v2 mount.
pub fn find(mounts: &str, controllers: impl Fn(&Path) -> String) -> Option<Hierarchy> {
    let mut cpuset = None;
    let mut others = Vec::new();
    let mut unified = None;
    for line in mounts.lines() {
        let mut words = line.split_whitespace().skip(1);
        let (Some(at), Some(kind), Some(options)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        match kind {
            "cgroup" if options.split(',').any(|o| o == "cpuset") => {
                cpuset = Some(PathBuf::from(at))
            }
            "cgroup"
                if options.contains("name=systemd")
                    || options.split(',').any(|o| o == "memory") =>
            {
                others.push(PathBuf::from(at));
            }
            "cgroup2" => unified = Some(PathBuf::from(at)),
            _ => {}
        }
    }
    match (cpuset, unified) {
        (Some(cpuset), _) => Some(Hierarchy::V1 { cpuset, others }),
        (None, Some(root)) if controllers(&root).split_whitespace().any(|c| c == "cpuset") => {
            Some(Hierarchy::V2 { root })
        }
        _ => None,
    }
}

/// Creates the cgroups of one container-like host, with names like those of container engines under
/// systemd. Without `cpus` they allow all CPUs and memory nodes of the machine. Returns the
/// directories that a process must join.
///
/// # Errors
/// No cpuset controller is mounted, or the kernel refuses.
pub fn make(lab: &mut Lab, id: &str, cpus: Option<&str>) -> Result<Vec<PathBuf>, LabError> {
    let mounts = Root::live().read("/proc/mounts").unwrap_or_default();
    let controllers =
        |root: &Path| fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    let hierarchy = find(&String::from_utf8_lossy(&mounts), controllers).ok_or_else(|| {
        LabError::failed("making a cgroup", "no cpuset controller is mounted (cgroup v1 or v2)")
    })?;
    let slice = format!("netwright-{}.slice", lab.state.name);
    let scope = format!("docker-{id}.scope");
    let mut folders = Vec::new();
    let trees: Vec<(PathBuf, bool)> = match hierarchy {
        Hierarchy::V1 { cpuset, others } => {
            std::iter::once((cpuset, true)).chain(others.into_iter().map(|o| (o, false))).collect()
        }
        Hierarchy::V2 { root } => {
            write(&root.join("cgroup.subtree_control"), "+cpuset")?;
            vec![(root, true)]
        }
    };
    for (tree, is_cpuset) in trees {
        let outer = tree.join(&slice);
        let inner = outer.join(&scope);
        for folder in [&outer, &inner] {
            let resource = Resource::Cgroup { path: folder.clone() };
            if !lab.state.resources.contains(&resource) {
                lab.will_make(resource)?;
            }
            fs::create_dir_all(folder)
                .map_err(|e| LabError::failed(format!("making {}", folder.display()), e))?;
            if is_cpuset {
                let parent = folder.parent().unwrap_or(folder);
                inherit(parent, folder, "cpuset.cpus")?;
                inherit(parent, folder, "cpuset.mems")?;
                let control = folder.join("cgroup.subtree_control");
                if folder == &outer && control.exists() {
                    write(&control, "+cpuset")?;
                }
            }
        }
        if let (true, Some(cpus)) = (is_cpuset, cpus) {
            write(&inner.join("cpuset.cpus"), cpus)?;
        }
        folders.push(inner);
    }
    Ok(folders)
}

/// In v1 a new cpuset is empty and accepts no process; copies the parent's.
fn inherit(parent: &Path, child: &Path, file: &str) -> Result<(), LabError> {
    let own = fs::read_to_string(child.join(file)).unwrap_or_default();
    if !own.trim().is_empty() {
        return Ok(());
    }
    let effective = fs::read_to_string(parent.join(format!("{file}.effective")));
    let given = effective.or_else(|_| fs::read_to_string(parent.join(file))).unwrap_or_default();
    if given.trim().is_empty() { Ok(()) } else { write(&child.join(file), given.trim()) }
}

fn write(path: &Path, value: &str) -> Result<(), LabError> {
    fs::write(path, value)
        .map_err(|e| LabError::failed(format!("writing {value:?} to {}", path.display()), e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_both_hierarchies() {
        let v1 = "cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0\n\
                  cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,name=systemd 0 0\n\
                  cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let none = |_: &Path| String::new();
        assert_eq!(
            find(v1, none),
            Some(Hierarchy::V1 {
                cpuset: "/sys/fs/cgroup/cpuset".into(),
                others: vec!["/sys/fs/cgroup/systemd".into()]
            })
        );
        let v2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        assert_eq!(
            find(v2, |_| "cpuset cpu io memory".into()),
            Some(Hierarchy::V2 { root: "/sys/fs/cgroup".into() })
        );
        assert_eq!(find(v2, none), None);
        assert_eq!(find("", none), None);
    }
}
