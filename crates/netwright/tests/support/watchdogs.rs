//! Finds, stops or kills watchdogs.

use std::{fs, path::Path};

/// The watchdogs that hold the pipe of this process.
pub fn watchdogs_of(maker: u32) -> Vec<i32> {
    watchdogs(&format!("watchdog\0--maker-pid\0{maker}\0"))
}

/// The watchdogs with a deadline of the journals in this folder.
pub fn watchdogs_at(state: &Path) -> Vec<i32> {
    watchdogs(&format!("--state-dir\0{}\0", state.display()))
}

/// The processes whose command line has this.
fn watchdogs(wanted: &str) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains(wanted))
    })
    .collect()
}

/// Kills its only watchdog, so that the next command must restore the values.
pub fn kill_watchdog_of(maker: u32) {
    let all = watchdogs_of(maker);
    assert_eq!(all.len(), 1, "{all:?}");
    // SAFETY: a process that our own child started and that waits for its end.
    assert_eq!(unsafe { libc::kill(all[0], libc::SIGKILL) }, 0);
}

/// Whether a process holds an flock(2) lock, and does not wait for one.
pub fn has_lock(pid: u32) -> bool {
    let (pid, all) = (pid.to_string(), fs::read_to_string("/proc/locks").unwrap());
    all.lines().any(|l| l.contains("FLOCK") && !l.contains("->") && l.split(' ').any(|w| w == pid))
}
