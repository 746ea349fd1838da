//! Threads that each poll one NAPI instance, and their CPU time.

use std::collections::{BTreeMap, BTreeSet};

use model::Reading;

use super::interrupted_task::TaskTimes;
use crate::serving::process_ns;
use crate::{Root, facts, samples};

/// How the kernel names them: of a NIC, and of a CPU's backlog.
const NAMES: [&str; 2] = ["napi/", "backlog_napi/"];

/// The initial PID namespace's inode, `PROC_PID_INIT_INO` of the kernel.
const INITIAL: &str = "pid:[4026531836]";

/// The threads that are known.
#[derive(Debug)]
pub struct Threads {
    /// CPU time at the last look, by thread.
    last_ns: BTreeMap<u32, u64>,
    /// Tasks that are no such threads: they busy-poll.
    others: BTreeSet<u32>,
    /// Whether the kernel's numbers of threads are those of `/proc`.
    same_numbers: bool,
    /// Whether a task's time is without interrupts and softirqs as it is; asked when needed.
    apart: Option<bool>,
}

impl Threads {
    /// Those that there are, from now on.
    pub fn begin(root: &Root) -> Self {
        let threads = samples::kernel_threads(root, &NAMES);
        let last_ns =
            threads.iter().filter_map(|(tid, _)| Some((*tid, process_ns(*tid)?))).collect();
        let same_numbers = root.link("/proc/self/ns/pid").is_ok_and(|l| l == INITIAL);
        Self { last_ns, others: BTreeSet::new(), same_numbers, apart: None }
    }

    /// Whether such threads can be identified.
    ///
    /// # Errors
    /// Why not.
    pub fn reported(&self) -> Reading<()> {
        match self.same_numbers {
            true => Reading::Known(()),
            false => Reading::absent(
                "in a separate PID namespace this program cannot determine which threads poll",
            ),
        }
    }

    /// Time on a CPU since the last look of every thread, less the softirqs and interrupts that
    /// ran within. `pollers` polled outside softirqs; those of them that are no threads of the
    /// kernel are not in the result.
    pub fn look(
        &mut self,
        root: &Root,
        pollers: &BTreeSet<u32>,
        task_times: &TaskTimes,
    ) -> BTreeMap<u32, u64> {
        if !self.same_numbers {
            return BTreeMap::new();
        }
        for tid in pollers {
            if !self.last_ns.contains_key(tid) && !self.others.contains(tid) {
                self.find(root, *tid);
            }
        }
        let mut grown = BTreeMap::new();
        self.last_ns.retain(|tid, last| {
            let Some(now) = process_ns(*tid) else { return false };
            grown.insert(*tid, now.saturating_sub(*last));
            *last = now;
            true
        });
        // An id may be another's later.
        self.others.retain(|tid| pollers.contains(tid));
        if !grown.is_empty() && !self.apart(root) {
            for (tid, ns) in &mut grown {
                let within = task_times.softirqs_in(*tid) + task_times.interrupts_in(*tid);
                *ns = ns.saturating_sub(within);
            }
        }
        grown
    }

    /// A thread that was not there when watching began has all its time since.
    fn find(&mut self, root: &Root, tid: u32) {
        let name = root.word(&format!("/proc/{tid}/comm"));
        let is_one = name.known().is_some_and(|n| NAMES.iter().any(|b| n.starts_with(b)));
        match is_one {
            true => drop(self.last_ns.insert(tid, 0)),
            false => drop(self.others.insert(tid)),
        }
    }

    /// `CONFIG_IRQ_TIME_ACCOUNTING` takes both from a task's time.
    fn apart(&mut self, root: &Root) -> bool {
        *self.apart.get_or_insert_with(|| {
            let host = facts::host::read(root, &mut Vec::new());
            host.build.irq_time_accounting.get().unwrap_or(false)
        })
    }
}
