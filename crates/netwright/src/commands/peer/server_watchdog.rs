//! Puts back what a server had on trial for a client when the server itself is killed: a process
//! of its own that waits for the end of a pipe whose other end only the server holds.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::setsid;

use crate::{
    commands::tune::trial,
    exit::{CommandEnd, Failure},
    interrupt,
    output::Sink,
};

/// Said before the pipe ends when all is well.
const DISMISSED: u8 = b'd';

/// The server's end of it.
#[derive(Debug)]
pub struct ServerWatchdog(Child);

impl ServerWatchdog {
    /// Starts it and waits until it stands.
    ///
    /// # Errors
    /// It does not: then nothing may be tried.
    pub fn start(state: &Path) -> Result<Self, Failure> {
        let failed = |e: &dyn std::fmt::Display| {
            Failure::Environment(format!("nobody to put back if we are killed: {e}"))
        };
        // The link is the running program itself, also when its file was replaced since.
        let mut command = Command::new("/proc/self/exe");
        command.args(["tune", "server-watchdog", "--state-dir"]).arg(state).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // SAFETY: between fork and exec; setsid(2) may be called there.
        unsafe {
            command.pre_exec(|| Ok(setsid().map(drop)?));
        }
        let mut child = command.spawn().map_err(|e| failed(&e))?;
        let mut line = String::new();
        let said = child.stdout.take().map(BufReader::new);
        said.map(|mut s| s.read_line(&mut line)).transpose().map_err(|e| failed(&e))?;
        match line.trim() {
            "ready" => Ok(Self(child)),
            _ => {
                let _ = child.wait();
                Err(failed(&"it ended at once"))
            }
        }
    }

    /// All is put back or kept: it may go.
    pub fn dismiss(mut self) {
        if let Some(mut pipe) = self.0.stdin.take() {
            let _ = pipe.write_all(&[DISMISSED]);
        }
        let _ = self.0.wait();
    }
}

/// Its own life: `netwright tune server_watchdog`.
pub fn stand(state: &Path) -> Result<CommandEnd, Failure> {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE] {
        // Whoever ends a service ends both; the server then puts back, and we go when it is gone.
        interrupt::ignore(signal);
    }
    Sink::Stdout.text("ready\n")?;
    let mut said = Vec::new();
    let _ = std::io::stdin().lock().take(16).read_to_end(&mut said);
    if said.first() == Some(&DISMISSED) {
        return Ok(CommandEnd::Yes);
    }
    // The lock goes with the one who held it.
    trial::lent_and_lost(state)?;
    Ok(CommandEnd::Yes)
}
