//! The watchdog on a pipe: when the process at the other end (the maker) ends for any reason, it
//! kills the maker's process groups and undoes the maker's trials.

use std::{
    ffi::OsStr,
    io::{self, BufRead, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::{ffi::OsStrExt, process::CommandExt},
    },
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio, id},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{program, start};
use crate::{
    Host,
    process_tag::{self, ProcessTag},
};

/// How long a process group may take to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a maker leaves if it is killed, to be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Residue {
    /// The maker's trials, in the journals of this directory.
    Trials(PathBuf),
    /// The values set by commands, from this experiment's record.
    Record(PathBuf),
    /// Labs in this folder that the maker had begun and not completed.
    Labs(PathBuf),
}

impl Residue {
    fn line(&self) -> Vec<u8> {
        let (word, path) = match self {
            Self::Trials(path) => ("trials", path),
            Self::Record(path) => ("record", path),
            Self::Labs(path) => ("labs", path),
        };
        [word.as_bytes(), b" ", path.as_os_str().as_bytes(), b"\n"].concat()
    }
}

/// The maker's end of the pipe, open from the first line on.
#[derive(Debug)]
struct Pipe {
    to: Option<ChildStdin>,
    residues: Vec<Residue>,
}

static OURS: Mutex<Pipe> = Mutex::new(Pipe { to: None, residues: vec![] });

impl Pipe {
    /// Writes a line; returns the pipe's descriptor. If the watchdog has died, starts another,
    /// which gets all residues again, and the groups that begin later.
    fn tell(&mut self, line: &[u8]) -> io::Result<RawFd> {
        if let Some(to) = &mut self.to
            && to.write_all(line).is_ok()
        {
            return Ok(to.as_raw_fd());
        }
        let began = Host::live().start_ticks("self").map_err(io::Error::other)?;
        let mut command = program();
        command.arg("--maker-pid").arg(id().to_string());
        command.arg("--maker-start").arg(began.to_string()).stdin(Stdio::piped());
        let (_, to) = start(&mut command)?;
        let to = self.to.insert(to.ok_or_else(|| io::Error::other("it has no pipe"))?);
        for residue in &self.residues {
            to.write_all(&residue.line())?;
        }
        to.write_all(line)?;
        Ok(to.as_raw_fd())
    }
}

/// Registers a residue to restore after this process has ended, if something is left there.
///
/// # Errors
/// No watchdog can be started: then nothing may be set.
pub fn restore_after_exit(residue: Residue) -> io::Result<()> {
    let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    if !ours.residues.contains(&residue) {
        ours.tell(&residue.line())?;
        ours.residues.push(residue);
    }
    Ok(())
}

/// A group that is ended when we are killed, until this is dropped.
#[derive(Debug)]
pub struct WatchedGroup(u32);

impl WatchedGroup {
    /// Starts a command as the leader of a new process group. The child registers itself before
    /// exec, so there is no moment in which we could be killed and leave it unknown. It and all its
    /// descendants have the tag.
    ///
    /// # Errors
    /// It does not start, or no watchdog can be started.
    pub fn spawn(command: &mut Command, tag: &ProcessTag) -> io::Result<(Child, Self)> {
        let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
        let pipe = ours.tell(format!("= {}\n", tag.value()).as_bytes())?;
        command.process_group(0).env(process_tag::NAME, tag.value());
        // SAFETY: between fork and exec; only getpid(2) and write(2) are called, and nothing is allocated.
        unsafe { command.pre_exec(move || register_child(pipe)) };
        let child = command.spawn()?;
        let group = Self(child.id());
        Ok((child, group))
    }
}

impl Drop for WatchedGroup {
    fn drop(&mut self) {
        let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
        // A dead watchdog knows no groups; the next one learns of later groups.
        if let Some(to) = &mut ours.to {
            let _ = to.write_all(format!("- {}\n", self.0).as_bytes());
        }
    }
}

/// Writes `+ PID` of this process, in one write.
fn register_child(pipe: RawFd) -> io::Result<()> {
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
        _ => Err(io::Error::last_os_error()),
    }
}

/// What the maker has reported through the pipe.
#[derive(Debug, Default)]
struct MakerState {
    /// The tag of the group that begins next.
    tag: Option<ProcessTag>,
    groups: Vec<(Pid, Option<ProcessTag>)>,
    residues: Vec<Residue>,
}

impl MakerState {
    fn read_line(&mut self, line: &[u8]) {
        let mut words = line.trim_ascii_start().splitn(2, |b| *b == b' ');
        let (word, rest) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let text = String::from_utf8_lossy(rest);
        let pid = || text.trim().parse().ok().and_then(Pid::from_raw);
        let path = || PathBuf::from(OsStr::from_bytes(rest));
        match word {
            b"=" => self.tag = Some(ProcessTag::of(&text)),
            b"+" => self.groups.extend(pid().map(|pid| (pid, self.tag.clone()))),
            b"-" => self.groups.retain(|(group, _)| Some(*group) != pid()),
            b"trials" => self.residues.push(Residue::Trials(path())),
            b"record" => self.residues.push(Residue::Record(path())),
            b"labs" => self.residues.push(Residue::Labs(path())),
            _ => {}
        }
    }

    fn signal(&self, signal: Signal) {
        for (group, tag) in &self.groups {
            // The maker's group. Its number cannot be reused while a member lives.
            let _ = kill_process_group(*group, signal);
            tag.iter().flat_map(ProcessTag::holders).for_each(|holder| holder.signal(signal));
        }
    }
}

/// Main loop of the watchdog: returns once the maker has ended and `put_back` restored its residues.
/// Groups and tagged processes get SIGTERM, then SIGKILL a second later; twice, since a group may
/// begin during the search.
pub fn undo_after_exit(said: impl BufRead, put_back: &mut dyn FnMut(&Residue)) {
    let mut left = MakerState::default();
    said.split(b'\n').map_while(Result::ok).for_each(|line| left.read_line(&line));
    left.signal(Signal::TERM);
    let asked = Instant::now();
    left.residues.iter().for_each(put_back);
    if !left.groups.is_empty() {
        thread::sleep(PATIENCE.saturating_sub(asked.elapsed()));
        left.signal(Signal::KILL);
        left.signal(Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_tells_its_own_number() {
        let mut ends = [0; 2];
        // SAFETY: the pointer is to our own two numbers.
        assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
        register_child(ends[1]).unwrap();
        let mut line = [0; 16];
        // SAFETY: the pointer and the length are those of our own bytes.
        assert_eq!(unsafe { libc::read(ends[0], line.as_mut_ptr().cast(), line.len()) }, 16);
        let said = std::str::from_utf8(&line).unwrap();
        assert_eq!(said.trim_start(), format!("+ {}\n", id()));
    }

    #[test]
    fn groups_that_have_not_ended_are_ended_and_places_put_back() {
        let group = || {
            let mut command = Command::new("sh");
            // A process that ignores SIGTERM, with a child.
            command.args(["-c", "trap '' TERM; sleep 60 & sleep 60"]).process_group(0);
            command.spawn().unwrap()
        };
        let (mut kept, mut ended) = (group(), group());
        // A process in another session, found by its tag.
        let tag = ProcessTag::unique();
        let mut apart = Command::new("setsid");
        apart.args(["sh", "-c", "trap '' TERM; sleep 60"]).env(process_tag::NAME, tag.value());
        let mut apart = apart.spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(30);
        while tag.holders().is_empty() {
            assert!(Instant::now() < until, "it does not begin");
            thread::sleep(Duration::from_millis(5));
        }
        let lines = format!(
            "= {}\ntrials /a b\n+ {}\nrecord /c\nlabs /d\n= none\n   + {}\n- {}\nunheard of\n",
            tag.value(),
            kept.id(),
            ended.id(),
            ended.id()
        );
        let mut residues = vec![];
        undo_after_exit(lines.as_bytes(), &mut |residue| residues.push(residue.clone()));
        assert_eq!(
            residues,
            [
                Residue::Trials("/a b".into()),
                Residue::Record("/c".into()),
                Residue::Labs("/d".into())
            ]
        );
        while kept.try_wait().unwrap().is_none() || apart.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "it was left");
            thread::sleep(Duration::from_millis(5));
        }
        assert!(ended.try_wait().unwrap().is_none(), "one that had ended was ended");
        // SAFETY: the group is ours, and its leader has not been waited for yet.
        unsafe { libc::kill(-(ended.id() as i32), libc::SIGKILL) };
        ended.wait().unwrap();
    }
}
