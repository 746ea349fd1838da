//! The far end that the network alone is measured with: as given, or a child of ours on this
//! host, which ends with us.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use traffic::Secret;

use crate::exit::Failure;

/// A far end.
#[derive(Debug)]
pub struct Responder {
    /// Where it listens.
    pub target: String,
    /// What it demands.
    pub secret: Option<Secret>,
    child: Option<Child>,
}

impl Responder {
    /// One that runs already.
    pub fn given(target: String, secret: Option<Secret>) -> Self {
        Self { target, secret, child: None }
    }

    /// Starts one on an address of this host.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(address: &str) -> Result<Self, Failure> {
        let no = |why: String| {
            Failure::Environment(format!("cannot start a responder on {address}: {why}"))
        };
        let program = std::env::current_exe().map_err(|e| no(e.to_string()))?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--json", "--quiet", "--port", "0", "--bind", address])
            .env_remove("NETWRIGHT_SECRET")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // Ctrl-C is for us: the round under way shall end well.
            .process_group(0);
        // SAFETY: between fork and exec only this system call is made.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let mut child = command.spawn().map_err(|e| no(e.to_string()))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.as_mut() {
            BufReader::new(out).read_line(&mut line).map_err(|e| no(e.to_string()))?;
        }
        // From here on it ends whatever happens.
        let mut this = Self { target: String::new(), secret: None, child: Some(child) };
        let said: serde_json::Value =
            serde_json::from_str(&line).map_err(|_| no("it says nothing".into()))?;
        let listens = said.pointer("/addresses/0").and_then(|a| a.as_str());
        this.target = listens.ok_or_else(|| no("it listens nowhere".into()))?.to_owned();
        this.secret = said["secret"].as_str().map(Secret::new).transpose()?;
        Ok(this)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
