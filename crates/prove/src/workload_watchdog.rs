//! Ends workloads whose maker was killed: a process apart that knows their process groups and cookies and
//! waits for the end of a pipe whose other end only we hold.

use std::{
    io::Write,
    os::{
        fd::{AsRawFd, RawFd},
        unix::process::CommandExt,
    },
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use crate::process_tag::{self, ProcessTag};

/// Its own life. Lines say which cookie the next group has (`=`), which group begins (`+`) and which has
/// ended (`-`); after the last line those that have not are asked to end, with all that hold their cookies, and
/// a second later made to; twice, for one may begin while the others are looked for.
const LIFE: &str = r#"trap '' HUP INT QUIT TERM
groups= cookie=
while read -r what group; do
    case $what in
    =) cookie=$group ;;
    +) groups="$groups $group:$cookie" ;;
    -) left=
       for g in $groups; do [ "${g%%:*}" = "$group" ] || left="$left $g"; done
       groups=$left ;;
    esac
done
[ -n "$groups" ] || exit 0
end() {
    for g in $groups; do
        kill -s "$1" -- "-${g%%:*}"
        [ -n "${g#*:}" ] || continue
        for e in $(grep -lF "NETWRIGHT_WORKLOAD=${g#*:}" /proc/[0-9]*/environ); do
            e=${e#/proc/}
            kill -s "$1" "${e%/environ}"
        done
    done
}
exec 2>/dev/null
end TERM
sleep 1
end KILL
end KILL"#;

/// One for this process, from its first workload on.
static WORKLOAD_WATCHDOG: Mutex<Option<Child>> = Mutex::new(None);

fn start() -> std::io::Result<Child> {
    let mut command = Command::new("sh");
    // A group of its own: what ends ours does not end it.
    command.args(["-c", LIFE]).current_dir("/").process_group(0).env_remove(process_tag::NAME);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Our end of its pipe; one that is gone is replaced.
fn pipe(workload_watchdog: &mut Option<Child>) -> std::io::Result<&mut ChildStdin> {
    if workload_watchdog.as_mut().is_none_or(|k| !matches!(k.try_wait(), Ok(None))) {
        *workload_watchdog = Some(start()?);
    }
    let none = || std::io::Error::other("it has no pipe");
    workload_watchdog.as_mut().and_then(|k| k.stdin.as_mut()).ok_or_else(none)
}

/// A group that is ended when we are killed, until this is dropped.
#[derive(Debug)]
pub(crate) struct WatchedGroup(u32);

impl WatchedGroup {
    /// Starts a command as the leader of a group of its own. The child says so itself before it becomes
    /// the command: there is no moment in which we could be killed and nobody knew of it.
    ///
    /// It and all that it starts have the cookie.
    ///
    /// **Errors**: it does not start, or nobody is there to end it.
    pub(crate) fn spawn(
        command: &mut Command,
        process_tag: &ProcessTag,
    ) -> std::io::Result<(Child, Self)> {
        let mut workload_watchdog =
            WORKLOAD_WATCHDOG.lock().unwrap_or_else(PoisonError::into_inner);
        let pipe = pipe(&mut workload_watchdog)?;
        pipe.write_all(format!("= {}\n", process_tag.value()).as_bytes())?;
        let pipe = pipe.as_raw_fd();
        command.process_group(0).env(process_tag::NAME, process_tag.value());
        // SAFETY: between fork and exec; only getpid(2) and write(2) are called, and nothing is allocated.
        unsafe { command.pre_exec(move || begins(pipe)) };
        let child = command.spawn()?;
        let kept = Self(child.id());
        Ok((child, kept))
    }
}

impl Drop for WatchedGroup {
    fn drop(&mut self) {
        let mut workload_watchdog =
            WORKLOAD_WATCHDOG.lock().unwrap_or_else(PoisonError::into_inner);
        // One that is gone knows of nobody; the next is told of those that begin.
        if let Some(pipe) = workload_watchdog.as_mut().and_then(|k| k.stdin.as_mut()) {
            let _ = pipe.write_all(format!("- {}\n", self.0).as_bytes());
        }
    }
}

/// `+ PID` of this process, in one write.
fn begins(pipe: RawFd) -> std::io::Result<()> {
    let mut line = [b' '; 16];
    let mut pid = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
    let mut at = line.len();
    let mut put = |byte: u8| {
        at = at.saturating_sub(1);
        if let Some(place) = line.get_mut(at) {
            *place = byte;
        }
    };
    put(b'\n');
    while pid > 0 {
        put(b'0' + (pid % 10) as u8);
        pid /= 10;
    }
    put(b' ');
    put(b'+');
    // SAFETY: the pointer and the length are those of our own bytes.
    let written = unsafe { libc::write(pipe, line.as_ptr().cast(), line.len()) };
    match usize::try_from(written) {
        Ok(n) if n == line.len() => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_child_tells_its_own_number() {
        let mut ends = [0; 2];
        // SAFETY: the pointer is to our own two numbers.
        assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
        begins(ends[1]).unwrap();
        let mut line = [0; 16];
        // SAFETY: the pointer and the length are those of our own bytes.
        assert_eq!(unsafe { libc::read(ends[0], line.as_mut_ptr().cast(), line.len()) }, 16);
        let said = std::str::from_utf8(&line).unwrap();
        assert_eq!(said.trim_start(), format!("+ {}\n", std::process::id()));
    }

    #[test]
    fn groups_that_have_not_ended_are_ended_with_their_maker() {
        let mut workload_watchdog = start().unwrap();
        let group = || {
            let mut command = Command::new("sh");
            // One that does not want to, with a child.
            command.args(["-c", "trap '' TERM; sleep 60 & sleep 60"]).process_group(0);
            command.spawn().unwrap()
        };
        let (mut kept, mut ended) = (group(), group());
        // A session of its own, which its cookie tells.
        let process_tag = ProcessTag::new();
        let mut apart = Command::new("setsid");
        apart
            .args(["sh", "-c", "trap '' TERM; sleep 60"])
            .env(process_tag::NAME, process_tag.value());
        let mut apart = apart.spawn().unwrap();
        let (of, none) = (process_tag.value(), "");
        let lines =
            format!("= {of}\n+ {}\n= {none}\n+ {}\n- {}\n", kept.id(), ended.id(), ended.id());
        workload_watchdog.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let until = Instant::now() + Duration::from_secs(30);
        while kept.try_wait().unwrap().is_none() || apart.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "it was left");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(workload_watchdog.wait().unwrap().code().is_some());
        assert!(ended.try_wait().unwrap().is_none(), "one that had ended was ended");
        // SAFETY: our own group, whose leader is not waited for yet.
        unsafe { libc::kill(-(ended.id() as i32), libc::SIGKILL) };
        ended.wait().unwrap();
    }
}
