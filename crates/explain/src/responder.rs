//! The responder that measures the network alone: the given one, or a child of ours on this host
//! that ends with us.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use model::{CpuSet, Warning};
use probe::{Root, serving};
use rustix::{
    process::{Signal, set_parent_process_death_signal},
    thread::{CpuSet as AffinityMask, sched_setaffinity},
};
use traffic::{Error, Result, Secret, temp_folder::TempFolder};

use crate::server;

#[derive(Debug)]
pub struct Responder {
    pub target: String,
    pub secret: Option<Secret>,
    child: Option<Child>,
    /// The folder of its Unix socket.
    folder: Option<TempFolder>,
}

/// The CPUs that the server's processes may use; `None` where they equal ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCpus(CpuSet);

impl ServerCpus {
    /// The affinity of the server that listens there; `None` where it equals ours.
    ///
    /// # Errors
    /// The server's processes are not visible and our own affinity is restricted, so theirs may
    /// differ.
    pub fn of_server(address: &str) -> Result<Option<Self>, Warning> {
        let root = Root::live();
        let ours = serving::allowed(&root, std::process::id());
        let server = server::find(&root, address).known().and_then(|s| s.allowed(&root));
        match (server, ours) {
            (Some(server), ours) => Ok((Some(&server) != ours.as_ref()).then_some(Self(server))),
            (None, Some(ours))
                if Some(&ours) != root.list("/sys/devices/system/cpu/online").known() =>
            {
                Err(Warning::ResponderConfined { cpus: ours })
            }
            (None, _) => Ok(None),
        }
    }

    /// The set as sched_setaffinity(2) takes it, without CPUs beyond its size.
    fn mask(&self) -> AffinityMask {
        let mut mask = AffinityMask::new();
        for cpu in self.0.iter().map(|c| c.0 as usize).filter(|c| *c < AffinityMask::MAX_CPU) {
            mask.set(cpu);
        }
        mask
    }
}

impl Responder {
    /// A responder that runs already.
    pub fn given(target: String, secret: Option<Secret>) -> Self {
        Self { target, secret, child: None, folder: None }
    }

    /// Starts one on an address of this host.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(ours: &Path, address: &str, place: Option<ServerCpus>) -> Result<Self> {
        Self::child(ours, &["--port", "0", "--bind", address], address, place)
    }

    /// Starts one on a Unix socket in its own folder.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_on_unix_socket(ours: &Path, place: Option<ServerCpus>) -> Result<Self> {
        let no = |e| Error::Environment(format!("cannot make a folder for a socket: {e}"));
        let folder = TempFolder::new("explain").map_err(no)?;
        let path = folder.path().join("socket").display().to_string();
        let mut this = Self::child(ours, &["--unix", &path], &path, place)?;
        this.folder = Some(folder);
        Ok(this)
    }

    fn child(ours: &Path, args: &[&str], at: &str, place: Option<ServerCpus>) -> Result<Self> {
        let no =
            |why: String| Error::Environment(format!("cannot start a responder on {at}: {why}"));
        let mut command = Command::new(ours);
        command
            .args(["serve", "--json", "--quiet"])
            .args(args)
            .env_remove("NETWRIGHT_SECRET")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // Ctrl-C must not reach it: the round in progress completes.
            .process_group(0);
        let mask = place.map(|place| place.mask());
        // SAFETY: between fork and exec only these system calls are made.
        unsafe {
            command.pre_exec(move || {
                let _ = set_parent_process_death_signal(Some(Signal::KILL));
                if let Some(mask) = &mask {
                    // Where that is refused, it keeps our affinity.
                    let _ = sched_setaffinity(None, mask);
                }
                Ok(())
            });
        }
        let mut child = command.spawn().map_err(|e| no(e.to_string()))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.as_mut() {
            BufReader::new(out).read_line(&mut line).map_err(|e| no(e.to_string()))?;
        }
        // From here on it is killed on every return.
        let mut this = Self::given(String::new(), None);
        this.child = Some(child);
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
