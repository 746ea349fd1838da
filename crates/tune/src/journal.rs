//! The journal: each write is recorded on disk before it is made. Undoing uses nothing else.
//!
//! A change set is a file `journal/NUMBER.jsonl`, append-only, one JSON record a line. `Begin`,
//! `Writing` and every record that ends a state are synced before the next action; the directory is
//! synced when a file is created in it. Nothing is rewritten: a record torn by a crash stays,
//! closed by a line end, and the next record reuses its number.

pub(crate) mod fold;
pub(crate) mod line;
pub(crate) mod read;

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Read, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use model::tune::{Event, Record, Trouble};
use read::JournalError;

pub use fold::{Armed, JournaledSet, Write as Made, step};
pub use line::sealed;

use crate::{
    TuneError,
    lock::{self, Lock, LockAttempt},
    owned_file,
};

/// Where journals are kept unless asked otherwise.
pub const DEFAULT_STATE: &str = "/var/lib/netwright";

/// Reason recorded for an undo that the user requested.
pub const ASKED: &str = "it was asked for";

/// Names that netwright uses in a state directory.
const OURS: [&str; 5] = ["journal", "lock", "persist.json", "fix", "prove"];

/// A state directory with its journals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    state: PathBuf,
}

/// The journal of one change set, open for appending.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    next_seq: u64,
    /// Whether the last line lacks its end: the next record begins with one.
    torn: bool,
    /// Why the journal cannot be written, if known from the start.
    shut: Option<TuneError>,
    /// Records that could not be written.
    unwritten: Vec<Event>,
    /// The change set's number.
    pub id: u64,
}

impl Store {
    /// Creates and reads nothing yet.
    pub fn at(state: impl Into<PathBuf>) -> Self {
        Self { state: state.into() }
    }

    /// The given state directory, else that of NETWRIGHT_STATE, else the default.
    pub fn of(state_dir: Option<PathBuf>) -> Self {
        let asked = state_dir.or_else(|| std::env::var_os("NETWRIGHT_STATE").map(PathBuf::from));
        let path = asked.filter(|p| !p.as_os_str().is_empty());
        let path = path.unwrap_or_else(|| PathBuf::from(DEFAULT_STATE));
        // The watchdog runs in another working directory.
        Self::at(std::path::absolute(&path).unwrap_or(path))
    }

    /// The folder of the journals.
    pub fn folder(&self) -> PathBuf {
        self.state.join("journal")
    }

    /// The state directory, parent of the journals.
    pub fn state(&self) -> &Path {
        &self.state
    }

    fn lock_file(&self) -> PathBuf {
        self.state.join("lock")
    }

    fn file_of(&self, id: u64) -> PathBuf {
        self.folder().join(format!("{id:06}.jsonl"))
    }

    /// Whether a change is being made or undone now.
    ///
    /// # Errors
    /// The lock cannot be examined.
    pub fn is_locked(&self) -> Result<bool, TuneError> {
        lock::is_held(&self.lock_file())
    }

    /// Creates the directories on disk, accessible to this user only.
    fn make(&self) -> Result<(), TuneError> {
        owned_file::close_own(&self.state, &OURS)?;
        let folder = self.folder();
        if !owned_file::make_folder(&folder)? {
            return Ok(());
        }
        for made in [Some(folder.as_path()), Some(&self.state), self.state.parent()] {
            let Some(made) = made.filter(|m| !m.as_os_str().is_empty()) else { continue };
            sync_folder(made).map_err(|e| TuneError::io(&made.display().to_string(), &e))?;
        }
        Ok(())
    }

    /// Tries to take the lock once.
    ///
    /// # Errors
    /// The directory or the lock file cannot be created, or is not ours.
    pub fn try_lock(&self) -> Result<LockAttempt, TuneError> {
        self.make()?;
        lock::try_lock(&self.lock_file())
    }

    /// Takes the lock. `wait` limits the wait, `None` waits without limit. `waiting` is called once
    /// with the holder.
    ///
    /// # Errors
    /// Another process has it, or the directory cannot be created.
    pub fn lock(
        &self,
        wait: Option<Duration>,
        waiting: &mut dyn FnMut(&str),
    ) -> Result<Lock, TuneError> {
        /// Another command that only reads holds the lock this briefly.
        const A_LOOK: Duration = Duration::from_millis(100);
        let begun = Instant::now();
        let mut reported = false;
        loop {
            let holder = match self.try_lock()? {
                LockAttempt::Acquired(lock) => return Ok(lock),
                LockAttempt::Held(holder) => {
                    holder.map_or("another process".into(), |pid| format!("process {pid}"))
                }
            };
            if wait.is_some_and(|w| begun.elapsed() >= w.max(A_LOOK)) {
                return Err(TuneError::Environment(format!(
                    "{holder} is changing this host right now (lock {})",
                    self.lock_file().display()
                )));
            }
            if !reported && begun.elapsed() >= A_LOOK {
                reported = true;
                waiting(&format!("waiting for {holder}, which is changing this host right now"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Numbers of all change sets, ascending; empty if there is no journal directory.
    ///
    /// # Errors
    /// The directory cannot be read, or is not ours; [`TuneError::Denied`] without permission.
    pub fn ids(&self) -> Result<Vec<u64>, TuneError> {
        let folder = self.folder();
        if !owned_file::folder(&self.state)? || !owned_file::folder(&folder)? {
            return Ok(vec![]);
        }
        let failed = |e: std::io::Error| owned_file::cannot_read(&folder.display().to_string(), &e);
        let mut ids = Vec::new();
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let id = name.to_str().and_then(|n| n.strip_suffix(".jsonl"));
            ids.extend(id.and_then(|n| n.parse::<u64>().ok()));
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// Length of a change's journal in bytes; it only grows.
    ///
    /// # Errors
    /// The file cannot be examined.
    pub fn length(&self, id: u64) -> Result<u64, TuneError> {
        let path = self.file_of(id);
        let found = owned_file::open(&path, OpenOptions::new().read(true))?.metadata();
        found.map(|f| f.len()).map_err(|e| TuneError::io(&path.display().to_string(), &e))
    }

    fn read(&self, id: u64) -> Result<Vec<u8>, TuneError> {
        let path = self.file_of(id);
        let mut bytes = Vec::new();
        owned_file::open(&path, OpenOptions::new().read(true))?
            .read_to_end(&mut bytes)
            .map_err(|e| TuneError::io(&path.display().to_string(), &e))?;
        Ok(bytes)
    }

    /// One change set from its journal; `None` if its first record was never written, so nothing
    /// was done.
    ///
    /// # Errors
    /// The file cannot be read or is damaged; the message names the line.
    pub fn set(&self, id: u64) -> Result<Option<JournaledSet>, TuneError> {
        let file = self.file_of(id).display().to_string();
        let bytes = self.read(id)?;
        // A file gets its name once its first record is on disk.
        let none = match bytes.is_empty() {
            true => "the file is empty",
            false => "no line of it is a record",
        };
        let records = match read::records(&bytes) {
            Ok(records) if records.is_empty() => Err(JournalError::Damaged(none.into())),
            read => read,
        };
        let records = records.map_err(|unread| {
            TuneError::Journal(Box::new(match unread {
                JournalError::Damaged(why) => Trouble::JournalDamaged { file, why },
                JournalError::Newer(what) => Trouble::JournalNewer { file, what },
            }))
        })?;
        Ok(JournaledSet::fold(records))
    }

    /// The last change after `id` that a newer netwright journaled: which knobs it set is unknown.
    ///
    /// # Errors
    /// When a journal cannot be read.
    pub fn newer_after(&self, id: u64) -> Result<Option<u64>, TuneError> {
        for later in self.ids()?.into_iter().rev().take_while(|later| *later > id) {
            if matches!(read::records(&self.read(later)?), Err(JournalError::Newer(_))) {
                return Ok(Some(later));
            }
        }
        Ok(None)
    }

    /// Every change set, ascending; the second list holds messages on damaged journals.
    ///
    /// # Errors
    /// When one is there and cannot be read at this moment: it may be in force.
    pub fn sets(&self) -> Result<(Vec<JournaledSet>, Vec<Trouble>), TuneError> {
        let (mut sets, mut damaged) = (Vec::new(), Vec::new());
        for id in self.ids()? {
            match self.set(id) {
                Ok(set) => sets.extend(set),
                Err(e @ TuneError::Denied(_)) => return Err(e),
                Err(TuneError::Journal(trouble)) => damaged.push(*trouble),
                Err(e) => {
                    let file = self.file_of(id).display().to_string();
                    damaged.push(Trouble::JournalUnread { file, why: e.to_string() });
                }
            }
        }
        Ok((sets, damaged))
    }

    /// Begins a change set; `first` makes its first record from its number. Needs the lock. If
    /// interrupted, the set does not exist.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(&self, _: &Lock, first: impl FnOnce(u64) -> Event) -> Result<Journal, TuneError> {
        let id = self.ids()?.last().map_or(1, |last| last + 1);
        let path = self.file_of(id);
        let failed = |e: std::io::Error| TuneError::io(&path.display().to_string(), &e);
        let unnamed = self.folder().join("begun.new");
        remove(&unnamed).map_err(failed)?;
        let file = owned_file::open(&unnamed, OpenOptions::new().append(true).create_new(true))?;
        // Opened before the file has its name: a set begun but unknown to us would block every
        // command.
        let folder = File::open(self.folder()).map_err(failed)?;
        let mut journal = Journal {
            file,
            path: path.clone(),
            next_seq: 1,
            torn: false,
            shut: None,
            unwritten: vec![],
            id,
        };
        if let Err(e) = journal.sync(first(id)) {
            let _ = remove(&unnamed);
            return Err(e);
        }
        fs::rename(&unnamed, &path).map_err(failed)?;
        if let Err(e) = folder.sync_all() {
            let _ = remove(&path);
            return Err(failed(e));
        }
        Ok(journal)
    }

    /// Reopens a change set for more records. Needs the lock.
    ///
    /// # Errors
    /// The journal cannot be opened or is damaged.
    pub fn resume(&self, id: u64, _: &Lock) -> Result<Journal, TuneError> {
        let path = self.file_of(id);
        let file = owned_file::open(&path, OpenOptions::new().read(true).append(true))?;
        Self::opened(file, path, id)
    }

    /// Reopens a change set to undo it. Undoing needs only the old values, so on a read-only file
    /// system the journal accepts no records. Needs the lock.
    ///
    /// # Errors
    /// The journal cannot be read or is damaged.
    pub fn resume_to_undo(&self, id: u64, lock: &Lock) -> Result<Journal, TuneError> {
        let path = self.file_of(id);
        let failed = |e: std::io::Error| TuneError::io(&path.display().to_string(), &e);
        match OpenOptions::new().append(true).open(&path) {
            Err(e) if e.kind() == ErrorKind::ReadOnlyFilesystem => {
                let file = owned_file::open(&path, OpenOptions::new().read(true))?;
                let shut = Some(failed(e));
                Ok(Journal { shut, ..Self::opened(file, path, id)? })
            }
            _ => self.resume(id, lock),
        }
    }

    fn opened(mut file: File, path: PathBuf, id: u64) -> Result<Journal, TuneError> {
        let name = path.display().to_string();
        let failed = |e: std::io::Error| TuneError::io(&name, &e);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let records = read::records(&bytes)
            .map_err(|why| TuneError::Environment(format!("{name}: {why}")))?;
        let torn = bytes.last().is_some_and(|b| *b != b'\n');
        let next_seq = records.len() as u64 + 1;
        Ok(Journal { file, path, next_seq, torn, shut: None, unwritten: vec![], id })
    }
}

impl Journal {
    /// Appends a record and waits until it is on disk.
    ///
    /// # Errors
    /// The record cannot be written: the action it announces must not follow.
    pub fn sync(&mut self, event: Event) -> Result<(), TuneError> {
        self.append(event)?;
        self.file.sync_data().map_err(|e| TuneError::io(&self.path.display().to_string(), &e))
    }

    /// Appends a record without a sync; it survives a crash of this process, not one of the
    /// machine.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, event: Event) -> Result<(), TuneError> {
        let reported = match &self.shut {
            Some(why) => Err(why.clone()),
            None => self.write(&event),
        };
        if reported.is_err() {
            self.unwritten.push(event);
        }
        reported
    }

    /// Records that could not be written, in order.
    pub fn unwritten(self) -> Vec<Event> {
        self.unwritten
    }

    fn write(&mut self, event: &Event) -> Result<(), TuneError> {
        let failed = |e: &std::io::Error| TuneError::io(&self.path.display().to_string(), e);
        let (seq, at_unix_ms) = (self.next_seq, now_unix_ms());
        let record = Record { seq, at_unix_ms, event: event.clone(), crc32: String::new() };
        // Ends a torn line first, so that this record has its own line.
        let mut line = if self.torn { vec![b'\n'] } else { vec![] };
        line.extend(line::of(&record).map_err(|e| failed(&e.into()))?);
        line.push(b'\n');
        // One call: the record is whole or torn, never mixed with another.
        match self.file.write(&line) {
            Ok(n) if n == line.len() => self.torn = false,
            Ok(_) => {
                self.torn = true;
                return Err(TuneError::written(&self.path.display().to_string(), libc::ENOSPC));
            }
            Err(e) => return Err(failed(&e)),
        }
        self.next_seq += 1;
        Ok(())
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn sync_folder(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

/// Current time in milliseconds since 1970 (Unix epoch).
pub fn now_unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_there_and_cannot_be_read_is_not_one_without_changes() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::at(state.path());
        assert_eq!(store.ids().unwrap(), [0; 0]);
        let folder = store.folder();
        std::os::unix::fs::symlink(&folder, &folder).unwrap();
        let why = store.ids().unwrap_err().to_string();
        assert!(why.contains(&folder.display().to_string()), "{why}");
        store.sets().unwrap_err();
        store.newer_after(0).unwrap_err();
        let lock = store.lock(None, &mut |_| {}).unwrap_err();
        assert!(lock.to_string().contains("ELOOP"), "{lock}");
        fs::remove_file(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        assert_eq!(store.ids().unwrap(), [0; 0]);
    }
}
