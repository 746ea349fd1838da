//! The host that is read and written: the running host, or a directory tree laid out like one (for
//! rehearsals, and for tests that no namespace can hold).

mod affinity;
mod ethtool;
pub mod irqbalance;
pub mod napi;
pub mod qdisc;
pub mod route;
mod rtnetlink;
mod segments;
pub mod service;

use std::{
    fs::OpenOptions,
    io::Write,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use model::{Reading, tune::HostId};
use probe::Root;

use crate::{
    TuneError,
    netns::{self, Namespace, NamespaceEntry},
};

/// A host to change. Everything is read through probe's [`Root`]; every write is one of the
/// functions here.
pub struct Host {
    root: Root,
    /// Root of the directory tree; `None` for the running host.
    tree: Option<PathBuf>,
    /// The other network namespace that this process entered for this host.
    namespace: Option<(String, NamespaceEntry)>,
}

impl Host {
    pub fn live() -> Self {
        Self { root: Root::live(), tree: None, namespace: None }
    }

    /// The running host seen from a network namespace. The process enters that namespace for good;
    /// if it is in it already, this is the running host.
    ///
    /// # Errors
    /// As [`Namespace::enter`].
    pub fn from(namespace: &Namespace) -> Result<Self, TuneError> {
        if namespace.is_here() {
            // /sys may still belong to another namespace. Without the privilege to remount it, it
            // is read as it is.
            return match namespace.enter() {
                Ok(()) | Err(TuneError::Denied(_)) => Ok(Self::live()),
                Err(e) => Err(e),
            };
        }
        namespace.enter()?;
        Ok(Self {
            root: Root::live(),
            tree: None,
            namespace: Some((namespace.name.clone(), namespace.way().clone())),
        })
    }

    /// The other network namespace that this process entered for this host.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_ref().map(|(name, _)| name.as_str())
    }

    /// A classic command, prefixed so that it works from the namespace where this process was
    /// started.
    pub fn line(&self, command: &str) -> String {
        self.namespace.as_ref().map_or_else(|| command.to_owned(), |(_, way)| way.line(command))
    }

    /// A directory tree.
    ///
    /// # Errors
    /// When it is no directory: an archive can be read but not written.
    pub fn tree(path: &Path) -> Result<Self, TuneError> {
        let name = path.display();
        if !path.is_dir() {
            return Err(TuneError::Environment(format!(
                "{name}: no folder; a snapshot can be planned for, but only a host or a folder changed"
            )));
        }
        let tree = path.canonicalize().map_err(|e| TuneError::io(&name.to_string(), &e))?;
        let root = Root::open(&tree).map_err(|e| TuneError::Environment(e.to_string()))?;
        Ok(Self { root, tree: Some(tree), namespace: None })
    }

    /// A host for reading only, such as a snapshot: every write is refused.
    pub fn read_only(root: Root) -> Self {
        Self { root, tree: Some(PathBuf::new()), namespace: None }
    }

    /// The root that everything is read through.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Whether it is the running one.
    pub fn is_live(&self) -> bool {
        self.tree.is_none()
    }

    /// Identity of the host: machine, boot and network namespace.
    pub fn id(&self) -> HostId {
        let namespace = self
            .root
            .link("/proc/self/ns/net")
            .ok()
            .and_then(|l| l.strip_prefix("net:[")?.strip_suffix(']')?.parse::<u64>().ok());
        HostId {
            name: self.root.word("/proc/sys/kernel/hostname"),
            machine_id: self.root.word("/etc/machine-id"),
            boot_id: self.root.word("/proc/sys/kernel/random/boot_id"),
            net_namespace: namespace
                .map_or_else(|| Reading::absent("/proc/self/ns/net: no such link"), Reading::Known),
            net_cookie: self.is_live().then(netns::cookie).flatten().map_or_else(
                || Reading::absent("SO_NETNS_COOKIE: not on this kernel"),
                Reading::Known,
            ),
        }
    }

    /// A file's text, exactly.
    ///
    /// # Errors
    /// As the kernel answered; one that is no text is an error.
    pub fn text(&self, path: &str) -> Result<String, TuneError> {
        let bytes = self.root.read(path).map_err(|e| TuneError::read(&e))?;
        String::from_utf8(bytes)
            .map_err(|_| TuneError::Environment(format!("{path}: holds no text")))
    }

    /// Start time of a process or thread, in ticks since boot; with the number it identifies the
    /// process. `process` is a directory of `/proc`: `self`, `4711`, `4711/task/4712`.
    ///
    /// # Errors
    /// Absent when it is gone.
    pub fn start_ticks(&self, process: &str) -> Result<u64, TuneError> {
        let path = format!("/proc/{process}/stat");
        let bytes = self.root.read(&path).map_err(|e| TuneError::read(&e))?;
        parse::task_stat::parse(&bytes)
            .map(|stat| stat.start_ticks)
            .map_err(|_| TuneError::Environment(format!("{path}: makes no sense")))
    }

    /// Whether the process with this number and start time lives. A zombie (`Z`, or `X` while
    /// exiting) does not, though its number is still taken.
    pub fn lives(&self, pid: u32, start_ticks: u64) -> bool {
        let stat = self.root.read(&format!("/proc/{pid}/stat")).ok();
        let stat = stat.and_then(|s| parse::task_stat::parse(&s).ok());
        stat.is_some_and(|s| s.start_ticks == start_ticks && !matches!(s.state, 'Z' | 'X' | 'x'))
    }

    /// Creates a kernel directory (a cgroup); an existing one is used.
    ///
    /// # Errors
    /// As the kernel answered; a folder laid out like a host has none.
    pub fn make_folder(&self, path: &str) -> Result<(), TuneError> {
        self.only_live(path)?;
        match std::fs::create_dir(path) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            other => other.map_err(|e| TuneError::io(path, &e)),
        }
    }

    /// Removes a kernel directory; a missing one is no error.
    ///
    /// # Errors
    /// `EBUSY` while it is not empty.
    pub fn remove_folder(&self, path: &str) -> Result<(), TuneError> {
        self.only_live(path)?;
        match std::fs::remove_dir(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(|e| TuneError::io(path, &e)),
        }
    }

    /// Writes a file of the service manager atomically: it holds the old text or the new.
    ///
    /// # Errors
    /// As the kernel answered; a folder laid out like a host has no services.
    pub fn put_file(&self, path: &str, text: &str) -> Result<(), TuneError> {
        self.only_live(path)?;
        let beside = format!("{path}.new");
        std::fs::write(&beside, text)
            .and_then(|()| std::fs::rename(&beside, path))
            .map_err(|e| TuneError::io(path, &e))
    }

    /// Removes a file; a missing one is no error.
    ///
    /// # Errors
    /// As the kernel answered.
    pub fn remove_file(&self, path: &str) -> Result<(), TuneError> {
        self.only_live(path)?;
        for path in [&format!("{path}.new"), path] {
            match std::fs::remove_file(path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(TuneError::io(path, &e));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn only_live(&self, path: &str) -> Result<(), TuneError> {
        if self.is_live() {
            return Ok(());
        }
        Err(TuneError::Environment(format!("{path}: made and taken away on a running host only")))
    }

    /// Writes `bytes` at an offset, in one call; the rest of the file stays.
    ///
    /// # Errors
    /// As the kernel answered.
    pub fn write_at(&self, path: &str, offset: u64, bytes: &[u8]) -> Result<(), TuneError> {
        let failed = |e: std::io::Error| TuneError::io(path, &e);
        let place = self.place(path)?;
        let file = OpenOptions::new().write(true).open(place).map_err(failed)?;
        match file.write_at(bytes, offset).map_err(failed)? {
            n if n == bytes.len() => Ok(()),
            n => Err(TuneError::Environment(format!(
                "{path}: took only {n} of {} bytes",
                bytes.len()
            ))),
        }
    }

    /// Path of a file on the running host's file system.
    fn place(&self, path: &str) -> Result<PathBuf, TuneError> {
        let Some(tree) = &self.tree else { return Ok(PathBuf::from(path)) };
        let inside = tree.join(path.trim_start_matches('/'));
        let real = inside.canonicalize().map_err(|e| TuneError::io(path, &e))?;
        if tree.as_os_str().is_empty() || !real.starts_with(tree) {
            return Err(TuneError::Denied(format!("{path}: outside of the tree")));
        }
        Ok(real)
    }

    /// Writes a kernel file in one call: kernel files take a value whole or not at all.
    ///
    /// # Errors
    /// As the kernel answered.
    pub fn write(&self, path: &str, value: &str) -> Result<(), TuneError> {
        let failed = |e: std::io::Error| TuneError::io(path, &e);
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(libc::O_NOCTTY);
        options.truncate(!self.is_live());
        let place = self.place(path)?;
        let mut file = options.open(place).map_err(failed)?;
        let written = file.write(value.as_bytes()).map_err(failed)?;
        if written == value.len() {
            Ok(())
        } else {
            Err(TuneError::Environment(format!(
                "{path}: took only {written} of {} bytes",
                value.len()
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_nobody_reaped_does_not_live() {
        let host = Host::live();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id();
        let start = host.start_ticks(&pid.to_string()).unwrap();
        assert!(host.lives(pid, start) && !host.lives(pid, start + 1));
        child.kill().unwrap();
        // Until its parent reaps it, its number stays taken.
        let give_up = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while host.lives(pid, start) && std::time::Instant::now() < give_up {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(host.start_ticks(&pid.to_string()).unwrap(), start);
        assert!(!host.lives(pid, start));
        child.wait().unwrap();
    }

    #[test]
    fn a_tree_is_written_inside_only() {
        let tree = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        let sys = tree.path().join("sys");
        std::fs::create_dir(&sys).unwrap();
        std::fs::write(sys.join("mtu"), "1500\n").unwrap();
        std::os::unix::fs::symlink(outside.path(), sys.join("away")).unwrap();
        let host = Host::tree(tree.path()).unwrap();
        host.write("/sys/mtu", "9000").unwrap();
        assert_eq!(host.text("/sys/mtu").unwrap(), "9000");
        assert!(matches!(host.write("/sys/away", "x"), Err(TuneError::Denied(_))));
        assert!(matches!(host.write("/sys/none", "x"), Err(TuneError::Absent(_))));
        assert_eq!(std::fs::read(outside.path()).unwrap(), b"");
    }
}
