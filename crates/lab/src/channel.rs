//! The host's side of a guest's command ports.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::{
    LabError,
    frame::{self, Exec, FrameKind},
};

/// Most concurrent commands in one guest.
pub const PORTS: u32 = 4;

/// Path of port `n`'s socket in a guest's directory.
pub fn socket(folder: &Path, n: u32) -> std::path::PathBuf {
    folder.join(format!("port{n}.sock"))
}

/// A guest's port, locked until dropped.
pub struct Channel {
    stream: UnixStream,
    _lock: File,
}

/// Result of a command in a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    /// Exit code; 128 + signal if a signal killed it.
    pub code: i32,
    /// Standard output; empty unless collected.
    pub stdout: Vec<u8>,
    /// Standard error; empty unless collected.
    pub stderr: Vec<u8>,
}

impl Channel {
    /// Takes a free port and waits until the guest answers.
    ///
    /// # Errors
    /// [`LabError::Timeout`]: the guest does not answer in time, or all ports are in use.
    pub fn open(folder: &Path, patience: Duration) -> Result<Self, LabError> {
        let deadline = Instant::now() + patience;
        loop {
            for n in 0..PORTS {
                let Some(lock) = take(&folder.join(format!("port{n}.lock"))) else { continue };
                let Ok(stream) = UnixStream::connect(socket(folder, n)) else { continue };
                let mut channel = Self { stream, _lock: lock };
                if channel.greet(deadline).is_ok() {
                    return Ok(channel);
                }
            }
            if Instant::now() >= deadline {
                return Err(LabError::Timeout {
                    what: "an answer of the guest's command port".into(),
                    seconds: patience.as_secs(),
                    tail: String::new(),
                });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Sends Hello until the guest answers it; skips frames left by an earlier client.
    fn greet(&mut self, deadline: Instant) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let nonce = format!("{}-{now}", std::process::id()).into_bytes();
        self.stream.set_read_timeout(Some(Duration::from_millis(300)))?;
        while Instant::now() < deadline {
            frame::write(&mut self.stream, FrameKind::Hello, &nonce)?;
            let retry = Instant::now() + Duration::from_millis(300);
            while Instant::now() < retry {
                match frame::read(&mut self.stream) {
                    Ok((FrameKind::Welcome, echo)) if echo == nonce => {
                        return self.stream.set_read_timeout(None);
                    }
                    Ok(_) => {}
                    Err(e)
                        if matches!(
                            e.kind(),
                            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                        ) =>
                    {
                        break;
                    }
                    Err(e) => return Err(e),
                }
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Runs a command to its end, forwarding its output as it arrives.
    ///
    /// # Errors
    /// The guest disconnects, or the command does not end within `patience`.
    pub fn run(
        mut self,
        argv: &[String],
        stdin: Option<Box<dyn Read + Send>>,
        mut stdout: impl Write,
        mut stderr: impl Write,
        patience: Option<Duration>,
    ) -> Result<i32, LabError> {
        let gone = |e: io::Error| match e.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => LabError::Timeout {
                what: format!("the end of {:?} in the guest", argv.join(" ")),
                seconds: patience.map_or(0, |p| p.as_secs()),
                tail: String::new(),
            },
            _ => LabError::failed(
                "talking to the guest",
                format!("{e}; is it still up? see `netwright lab list`"),
            ),
        };
        let request =
            serde_json::to_vec(&Exec { argv: argv.to_vec() }).map_err(|e| gone(e.into()))?;
        frame::write(&mut self.stream, FrameKind::Exec, &request).map_err(gone)?;
        let mut writer = self.stream.try_clone().map_err(gone)?;
        match stdin {
            None => frame::write(&mut writer, FrameKind::Stdin, &[]).map_err(gone)?,
            // Not joined: it may wait for a user who types nothing more.
            Some(from) => {
                std::thread::Builder::new().spawn(move || feed(from, writer)).map_err(gone)?;
            }
        }
        let deadline = patience.map(|p| Instant::now() + p);
        loop {
            if let Some(d) = deadline {
                let left =
                    d.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
                self.stream.set_read_timeout(Some(left)).map_err(gone)?;
            }
            match frame::read(&mut self.stream).map_err(gone)? {
                (FrameKind::Stdout, b) => drop(stdout.write_all(&b).and_then(|()| stdout.flush())),
                (FrameKind::Stderr, b) => drop(stderr.write_all(&b).and_then(|()| stderr.flush())),
                (FrameKind::Exit, code) => {
                    return Ok(code.try_into().map_or(-1, i32::from_le_bytes));
                }
                _ => {}
            }
        }
    }

    /// Runs a command to its end and collects its output.
    ///
    /// # Errors
    /// As [`Channel::run`].
    pub fn output(self, argv: &[String], patience: Duration) -> Result<CommandOutput, LabError> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let code = self.run(argv, None, &mut stdout, &mut stderr, Some(patience))?;
        Ok(CommandOutput { code, stdout, stderr })
    }
}

fn feed(mut from: Box<dyn Read + Send>, mut to: UnixStream) {
    let mut buffer = vec![0; 32 * 1024];
    while let Ok(n) = from.read(&mut buffer) {
        let bytes = buffer.get(..n).unwrap_or_default();
        if frame::write(&mut to, FrameKind::Stdin, bytes).is_err() || n == 0 {
            break;
        }
    }
}

/// Locks a port for one client; the kernel unlocks it when the client ends.
fn take(path: &Path) -> Option<File> {
    let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path).ok()?;
    file.try_lock().ok()?;
    Some(file)
}
