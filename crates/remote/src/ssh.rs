//! Starts netwright on another host by the operator's own ssh. Requests and answers are lines of
//! JSON on its standard input and output.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, Stdio},
    str::FromStr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use model::quote;
use tune::TuneError;

use crate::{Answer, Greeting, LEASE, LONGEST_LINE, Request};

/// How long an answer may take beyond the requested work: the host is read meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long ssh may take to connect, log in and start the remote end.
const GREETED: Duration = Duration::from_secs(30);
/// How long the remote end may take to revert what is on trial, after we close the connection.
const CLOSING: Duration = Duration::from_secs(30);
/// The most lines that a login may print before the greeting.
const MOST_NOISE: usize = 200;
/// How much of ssh's standard error is kept, bytes.
const MOST_WORDS: u64 = 16 << 10;

/// A parsed `ssh://[USER@]HOST[:PORT][/PATH/OF/netwright]`, the path where the program is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshTarget {
    /// `USER@HOST` or `HOST`, as an argument of ssh.
    destination: String,
    port: Option<u16>,
    program: String,
}

impl FromStr for SshTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "ssh://[USER@]HOST[:PORT][/PATH/OF/netwright]";
        let rest = text.strip_prefix("ssh://").ok_or_else(|| {
            format!("{text}: another host is reached over ssh: {form}, as in ssh://root@{text}")
        })?;
        let wrong = || format!("{text}: is not of the form {form}");
        let (end, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (user, host) =
            end.rsplit_once('@').map_or((None, end), |(user, host)| (Some(user), host));
        // An IPv6 address in brackets, as a port may follow.
        let (host, port) = match host.strip_prefix('[').and_then(|h| h.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or_else(wrong)?)),
            None => host.rsplit_once(':').map_or((host, None), |(host, port)| (host, Some(port))),
        };
        let port = port.map(str::parse).transpose().map_err(|_| wrong())?;
        let named = |name: &str| !name.is_empty() && !name.starts_with('-');
        if !named(host) || user.is_some_and(|user| !named(user)) {
            return Err(wrong());
        }
        let destination = user.map_or_else(|| host.to_owned(), |user| format!("{user}@{host}"));
        let program = if path.len() > 1 { path } else { "netwright" }.to_owned();
        Ok(Self { destination, port, program })
    }
}

impl SshTarget {
    /// The host without the user.
    pub fn host(&self) -> &str {
        self.destination.rsplit('@').next().unwrap_or(&self.destination)
    }

    /// The command for the remote shell. It runs as root, or by `sudo -n`, which never asks for a
    /// password.
    fn script(&self) -> String {
        let program = quote::shell(&self.program);
        let script = format!(
            "command -v {program} >/dev/null || exit {NO_PROGRAM}; sudo=; test \"$(id -u)\" = 0 || {{ \
             command -v sudo >/dev/null || exit {NO_SUDO}; sudo=\"sudo -n\"; }}; \
             exec $sudo {program} remote --stdio --connection \"$SSH_CONNECTION\""
        );
        format!("exec sh -c {}", quote::shell(&script))
    }

    fn command(&self) -> Command {
        let words = std::env::var("NETWRIGHT_SSH").unwrap_or_else(|_| "ssh".to_owned());
        let mut words = words.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("ssh"));
        command.args(words).args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]);
        command.args(["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]);
        if let Some(port) = self.port {
            command.args(["-p", &port.to_string()]);
        }
        command.args(["--", &self.destination, &self.script()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C must not reach ssh: the connection is needed until everything is reverted.
        command.process_group(0);
        command
    }
}

/// Exit code where the program is missing, the same as a shell's.
const NO_PROGRAM: i32 = 127;
/// Exit code where the login is not root and sudo is missing.
const NO_SUDO: i32 = 126;
/// ssh's exit code for a failed connection or login.
const SSH_FAILED: i32 = 255;

/// A connection. Dropping it makes the remote end revert what is on trial.
#[derive(Debug)]
pub struct Ssh {
    channel: Arc<Mutex<Channel>>,
    over: Arc<AtomicBool>,
    talker: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Channel {
    name: String,
    child: Child,
    /// `None` once the connection is closed.
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// The standard error of ssh and sudo.
    words: Arc<Mutex<String>>,
}

impl Ssh {
    /// Connects and starts the remote end; changes nothing yet.
    ///
    /// # Errors
    /// ssh cannot connect or log in, sudo refuses, netwright is missing there, or its version
    /// differs.
    pub fn connect(name: &str) -> Result<Self, TuneError> {
        let target: SshTarget = name.parse().map_err(TuneError::Usage)?;
        let mut command = target.command();
        let mut child = command.spawn().map_err(|e| {
            let program = command.get_program().to_string_lossy();
            TuneError::Environment(format!("cannot start {program}: {e}; install openssh-client"))
        })?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let mut reader = stdout.map(BufReader::new);
            while let Some(line) = reader.as_mut().and_then(next_line) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let words = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&words);
        std::thread::spawn(move || {
            let mut reader = stderr.map(BufReader::new);
            while let Some(line) = reader.as_mut().and_then(next_line) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if (kept.len() as u64) < MOST_WORDS {
                    kept.push_str(line.trim_end());
                    kept.push('\n');
                }
            }
        });
        let mut channel = Channel { name: name.to_owned(), child, stdin, lines, words };
        channel.greeted(&target)?;
        let channel = Arc::new(Mutex::new(channel));
        let over = Arc::new(AtomicBool::new(false));
        let (theirs, until) = (Arc::clone(&channel), Arc::clone(&over));
        let talk = move || {
            let mut last = Instant::now();
            while !until.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
                if last.elapsed() > LEASE / 6 {
                    // The next request reports the failure.
                    let _ = lock(&theirs).ask(&Request::Alive, PATIENCE);
                    last = Instant::now();
                }
            }
        };
        let talker = std::thread::Builder::new().name("nw-alive".into()).spawn(talk);
        let talker = talker.map_err(|e| TuneError::Environment(format!("no thread: {e}")))?;
        Ok(Self { channel, over, talker: Some(talker) })
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// The remote end is gone or too slow, or the answer is invalid.
    pub fn ask(&self, request: &Request, takes: Duration) -> Result<Answer, TuneError> {
        lock(&self.channel).ask(request, takes + PATIENCE)
    }
}

fn lock(channel: &Mutex<Channel>) -> std::sync::MutexGuard<'_, Channel> {
    channel.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next line, at most [`LONGEST_LINE`] bytes; `None` at the end, or where a line is longer.
pub fn next_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    reader.take(LONGEST_LINE).read_until(b'\n', &mut line).ok()?;
    match line.pop() {
        Some(b'\n') => Some(String::from_utf8_lossy(&line).into_owned()),
        _ => None,
    }
}

impl Channel {
    /// Waits for the remote end's greeting.
    fn greeted(&mut self, target: &SshTarget) -> Result<(), TuneError> {
        let until = Instant::now() + GREETED;
        for _ in 0..MOST_NOISE {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else { break };
            if let Ok(greeting) = model::json::read::<Greeting>(&line) {
                let (theirs, ours) = (greeting.netwright, env!("CARGO_PKG_VERSION"));
                return match theirs == ours {
                    true => Ok(()),
                    false => Err(TuneError::Environment(format!(
                        "{}: netwright {theirs} is installed there, this is {ours}: install the same \
                         version on both hosts",
                        self.name
                    ))),
                };
            }
        }
        self.stdin = None;
        let code = self.end(Duration::from_secs(2));
        let words = lock_words(&self.words);
        let said = words.lines().last().unwrap_or("it said nothing").trim();
        let name = &self.name;
        Err(match code {
            Some(NO_PROGRAM) => TuneError::Environment(format!(
                "{name}: no {} is there: install it, or name it: ssh://HOST/PATH/OF/netwright",
                target.program
            )),
            Some(SSH_FAILED) => TuneError::Environment(format!(
                "{name}: ssh failed: {said}; `ssh {}` must log in without a password",
                target.destination
            )),
            Some(NO_SUDO) => TuneError::Denied(format!(
                "{name}: the login is not root's, and there is no sudo: log in as root"
            )),
            // A message of sudo itself.
            Some(1) => TuneError::Denied(format!(
                "{name}: {said}; log in as root, or let sudo run {} there without a password",
                target.program
            )),
            _ => TuneError::Environment(format!("{name}: netwright did not answer: {said}")),
        })
    }

    fn ask(&mut self, request: &Request, most: Duration) -> Result<Answer, TuneError> {
        let Some(stdin) = &mut self.stdin else { return Err(self.broke_off()) };
        let line =
            serde_json::to_string(request).map_err(|e| TuneError::Environment(e.to_string()))?;
        let sent = stdin.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdin.flush());
        let answer = match sent {
            Err(_) => Err(RecvTimeoutError::Disconnected),
            Ok(()) => self.lines.recv_timeout(most),
        };
        match answer.map(|line| model::json::read(&line)) {
            Ok(Ok(answer)) => Ok(answer),
            // A late answer must not be taken for the answer to another request.
            Ok(Err(e)) => {
                self.stdin = None;
                Err(TuneError::Environment(format!("{}: invalid answer: {e}", self.name)))
            }
            Err(_) => {
                self.stdin = None;
                Err(self.broke_off())
            }
        }
    }

    fn broke_off(&self) -> TuneError {
        let words = lock_words(&self.words);
        let said = words.lines().last().map(|line| format!(" ({})", line.trim()));
        TuneError::Environment(format!(
            "{}: the connection broke off{}; what was on trial there is put back within {} s",
            self.name,
            said.unwrap_or_default(),
            LEASE.as_secs()
        ))
    }

    /// Waits for the end of ssh and of the remote end; kills ssh when the time is over.
    fn end(&mut self, most: Duration) -> Option<i32> {
        let until = Instant::now() + most;
        while Instant::now() < until {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        self.child.wait().ok().and_then(|status| status.code())
    }
}

fn lock_words(words: &Mutex<String>) -> String {
    words.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Drop for Channel {
    fn drop(&mut self) {
        // Closing its input makes the remote end revert everything and exit.
        self.stdin = None;
        self.end(CLOSING);
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(talker) = self.talker.take() {
            let _ = talker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_target_is_what_ssh_takes() {
        let read =
            |text: &str| text.parse::<SshTarget>().map(|t| (t.destination, t.port, t.program)).ok();
        let all = |d: &str, port, p: &str| Some((d.to_owned(), port, p.to_owned()));
        assert_eq!(read("ssh://db1"), all("db1", None, "netwright"));
        assert_eq!(read("ssh://root@db1:2222/"), all("root@db1", Some(2222), "netwright"));
        assert_eq!(read("ssh://a@b@db1/opt/nw"), all("a@b@db1", None, "/opt/nw"));
        assert_eq!(read("ssh://root@[fd00::2]:22"), all("root@fd00::2", Some(22), "netwright"));
        for wrong in [
            "db1",
            "ssh://",
            "ssh://-oProxyCommand=x",
            "ssh://-x@db1",
            "ssh://db1:port",
            "ssh://[fd00::2]22",
            "ssh://root@",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_line_is_read_whole_or_not_at_all() {
        let lines = |bytes: &[u8]| {
            let mut reader = BufReader::new(bytes);
            std::iter::from_fn(|| next_line(&mut reader)).collect::<Vec<_>>()
        };
        assert_eq!(lines(b"one\ntwo\nthr"), ["one", "two"]);
        assert_eq!(lines(&vec![b' '; LONGEST_LINE as usize + 1]), Vec::<String>::new());
    }
}
