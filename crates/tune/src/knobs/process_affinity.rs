//! `process.PID.affinity`: the CPUs on which a process's threads may run, including threads it
//! starts later (a thread inherits its creator's affinity).

use std::collections::BTreeMap;

use model::{CpuSet, Reading, knob::Target};

use crate::{
    Host, TuneError,
    knob::{Kind, Knob, PlanContext, Refusal, Undone, cannot, ended, usage},
    need::Need,
    phase::Phase,
};

/// **Source**: `sched_setaffinity(2)`; read from `/proc/PID/task/*/status`. An exact value is a
/// line for each thread: id, start in ticks since boot, CPUs.
pub const KIND: Kind = Kind {
    name: "process_affinity",
    spelling: "process.PID.affinity=CPUS",
    parse: |target| match target {
        Target::Process(pid, "affinity") if pid > 0 => Some(Box::new(ProcessAffinity { pid })),
        _ => None,
    },
};

struct ProcessAffinity {
    pid: u32,
}

/// Passes over the threads, since new ones may start meanwhile; a process that starts threads
/// faster is given up.
const PASSES: u32 = 20;

/// Affinity by thread number and start time: numbers are reused.
type Threads = BTreeMap<(u32, u64), CpuSet>;

fn threads(host: &Host, pid: u32) -> Result<Threads, TuneError> {
    let folder = format!("/proc/{pid}/task");
    let tids = host.root().entries(&folder).map_err(|e| TuneError::read(&e))?;
    let mut all = Threads::new();
    for tid in tids.iter().filter_map(|t| t.parse::<u32>().ok()) {
        let start = host.start_ticks(&format!("{pid}/task/{tid}"));
        let status = host.text(&format!("{folder}/{tid}/status"));
        let (start, status) = match start.and_then(|start| Ok((start, status?))) {
            // The thread ended meanwhile.
            Err(TuneError::Absent(_)) => continue,
            read => read?,
        };
        if let Some(cpus) = allowed(&status) {
            all.insert((tid, start), cpus);
        }
    }
    if all.is_empty() {
        return Err(TuneError::Absent(format!("process {pid}: not there")));
    }
    Ok(all)
}

fn allowed(status: &str) -> Option<CpuSet> {
    status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?.trim().parse().ok()
}

fn text(threads: &Threads) -> String {
    threads.iter().map(|((tid, start), cpus)| format!("{tid} {start} {cpus}\n")).collect()
}

fn parsed(exact: &str) -> Threads {
    let line = |l: &str| {
        let mut words = l.split(' ');
        let id = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((id, words.next()?.parse().ok()?))
    };
    exact.lines().filter_map(line).collect()
}

/// Sets the affinity of every thread for which `to` returns one, until a pass changes none.
fn move_all(
    host: &Host,
    pid: u32,
    to: impl Fn((u32, u64), &CpuSet) -> Option<CpuSet>,
) -> Result<(), TuneError> {
    for _ in 0..PASSES {
        let mut moved = false;
        for (id, now) in threads(host, pid)? {
            let Some(wanted) = to(id, &now).filter(|w| *w != now) else { continue };
            match host.set_affinity(id.0, &wanted) {
                Ok(()) => moved = true,
                Err(TuneError::Absent(_)) => {}
                Err(e) => return Err(e),
            }
        }
        if !moved {
            return Ok(());
        }
    }
    Ok(())
}

impl Knob for ProcessAffinity {
    fn target(&self) -> Target<'_> {
        Target::Process(self.pid, "affinity")
    }

    fn phase(&self) -> Phase {
        Phase::Process
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        threads(host, self.pid).map(|t| text(&t))
    }

    /// The distinct CPU sets; text that is no list of threads is a CPU set already.
    fn show(&self, exact: &str) -> String {
        let threads = parsed(exact);
        if threads.is_empty() {
            return exact.trim().to_owned();
        }
        let mut sets: Vec<String> = threads.values().map(ToString::to_string).collect();
        sets.sort();
        sets.dedup();
        sets.join(" and ")
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let cpus = context.cpus(wanted)?;
        if cpus.is_empty() {
            return usage("a process needs a CPU");
        }
        context.online(&cpus)?;
        let pid = self.pid;
        let process = context.facts.processes.iter().find(|p| p.pid == pid);
        if let Some(Reading::Known(allowed)) = process.map(|p| &p.cpuset_cpus)
            && !allowed.is_empty()
            && !cpus.is_subset(allowed)
        {
            let beyond = cpus.difference(allowed);
            return cannot(format!("its cpuset has CPUs {allowed}: {beyond} would not take hold"));
        }
        Ok(cpus.to_string())
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::Place(self.pid)]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let wanted: CpuSet = value.parse().map_err(|_| {
            TuneError::Usage(format!("{}: {value:?} is no list of CPUs", self.target()))
        })?;
        move_all(host, self.pid, |_, _| Some(wanted.clone()))
    }

    /// Threads that ended need nothing. Threads started since get the first thread's old CPUs, if
    /// they still run on the CPUs that we set or on the first thread's current ones.
    fn undo(&self, host: &Host, old: &str, written: &str) -> Result<Undone, TuneError> {
        let saved = parsed(old);
        let pid = self.pid;
        if let Some(why) = self.lost(host, old) {
            return Ok(Undone::Lost(why));
        }
        let first = saved.iter().find(|(id, _)| id.0 == pid).map(|(_, cpus)| cpus.clone());
        let firsts = || threads(host, pid).ok()?.into_iter().find(|(id, _)| id.0 == pid);
        let inherited = [written.parse::<CpuSet>().ok(), firsts().map(|(_, cpus)| cpus)];
        let to = |id: (u32, u64), now: &CpuSet| match saved.get(&id) {
            Some(cpus) => Some(cpus.clone()),
            None => first.clone().filter(|_| inherited.iter().flatten().any(|cpus| cpus == now)),
        };
        match move_all(host, pid, to) {
            Err(TuneError::Absent(_)) => return Ok(Undone::Lost(ended(pid))),
            other => other?,
        }
        let back = threads(host, pid)?;
        for (id, cpus) in &saved {
            if let Some(now) = back.get(id).filter(|now| *now != cpus) {
                return Err(TuneError::Environment(format!(
                    "{}: thread {} ran on {cpus}, and after putting it back runs on {now}",
                    self.target(),
                    id.0
                )));
            }
        }
        Ok(Undone::Restored(text(&back)))
    }

    fn lost(&self, host: &Host, old: &str) -> Option<String> {
        let (saved, pid) = (parsed(old), self.pid);
        match threads(host, pid) {
            Err(TuneError::Absent(_)) => Some(ended(pid)),
            // The first thread identifies the process.
            Ok(now) => {
                let same = now.keys().any(|id| id.0 == pid && saved.contains_key(id));
                (!same).then(|| format!("process {pid} ended, and another one has its number"))
            }
            Err(_) => None,
        }
    }

    fn undo_text(&self) -> String {
        "each thread is given its own old CPUs; threads started since, the first thread's".into()
    }

    fn sets(&self) -> &'static str {
        "process affinity"
    }

    fn owner(&self, context: &PlanContext<'_>) -> String {
        let pid = self.pid;
        let unit =
            context.facts.processes.iter().find(|p| p.pid == pid).and_then(|p| p.unit.known());
        unit.map_or(String::new(), |u| format!("systemd unit {u} (CPUAffinity= at its next start)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_value_is_threads_and_shows_as_sets() {
        let exact = "10 77 0-1\n11 78 0-1\n12 80 3\n";
        assert_eq!(text(&parsed(exact)), exact);
        assert_eq!(ProcessAffinity { pid: 10 }.show(exact), "0-1 and 3");
        assert_eq!(ProcessAffinity { pid: 10 }.show("0-1"), "0-1");
        assert!(ProcessAffinity { pid: 10 }.verify("0-1", "10 77 0-1\n11 78 0-1\n"));
        assert!(!ProcessAffinity { pid: 10 }.verify("0-1", exact));
    }
}
