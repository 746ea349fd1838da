//! The record: a file with a line for each step, written before the step counts. It has the runs,
//! and the commands that still must be undone.
//!
//! A setting is written and synced before its command runs. If an experiment is killed, the next
//! `prove` undoes its settings, even for another experiment.

mod killed;

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{ErrorKind, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use model::prove::{FrozenHost, Run};
use serde::{Deserialize, Serialize};

use tune::owned_file;

use crate::{ProveError, spec::Spec};

pub use killed::{ClearedSettings, undo_killed};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry {
    Begun(Box<RecordHead>),
    /// The boot of the host under which the following lines were written.
    Boot(String),
    /// The network namespace in which the following commands ran.
    Namespace(NamespaceId),
    /// A setting about to be made; `undo` is the command that reverts it.
    Setting {
        undo: String,
    },
    Undone {
        undo: String,
    },
    /// The frozen state of the host; the last such line counts.
    Held(FrozenHost),
    Run(Box<Run>),
    /// Broken off for this reason; can be resumed.
    Stopped(String),
    Ended(String),
}

/// A network namespace, identified as in [`model::tune::HostId`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceId {
    inode: u64,
    net_cookie: Option<u64>,
}

impl NamespaceId {
    /// The namespace of this process.
    fn here() -> Option<Self> {
        let id = tune::Host::live().id();
        Some(Self { inode: id.net_namespace.get()?, net_cookie: id.net_cookie.get() })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordHead {
    /// When the experiment began, seconds since 1970.
    pub started_unix_s: u64,
    /// The experiment's name, as shown in the verdict.
    pub name: String,
    pub spec: Spec,
    /// Seed of the random order of runs.
    pub seed: u64,
}

/// The contents of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordContent {
    pub begun: RecordHead,
    pub runs: Vec<Run>,
    /// Undo commands for the settings that are still in force, the last one first.
    pub pending: Vec<String>,
    /// Why it ended; `None` while it has not.
    pub ended: Option<String>,
    /// Why it was broken off; `None` where it was resumed since, or killed.
    pub stopped: Option<String>,
    /// Whether another process is writing it now.
    pub under_way: bool,
    /// The frozen state of the host; `None` where it was never frozen.
    pub held: Option<FrozenHost>,
    /// The boot of the host under which it was last written; `None` where unknown.
    pub boot_id: Option<String>,
    /// The network namespace in which its commands last ran; `None` where unknown.
    pub place: Option<NamespaceId>,
}

impl RecordContent {
    /// Whether the host was rebooted since.
    pub fn rebooted(&self) -> bool {
        self.boot_id.as_ref().zip(boot_id()).is_some_and(|(then, now)| *then != now)
    }

    /// Whether it was last written in another network namespace of this boot.
    pub fn is_elsewhere(&self) -> bool {
        let differs = |(then, here): (&NamespaceId, NamespaceId)| {
            let cookies = then.net_cookie.zip(here.net_cookie);
            then.inode != here.inode || cookies.is_some_and(|(a, b)| a != b)
        };
        !self.rebooted() && self.place.as_ref().zip(NamespaceId::here()).is_some_and(differs)
    }
}

/// The kernel's id of the present boot.
///
/// **Source**: `/proc/sys/kernel/random/boot_id`.
fn boot_id() -> Option<String> {
    probe::Root::live().word("/proc/sys/kernel/random/boot_id").into_known()
}

/// A record open for writing, locked against a second writer.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    file: File,
}

impl Record {
    /// Creates a record. An existing record moves aside ([`aside`]); an empty file is used.
    ///
    /// # Errors
    /// The existing file is no record, another process writes it, or the folder cannot
    /// be written.
    pub fn create(path: &Path, begun: &RecordHead) -> Result<Self, ProveError> {
        let e = |e| ProveError::file(path, e);
        if let Some(folder) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
            made.map_err(|e| ProveError::file(folder, e))?;
        }
        let mut record = match at(path)? {
            PathContent::Empty => Self::open(path)?,
            found => {
                if found == PathContent::Record {
                    drop(Self::open(path)?);
                    std::fs::rename(path, aside(path)).map_err(e)?;
                }
                // Its commands are run later: no other user may write them.
                let mut new = OpenOptions::new();
                let file = new.create_new(true).append(true).mode(0o644).open(path);
                let record = Self { path: path.to_owned(), file: file.map_err(e)? };
                record.lock()?;
                record
            }
        };
        record.write(&Entry::Begun(Box::new(begun.clone())))?;
        record.booted()?;
        // The directory entry must survive a loss of power too, or nothing would tell what to undo.
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            File::open(folder)
                .and_then(|f| f.sync_all())
                .map_err(|e| ProveError::file(folder, e))?;
        }
        Ok(record)
    }

    /// Opens an existing record to continue it.
    ///
    /// # Errors
    /// There is none, or another process writes it.
    pub fn open(path: &Path) -> Result<Self, ProveError> {
        let file = OpenOptions::new().append(true).read(true).open(path);
        let file = file.map_err(|e| ProveError::file(path, e))?;
        let record = Self { path: path.to_owned(), file };
        record.lock()?;
        Ok(record)
    }

    /// Reopens a record that was broken off.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn resume(path: &Path) -> Result<Self, ProveError> {
        let mut record = Self::open(path)?;
        record.past()?;
        record.booted()?;
        Ok(record)
    }

    /// Opens a record of this user, so that its commands can be run safely.
    ///
    /// # Errors
    /// It belongs to another user, others may write it, or another process writes it.
    fn ours(path: &Path) -> Result<Self, ProveError> {
        let file = owned_file::open(path, OpenOptions::new().append(true).read(true))?;
        let record = Self { path: path.to_owned(), file };
        record.lock()?;
        Ok(record)
    }

    /// Reads the record. Removes an incomplete last line, so that the next line starts clean.
    fn past(&mut self) -> Result<RecordContent, ProveError> {
        let e = |e| ProveError::file(&self.path, e);
        let mut bytes = Vec::new();
        self.file.rewind().and_then(|()| self.file.read_to_end(&mut bytes)).map_err(e)?;
        let past = parsed(&self.path, &bytes, true)?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            self.file.set_len(whole as u64).and_then(|()| self.file.sync_data()).map_err(e)?;
        }
        Ok(past)
    }

    fn booted(&mut self) -> Result<(), ProveError> {
        boot_id().map_or(Ok(()), |id| self.write(&Entry::Boot(id)))?;
        NamespaceId::here().map_or(Ok(()), |place| self.write(&Entry::Namespace(place)))
    }

    fn lock(&self) -> Result<(), ProveError> {
        let taken = || self.file.try_lock().is_ok();
        // A reader that only looks holds the lock for a moment.
        let again = || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            taken()
        };
        match taken() || (0..5).any(|_| again()) {
            true => Ok(()),
            false => Err(ProveError::Busy(format!(
                "{path}: another experiment writes it; --record FILE keeps this one's elsewhere, and \
                 `netwright prove --status --record {path}` shows that one",
                path = self.path.display()
            ))),
        }
    }

    fn write(&mut self, entry: &Entry) -> Result<(), ProveError> {
        let e = |e| ProveError::file(&self.path, e);
        let mut line = serde_json::to_vec(entry).map_err(|j| e(j.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).and_then(|()| self.file.sync_data()).map_err(e)
    }

    /// Records a setting that is about to be made.
    pub(crate) fn setting(&mut self, undo: &str) -> Result<(), ProveError> {
        self.write(&Entry::Setting { undo: undo.to_owned() })
    }

    pub(crate) fn undone(&mut self, undo: &str) -> Result<(), ProveError> {
        self.write(&Entry::Undone { undo: undo.to_owned() })
    }

    pub(crate) fn run(&mut self, run: &Run) -> Result<(), ProveError> {
        self.write(&Entry::Run(Box::new(run.clone())))
    }

    /// Records the frozen state of the host.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn held(&mut self, held: &FrozenHost) -> Result<(), ProveError> {
        self.write(&Entry::Held(held.clone()))
    }

    /// Records that it was broken off and can be resumed.
    pub(crate) fn stopped(&mut self, why: &str) -> Result<(), ProveError> {
        self.write(&Entry::Stopped(why.to_owned()))
    }

    pub(crate) fn ended(&mut self, why: &str) -> Result<(), ProveError> {
        self.write(&Entry::Ended(why.to_owned()))
    }
}

/// Whether a new record can be created at this path. It can where nothing is, an empty file is, or
/// a record is, which then moves aside.
///
/// # Errors
/// Another kind of file is there, or it cannot be read.
pub fn room(path: &Path) -> Result<(), ProveError> {
    at(path).map(|_| ())
}

/// What exists at a record's path.
#[derive(Debug, PartialEq, Eq)]
enum PathContent {
    Nothing,
    Empty,
    Record,
}

/// The first bytes of every record, also of one with an incomplete first line.
const HEAD: &[u8] = br#"{"begun":{"started_unix_s":"#;

fn at(path: &Path) -> Result<PathContent, ProveError> {
    let e = |e| ProveError::file(path, e);
    let foreign = || {
        let path = path.display();
        ProveError::Spec(format!("{path}: is no record of prove: name another file"))
    };
    let found = match std::fs::metadata(path) {
        Err(none) if none.kind() == ErrorKind::NotFound => return Ok(PathContent::Nothing),
        found => found.map_err(e)?,
    };
    // A device or a pipe is not even opened.
    if !found.is_file() {
        return Err(foreign());
    }
    let mut head = Vec::new();
    File::open(path).and_then(|f| f.take(HEAD.len() as u64).read_to_end(&mut head)).map_err(e)?;
    match head.as_slice() {
        [] => Ok(PathContent::Empty),
        HEAD => Ok(PathContent::Record),
        _ => Err(foreign()),
    }
}

/// The largest record that is read, bytes.
const MOST_BYTES: u64 = 1 << 30;

/// Reads a record, also while another process writes it. An incomplete last line is ignored.
///
/// # Errors
/// There is none, it is no record, or a line is damaged.
pub fn read(path: &Path) -> Result<RecordContent, ProveError> {
    // Non-blocking: opening a pipe would wait for a writer.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(|e| ProveError::file(path, e))?;
    // Checked before reading: an experiment that ends in between then counts as under way, as its
    // text does.
    let under_way = is_locked(&file);
    let bytes = probe::given::read(path, MOST_BYTES).map_err(|e| ProveError::file(path, e))?;
    parsed(path, &bytes, under_way)
}

pub(crate) fn parsed(
    path: &Path,
    bytes: &[u8],
    under_way: bool,
) -> Result<RecordContent, ProveError> {
    let no_record = || ProveError::Spec(format!("{}: is no record of prove", path.display()));
    let mut lines = bytes.split_inclusive(|b| *b == b'\n').enumerate();
    let first = lines.next().map(|(_, line)| model::json::read::<Entry>(line));
    let Some(Ok(Entry::Begun(begun))) = first else { return Err(no_record()) };
    let mut past = RecordContent {
        begun: *begun,
        runs: vec![],
        pending: vec![],
        ended: None,
        stopped: None,
        under_way,
        held: None,
        boot_id: None,
        place: None,
    };
    for (n, line) in lines {
        let entry = match model::json::read::<Entry>(line) {
            Ok(entry) => entry,
            // The last line is incomplete.
            Err(_) if !line.ends_with(b"\n") => break,
            Err(_) => {
                return Err(ProveError::Damaged(format!(
                    "{}: line {} is damaged: what that experiment left set cannot be told; its lines \
                     name the commands (\"undo\"): put right by hand what is left, then move the file away",
                    path.display(),
                    n + 1
                )));
            }
        };
        match entry {
            Entry::Begun(_) => return Err(no_record()),
            // The first line that a resumed experiment writes.
            Entry::Boot(id) => (past.boot_id, past.stopped) = (Some(id), None),
            Entry::Namespace(place) => past.place = Some(place),
            Entry::Setting { undo } => past.pending.insert(0, undo),
            Entry::Undone { undo } => {
                if let Some(at) = past.pending.iter().position(|p| *p == undo) {
                    past.pending.remove(at);
                }
            }
            Entry::Held(held) => past.held = Some(held),
            Entry::Run(run) => past.runs.push(*run),
            Entry::Stopped(why) => past.stopped = Some(why),
            Entry::Ended(why) => past.ended = Some(why),
        }
    }
    Ok(past)
}

/// Where an existing record moves to: `….before.jsonl`, or `….before-2.jsonl` and so on where that
/// name has a resumable record or another file. The extension stays, so its settings are still
/// undone.
pub fn aside(path: &Path) -> PathBuf {
    let named = |n: String| path.with_extension(format!("before{n}.jsonl"));
    let mut more = (2..).map(|n| named(format!("-{n}")));
    let first = named(String::new());
    let stays = |path: &Path| may_go_on(path) || room(path).is_err();
    match stays(&first) {
        true => more.find(|p| !stays(p)).unwrap_or(first),
        false => first,
    }
}

/// Whether a record can be resumed: it has runs, and its experiment has not ended.
pub fn may_go_on(path: &Path) -> bool {
    read(path).is_ok_and(|past| past.ended.is_none() && !past.runs.is_empty())
}

/// Whether a record has a writer. The check holds a shared lock for a moment.
fn is_locked(file: &File) -> bool {
    let taken = file.try_lock_shared().is_ok();
    if taken {
        let _ = file.unlock();
    }
    !taken
}

#[cfg(test)]
mod tests;
