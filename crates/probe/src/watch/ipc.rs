//! IPC, by CPU and of the followed processes.

use std::{collections::BTreeMap, io};

use model::{
    CpuId, Reading,
    watch::{Ipc, ProcessIpc},
};

use crate::{
    Root,
    perf::{self, CountTarget, Counts, Group},
};

/// Threads that are followed at most: each holds two descriptors.
const MOST_THREADS: usize = 400;

/// Counter groups by target, with the last reading of each.
#[derive(Debug)]
pub struct IpcPart {
    cpus: BTreeMap<CpuId, (Group, Counts)>,
    threads: BTreeMap<(u32, u32), (Group, Counts)>,
    pids: Vec<u32>,
    /// Why there are no counters, of CPUs and of threads.
    refused: [Reading<()>; 2],
}

#[derive(Debug)]
pub struct IpcReading {
    cpus: BTreeMap<CpuId, Reading<Ipc>>,
    refused: Reading<()>,
    /// Of the followed processes.
    pub processes: Reading<Vec<ProcessIpc>>,
}

impl IpcPart {
    pub fn begin(root: &Root, pids: &[u32]) -> Self {
        let mut part = Self {
            cpus: BTreeMap::new(),
            threads: BTreeMap::new(),
            pids: pids.to_vec(),
            refused: [Reading::Known(()), Reading::Known(())],
        };
        part.open(root);
        part
    }

    /// Opens what is new: CPUs that came online, threads that began.
    fn open(&mut self, root: &Root) {
        let paranoid = || root.number("/proc/sys/kernel/perf_event_paranoid").into_known();
        let online = crate::facts::topology::online(root).unwrap_or_default();
        self.cpus.retain(|cpu, _| online.contains(*cpu));
        let room = perf::room(online.iter().count() + MOST_THREADS);
        if online.iter().count() > room && self.refused[0].is_known() {
            self.cpus.clear();
            self.refused[0] = Reading::absent(
                "performance counters: this process may not hold two descriptors a CPU (ulimit -n)",
            );
        }
        for cpu in online.iter() {
            if self.cpus.contains_key(&cpu) || !self.refused[0].is_known() {
                continue;
            }
            match begun(CountTarget::Cpu(cpu)) {
                Ok(group) => drop(self.cpus.insert(cpu, group)),
                // It went offline meanwhile.
                Err(e) if e.raw_os_error() == Some(libc::ENODEV) => {}
                Err(e) => self.refused[0] = perf::why(&perf::rather(e), paranoid()),
            }
        }
        let live: Vec<(u32, u32)> = self.pids.iter().flat_map(|pid| tids(root, *pid)).collect();
        self.threads.retain(|of, _| live.contains(of));
        for of in live {
            let full = self.threads.len() >= MOST_THREADS.min(room.saturating_sub(self.cpus.len()));
            if self.threads.contains_key(&of) || full || !self.refused[1].is_known() {
                continue;
            }
            match begun(CountTarget::Thread(of.1)) {
                Ok(group) => drop(self.threads.insert(of, group)),
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                Err(e) => self.refused[1] = perf::why(&perf::rather(e), paranoid()),
            }
        }
    }

    /// What was counted since the last look.
    pub fn look(&mut self, root: &Root) -> IpcReading {
        let cpus = self.cpus.iter_mut().map(|(cpu, group)| {
            let ipc = match grown(group) {
                Ok(counts) => perf::ipc(&[counts]),
                Err(e) => perf::why(&e, None),
            };
            (*cpu, ipc)
        });
        let cpus = cpus.collect();
        let mut by_pid: BTreeMap<u32, Vec<Counts>> = BTreeMap::new();
        for ((pid, _), group) in &mut self.threads {
            by_pid.entry(*pid).or_default().extend(grown(group).ok());
        }
        let processes = match &self.refused[1] {
            _ if self.pids.is_empty() => Reading::Known(vec![]),
            Reading::Known(()) => Reading::Known(processes(root, &by_pid)),
            why => none(why),
        };
        self.open(root);
        IpcReading { cpus, refused: self.refused[0].clone(), processes }
    }
}

impl IpcReading {
    pub fn of(&self, cpu: CpuId) -> Reading<Ipc> {
        match (self.cpus.get(&cpu), &self.refused) {
            (Some(ipc), _) => ipc.clone(),
            (None, Reading::Known(())) => Reading::absent("this CPU was not online all along"),
            (None, why) => none(why),
        }
    }
}

fn processes(root: &Root, by_pid: &BTreeMap<u32, Vec<Counts>>) -> Vec<ProcessIpc> {
    let one = |(pid, counts): (&u32, &Vec<Counts>)| {
        let ipc = perf::ipc(counts).into_known()?;
        let name = root.word(&format!("/proc/{pid}/comm")).into_known().unwrap_or_default();
        Some(ProcessIpc { pid: *pid, name, ipc })
    };
    by_pid.iter().filter_map(one).collect()
}

fn tids(root: &Root, pid: u32) -> Vec<(u32, u32)> {
    // A process that is gone has no threads.
    let names = root.entries(&format!("/proc/{pid}/task")).unwrap_or_default();
    names.iter().filter_map(|n| Some((pid, n.parse().ok()?))).collect()
}

fn begun(of: CountTarget) -> io::Result<(Group, Counts)> {
    let group = Group::open(of)?;
    let counts = group.read()?;
    Ok((group, counts))
}

fn grown((group, last): &mut (Group, Counts)) -> io::Result<Counts> {
    let now = group.read()?;
    let grown = now.since(last);
    *last = now;
    Ok(grown)
}

fn none<T>(why: &Reading<()>) -> Reading<T> {
    match why {
        Reading::Denied(why) => Reading::Denied(why.clone()),
        Reading::Absent(why) => Reading::Absent(why.clone()),
        Reading::Known(()) => Reading::absent("not counted"),
    }
}
