//! The names of the processes that lose time to interrupts.

use std::collections::BTreeMap;

use model::{Reading, watch::InterruptedTask};

use super::comms::Comms;

/// The most processes with a name lookup: those that lose most.
const ASKED: usize = 200;

/// Names as of the last interval: of a process that ended since, it is the only one.
#[derive(Debug, Default)]
pub struct Names(BTreeMap<u32, String>);

impl Names {
    /// Names the processes of these threads; the threads that lost most come first.
    pub fn give(&mut self, comms: &Comms, interrupted_tasks: &mut [InterruptedTask]) {
        self.by(interrupted_tasks, |pid| comms.of(pid));
    }

    fn by(
        &mut self,
        interrupted_tasks: &mut [InterruptedTask],
        comm: impl Fn(u32) -> Option<String>,
    ) {
        let main = |p: &&InterruptedTask| p.tid == p.pid;
        let mains: BTreeMap<u32, String> =
            interrupted_tasks.iter().filter(main).map(|p| (p.pid, p.name.clone())).collect();
        let mut names: BTreeMap<u32, Option<String>> = BTreeMap::new();
        for p in interrupted_tasks.iter_mut() {
            let asked = names.len() < ASKED;
            let name = names.entry(p.pid).or_insert_with(|| {
                let now = if asked { comm(p.pid) } else { None };
                now.or_else(|| mains.get(&p.pid).cloned()).or_else(|| self.0.get(&p.pid).cloned())
            });
            p.process = match name {
                Some(name) => Reading::Known(name.clone()),
                None => Reading::absent("the process had ended before it was asked for its name"),
            };
        }
        self.0 = names.into_iter().filter_map(|(pid, name)| Some((pid, name?))).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupted_task(pid: u32, tid: u32, name: &str) -> InterruptedTask {
        InterruptedTask {
            pid,
            process: Reading::default(),
            tid,
            name: name.into(),
            preempted_by_softirq_ns: 1,
            preempted_by_irq_ns: 0,
            own_softirq_ns: 0,
            softirqs: 1,
        }
    }

    fn given(names: &mut Names, mut of: Vec<InterruptedTask>, live: &[u32]) -> Vec<Option<String>> {
        names.by(&mut of, |pid| live.contains(&pid).then(|| format!("process {pid}")));
        of.into_iter().map(|p| p.process.into_known()).collect()
    }

    #[test]
    fn a_thread_has_its_process_s_name_beside_its_own() {
        let mut names = Names::default();
        let all = vec![
            interrupted_task(7, 9, "worker"),
            interrupted_task(8, 8, "main"),
            interrupted_task(6, 61, "gone"),
        ];
        let known = given(&mut names, all, &[7]);
        assert_eq!(known, [Some("process 7".to_owned()), Some("main".to_owned()), None]);
        // It ended: it has the name of the previous interval, once.
        assert_eq!(
            given(&mut names, vec![interrupted_task(7, 9, "worker")], &[]),
            [Some("process 7".to_owned())]
        );
        assert_eq!(given(&mut names, vec![], &[]), []);
        assert_eq!(given(&mut names, vec![interrupted_task(7, 9, "worker")], &[]), [None]);
    }
}
