//! The source of everything about a host.
//!
//! All data comes through a [`Root`]: files by their path on the host, and other sources (netlink,
//! ioctl, system calls) through [`Root::ask`] under a key. A live root can record what it returns.
//! The recording is a snapshot, which returns the same answers when it is read.

mod archive;
mod dir;
mod live;
mod printed;
pub mod record;

use std::{
    str::FromStr,
    sync::{Arc, OnceLock},
};

use model::{
    CpuSet, Reading,
    snapshot::{Manifest, SampleTime},
};
use parse::ParseError;
use serde::{Serialize, de::DeserializeOwned};

use crate::{ReadError, error::reading};
pub(crate) use archive::is_magic;
pub use archive::{ArchiveError, Limits};
pub(crate) use printed::{ETHTOOL_DRIVER, SocketKind};
use record::Recorder;

/// The largest file that is read whole: `/proc/interrupts` of 1,024 CPUs and 4,096 interrupts
/// is 47 MB.
pub const MAX_FILE_BYTES: u64 = 256 << 20;

/// The largest manifest that is believed: 50,000 folder listings take a few megabytes.
pub const MAX_MANIFEST_BYTES: u64 = 64 << 20;

/// Symbolic links on one path, as many as the kernel itself follows.
const MAX_LINK_HOPS: u32 = 40;

/// Where [`Root::ask`] keeps its answers within a directory or archive.
pub const ANSWERS: &str = "/netwright/answers";

/// A source of raw facts. Cheap to clone, shared between threads.
#[derive(Clone)]
pub struct Root {
    backing: Arc<Backing>,
    recorder: Option<Arc<Recorder>>,
    /// Set within one sample of the counters: where a directory, archive or recording keeps it.
    sample: Option<u32>,
    /// The first read that failed for want of descriptors or memory.
    exhausted: Arc<OnceLock<ReadError>>,
    /// What tools printed, see [`Root::printed`].
    printed: Arc<OnceLock<printed::Printed>>,
}

enum Backing {
    Live,
    Dir(dir::DirRoot),
    Archive(archive::ArchiveRoot),
}

impl Backing {
    /// A file of a directory or an archive.
    fn read(&self, path: &str) -> Result<Vec<u8>, i32> {
        match self {
            Self::Live => Err(libc::ENOENT),
            Self::Dir(d) => d.read(path),
            Self::Archive(a) => a.read_file(path).map(<[u8]>::to_vec),
        }
    }

    /// The names in a folder of it.
    fn entries(&self, path: &str) -> Result<Vec<String>, i32> {
        match self {
            Self::Live => Err(libc::ENOENT),
            Self::Dir(d) => d.entries(path),
            Self::Archive(a) => a.entries(path),
        }
    }
}

/// What was asked of a path, for errors: a folder may be listed and not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Op {
    Read,
    List,
    Link,
    Resolve,
}

impl Op {
    /// The key of an error in a manifest, see [`Manifest::errors`].
    fn key(self, place: &str) -> String {
        let mark = match self {
            Self::Read => "",
            Self::List => "/",
            Self::Link => "@",
            Self::Resolve => "=",
        };
        format!("{place}{mark}")
    }

    /// The error that was recorded for this, if any.
    fn recorded(self, manifest: Option<&Manifest>, place: &str) -> Result<(), i32> {
        match manifest {
            Some(m) if !m.errors.is_empty() => {
                m.errors.get(&self.key(place)).map_or(Ok(()), |&errno| Err(errno))
            }
            _ => Ok(()),
        }
    }
}

/// The one folder in a folder that holds a host's files, as an unpacked support archive has it; else
/// the folder itself.
fn within(path: &std::path::Path) -> std::path::PathBuf {
    let is_host = |folder: &std::path::Path| {
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
        archive::HOSTS_OWN.iter().any(|name| folder.join(name).is_dir())
            || names.into_iter().any(|e| e.file_name().to_str().is_some_and(printed::is_known))
    };
    if is_host(path) {
        return path.to_owned();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut folders = entries.map(|e| e.path()).filter(|p| p.is_dir() && !p.is_symlink());
    match (folders.next(), folders.next()) {
        (Some(only), None) if is_host(&only) => only,
        _ => path.to_owned(),
    }
}

impl Root {
    /// The host that this runs on.
    pub fn live() -> Self {
        Self {
            backing: Arc::new(Backing::Live),
            recorder: None,
            sample: None,
            exhausted: Arc::default(),
            printed: Arc::default(),
        }
    }

    /// The live host, recording everything that is read.
    pub fn recording(recorder: Arc<Recorder>) -> Self {
        Self {
            backing: Arc::new(Backing::Live),
            recorder: Some(recorder),
            sample: None,
            exhausted: Arc::default(),
            printed: Arc::default(),
        }
    }

    /// A directory, a snapshot or a support archive; the one folder that holds all of it may stand
    /// around it.
    ///
    /// # Errors
    /// When the path is neither, or the archive is truncated, too large or hostile.
    pub fn open(path: &std::path::Path) -> Result<Self, ArchiveError> {
        let backing = if path.is_dir() {
            Backing::Dir(dir::DirRoot::open(&within(path))?)
        } else {
            Backing::Archive(archive::ArchiveRoot::open(path, &Limits::default())?)
        };
        Ok(Self {
            backing: Arc::new(backing),
            recorder: None,
            sample: None,
            exhausted: Arc::default(),
            printed: Arc::default(),
        })
    }

    /// A snapshot archive from a stream. The error is one line.
    ///
    /// # Errors
    /// When it is truncated, larger than `limits` or hostile.
    pub fn read_archive(from: impl std::io::Read, limits: &Limits) -> Result<Self, String> {
        let backing = Backing::Archive(archive::ArchiveRoot::read(from, limits)?);
        Ok(Self {
            backing: Arc::new(backing),
            recorder: None,
            sample: None,
            exhausted: Arc::default(),
            printed: Arc::default(),
        })
    }

    /// Whether what is read is kept, so that it should be the sources themselves.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorder.is_some()
    }

    /// Whether this is the running host, so that waiting and asking the kernel make sense.
    pub fn is_live(&self) -> bool {
        matches!(*self.backing, Backing::Live)
    }

    /// Whether a missing file was missing on the host too: true for the running host and our
    /// snapshots. A copied tree may lack anything.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_live() || self.manifest().is_some()
    }

    /// The manifest of a snapshot; `None` for the live host and plain trees.
    pub fn manifest(&self) -> Option<&Manifest> {
        match &*self.backing {
            Backing::Live => None,
            Backing::Dir(d) => d.manifest(),
            Backing::Archive(a) => a.manifest(),
        }
    }

    /// The same host at sample `n` of its counters. On the live host the present moment.
    #[must_use]
    pub fn at_sample(&self, n: u32) -> Self {
        Self { sample: Some(n), ..self.clone() }
    }

    /// Notes when a sample was read; only a recording keeps it.
    pub(crate) fn sample_taken(&self, time: &SampleTime) {
        if let Some(r) = &self.recorder {
            r.sample_taken(time.clone());
        }
    }

    /// The first read that failed for lack of descriptors or memory (`EMFILE`, `ENFILE`, `ENOMEM`);
    /// `None` without one. Later missing values prove nothing about the host: the caller must give
    /// up.
    pub fn exhausted(&self) -> Option<&ReadError> {
        self.exhausted.get()
    }

    /// The error of a read; one for want of descriptors or memory is kept for
    /// [`Root::exhausted`].
    fn failed(&self, path: &str, errno: i32) -> ReadError {
        self.noted(ReadError::from_errno(path, errno))
    }

    fn noted(&self, error: ReadError) -> ReadError {
        if let ReadError::Failed { errno: libc::EMFILE | libc::ENFILE | libc::ENOMEM, .. } = error {
            let _ = self.exhausted.set(error.clone());
        }
        error
    }

    /// Where `path` is kept in a directory, archive or recording.
    fn place(&self, path: &str) -> String {
        match self.sample {
            None => path.to_owned(),
            Some(n) => format!("/netwright/samples/{n}{path}"),
        }
    }

    /// A whole file.
    ///
    /// # Errors
    /// As the kernel answered, see [`ReadError`].
    pub fn read(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        self.read_with(path, live::read)
    }

    /// The first `most` bytes of a file, such as PCI configuration space; some devices fail when
    /// all of it is read.
    ///
    /// # Errors
    /// The kernel's answer, see [`ReadError`].
    pub fn read_head(&self, path: &str, most: usize) -> Result<Vec<u8>, ReadError> {
        self.read_with(path, |p| live::read_head(p, most)).map(|mut bytes| {
            bytes.truncate(most);
            bytes
        })
    }

    fn read_with(
        &self,
        path: &str,
        live: impl FnOnce(&str) -> Result<Vec<u8>, i32>,
    ) -> Result<Vec<u8>, ReadError> {
        let place = self.place(path);
        match (&*self.backing, &self.recorder) {
            (Backing::Live, Some(r)) => r.read(&place, path, live),
            (Backing::Live, None) => live(path),
            (other, _) => other.read(&place),
        }
        .or_else(|errno| {
            self.printed_file(path).and_then(|text| text.read(&self.backing)).ok_or(errno)
        })
        .map_err(|errno| self.failed(path, errno))
    }

    /// What tools printed into a support archive, for what it lacks; `None` for a host of which nothing
    /// is missing.
    fn printed(&self) -> Option<&printed::Printed> {
        let read = || printed::Printed::read(&self.backing);
        (!self.is_whole()).then(|| self.printed.get_or_init(read))
    }

    /// A file of the kernel by what tools printed.
    fn printed_file(&self, path: &str) -> Option<&printed::Text> {
        let kernels = ["/proc/", "/sys/", "/etc/"].iter().any(|top| path.starts_with(top));
        self.printed().filter(|_| kernels)?.file(path)
    }

    /// What the first of these commands printed into a support archive that is in it, of this interface,
    /// or of none where it is empty: `ethtool -l`, `eth0`.
    pub(crate) fn output(&self, commands: &[&str], nic: &str) -> Option<Vec<u8>> {
        self.printed()?.outputs.find(commands, nic)?.read(&self.backing)
    }

    /// The file of a support archive that has what a command printed.
    pub(crate) fn output_file(&self, command: &str) -> Option<String> {
        Some(self.printed()?.outputs.find(&[command], "")?.origin.clone())
    }

    /// What `ss` printed of these sockets into a support archive.
    pub(crate) fn socket_text(&self, kind: SocketKind) -> Option<Vec<u8>> {
        self.printed()?.outputs.sockets(kind)?.read(&self.backing)
    }

    /// The source of a piece of evidence: where a tool's text stands in for the kernel's file, that text's
    /// file.
    #[must_use]
    pub fn source(&self, source: &str) -> String {
        self.printed().map_or_else(|| source.to_owned(), |p| p.source(&self.backing, source))
    }

    /// A whole file piece by piece, for those too large to hold. What was given before an error
    /// came is not the file.
    ///
    /// # Errors
    /// As the kernel answered.
    pub fn pieces(&self, path: &str, piece: &mut dyn FnMut(&[u8])) -> Result<(), ReadError> {
        let result = match &*self.backing {
            // A recording needs the whole.
            Backing::Live if self.recorder.is_some() => {
                piece(&self.read(path)?);
                return Ok(());
            }
            Backing::Live => live::pieces(path, piece),
            Backing::Dir(d) => d.pieces(&self.place(path), piece),
            Backing::Archive(a) => a.read_file(&self.place(path)).map(&mut *piece),
        };
        if result.is_err()
            && let Some(text) = self.printed_file(path).and_then(|t| t.read(&self.backing))
        {
            piece(&text);
            return Ok(());
        }
        result.map_err(|errno| self.failed(path, errno))
    }

    /// Lets the next read of a file ask the host again, where a recording would repeat itself:
    /// for a table that was torn by a change while the kernel wrote it.
    pub(crate) fn forget(&self, path: &str) {
        if let Some(r) = &self.recorder {
            r.forget(&self.place(path), path);
        }
    }

    /// The names in a folder, ascending, without `.` and `..`.
    ///
    /// # Errors
    /// As the kernel answered.
    pub fn entries(&self, path: &str) -> Result<Vec<String>, ReadError> {
        let place = self.place(path);
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        match (&*self.backing, &self.recorder) {
            (Backing::Live, Some(r)) => r.entries(&place, || live::entries(path).map(sorted)),
            (Backing::Live, None) => live::entries(path).map(sorted),
            (other, _) => other.entries(&place).map(sorted),
        }
        .or_else(|errno| self.printed().and_then(|p| p.entries(path)).ok_or(errno))
        .map_err(|errno| self.failed(path, errno))
    }

    /// The target of a symbolic link, as written.
    ///
    /// # Errors
    /// `EINVAL` where the path is no link.
    pub fn link(&self, path: &str) -> Result<String, ReadError> {
        let place = self.place(path);
        match (&*self.backing, &self.recorder) {
            (Backing::Live, Some(r)) => r.link(&place, path),
            (Backing::Live, None) => live::link(path),
            (Backing::Dir(d), _) => d.link(&place),
            (Backing::Archive(a), _) => a.link(&place),
        }
        .or_else(|e| self.printed().and_then(|p| p.link(path)).map(str::to_owned).ok_or(e))
        .map_err(|errno| self.failed(path, errno))
    }

    /// The path with every symbolic link followed, within the root. Of a sample of the
    /// counters it is the host's own path: links are not sampled.
    ///
    /// # Errors
    /// When a component is missing.
    pub fn resolve(&self, path: &str) -> Result<String, ReadError> {
        match (&*self.backing, &self.recorder) {
            (Backing::Live, Some(r)) => r.resolve(path),
            (Backing::Live, None) => live::resolve(path),
            (Backing::Dir(d), _) => d.resolve(path),
            (Backing::Archive(a), _) => a.resolve(path),
        }
        .map_err(|errno| self.failed(path, errno))
    }

    /// Whether the path is there (a dangling link is not).
    pub fn exists(&self, path: &str) -> bool {
        let file = match &*self.backing {
            Backing::Dir(d) => d.exists(path),
            Backing::Live | Backing::Archive(_) => self.resolve(path).is_ok(),
        };
        file || self.printed_file(path).is_some()
    }

    /// An answer that is not a file: netlink, ioctl, a system call. Live, `ask` is called; a
    /// snapshot gives what was recorded under `key` (letters, digits, `-`, `_`, `.`, `/`).
    ///
    /// # Errors
    /// As `ask` answered; absent where a directory or snapshot has no such answer.
    pub fn ask<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        ask: impl FnOnce() -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let place = self.place(&record::answer_place(key));
        let stored = match (&*self.backing, &self.recorder) {
            (Backing::Live, None) => return ask().map_err(|e| self.noted(e)),
            (Backing::Live, Some(r)) => r.answer(&place, ask).map_err(|e| self.noted(e))?,
            (other, _) => other.read(&place).ok(),
        };
        let bytes = stored.ok_or_else(|| ReadError::Absent { path: key.to_owned() })?;
        record::answered(key, &bytes)
    }

    /// A file through a parser.
    pub fn parsed<T>(
        &self,
        path: &str,
        parser: impl FnOnce(&[u8]) -> Result<T, ParseError>,
    ) -> Reading<T> {
        reading(self.read(path).and_then(|b| {
            parser(&b).map_err(|error| ReadError::Unparsable { path: path.to_owned(), error })
        }))
    }

    /// A file holding one number.
    pub fn number<T: FromStr>(&self, path: &str) -> Reading<T> {
        self.parsed(path, parse::text::number)
    }

    /// A file holding one word or line; an empty one is absent.
    pub fn word(&self, path: &str) -> Reading<String> {
        reading(self.read(path)).map(|b| parse::text::word(&b)).and_then(|w| {
            if w.is_empty() { Reading::Absent(format!("{path}: empty")) } else { Reading::Known(w) }
        })
    }

    /// A file holding a cpulist; an empty one is the empty set.
    pub fn list(&self, path: &str) -> Reading<CpuSet> {
        self.parsed(path, parse::list::parse)
    }

    /// A file holding a hex mask.
    pub fn mask(&self, path: &str) -> Reading<CpuSet> {
        self.parsed(path, parse::hexmask::parse)
    }
}
