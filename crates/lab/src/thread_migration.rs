//! Moves containers' threads between CPUs constantly: the problem of the preset `migration`, which
//! a scheduler with two CPUs does not create by itself.
//!
//! Every 4 ms each thread is moved to the next CPU by its affinity, like a scheduler that balances
//! too much. Containers move in step, each with an offset drawn anew every second: two of them
//! share a CPU in some seconds and not in others. A cpuset that excludes the CPU wins, since the
//! kernel refuses an affinity outside it.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

use crate::{
    LabError,
    state::{Lab, NodeAccess},
    tool,
};

/// Interval between two moves.
const STEP: Duration = Duration::from_millis(4);
/// Number of moves between two draws of offsets.
const ROUND: u64 = 250;

/// Starts the process that migrates threads, for all containers of a lab.
///
/// # Errors
/// This program cannot be started again.
pub fn start(lab: &mut Lab) -> Result<(), LabError> {
    let failed = |e| LabError::failed("starting what moves the threads", e);
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = tool::command_after_release(&program.to_string_lossy());
    command.args(["lab", "wander"]);
    for host in &lab.state.hosts {
        if let NodeAccess::Namespace { cgroups, .. } = &host.reach {
            // The first cgroup is that of the cpuset controller.
            command.args(cgroups.first());
        }
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    lab.release(&mut child, "what moves the containers' threads")
}

/// Moves the threads of these cgroups until killed.
///
/// # Errors
/// The CPUs of this process cannot be read.
pub fn run(folders: &[PathBuf]) -> Result<(), LabError> {
    let cpus = own_cpus().map_err(|e| LabError::failed("reading the CPUs", e))?;
    // Raises the priority, to be on time despite competing tasks; without the privilege it stays as
    // it is.
    let _ = rustix::process::setpriority_process(None, -15);
    let mut drawn = u64::from(std::process::id());
    let mut offsets: Vec<usize> = vec![0; folders.len()];
    for step in 0u64.. {
        if step % ROUND == 0 {
            offsets.iter_mut().for_each(|o| *o = draw(&mut drawn));
        }
        for (folder, offset) in folders.iter().zip(&offsets) {
            let at = (step as usize).wrapping_add(*offset) % cpus.len().max(1);
            if let Some(cpu) = cpus.get(at) {
                threads(folder).into_iter().for_each(|tid| send(tid, *cpu));
            }
        }
        std::thread::sleep(STEP);
    }
    Ok(())
}

/// A random number by SplitMix64 (Steele, Lea and Flood, 2014).
fn draw(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) as usize
}

/// Threads of a cgroup: from `cgroup.threads`, or `tasks` in v1.
fn threads(folder: &Path) -> Vec<i32> {
    let text = fs::read_to_string(folder.join("tasks"))
        .or_else(|_| fs::read_to_string(folder.join("cgroup.threads")))
        .unwrap_or_default();
    text.lines().filter_map(|l| l.parse().ok()).collect()
}

/// The CPUs that this process may run on.
fn own_cpus() -> std::io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&c| set.is_set(c)).collect())
}

/// A thread that has ended, or may not run there, is left as it is.
fn send(tid: i32, cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    let _ = sched_setaffinity(Pid::from_raw(tid), &set);
}
