//! The guest's agent: runs commands from the command ports, one at a time on each port.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::AsFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

use probe::Root;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{
    LabError,
    frame::{self, Exec, FrameKind},
};

/// Prefix of port names: `netwright.0`, `netwright.1`, ….
pub const PORT_PREFIX: &str = "netwright.";

/// Serves all command ports of this guest until the guest shuts down.
///
/// # Errors
/// There are no command ports: this is not a lab guest.
pub fn serve() -> Result<(), LabError> {
    let ports = ports();
    if ports.is_empty() {
        return Err(LabError::failed(
            "serving as a lab guest",
            "this machine has no lab command ports",
        ));
    }
    let threads: Vec<_> =
        ports.into_iter().map(|p| std::thread::spawn(move || serve_port(&p))).collect();
    for t in threads {
        let _ = t.join();
    }
    Ok(())
}

fn ports() -> Vec<PathBuf> {
    const FOLDER: &str = "/sys/class/virtio-ports";
    let root = Root::live();
    let is_ours = |port: &String| {
        root.word(&format!("{FOLDER}/{port}/name"))
            .known()
            .is_some_and(|name| name.starts_with(PORT_PREFIX))
    };
    let mut found = root.entries(FOLDER).unwrap_or_default();
    found.retain(is_ours);
    found.sort();
    found.iter().map(|port| Path::new("/dev").join(port)).collect()
}

fn serve_port(path: &Path) {
    let mut port = loop {
        match OpenOptions::new().read(true).write(true).open(path) {
            Ok(port) => break port,
            Err(_) => std::thread::sleep(Duration::from_millis(200)),
        }
    };
    // Never closed: if the hang-up of the previous client arrives late, the kernel would discard
    // data that a new client has sent.
    loop {
        let _ = serve_client(&mut port);
        // No client is connected: the port reads as ended.
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Serves one client until it disconnects.
fn serve_client(port: &mut File) -> io::Result<()> {
    loop {
        match frame::read(port)? {
            (FrameKind::Hello, nonce) => frame::write(port, FrameKind::Welcome, &nonce)?,
            (FrameKind::Exec, json) => match model::json::read::<Exec>(&json) {
                Ok(exec) => run(port, &exec)?,
                Err(e) => refuse(port, &format!("the request is unreadable: {e}\n"))?,
            },
            _ => {}
        }
    }
}

fn refuse(port: &mut File, why: &str) -> io::Result<()> {
    frame::write(port, FrameKind::Stderr, why.as_bytes())?;
    frame::write(port, FrameKind::Exit, &127i32.to_le_bytes())
}

fn run(port: &File, exec: &Exec) -> io::Result<()> {
    let mut writer = port.try_clone()?;
    let Some((program, args)) = exec.argv.split_first() else {
        return refuse(&mut writer, "nothing to run\n");
    };
    let spawned = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(e) => {
            return refuse(&mut writer, &format!("cannot run {program} on this guest: {e}\n"));
        }
    };
    let writer = Arc::new(Mutex::new(writer));
    let state = Arc::new(AtomicU8::new(RUNS));
    let pumps: Vec<_> = [
        child.stdout.take().map(|out| pump(out, FrameKind::Stdout, &writer, &state)),
        child.stderr.take().map(|err| pump(err, FrameKind::Stderr, &writer, &state)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let status = match tend(&mut child, port) {
        Ok(status) => status,
        Err(e) => {
            state.store(ABANDONED, Ordering::SeqCst);
            return Err(e);
        }
    };
    state.store(ENDED, Ordering::SeqCst);
    // All output precedes the exit code: later output would reach the next client.
    for p in pumps {
        let _ = p.join();
    }
    let mut writer = writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    frame::write(&mut *writer, FrameKind::Exit, &status.to_le_bytes())
}

const RUNS: u8 = 0;
/// The command has ended: its output is in its pipes.
const ENDED: u8 = 1;
/// The client has disconnected: nothing may be written any more.
const ABANDONED: u8 = 2;

/// Largest capacity of a pipe in bytes.
const PIPE: usize = 1 << 20;

/// Forwards output until its end, or until the command has ended and all its own output is
/// forwarded: a background child may hold the pipe open for ever.
fn pump(
    mut from: impl Read + AsFd + Send + 'static,
    kind: FrameKind,
    to: &Arc<Mutex<File>>,
    state: &Arc<AtomicU8>,
) -> std::thread::JoinHandle<()> {
    let (to, state) = (Arc::clone(to), Arc::clone(state));
    std::thread::spawn(move || {
        let mut buffer = vec![0; 32 * 1024];
        let mut left = PIPE;
        loop {
            // Read before the pipe, so that the pipe holds all output if the command has ended.
            let ended = state.load(Ordering::SeqCst) != RUNS;
            if !readable(&from, if ended { 0 } else { 20 }) {
                if ended {
                    return;
                }
                continue;
            }
            let Ok(n) = from.read(&mut buffer) else { return };
            let Some(bytes) = buffer.get(..n).filter(|b| !b.is_empty()) else { return };
            left = if ended { left.saturating_sub(n) } else { PIPE };
            let mut to = to.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let abandoned = state.load(Ordering::SeqCst) == ABANDONED;
            if abandoned || frame::write(&mut *to, kind, bytes).is_err() || left == 0 {
                return;
            }
        }
    })
}

fn readable(file: &impl AsFd, wait_ms: i32) -> bool {
    ready(file, wait_ms) != PollFlags::empty()
}

/// Poll events of a descriptor, after at most `wait_ms`.
fn ready(file: &impl AsFd, wait_ms: i32) -> PollFlags {
    let wait = Duration::from_millis(wait_ms.unsigned_abs().into());
    let mut one = [PollFd::new(file, PollFlags::IN)];
    let _ = poll(&mut one, Timespec::try_from(wait).ok().as_ref());
    one[0].revents()
}

/// How long a port must report a hang-up before it counts as one.
const LATE_WORD: Duration = Duration::from_secs(1);

/// Feeds standard input until the child ends; kills the child's process group if the client
/// disconnects.
fn tend(child: &mut Child, port: &File) -> io::Result<i32> {
    let mut stdin = child.stdin.take();
    let mut reader = port.try_clone()?;
    let mut gone_since: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
        }
        let ready = ready(port, 10);
        if ready.contains(PollFlags::HUP) {
            // It may be the late hang-up of the previous client.
            if gone_since.get_or_insert_with(Instant::now).elapsed() > LATE_WORD {
                return Err(end_group(child));
            }
            std::thread::sleep(Duration::from_millis(10));
        } else if ready.contains(PollFlags::IN) {
            gone_since = None;
            match frame::read(&mut reader) {
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {}
                Ok((FrameKind::Stdin, bytes)) if bytes.is_empty() => stdin = None,
                Ok((FrameKind::Stdin, bytes)) => {
                    if let Some(pipe) = &mut stdin
                        && pipe.write_all(&bytes).is_err()
                    {
                        stdin = None;
                    }
                }
                // A new client sent Hello: the old one has gone.
                Ok((FrameKind::Hello, _)) | Err(_) => return Err(end_group(child)),
                Ok(_) => {}
            }
        } else {
            gone_since = None;
        }
    }
}

fn end_group(child: &mut Child) -> io::Error {
    let group = rustix::process::Pid::from_child(child);
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    let _ = child.wait();
    io::ErrorKind::ConnectionAborted.into()
}
