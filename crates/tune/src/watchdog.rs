//! The watchdog: a separate process that restores values when the process that set them cannot. It
//! does not depend on that process, its terminal or its session.
//!
//! A watchdog with a deadline ([`deadline`]) undoes a change set unless the operator confirms it in
//! time. A watchdog on a pipe ([`maker`]) waits until the process that set the values ends.

pub mod deadline;
pub mod maker;

use std::{
    io::{self, BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{ChildStdin, Command, Stdio},
    sync::OnceLock,
};

static PROGRAM: OnceLock<fn() -> Command> = OnceLock::new();

/// Sets the command that starts a watchdog if the running program is not `netwright`: for tests.
pub fn started_by(program: fn() -> Command) {
    let _ = PROGRAM.set(program);
}

/// Our own program as a watchdog. The link leads to the running program even if its file was
/// replaced.
fn program() -> Command {
    PROGRAM.get().map_or_else(
        || {
            let mut command = Command::new("/proc/self/exe");
            command.args(["tune", "watchdog"]);
            command
        },
        |program| program(),
    )
}

/// Starts a watchdog in a separate session, reparented to init. Returns its PID and start time once
/// it reports ready, and its standard input if it has a pipe.
///
/// # Errors
/// It does not start, or ends at once.
fn start(command: &mut Command) -> io::Result<((u32, u64), Option<ChildStdin>)> {
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    // SAFETY: between fork and exec; only calls that are safe after a fork.
    unsafe {
        command.pre_exec(|| {
            if libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            // The second fork: not a session leader, so it never gets a terminal; not our child, so
            // we need not wait for it.
            match libc::fork() {
                0 => Ok(()),
                child if child > 0 => libc::_exit(0),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
    let mut first = command.spawn()?;
    let (said, pipe) = (first.stdout.take(), first.stdin.take());
    first.wait()?;
    let lines = said.map(|s| BufReader::new(s).lines()).into_iter().flatten();
    let ready = |line: String| {
        let (pid, start) = line.strip_prefix("ready ")?.split_once(' ')?;
        Some((pid.parse().ok()?, start.parse().ok()?))
    };
    let process = lines.map_while(Result::ok).find_map(ready);
    Ok((process.ok_or_else(|| io::Error::other("it ended at once"))?, pipe))
}
