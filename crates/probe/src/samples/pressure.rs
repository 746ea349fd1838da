//! Pressure stalls: of the whole host, and of the chosen processes' cgroups.

use model::Reading;
use parse::pressure::{self, Pressure};

use crate::{
    Root,
    facts::cgroup_mounts::{CgroupMounts, folder},
};

/// One resource of the host or of one cgroup at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct RawPressure {
    pub resource: &'static str,
    /// Path of the cgroup, empty for the whole host.
    pub cgroup: String,
    pub file: String,
    pub totals: Reading<Pressure>,
}

const RESOURCES: [&str; 3] = ["cpu", "memory", "io"];

/// Those of the host, then those of the v2 cgroups of `pids`. Hosts with cgroup v1 alone count none of
/// a cgroup, and the root cgroup is the host.
pub fn read(root: &Root, mounts: &CgroupMounts, pids: &[u32]) -> Vec<RawPressure> {
    let mut all: Vec<RawPressure> = RESOURCES
        .map(|resource| one(root, resource, "", format!("/proc/pressure/{resource}")))
        .into();
    let Some(mount) = mounts.v2() else { return all };
    let mut paths: Vec<String> = pids
        .iter()
        .filter_map(|pid| {
            root.parsed(&format!("/proc/{pid}/cgroup"), parse::cgroup::parse).into_known()
        })
        .filter_map(|cgroups| cgroups.unified().map(str::to_owned))
        .filter(|path| path != "/")
        .collect();
    paths.sort();
    paths.dedup();
    for path in paths {
        let Some(folder) = folder(mount, &path) else { continue };
        for resource in RESOURCES {
            all.push(one(root, resource, &path, format!("{folder}/{resource}.pressure")));
        }
    }
    all
}

fn one(root: &Root, resource: &'static str, cgroup: &str, file: String) -> RawPressure {
    let totals = root.parsed(&file, pressure::parse);
    RawPressure { resource, cgroup: cgroup.to_owned(), file, totals }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_host_and_of_each_cgroup_once() {
        let tree = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let total = |n: u64| format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={n}\n");
        put(
            "proc/self/mountinfo",
            "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
        );
        put("proc/7/cgroup", "0::/pods/web\n");
        put("proc/8/cgroup", "0::/pods/web\n");
        put("proc/9/cgroup", "0::/\n");
        put("proc/pressure/memory", &total(5));
        put("sys/fs/cgroup/pods/web/memory.pressure", &total(3));
        let root = Root::open(tree.path()).unwrap();
        let all = read(&root, &CgroupMounts::read(&root), &[7, 8, 9, 10]);
        let of = |resource: &str, cgroup: &str| {
            let found = all.iter().find(|p| p.resource == resource && p.cgroup == cgroup).unwrap();
            found.totals.known().map(|t| t.some_us)
        };
        assert_eq!(all.len(), 6);
        assert_eq!((of("memory", ""), of("memory", "/pods/web")), (Some(5), Some(3)));
        assert_eq!(of("cpu", ""), None, "psi=0 or an old kernel");
    }
}
