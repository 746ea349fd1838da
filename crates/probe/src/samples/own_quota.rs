//! The CPU quota of this program itself.

use model::{Nanos, Reading, mesh::QuotaUse};

use super::cgroups;
use crate::{Root, facts::cgroup_mounts::CgroupMounts};

/// How far this program used up its CPU quotas since its cgroups were made: its own cgroup and those
/// above it, added up; `None` where none has a quota.
///
/// A sum, and not the cgroup that was throttled longest: a slice that was throttled for hours last month
/// would hide that its new service is throttled now.
pub fn own_quota(root: &Root) -> Reading<Option<QuotaUse>> {
    let all = match cgroups::read(root, &CgroupMounts::read(root), &[]) {
        Reading::Known(all) => all,
        Reading::Absent(why) => return Reading::Absent(why),
        Reading::Denied(why) => return Reading::Denied(why),
    };
    let mut sum: Option<QuotaUse> = None;
    for cgroup in all.into_values().filter(|c| c.own) {
        let stat = match cgroup.stat {
            Reading::Known(stat) => stat,
            Reading::Absent(why) => return Reading::Absent(why),
            Reading::Denied(why) => return Reading::Denied(why),
        };
        let so_far = sum.unwrap_or_default();
        sum = Some(QuotaUse {
            periods: so_far.periods.saturating_add(stat.periods),
            throttled_periods: so_far.throttled_periods.saturating_add(stat.throttled_periods),
            throttled_ns: Nanos(so_far.throttled_ns.0.saturating_add(stat.throttled_ns)),
        });
    }
    Reading::Known(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quotas_of_all_levels_are_added_up() {
        let tree = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        put("proc/self/cgroup", "0::/pods/web\n");
        put("sys/fs/cgroup/pods/web/cpu.max", "max 100000\n");
        let root = Root::open(tree.path()).unwrap();
        let said = || own_quota(&root);
        put("sys/fs/cgroup/pods/cpu.max", "max 100000\n");
        assert_eq!(said(), Reading::Known(None), "no level has one");
        put("sys/fs/cgroup/pods/cpu.max", "400000 100000\n");
        put("sys/fs/cgroup/pods/cpu.stat", "nr_periods 9\nnr_throttled 1\nthrottled_usec 7\n");
        put("sys/fs/cgroup/pods/web/cpu.max", "50000 100000\n");
        put("sys/fs/cgroup/pods/web/cpu.stat", "nr_periods 8\nnr_throttled 4\nthrottled_usec 70\n");
        let both = QuotaUse { periods: 17, throttled_periods: 5, throttled_ns: Nanos(77_000) };
        assert_eq!(said(), Reading::Known(Some(both)));
        std::fs::remove_file(tree.path().join("sys/fs/cgroup/pods/web/cpu.stat")).unwrap();
        assert!(!said().is_known(), "unknown is not unthrottled");
    }
}
