//! Counters of threads: of the chosen processes, and of every ksoftirqd.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use model::{Bytes, CpuId, Reading};
use parse::schedstat::Schedstat;

use super::source::Source;
use crate::{Root, error::reading};

/// One thread's counters at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct RawThread {
    pub name: String,
    /// When it started; distinguishes a reused id.
    pub start_ticks: u64,
    /// Time in user mode, ticks.
    pub user_ticks: u64,
    /// Time in the kernel, ticks.
    pub system_ticks: u64,
    /// Where it ran last.
    pub last_cpu: CpuId,
    /// Time on and waiting for CPUs.
    pub schedstat: Reading<Schedstat>,
    pub migrations: Reading<u64>,
    /// Gave up the CPU by itself.
    pub voluntary_switches: Reading<u64>,
    pub involuntary_switches: Reading<u64>,
    /// Resident memory of its process.
    pub rss_bytes: Reading<Bytes>,
}

/// Every thread of `pids` and every ksoftirqd, by process and thread id.
pub fn read(root: &Root, pids: &[u32]) -> BTreeMap<(u32, u32), RawThread> {
    let mut threads = BTreeMap::new();
    let ksoftirqds = kernel_threads(root, &["ksoftirqd/"]).into_iter().map(|(pid, _)| pid);
    for pid in ksoftirqds.chain(pids.iter().copied()) {
        let folder = format!("/proc/{pid}/task");
        // A process that is gone has no threads; the facts say that it was asked for.
        for tid in ids(&root.entries(&folder).unwrap_or_default()) {
            if let Some(thread) = one(root, &format!("{folder}/{tid}")) {
                threads.insert((pid, tid), thread);
            }
        }
    }
    threads
}

/// What is read of a thread, in its folder.
pub(super) const FILES: [&str; 4] = ["stat", "status", "schedstat", "sched"];

/// `None` when it ended meanwhile.
pub(super) fn one(from: &impl Source, folder: &str) -> Option<RawThread> {
    let stat = from.through(&format!("{folder}/stat"), parse::task_stat::parse).into_known()?;
    let path = format!("{folder}/status");
    let status = reading(from.bytes(&path));
    let line = |key: &str, parser: fn(&str) -> Option<u64>| {
        status.as_ref().and_then(|text| {
            let value = parse::proc_status::value(text, key).and_then(parser);
            value.map_or_else(|| Reading::Absent(format!("{path}: no {key}")), Reading::Known)
        })
    };
    Some(RawThread {
        name: stat.name,
        start_ticks: stat.start_ticks,
        user_ticks: stat.user_ticks,
        system_ticks: stat.system_ticks,
        last_cpu: stat.last_cpu,
        schedstat: from.through(&format!("{folder}/schedstat"), parse::schedstat::parse),
        migrations: from.through(&format!("{folder}/sched"), parse::task_sched::migrations),
        voluntary_switches: line("voluntary_ctxt_switches", |v| v.parse().ok()),
        involuntary_switches: line("nonvoluntary_ctxt_switches", |v| v.parse().ok()),
        rss_bytes: line("VmRSS", kib).map(Bytes),
    })
}

/// `13824 kB` in bytes.
fn kib(value: &str) -> Option<u64> {
    value.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Every ksoftirqd by its CPU. **Source**: the threads' names.
pub fn ksoftirqd_by_cpu(root: &Root) -> Vec<(CpuId, u32)> {
    let of = |(pid, name): (u32, String)| {
        Some((CpuId(name.strip_prefix("ksoftirqd/")?.parse().ok()?), pid))
    };
    kernel_threads(root, &["ksoftirqd/"]).into_iter().filter_map(of).collect()
}

/// Children of kthreadd with names that begin like this. A pid namespace has no kernel threads: its
/// pid 2 is an arbitrary process.
pub fn kernel_threads(root: &Root, begin: &[&str]) -> Vec<(u32, String)> {
    if root.word("/proc/2/comm").known().map(String::as_str) != Some("kthreadd") {
        return Vec::new();
    }
    // Without CONFIG_PROC_CHILDREN every process must be asked.
    let candidates: Vec<u32> = match root.word("/proc/2/task/2/children") {
        Reading::Known(text) => {
            text.split_ascii_whitespace().filter_map(|w| w.parse().ok()).collect()
        }
        _ => ids(&root.entries("/proc").unwrap_or_default()),
    };
    let name = |pid: u32| root.word(&format!("/proc/{pid}/comm")).into_known();
    if !root.is_live() || root.is_recorded() {
        let mut once = ThreadNames::new();
        return once.of(&candidates, begin, name);
    }
    LIVE_NAMES.lock().unwrap_or_else(PoisonError::into_inner).of(&candidates, begin, name)
}

/// The names of this host's kernel threads: most of the opens of an interval of `watch`, if all were
/// read each time.
static LIVE_NAMES: Mutex<ThreadNames> = Mutex::new(ThreadNames::new());

/// Names by thread id, of those that were there at the last look. A thread keeps the beginning of its
/// name. An id goes to another thread only after all others were used, not between two looks.
struct ThreadNames(BTreeMap<u32, String>);

impl ThreadNames {
    const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Those of `candidates` with a name that begins like this; `name` reads one that is not known.
    fn of(
        &mut self,
        candidates: &[u32],
        begin: &[&str],
        name: impl Fn(u32) -> Option<String>,
    ) -> Vec<(u32, String)> {
        let mut before = std::mem::take(&mut self.0);
        let known = |pid: &u32| Some((*pid, before.remove(pid).or_else(|| name(*pid))?));
        self.0 = candidates.iter().filter_map(known).collect();
        let wanted = |(_, name): &(&u32, &String)| begin.iter().any(|b| name.starts_with(b));
        let found = self.0.iter().filter(wanted).map(|(pid, name)| (*pid, name.clone())).collect();
        // Between its start and its naming it has its parent's name.
        self.0.retain(|_, name| name != "kthreadd");
        found
    }
}

/// The names that are ids, ascending by number.
fn ids(names: &[String]) -> Vec<u32> {
    let mut ids: Vec<u32> = names.iter().filter_map(|n| n.parse().ok()).collect();
    ids.sort_unstable();
    ids
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_name_of_a_kernel_thread_is_read_once() {
        let asked = RefCell::new(vec![]);
        let mut names = ThreadNames::new();
        let mut look = |candidates: &[u32], third: &str| {
            asked.borrow_mut().clear();
            let found = names.of(candidates, &["ksoftirqd/"], |pid| {
                asked.borrow_mut().push(pid);
                match pid {
                    3 => Some(third.to_owned()),
                    14 => Some("ksoftirqd/0".to_owned()),
                    15 => Some("kworker/0:1-events".to_owned()),
                    _ => None,
                }
            });
            (found.into_iter().map(|(pid, _)| pid).collect::<Vec<_>>(), asked.borrow().clone())
        };
        assert_eq!(look(&[3, 14, 15, 99], "kthreadd"), (vec![14], vec![3, 14, 15, 99]));
        assert_eq!(
            look(&[3, 14, 15], "ksoftirqd/1"),
            (vec![3, 14], vec![3]),
            "it has its name now"
        );
        assert_eq!(look(&[3, 15], "ksoftirqd/1"), (vec![3], vec![]));
        assert_eq!(look(&[3, 14, 15], ""), (vec![3, 14], vec![14]), "an id that came again");
    }
}
