//! The existing labs and the resources of each, recorded before they are made.
//!
//! **Layout**: one directory for each lab under the registry's directory (`/run/netwright/lab`),
//! with `state.json` and the files of the lab's processes. `/run` is empty after a reboot, and a
//! lab's resources are gone then too.

mod owner;
mod removal;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Child,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use probe::Root;
use serde::{Deserialize, Serialize};

use crate::{LabError, tool};
use removal::end;

/// Directory of the labs' states, one folder each, unless a test chooses another.
pub const DEFAULT_FOLDER: &str = "/run/netwright/lab";

/// A resource of a lab on this machine, with all that is needed to remove it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Resource {
    /// A named network namespace; its links are removed with it.
    Namespace {
        /// Name of its file under `/run/netns`.
        name: String,
    },
    /// A process; its start time distinguishes it from a later process with the same PID.
    Process {
        pid: u32,
        /// Field 22 of `/proc/PID/stat`.
        start_ticks: u64,
        /// What the process does, for messages.
        what: String,
    },
    /// A cgroup directory; its processes are ended before it is removed.
    Cgroup { path: PathBuf },
}

/// How a lab host is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum NodeAccess {
    /// A network namespace, with cgroups to join.
    Namespace {
        /// Name of its file under `/run/netns`.
        namespace: String,
        /// `cgroup.procs` files of the directories to join first.
        cgroups: Vec<PathBuf>,
    },
    /// A guest, through the command ports in this directory.
    Guest {
        /// Directory of the guest's sockets.
        ports: PathBuf,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostState {
    /// Name within the lab: `left`, `c1`, `server`.
    pub name: String,
    /// How commands run on it.
    pub reach: NodeAccess,
    /// Addresses at which the lab's other hosts reach it.
    pub addresses: Vec<String>,
    /// Description for the user.
    pub about: String,
}

/// One lab, as stored in its directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabState {
    pub name: String,
    /// Topology: `pair`, `containers`, `server`.
    pub topology: String,
    /// The preset it was made from, if any.
    pub preset: Option<String>,
    /// The requested parameters, to recognize a repeated `up`.
    pub asked: String,
    /// Whether `up` has finished.
    pub complete: bool,
    /// PID of the process that runs or ran `up`.
    pub owner_pid: u32,
    /// Time of creation, in seconds since 1970.
    pub created_unix_s: u64,
    pub hosts: Vec<HostState>,
    /// Everything made, in order of creation.
    pub resources: Vec<Resource>,
    /// Settings and measurements for the user: `link: 80 µs each way, own jitter …`.
    pub notes: Vec<String>,
}

/// All labs of this machine.
#[derive(Debug, Clone)]
pub struct Registry {
    folder: PathBuf,
}

/// Held while labs are made or removed; released when dropped, or by the kernel when the process
/// ends.
pub struct Lock {
    _file: fs::File,
}

impl Default for Registry {
    fn default() -> Self {
        Self::at(DEFAULT_FOLDER)
    }
}

impl Registry {
    /// A registry in this directory.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Waits for the lock, at most 60 s.
    ///
    /// # Errors
    /// The directory cannot be made, or another `lab` command holds the lock for too long.
    pub fn lock(&self) -> Result<Lock, LabError> {
        let path = self.folder.join(".lock");
        fs::create_dir_all(&self.folder)
            .map_err(|e| LabError::failed(format!("making {}", self.folder.display()), e))?;
        let file = fs::File::create(&path)
            .map_err(|e| LabError::failed(format!("opening {}", path.display()), e))?;
        for _ in 0..600 {
            if file.try_lock().is_ok() {
                return Ok(Lock { _file: file });
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(LabError::Timeout {
            what: format!("another `netwright lab` command releasing {}", path.display()),
            seconds: 60,
            tail: String::new(),
        })
    }

    /// All labs, sorted by name; the second list names labs with an unreadable state.
    pub fn labs(&self) -> (Vec<LabState>, Vec<String>) {
        let (mut labs, mut broken) = (Vec::new(), Vec::new());
        let Ok(entries) = fs::read_dir(&self.folder) else { return (labs, broken) };
        for folder in entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.is_dir()) {
            match read_state(&folder) {
                Ok(state) => labs.push(state),
                Err(why) => broken.push(format!("{}: {why}", folder.display())),
            }
        }
        labs.sort_by(|a, b| a.name.cmp(&b.name));
        (labs, broken)
    }

    /// Directory of a lab.
    pub fn folder_of(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Finds a host by `HOST` or `LAB/HOST`.
    ///
    /// # Errors
    /// No host, or more than one, has this name; the message lists the existing ones.
    pub fn host(&self, name: &str) -> Result<(LabState, HostState), LabError> {
        let (labs, _) = self.labs();
        let (lab, host) = name.split_once('/').map_or((None, name), |(l, h)| (Some(l), h));
        let all: Vec<_> = labs
            .iter()
            .filter(|l| lab.is_none_or(|n| n == l.name))
            .flat_map(|l| l.hosts.iter().map(move |h| (l, h)))
            .collect();
        let mut hits = all.iter().filter(|(_, h)| h.name == host);
        let names = |which: &dyn Fn(&HostState) -> bool| {
            labs.iter()
                .flat_map(|l| l.hosts.iter().map(move |h| (l, h)))
                .filter(|(_, h)| which(h))
                .map(|(l, h)| format!("{}/{}", l.name, h.name))
                .collect::<Vec<_>>()
                .join(", ")
        };
        match (hits.next(), hits.next()) {
            (Some((l, h)), None) => Ok(((*l).clone(), (*h).clone())),
            (Some(_), Some(_)) => Err(LabError::Unknown {
                what: format!("more than one host is called {host:?}"),
                hint: format!("say which: {}", names(&|h| h.name == host)),
            }),
            (None, _) => Err(LabError::Unknown {
                what: format!("there is no practice host {name:?}"),
                hint: if labs.is_empty() {
                    "no lab is up; `netwright lab up pair` brings one up".into()
                } else {
                    format!("there are: {}", names(&|_| true))
                },
            }),
        }
    }

    /// A lab by name, if its `up` has finished.
    pub fn standing(&self, name: &str) -> Option<LabState> {
        self.labs().0.into_iter().find(|l| l.name == name && l.complete)
    }

    /// Begins a lab: creates its directory and state. First removes the remains of a killed `up`
    /// with this name.
    ///
    /// # Errors
    /// [`LabError::Exists`]: a lab with this name is up or being brought up.
    pub fn begin(
        &self,
        name: &str,
        topology: &str,
        preset: Option<&str>,
        asked: &str,
    ) -> Result<Lab, LabError> {
        check_name(name)?;
        tool::needs_root()?;
        let folder = self.folder_of(name);
        if folder.exists() {
            match read_state(&folder) {
                Ok(s) if s.complete || self.is_owned(name) => {
                    return Err(LabError::Exists(name.to_owned()));
                }
                Ok(s) => self.remove(&s)?,
                Err(_) => fs::remove_dir_all(&folder).map_err(|e| {
                    LabError::failed(format!("removing the unreadable {}", folder.display()), e)
                })?,
            }
        }
        fs::create_dir_all(&folder)
            .map_err(|e| LabError::failed(format!("making {}", folder.display()), e))?;
        let owner = owner::own(&folder)
            .map_err(|e| LabError::failed(format!("locking {}/owner", folder.display()), e))?;
        let state = LabState {
            name: name.to_owned(),
            topology: topology.to_owned(),
            preset: preset.map(str::to_owned),
            asked: asked.to_owned(),
            complete: false,
            owner_pid: std::process::id(),
            created_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
            hosts: Vec::new(),
            resources: Vec::new(),
            notes: Vec::new(),
        };
        let lab = Lab { folder, state, owner, registry: self.clone(), armed: true };
        lab.save()?;
        Ok(lab)
    }

    /// Removes a lab by name. Returns `Ok(false)` if there is none, since `down` is idempotent.
    ///
    /// # Errors
    /// A resource could not be removed; the state is kept, so that a later `down` retries.
    pub fn down(&self, name: &str) -> Result<bool, LabError> {
        check_name(name)?;
        tool::needs_root()?;
        let folder = self.folder_of(name);
        if !folder.exists() {
            return Ok(false);
        }
        match read_state(&folder) {
            Ok(state) => {
                if !state.complete {
                    self.wait_for_owner(&state)?;
                }
                self.remove(&state)?;
            }
            Err(_) => fs::remove_dir_all(&folder)
                .map_err(|e| LabError::failed(format!("removing {}", folder.display()), e))?,
        }
        Ok(true)
    }

    /// Removes labs whose `up` was killed in the middle; with the lock. Waits for what `killed`, a
    /// process that has just ended or is about to, started last. Gives the labs' names.
    ///
    /// # Errors
    /// As [`Registry::down`].
    pub fn remove_unfinished(&self, killed: Option<u32>) -> Result<Vec<String>, LabError> {
        let mut removed = Vec::new();
        for lab in self.labs().0.into_iter().filter(|l| !l.complete) {
            if killed == Some(lab.owner_pid) {
                self.wait_for_owner(&lab)?;
            }
            if !self.is_owned(&lab.name) {
                self.remove(&lab)?;
                removed.push(lab.name);
            }
        }
        // Begun under the lock that we have: killed before its state was written, with nothing made.
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for folder in folders.map(|e| e.path()).filter(|p| p.is_dir()) {
            if !folder.join("state.json").exists() {
                fs::remove_dir_all(&folder)
                    .map_err(|e| LabError::failed(format!("removing {}", folder.display()), e))?;
            }
        }
        Ok(removed)
    }

    fn remove(&self, state: &LabState) -> Result<(), LabError> {
        let mut failures = Vec::new();
        // Processes first: they hold taps, namespaces and cgroups.
        for r in state.resources.iter().filter(|r| matches!(r, Resource::Process { .. })) {
            end(r).unwrap_or_else(|e| failures.push(e.to_string()));
        }
        for r in state.resources.iter().rev() {
            end(r).unwrap_or_else(|e| failures.push(e.to_string()));
        }
        if !failures.is_empty() {
            return Err(LabError::failed(
                format!("removing lab {}", state.name),
                format!("{}; `netwright lab down {}` tries again", failures.join("; "), state.name),
            ));
        }
        let folder = self.folder_of(&state.name);
        match fs::remove_dir_all(&folder) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(LabError::failed(format!("removing {}", folder.display()), e))
            }
            _ => Ok(()),
        }
    }
}

/// A lab being brought up: each resource is recorded before it is made. If dropped before
/// [`Lab::complete`], also during a panic, the lab removes itself.
pub struct Lab {
    pub folder: PathBuf,
    pub state: LabState,
    /// Locked while the lab is in use; [`Registry::is_owned`] tests the lock.
    pub owner: fs::File,
    registry: Registry,
    armed: bool,
}

impl Lab {
    /// Records a resource that is about to be made.
    ///
    /// # Errors
    /// The state cannot be written: then nothing may be made.
    pub fn will_make(&mut self, resource: Resource) -> Result<(), LabError> {
        self.state.resources.push(resource);
        self.save()
    }

    /// Records a process started by [`tool::command_after_release`], then lets it continue.
    ///
    /// # Errors
    /// The state cannot be written; the process is killed then.
    pub fn release(&mut self, child: &mut Child, what: &str) -> Result<(), LabError> {
        let pid = child.id();
        let start_ticks = start_ticks(pid).unwrap_or(0);
        self.state.resources.push(Resource::Process { pid, start_ticks, what: what.to_owned() });
        let recorded = self.save();
        let released = recorded.and_then(|()| {
            let gate = child.stdin.take();
            gate.map_or(Ok(()), |mut g| g.write_all(b"go\n"))
                .map_err(|e| LabError::failed(format!("starting {what}"), e))
        });
        released.inspect_err(|_| drop(child.kill()))
    }

    pub fn add_host(&mut self, host: HostState) {
        self.state.hosts.push(host);
    }

    /// Adds a note for the user.
    pub fn note(&mut self, line: impl Into<String>) {
        self.state.notes.push(line.into());
    }

    /// Finishes bringing up: the lab stays until `down`.
    ///
    /// # Errors
    /// The state cannot be written; the lab is removed then.
    pub fn complete(mut self) -> Result<LabState, LabError> {
        self.state.complete = true;
        self.save()?;
        self.armed = false;
        Ok(self.state.clone())
    }

    /// Writes the state atomically: to a new file, synced, then renamed.
    fn save(&self) -> Result<(), LabError> {
        let failed = |e: std::io::Error| {
            LabError::failed(format!("writing the state of lab {}", self.state.name), e)
        };
        let new = self.folder.join("state.json.new");
        let mut file = fs::File::create(&new).map_err(failed)?;
        let text = serde_json::to_string(&self.state).map_err(|e| failed(e.into()))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&new, self.folder.join("state.json")).map_err(failed)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.armed {
            let _ = self.registry.remove(&self.state);
        }
    }
}

fn read_state(folder: &Path) -> Result<LabState, String> {
    let text = fs::read(folder.join("state.json")).map_err(|e| e.to_string())?;
    model::json::read(&text).map_err(|e| e.to_string())
}

/// Checks a lab name, which becomes part of file, namespace and cgroup names.
fn check_name(name: &str) -> Result<(), LabError> {
    let fine = !name.is_empty()
        && name.len() <= 32
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.starts_with('-');
    if fine {
        Ok(())
    } else {
        Err(LabError::Usage(format!(
            "{name:?} is no lab name: use 1 to 32 of a-z, 0-9 and '-', not starting with '-'"
        )))
    }
}

/// A process's start time in ticks since boot: with the pid, its identity. `None` where it has ended,
/// also while its parent has not waited for it: a watchdog may look sooner.
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    let stat = Root::live().parsed(&format!("/proc/{pid}/stat"), parse::task_stat::parse);
    stat.into_known().filter(|s| !matches!(s.state, 'Z' | 'X')).map(|s| s.start_ticks)
}

fn is_alive(pid: u32, ticks: u64) -> bool {
    start_ticks(pid) == Some(ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_climb_or_collide_are_refused() {
        for bad in ["", "..", "a/b", "A", "a b", "-x", &"x".repeat(33)] {
            assert!(check_name(bad).is_err(), "{bad:?} was taken");
        }
        assert!(check_name("queues-2").is_ok());
    }

    #[test]
    fn a_process_that_nobody_waited_for_has_ended() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while start_ticks(child.id()).is_some() {
            assert!(std::time::Instant::now() < until, "it counts as alive");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.wait().unwrap();
    }

    #[test]
    fn own_start_time_is_known_and_another_ones_differs() {
        let mine = start_ticks(std::process::id());
        assert!(mine.is_some());
        assert_ne!(mine, start_ticks(1));
    }
}
