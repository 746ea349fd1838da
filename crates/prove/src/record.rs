//! What was done, a line each, on disk before it counts: runs, and what is still to be undone.
//!
//! A setting is written and synced before its command runs, so that an experiment which was
//! killed is undone by the next `prove`, whatever that one is about.

mod killed;

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{ErrorKind, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use model::prove::{FrozenHost, Run};
use serde::{Deserialize, Serialize};

use tune::private;

use crate::{ProveError, spec::Spec};

pub use killed::{Cleared, undo_killed};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry {
    Begun(Box<RecordHead>),
    /// The boot of the host under which the lines after it were written.
    Boot(String),
    /// The network namespace in which commands after it ran.
    Namespace(NamespaceId),
    /// About to be set; `undo` undoes it.
    Setting {
        undo: String,
    },
    Undone {
        undo: String,
    },
    /// What is held still, or was, the last one telling.
    Held(FrozenHost),
    Run(Box<Run>),
    /// Broken off, for this reason: it may be gone on with.
    Stopped(String),
    Ended(String),
}

/// A network namespace, as [`model::tune::HostId`] names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceId {
    inode: u64,
    net_cookie: Option<u64>,
}

impl NamespaceId {
    /// That of this process.
    fn here() -> Option<Self> {
        let id = tune::Host::live().id();
        Some(Self { inode: id.net_namespace.get()?, net_cookie: id.net_cookie.get() })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordHead {
    /// Seconds since 1970.
    pub started_unix_s: u64,
    /// What it is called.
    pub name: String,
    pub spec: Spec,
    /// What the order of runs is drawn from.
    pub seed: u64,
}

/// A record as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    pub begun: RecordHead,
    pub runs: Vec<Run>,
    /// Commands that undo what is still set, the last set first.
    pub pending: Vec<String>,
    /// Why it ended, if it did.
    pub ended: Option<String>,
    /// Why it was broken off, if it said so and was not gone on with.
    pub stopped: Option<String>,
    /// Whether somebody writes it now.
    pub under_way: bool,
    /// What was held still.
    pub held: Option<FrozenHost>,
    /// The boot of the host under which it was last written.
    pub boot_id: Option<String>,
    /// The network namespace in which its commands ran last.
    pub place: Option<NamespaceId>,
}

impl Past {
    /// Whether the host was booted since.
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

/// **Source**: `/proc/sys/kernel/random/boot_id`.
fn boot_id() -> Option<String> {
    probe::Root::live().word("/proc/sys/kernel/random/boot_id").into_known()
}

/// A record that is being written, locked against a second writer.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    file: File,
}

impl Record {
    /// A new one; one that is there is kept beside it ([`aside`]), an empty file is taken.
    ///
    /// **Errors**: what is there is no record, somebody writes it, or the folder says no.
    pub fn create(path: &Path, begun: &RecordHead) -> Result<Self, ProveError> {
        let e = |e| ProveError::file(path, e);
        if let Some(folder) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
            made.map_err(|e| ProveError::file(folder, e))?;
        }
        let mut record = match at(path)? {
            At::Empty => Self::open(path)?,
            found => {
                if found == At::Record {
                    drop(Self::open(path)?);
                    std::fs::rename(path, aside(path)).map_err(e)?;
                }
                // Its commands are run again: nobody else is to write them.
                let mut new = OpenOptions::new();
                let file = new.create_new(true).append(true).mode(0o644).open(path);
                let record = Self { path: path.to_owned(), file: file.map_err(e)? };
                record.lock()?;
                record
            }
        };
        record.write(&Entry::Begun(Box::new(begun.clone())))?;
        record.booted()?;
        // The name too outlives a loss of power, or nobody would know what is to be undone.
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            File::open(folder)
                .and_then(|f| f.sync_all())
                .map_err(|e| ProveError::file(folder, e))?;
        }
        Ok(record)
    }

    /// One that is there, to go on with.
    ///
    /// **Errors**: there is none, or somebody writes it.
    pub fn open(path: &Path) -> Result<Self, ProveError> {
        let file = OpenOptions::new().append(true).read(true).open(path);
        let file = file.map_err(|e| ProveError::file(path, e))?;
        let record = Self { path: path.to_owned(), file };
        record.lock()?;
        Ok(record)
    }

    /// One that was broken off, to go on with.
    ///
    /// **Errors**: as of [`Self::open`].
    pub fn resume(path: &Path) -> Result<Self, ProveError> {
        let mut record = Self::open(path)?;
        record.past()?;
        record.booted()?;
        Ok(record)
    }

    /// One of ours, whose commands can be run.
    ///
    /// **Errors**: it is another user's, or others may write it; somebody writes it.
    fn ours(path: &Path) -> Result<Self, ProveError> {
        let file = private::open(path, OpenOptions::new().append(true).read(true))?;
        let record = Self { path: path.to_owned(), file };
        record.lock()?;
        Ok(record)
    }

    /// What is in it. A last line that was cut off goes away, so that the next one stands alone.
    fn past(&mut self) -> Result<Past, ProveError> {
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
        // Who only looks has it for a moment.
        let again = || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            taken()
        };
        match taken() || (0..5).any(|_| again()) {
            true => Ok(()),
            false => Err(ProveError::Busy(format!(
                "{path}: another experiment writes it; --record FILE keeps this one's elsewhere, and \
                 `netwright prove --peek --record {path}` looks at that one",
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

    /// A setting is about to be made.
    pub(crate) fn setting(&mut self, undo: &str) -> Result<(), ProveError> {
        self.write(&Entry::Setting { undo: undo.to_owned() })
    }

    pub(crate) fn undone(&mut self, undo: &str) -> Result<(), ProveError> {
        self.write(&Entry::Undone { undo: undo.to_owned() })
    }

    pub(crate) fn run(&mut self, run: &Run) -> Result<(), ProveError> {
        self.write(&Entry::Run(Box::new(run.clone())))
    }

    /// What is held still, or was until the end.
    ///
    /// **Errors**: the file cannot be written.
    pub fn held(&mut self, held: &FrozenHost) -> Result<(), ProveError> {
        self.write(&Entry::Held(held.clone()))
    }

    /// It was broken off, and may be gone on with.
    pub(crate) fn stopped(&mut self, why: &str) -> Result<(), ProveError> {
        self.write(&Entry::Stopped(why.to_owned()))
    }

    pub(crate) fn ended(&mut self, why: &str) -> Result<(), ProveError> {
        self.write(&Entry::Ended(why.to_owned()))
    }
}

/// Whether a new record can be at this path: nothing is there, an empty file, or a record, which makes room.
///
/// **Errors**: what is there is something else, or cannot be read.
pub fn room(path: &Path) -> Result<(), ProveError> {
    at(path).map(|_| ())
}

/// What is where a record goes.
#[derive(Debug, PartialEq, Eq)]
enum At {
    Nothing,
    Empty,
    Record,
}

/// How every record begins, one too whose first line was cut off.
const HEAD: &[u8] = br#"{"begun":{"started_unix_s":"#;

fn at(path: &Path) -> Result<At, ProveError> {
    let e = |e| ProveError::file(path, e);
    let foreign = || {
        let path = path.display();
        ProveError::Spec(format!("{path}: is no record of prove: name another file"))
    };
    let found = match std::fs::metadata(path) {
        Err(none) if none.kind() == ErrorKind::NotFound => return Ok(At::Nothing),
        found => found.map_err(e)?,
    };
    // A device or a pipe is not even opened.
    if !found.is_file() {
        return Err(foreign());
    }
    let mut head = Vec::new();
    File::open(path).and_then(|f| f.take(HEAD.len() as u64).read_to_end(&mut head)).map_err(e)?;
    match head.as_slice() {
        [] => Ok(At::Empty),
        HEAD => Ok(At::Record),
        _ => Err(foreign()),
    }
}

/// The largest record that is read.
const MOST_BYTES: u64 = 1 << 30;

/// Reads a record, also one that is being written. A last line that was cut off is left out.
///
/// **Errors**: there is none, it is no record, or a line of it is damaged.
pub fn read(path: &Path) -> Result<Past, ProveError> {
    // Opening a pipe does not wait for who writes into it.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(|e| ProveError::file(path, e))?;
    // Before it is read: who ends between the two is under way in the text as well.
    let under_way = is_locked(&file);
    let bytes = probe::given::read(path, MOST_BYTES).map_err(|e| ProveError::file(path, e))?;
    parsed(path, &bytes, under_way)
}

pub(crate) fn parsed(path: &Path, bytes: &[u8], under_way: bool) -> Result<Past, ProveError> {
    let no_record = || ProveError::Spec(format!("{}: is no record of prove", path.display()));
    let mut lines = bytes.split_inclusive(|b| *b == b'\n').enumerate();
    let first = lines.next().map(|(_, line)| serde_json::from_slice::<Entry>(line));
    let Some(Ok(Entry::Begun(begun))) = first else { return Err(no_record()) };
    let mut past = Past {
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
        let entry = match serde_json::from_slice::<Entry>(line) {
            Ok(entry) => entry,
            // Cut off, the last.
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
            // The first line of whoever goes on with it.
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

/// Where a record goes that makes room for a new one: `….before.jsonl`, or, where one there can still be
/// gone on with or is no record, `….before-2.jsonl` and so on. By its ending it stays one of those whose settings are undone.
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

/// Whether a record can be gone on with: it has runs, and its experiment has not ended.
pub fn may_go_on(path: &Path) -> bool {
    read(path).is_ok_and(|past| past.ended.is_none() && !past.runs.is_empty())
}

/// Whether a record has a writer. A look takes the lock for a moment, shared with other looks.
fn is_locked(file: &File) -> bool {
    let taken = file.try_lock_shared().is_ok();
    if taken {
        let _ = file.unlock();
    }
    !taken
}

#[cfg(test)]
mod tests;
