//! Runs a workload or a command within a time limit: its output, exit code, duration and CPU time.

use std::{
    fmt,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tune::{
    process_tag::{Holder, ProcessTag},
    watchdog::maker::WatchedGroup,
};

use crate::{pipe_reader::PipeReader, workload::Workload};

/// How long output is still accepted after the workload ended: processes that it started may write.
const GRACE: Duration = Duration::from_millis(500);

/// How long the workload's other processes may take to end after they were killed.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a command that sets or undoes a level may take.
pub(crate) const SET_PATIENCE: Duration = Duration::from_secs(60);

/// How often the wait looks for the end of a process.
const LOOK: Duration = Duration::from_millis(2);

/// The output and cost of one run.
#[derive(Debug)]
pub(crate) struct EndedRun {
    pub(crate) said: String,
    pub(crate) exit_code: i32,
    pub(crate) took: Duration,
    /// CPU time and context switches of the command and of the children that it waited for.
    pub(crate) usage: ChildUsage,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChildUsage {
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
}

impl ChildUsage {
    pub(crate) fn cpu_s(&self) -> f64 {
        (self.user_ns + self.system_ns) as f64 / 1e9
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(before.user_ns),
            system_ns: self.system_ns.saturating_sub(before.system_ns),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}

/// Why a run has no output.
#[derive(Debug)]
pub(crate) enum RunFailure {
    /// The operator interrupted it.
    Stopped,
    /// It did not end within this time and was killed.
    TooLong(Duration),
    /// What happened, as the end of a line that begins with the command.
    Failed(String),
}

impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("was ended"),
            Self::TooLong(time) => write!(f, "did not end within {}", in_seconds(*time)),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

/// A duration for people, to a tenth of a second: `4.2 s`.
pub(crate) fn in_seconds(time: Duration) -> String {
    format!("{} s", (time.as_secs_f64() * 10.0).round() / 10.0)
}

/// Runs a workload. Its standard error appears only in the message of a failure.
pub(crate) fn run(
    ours: &Path,
    workload: &Workload,
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<(EndedRun, String), RunFailure> {
    #[cfg(test)]
    tune::watchdog::started_by(tests::watchdog);
    let mut command = match workload {
        Workload::Ours(words) => {
            let mut command = Command::new(ours);
            command.args(words);
            command
        }
        Workload::Shell(line) => shell(line),
    };
    // Its runs stand in the experiment's own document.
    command.env("NETWRIGHT_STORE", "off");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let began = Instant::now();
    let before = children();
    // A process group of its own: Ctrl-C reaches us alone, and we then end the whole group.
    let process_tag = ProcessTag::unique();
    let (mut child, kept) = WatchedGroup::spawn(&mut command, &process_tag)
        .map_err(|e| RunFailure::Failed(format!("does not start: {e}")))?;
    let outputs = child
        .stdout
        .take()
        .map(PipeReader::reading)
        .transpose()
        .and_then(|said| Ok((said, child.stderr.take().map(PipeReader::reading).transpose()?)));
    let (said, complained) = match outputs {
        Ok(both) => both,
        Err(e) => {
            end(&mut child, Some(&process_tag));
            return Err(RunFailure::Failed(format!(
                "cannot be heard: no thread can be started: {e}"
            )));
        }
    };
    let status = wait(&mut child, timeout, stop, Some(&process_tag))?;
    let took = began.elapsed();
    // A process that keeps the output open afterwards is not part of the run; nothing waits for it.
    let done = |time| [&said, &complained].into_iter().flatten().all(|s| s.ends_within(time));
    if !done(GRACE) {
        end(&mut child, None);
        done(PATIENCE);
    }
    drop(kept);
    let text = |said: Option<PipeReader>| said.map_or(String::new(), |s| s.text());
    let exit_code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    let ended = EndedRun { said: text(said), exit_code, took, usage: children().since(&before) };
    Ok((ended, text(complained)))
}

/// Runs a command that sets or undoes a level. An interrupt does not end it early: a half-made
/// change is worse than a late one.
pub(crate) fn set(line: &str, timeout: Duration) -> Result<(), String> {
    let mut command = shell(line);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|e| format!("`{line}` does not start: {e}"))?;
    // Its standard error is not waited for: a missing message is better than a half-made change.
    let complained = child.stderr.take().and_then(|from| PipeReader::reading(from).ok());
    let never = AtomicBool::new(false);
    let status = match wait(&mut child, timeout, &never, None) {
        Ok(status) => status,
        Err(why) => return Err(format!("`{line}` {why}")),
    };
    if status.success() {
        return Ok(());
    }
    let why = complained.map_or(String::new(), |said| {
        said.ends_within(GRACE);
        said.text()
    });
    let code = status.code().map_or("a signal".to_owned(), |c| format!("exit code {c}"));
    Err(format!("`{line}` failed with {code}{}", last_line(&why)))
}

/// `: the last line that is not empty`, or nothing.
pub(crate) fn last_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    // Programs print what is wrong with an option first, and a hint at `--help` last.
    let said = lines.clone().find(|l| l.starts_with("error: ")).or_else(|| lines.next_back());
    said.map_or(String::new(), |l| format!(": {}", l.chars().take(300).collect::<String>()))
}

fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    command
}

fn wait(
    child: &mut Child,
    timeout: Duration,
    stop: &AtomicBool,
    process_tag: Option<&ProcessTag>,
) -> Result<std::process::ExitStatus, RunFailure> {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => {}
            Err(e) => return Err(RunFailure::Failed(format!("cannot be waited for: {e}"))),
        }
        if stop.load(Ordering::Relaxed) {
            end(child, process_tag);
            return Err(RunFailure::Stopped);
        }
        if began.elapsed() > timeout {
            end(child, process_tag);
            return Err(RunFailure::TooLong(timeout));
        }
        thread::sleep(LOOK);
    }
}

/// Sends SIGTERM to the whole process group and to all processes that carry the cookie, then
/// SIGKILL; the second signal also reaches processes that started meanwhile.
fn end(child: &mut Child, process_tag: Option<&ProcessTag>) {
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    let holders = || process_tag.map_or(vec![], ProcessTag::holders);
    let mut group_gone = false;
    for (signal, patience) in [(Signal::TERM, 1_000), (Signal::KILL, 5_000), (Signal::KILL, 5_000)]
    {
        let held = holders();
        held.iter().for_each(|h| h.signal(signal));
        if !group_gone {
            // The process group that we made. Its number is not reused while a member lives.
            let _ = kill_process_group(group, signal);
        }
        let until = Instant::now() + Duration::from_millis(patience);
        while Instant::now() < until {
            // SIGKILL ends all of them; without an init that reaps orphans they remain as zombies.
            let gone = || signal == Signal::KILL || test_kill_process_group(group).is_err();
            group_gone = group_gone || !matches!(child.try_wait(), Ok(None)) && gone();
            if group_gone && held.iter().all(Holder::has_ended) {
                if holders().is_empty() {
                    return;
                }
                break;
            }
            thread::sleep(LOOK);
        }
    }
}

/// CPU time and context switches of all children that were waited for.
///
/// **Source**: getrusage(2).
fn children() -> ChildUsage {
    // SAFETY: a zeroed rusage is valid; the call fills it or fails.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let ns = |t: libc::timeval| {
        u64::try_from(t.tv_sec.saturating_mul(1_000_000_000).saturating_add(t.tv_usec * 1_000))
            .unwrap_or(0)
    };
    let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
    ChildUsage {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        voluntary: count(usage.ru_nvcsw),
        involuntary: count(usage.ru_nivcsw),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs this test binary as the watchdog.
    pub(super) fn watchdog() -> Command {
        let mut command = Command::new("sh");
        let one = "exec \"$0\" --exact child::tests::the_watchdog_itself --nocapture";
        command.args(["-c", one]).arg(std::env::current_exe().unwrap());
        command.env("NETWRIGHT_TEST_WATCHDOG", "1");
        command
    }

    #[test]
    fn the_watchdog_itself() {
        if std::env::var_os("NETWRIGHT_TEST_WATCHDOG").is_some() {
            println!("\nready {} 0", std::process::id());
            tune::watchdog::maker::undo_after_exit(std::io::stdin().lock(), &mut |_| {});
        }
    }

    fn sh(line: &str, timeout_ms: u64) -> Result<(EndedRun, String), RunFailure> {
        let never = AtomicBool::new(false);
        let timeout = Duration::from_millis(timeout_ms);
        run(Path::new("/none"), &Workload::Shell(line.into()), timeout, &never)
    }

    #[test]
    fn words_code_and_complaint_come_back() {
        let (ended, complaint) = sh("echo 5; echo ouch >&2; exit 7", 20_000).unwrap();
        assert_eq!((ended.said.as_str(), ended.exit_code), ("5\n", 7));
        assert_eq!(last_line(&complaint), ": ouch");
        assert!(ended.took < Duration::from_secs(20) && ended.usage.cpu_s() < 20.0);
    }

    #[test]
    fn what_does_not_end_is_ended_with_its_children() {
        let began = Instant::now();
        let Err(why) = sh("sleep 60 & sleep 60", 100) else { panic!("it ended") };
        assert_eq!(why.to_string(), "did not end within 0.1 s");
        assert!(began.elapsed() < Duration::from_secs(30));
        let stop = AtomicBool::new(true);
        let slow = Workload::Shell("sleep 60".into());
        let stopped = run(Path::new("/none"), &slow, Duration::from_secs(60), &stop);
        assert!(matches!(stopped, Err(RunFailure::Stopped)));
    }

    #[test]
    fn what_does_not_end_is_ended_in_a_session_of_its_own_as_well() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display();
        let line = format!(
            "setsid sh -c 'trap \"\" TERM; sleep 61' & echo $! > {path}; (setsid sleep 62 &); sleep 63"
        );
        let ended = |patience| {
            let Err(why) = sh(&line, patience) else { panic!("it ended") };
            assert!(why.to_string().starts_with("did not end within"), "{why}");
            let pid = std::fs::read_to_string(file.path()).unwrap();
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            assert!(!pid.trim().is_empty());
            // Without an init that reaps orphans it remains as a zombie.
            stat.map_or(true, |s| s.contains(") Z"))
        };
        assert!(ended(1_000), "it was left");
        // A process that a setting starts does not belong to the workload.
        set(
            &format!("setsid sleep 64 > /dev/null 2>&1 & echo $! > {path}"),
            Duration::from_secs(20),
        )
        .unwrap();
        let other = std::fs::read_to_string(file.path()).unwrap().trim().parse::<i32>().unwrap();
        assert!(sh("sleep 60", 100).is_err());
        let other = rustix::process::Pid::from_raw(other).unwrap();
        rustix::process::kill_process(other, rustix::process::Signal::KILL).unwrap();
    }

    #[test]
    fn who_holds_the_output_after_the_end_is_not_waited_for() {
        let began = Instant::now();
        let (ended, _) =
            sh("sleep 60 & echo $!; trap '' TERM; (sleep 60) & exit 3", 20_000).unwrap();
        assert!(began.elapsed() < Duration::from_secs(20) && ended.exit_code == 3);
        assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", ended.said.trim()));
        // Without an init that reaps orphans it remains as a zombie.
        assert!(!stat.is_ok_and(|s| s.contains("(sleep)") && !s.contains(") Z")), "it was left");
        // A process that left the group is left alone and not waited for.
        let (ended, _) = sh("setsid sleep 6 & echo x", 20_000).unwrap();
        assert_eq!(ended.said, "x\n");
        assert!(began.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_setting_that_fails_says_which_and_why() {
        let why = set("echo no such knob >&2; false", Duration::from_secs(20)).unwrap_err();
        assert!(why.contains("exit code 1: no such knob"), "{why}");
        assert_eq!(set("true", Duration::from_secs(20)), Ok(()));
    }
}
