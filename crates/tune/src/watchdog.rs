//! The watchdog: a process apart from everything else that puts things back when their maker cannot. It
//! needs nothing of the maker: not the terminal, not the session, not the process.
//!
//! One that has a deadline ([`deadline`]) undoes a change set unless somebody confirms it in time. One that
//! has its maker's pipe ([`maker`]) waits for the maker's end.

pub mod deadline;
pub mod maker;

use std::{
    io::{self, BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{ChildStdin, Command, Stdio},
    sync::OnceLock,
};

static PROGRAM: OnceLock<fn() -> Command> = OnceLock::new();

/// Says by which command a watchdog is started where the running program is not `netwright`: for tests.
pub fn started_by(program: fn() -> Command) {
    let _ = PROGRAM.set(program);
}

/// Our own program as a watchdog. The link is the running program itself, also when its file was replaced
/// since.
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

/// Starts one in a session of its own, without a parent that waits for it; number and start of the process,
/// once it says that it is ready, and its standard input where it has a pipe.
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
            // The second fork: no session leader, so no terminal ever again, and no child of
            // ours, so nobody's to wait for.
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
