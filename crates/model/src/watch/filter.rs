//! The filter by process, NIC and CPU for the text of an interval.

use super::WatchInterval;
use crate::{CpuSet, Reading, samples::ConnectionSample};

/// What is kept; an empty part keeps everything of its kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchFilter {
    pub nics: Vec<String>,
    pub cpus: Option<CpuSet>,
    pub pids: Vec<u32>,
}

impl WatchFilter {
    /// Whether it keeps everything.
    pub fn is_empty(&self) -> bool {
        self.nics.is_empty() && self.cpus.is_none() && self.pids.is_empty()
    }

    /// Leaves out what was not asked for. What the observer costs, and counters of the whole
    /// host (protocols, sockets), stay: they belong to no CPU, NIC or process.
    pub fn apply(&self, interval: &mut WatchInterval) {
        if let Some(cpus) = &self.cpus {
            keep_cpus(cpus, interval);
        }
        if !self.nics.is_empty() {
            keep_nics(&self.nics, interval);
        }
        if !self.pids.is_empty() {
            keep_pids(&self.pids, interval);
        }
    }
}

fn retain<T>(list: &mut Reading<Vec<T>>, keep: impl FnMut(&T) -> bool) {
    if let Reading::Known(list) = list {
        list.retain(keep);
    }
}

fn keep_cpus(cpus: &CpuSet, interval: &mut WatchInterval) {
    interval.cpus.retain(|c| cpus.contains(c.id));
    if let Reading::Known(all) = &mut interval.napi {
        for napi in all.iter_mut() {
            napi.cpus.retain(|c| cpus.contains(c.cpu));
        }
        all.retain(|n| !n.cpus.is_empty());
    }
    retain(&mut interval.migrated_threads, |m| {
        m.transitions.iter().any(|w| cpus.contains(w.from) || cpus.contains(w.to))
    });
    if let Reading::Known(samples) = &mut interval.samples {
        samples.cpus.retain(|c| cpus.contains(c.id));
        retain(&mut samples.irqs, |i| i.cpus.iter().any(|c| cpus.contains(c.cpu)));
        samples.threads.retain(|t| t.on_cpus.iter().any(|c| cpus.contains(*c)));
    }
}

fn keep_nics(nics: &[String], interval: &mut WatchInterval) {
    let asked = |name: &String| nics.contains(name);
    retain(&mut interval.napi, |n| n.nic.known().is_some_and(asked));
    retain(&mut interval.drops, |d| d.nic.known().is_some_and(asked));
    if let Reading::Known(samples) = &mut interval.samples {
        samples.nics.retain(|n| asked(&n.name));
    }
}

fn keep_pids(pids: &[u32], interval: &mut WatchInterval) {
    let asked = |pid: u32| pids.contains(&pid);
    retain(&mut interval.interrupted_tasks, |p| asked(p.pid));
    retain(&mut interval.waits, |w| asked(w.pid));
    retain(&mut interval.migrated_threads, |m| m.pid.get().is_some_and(asked));
    retain(&mut interval.messages, |m| asked(m.pid));
    retain(&mut interval.process_ipc, |p| asked(p.pid));
    interval.ended_processes.retain(|p| asked(p.pid));
    if let Reading::Known(samples) = &mut interval.samples {
        samples.threads.retain(|t| asked(t.pid));
        retain(&mut samples.connections, |c| holds(c, asked));
    }
}

impl WatchInterval {
    /// Whether anything in it is of this process.
    pub fn tells_of(&self, pid: u32) -> bool {
        let samples = self.samples.known();
        any(&self.interrupted_tasks, |p| p.pid == pid)
            || any(&self.waits, |w| w.pid == pid)
            || any(&self.migrated_threads, |m| m.pid.known() == Some(&pid))
            || any(&self.messages, |m| m.pid == pid)
            || any(&self.process_ipc, |p| p.pid == pid)
            || self.ended_processes.iter().any(|p| p.pid == pid)
            || samples.is_some_and(|s| {
                s.threads.iter().any(|t| t.pid == pid)
                    || any(&s.connections, |c| holds(c, |p| p == pid))
            })
    }
}

/// Whether a process of this kind holds the connection.
fn holds(c: &ConnectionSample, is: impl Fn(u32) -> bool) -> bool {
    c.owners.known().is_some_and(|all| all.iter().any(|o| is(o.pid)))
}

fn any<T>(items: &Reading<Vec<T>>, is: impl FnMut(&T) -> bool) -> bool {
    items.known().is_some_and(|all| all.iter().any(is))
}
