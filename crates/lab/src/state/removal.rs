//! Removes a lab's resources: namespaces and the processes in them, processes, cgroups.

use std::{fs, path::Path};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::{Resource, is_alive};
use crate::{LabError, tool};

/// Removes one resource; a missing one is no error.
pub(super) fn end(resource: &Resource) -> Result<(), LabError> {
    match resource {
        Resource::Namespace { name } => {
            if !Path::new("/run/netns").join(name).exists() {
                return Ok(());
            }
            end_inhabitants(name)?;
            tool::ip(&format!("netns del {name}")).map(drop)
        }
        Resource::Process { pid, start_ticks, what } => end_process(*pid, *start_ticks, what),
        Resource::Cgroup { path } => end_cgroup(path),
    }
}

fn process_id(text: &str) -> Option<Pid> {
    Pid::from_raw(text.trim().parse().ok()?)
}

/// Reaps a child of this process, which would stay a zombie.
fn reap(pid: Pid) {
    let _ = waitpid(Some(pid), WaitOptions::NOHANG);
}

/// Ends processes in our namespace, such as servers that a user started on the host.
fn end_inhabitants(name: &str) -> Result<(), LabError> {
    for attempt in 0..100 {
        let pids = tool::ip(&format!("netns pids {name}"))?;
        if pids.trim().is_empty() {
            return Ok(());
        }
        let signal = if attempt < 25 { Signal::TERM } else { Signal::KILL };
        for pid in pids.lines().filter_map(process_id) {
            let _ = kill_process(pid, signal);
            reap(pid);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Err(LabError::failed(format!("ending the processes in {name}"), "they do not end"))
}

fn end_process(pid: u32, ticks: u64, what: &str) -> Result<(), LabError> {
    for attempt in 0..200 {
        if !is_alive(pid, ticks) {
            return Ok(());
        }
        let signal = if attempt < 20 { Signal::TERM } else { Signal::KILL };
        if let Some(process) = process_id(&pid.to_string()) {
            // Its start time was checked just before.
            if attempt % 20 == 0 {
                let _ = kill_process(process, signal);
            }
            reap(process);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Err(LabError::failed(format!("ending {what} (pid {pid})"), "it does not end"))
}

/// Ends processes in our cgroup and removes it.
fn end_cgroup(path: &Path) -> Result<(), LabError> {
    for attempt in 0..100 {
        if !path.exists() {
            return Ok(());
        }
        let procs = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        for pid in procs.lines().filter_map(process_id) {
            let signal = if attempt < 25 { Signal::TERM } else { Signal::KILL };
            let _ = kill_process(pid, signal);
            reap(pid);
        }
        if fs::remove_dir(path).is_ok() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Err(LabError::failed(format!("removing {}", path.display()), "it stays busy"))
}
