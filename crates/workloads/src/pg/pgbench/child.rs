//! Runs the pgbench process: starts it, waits, ends it with us, and reads its CPU time.

use std::{
    fs::File,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use traffic::{Error, ErrorContext, Result, net::now_ns};

/// Time between two looks at whether pgbench ended.
const LOOK: Duration = Duration::from_millis(5);
/// How long it may take to end after SIGINT, before SIGKILL.
const ENDING_NS: u64 = 2_000_000_000;

#[derive(Debug, Clone, Copy)]
pub struct Over {
    pub status: ExitStatus,
    /// Whether we ended it.
    pub by_us: bool,
    pub user_ns: u64,
    pub system_ns: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

/// Runs it until it ends, or until `enough` returns true.
///
/// # Errors
/// It cannot be started.
pub fn run(mut command: Command, out: File, err: File, enough: impl Fn() -> bool) -> Result<Over> {
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    // A separate process group: Ctrl-C reaches only us, and we signal pgbench as needed.
    command.process_group(0);
    // SAFETY: between fork and exec nothing but system calls are made.
    unsafe { command.pre_exec(begins) };
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command.spawn().map_err(|e| Error::io(format!("{name} does not start"), &e))?;
    let pid = libc::pid_t::try_from(child.id()).unwrap_or(-1);
    let (mut asked_ns, mut by_us) = (0, false);
    loop {
        if let Some(over) = ended(pid, by_us).doing(|| name.clone())? {
            return Ok(over);
        }
        if enough() {
            let signal = match asked_ns {
                0 => Some(Signal::INT),
                then if now_ns().saturating_sub(then) > ENDING_NS => Some(Signal::KILL),
                _ => None,
            };
            if let Some(signal) = signal {
                // Not reaped yet, so its PID cannot be reused.
                let _ = kill_process(Pid::from_child(&child), signal);
                (asked_ns, by_us) = (now_ns(), true);
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// Runs between fork and exec.
fn begins() -> std::io::Result<()> {
    // SAFETY: system calls that touch nothing but this process, which is the child.
    unsafe {
        // pgbench ends when the thread that waits for it ends.
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        // A shell's `&` makes us ignore SIGINT; a child that inherited this could not be
        // interrupted.
        for signal in [libc::SIGINT, libc::SIGTERM] {
            if libc::signal(signal, libc::SIG_DFL) == libc::SIG_ERR {
                return Err(std::io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Whether it has ended, with its CPU time.
fn ended(pid: libc::pid_t, by_us: bool) -> std::io::Result<Option<Over>> {
    let mut status = 0;
    // SAFETY: a zeroed record is valid, and the kernel fills both.
    let (got, used) = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        (libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut used), used)
    };
    match got {
        0 => return Ok(None),
        n if n == pid => {}
        _ => {
            let e = std::io::Error::last_os_error();
            return if e.kind() == std::io::ErrorKind::Interrupted { Ok(None) } else { Err(e) };
        }
    }
    let ns = |t: libc::timeval| {
        let (s, us) = (u64::try_from(t.tv_sec), u64::try_from(t.tv_usec));
        s.unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(us.unwrap_or(0) * 1000)
    };
    let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
    Ok(Some(Over {
        status: ExitStatus::from_raw(status),
        by_us,
        user_ns: ns(used.ru_utime),
        system_ns: ns(used.ru_stime),
        voluntary_switches: count(used.ru_nvcsw),
        involuntary_switches: count(used.ru_nivcsw),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_inherited_an_ignored_sigint_is_ended_by_it() {
        let mut command = Command::new("sleep");
        command.arg("60");
        // SAFETY: one system call between fork and exec. It comes before what `run` adds.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_IGN);
                Ok(())
            });
        }
        let null = || File::options().write(true).open("/dev/null").unwrap();
        let over = run(command, null(), null(), || true).unwrap();
        assert_eq!((over.status.signal(), over.by_us), (Some(libc::SIGINT), true));
    }
}
