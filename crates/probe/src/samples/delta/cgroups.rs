//! Growth of the counters of cgroups with a CPU quota.

use model::{Reading, samples::CgroupSample};
use parse::cgroup_cpu::CpuStat;

use super::{all_known, grown_readings};
use crate::samples::raw::Raw;

/// Those of the last reading; one that another reading lacks has no known growth.
pub fn all(readings: &[Raw]) -> Reading<Vec<CgroupSample>> {
    all_known(readings.iter().map(|r| r.cgroups.as_ref())).map(|tables| {
        let last = tables.last().into_iter().flat_map(|t| t.iter());
        last.map(|(path, cgroup)| {
            let gone = Reading::absent("the cgroup or its quota was not there in every reading");
            let growth = |pick: fn(&CpuStat) -> u64| {
                let values: Vec<Reading<u64>> = tables
                    .iter()
                    .map(|t| {
                        t.get(path).map_or_else(|| gone.clone(), |c| c.stat.as_ref().map(pick))
                    })
                    .collect();
                grown_readings(&values)
            };
            CgroupSample {
                path: path.clone(),
                folder: cgroup.folder.clone(),
                pids: cgroup.pids.clone(),
                own: cgroup.own,
                quota_cpus: cgroup.quota_cpus.clone(),
                periods: growth(|s| s.periods),
                throttled_periods: growth(|s| s.throttled_periods),
                throttled_ns: growth(|s| s.throttled_ns),
            }
        })
        .collect()
    })
}
