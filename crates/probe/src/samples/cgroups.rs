//! Cgroups with a CPU quota, and their throttling.

use std::collections::BTreeMap;

use model::Reading;
use parse::{
    cgroup::Cgroups,
    cgroup_cpu::{self, CpuStat},
    mountinfo::Mount,
};

use crate::{
    Root,
    facts::cgroup_mounts::{CgroupMounts, folder},
};

/// One cgroup with a quota at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct RawCgroup {
    /// Its folder below the root of the hierarchy.
    pub folder: String,
    /// The chosen processes in it or below it.
    pub pids: Vec<u32>,
    /// This program is in it or below it.
    pub own: bool,
    /// `cpu.max` as a number of CPUs: quota by period.
    pub quota_cpus: Reading<f64>,
    pub stat: Reading<CpuStat>,
}

/// The cgroups with a quota, by path from the root of the hierarchy: those of `pids` and of this
/// program, with their ancestors. A process that has ended has none. If one cgroup cannot be read,
/// the whole is unknown.
pub fn read(
    root: &Root,
    mounts: &CgroupMounts,
    pids: &[u32],
) -> Reading<BTreeMap<String, RawCgroup>> {
    let everyone = pids.iter().map(|pid| (pid.to_string(), Some(*pid)));
    let mut found: BTreeMap<String, Option<RawCgroup>> = BTreeMap::new();
    for (who, pid) in everyone.chain([("self".to_owned(), None)]) {
        let cgroups = root.parsed(&format!("/proc/{who}/cgroup"), parse::cgroup::parse);
        let cgroups = match cgroups {
            Reading::Known(cgroups) => cgroups,
            Reading::Denied(why) => return Reading::Denied(why),
            Reading::Absent(_) if root.is_live() && pid.is_some() => continue,
            // An archive has nothing of the program that reads it.
            Reading::Absent(_) if pid.is_none() && !found.is_empty() => continue,
            Reading::Absent(why) => return Reading::Absent(why),
        };
        let Some((mount, path)) = hierarchy(mounts, &cgroups) else {
            return Reading::absent(
                "/proc/self/mountinfo: no hierarchy with CPU quotas is mounted",
            );
        };
        for level in levels(path) {
            let cgroup = found.entry(level.to_owned()).or_insert_with(|| one(root, mount, level));
            if let Some(cgroup) = cgroup {
                cgroup.pids.extend(pid);
                cgroup.own |= pid.is_none();
            }
        }
    }
    Reading::Known(found.into_iter().filter_map(|(path, c)| Some((path, c?))).collect())
}

/// The hierarchy that gives out CPU time, and the cgroup in it.
fn hierarchy<'a>(mounts: &'a CgroupMounts, cgroups: &'a Cgroups) -> Option<(&'a Mount, &'a str)> {
    match cgroups.controller("cpu") {
        Some(path) => mounts.v1("cpu").map(|mount| (mount, path)),
        None => mounts.v2().zip(cgroups.unified()),
    }
}

/// A path and all above it: `/a/b`, `/a`, `/`.
fn levels(path: &str) -> impl Iterator<Item = &str> {
    let whole = path.trim_end_matches('/');
    let above = whole.rmatch_indices('/').map(|(at, _)| &whole[..at]).filter(|p| !p.is_empty());
    (!whole.is_empty()).then_some(whole).into_iter().chain(above).chain(["/"])
}

/// `None` where the cgroup has no quota.
fn one(root: &Root, mount: &Mount, path: &str) -> Option<RawCgroup> {
    let none = |folder: &str, why: Reading<f64>| RawCgroup {
        folder: folder.to_owned(),
        pids: vec![],
        own: false,
        quota_cpus: why,
        stat: Reading::absent("the quota is not known"),
    };
    let Some(folder) = folder(mount, path) else {
        let why = format!("cgroup {path}: outside what is mounted here");
        return Some(none(path, Reading::Absent(why)));
    };
    let granted = if mount.fs_type == "cgroup2" {
        root.parsed(&format!("{folder}/cpu.max"), cgroup_cpu::max)
    } else {
        v1_quota(root, &folder)
    };
    match granted {
        Reading::Known(None) => None,
        // A cgroup without such a file, as the root, can have none. A tree may lack the cgroup itself.
        Reading::Absent(_) if root.is_whole() || root.exists(&folder) => None,
        Reading::Absent(why) => Some(none(&folder, Reading::Absent(why))),
        Reading::Denied(why) => Some(none(&folder, Reading::Denied(why))),
        Reading::Known(Some(cpus)) => {
            let stat = root.parsed(&format!("{folder}/cpu.stat"), cgroup_cpu::stat);
            Some(RawCgroup { stat, ..none(&folder, Reading::Known(cpus)) })
        }
    }
}

/// The quota in CPUs, from v1's quota and period in microseconds; `None` for a quota of −1.
fn v1_quota(root: &Root, folder: &str) -> Reading<Option<f64>> {
    let quota: Reading<i64> = root.number(&format!("{folder}/cpu.cfs_quota_us"));
    quota.and_then(|quota| {
        if quota < 0 {
            return Reading::Known(None);
        }
        let period: Reading<u64> = root.number(&format!("{folder}/cpu.cfs_period_us"));
        period.map(|period| (period > 0).then(|| quota as f64 / period as f64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_all_above_it() {
        let of = |path: &'static str| levels(path).collect::<Vec<_>>();
        assert_eq!(of("/a.slice/b.scope"), ["/a.slice/b.scope", "/a.slice", "/"]);
        assert_eq!(of("/"), ["/"]);
    }

    #[test]
    fn every_level_with_a_quota_is_read_once_and_knows_whose_it_is() {
        let tree = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
        put("proc/self/mountinfo", mounts);
        put("proc/self/cgroup", "0::/user.slice\n");
        put("proc/7/cgroup", "0::/pods/web\n");
        put("proc/8/cgroup", "0::/pods/db\n");
        put("sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
        put("sys/fs/cgroup/pods/db/cpu.max", "max 100000\n");
        put("sys/fs/cgroup/pods/cpu.max", "400000 100000\n");
        put("sys/fs/cgroup/pods/cpu.stat", "nr_periods 9\nnr_throttled 0\nthrottled_usec 0\n");
        put("sys/fs/cgroup/pods/web/cpu.max", "50000 100000\n");
        put("sys/fs/cgroup/pods/web/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_usec 70\n");
        let root = Root::open(tree.path()).unwrap();
        let all = read(&root, &CgroupMounts::read(&root), &[7, 8]).into_known().unwrap();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["/pods", "/pods/web"]);
        assert_eq!(
            (all["/pods"].pids.clone(), all["/pods/web"].pids.clone()),
            (vec![7, 8], vec![7])
        );
        assert_eq!(all["/pods/web"].quota_cpus, Reading::Known(0.5));
        assert_eq!(all["/pods/web"].stat.known().unwrap().throttled_ns, 70_000);
        assert!(all.values().all(|c| !c.own));

        // What was not read is not without a quota.
        let unread = read(&root, &CgroupMounts::read(&root), &[9]);
        assert!(unread.why_not().is_some_and(|why| why.contains("/proc/9/cgroup")), "{unread:?}");
        put("proc/10/cgroup", "0::/elsewhere\n");
        let all = read(&root, &CgroupMounts::read(&root), &[10]).into_known().unwrap();
        assert!(!all["/elsewhere"].quota_cpus.is_known(), "{all:?}");
        // The controller is on another hierarchy, which is not mounted here.
        put("proc/11/cgroup", "4:cpu,cpuacct:/web\n0::/web\n");
        assert!(!read(&root, &CgroupMounts::read(&root), &[11]).is_known());
    }
}
