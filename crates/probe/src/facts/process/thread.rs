//! Threads: affinity, CPU, and migrations.

use model::{CpuSet, Reading, process::Thread};

use crate::{ReadError, Root, error::reading};

/// All threads of a process, ascending; those that end meanwhile are left out.
pub fn read(root: &Root, pid: u32) -> Vec<Thread> {
    let folder = format!("/proc/{pid}/task");
    let mut tids: Vec<u32> =
        root.entries(&folder).unwrap_or_default().iter().filter_map(|n| n.parse().ok()).collect();
    tids.sort_unstable();
    tids.into_iter().filter_map(|tid| one(root, &format!("{folder}/{tid}"), tid)).collect()
}

fn one(root: &Root, folder: &str, tid: u32) -> Option<Thread> {
    let stat = root.parsed(&format!("{folder}/stat"), parse::task_stat::parse).into_known()?;
    Some(Thread {
        tid,
        affinity: affinity(root, &format!("{folder}/status")),
        last_cpu: Reading::Known(stat.last_cpu),
        migrations: migrations(root, &format!("{folder}/sched")),
        cpu_ticks: Reading::Known(stat.user_ticks.saturating_add(stat.system_ticks)),
        name: stat.name,
    })
}

fn affinity(root: &Root, path: &str) -> Reading<CpuSet> {
    reading(root.read(path)).and_then(|text| {
        let list = parse::proc_status::value(&text, "Cpus_allowed_list");
        list.and_then(|l| l.parse().ok()).map_or_else(
            || Reading::Absent(format!("{path}: no Cpus_allowed_list")),
            Reading::Known,
        )
    })
}

fn migrations(root: &Root, path: &str) -> Reading<u64> {
    match root.read(path) {
        Err(ReadError::Absent { .. }) => {
            Reading::Absent(format!("{path}: not there; the kernel needs CONFIG_SCHED_DEBUG"))
        }
        Err(e) => e.into_reading(),
        Ok(text) => parse::task_sched::migrations(&text)
            .map_or_else(|e| Reading::Absent(format!("{path}: {e}")), Reading::Known),
    }
}
