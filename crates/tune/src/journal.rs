//! What was really written, on disk before it is: the only source for undoing.
//!
//! A change set is a file `journal/NUMBER.jsonl`, append-only, a JSON record a line. `Begin`,
//! `Writing` and every record that ends a state are synced before anything else happens; the
//! folder is synced when a file is made in it. Nothing is ever rewritten: what a crash tore is
//! left where it is, after a line end of its own, and the next record takes its number.

mod fold;
mod read;

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use model::tune::{Event, Record};
use read::Unread;

pub use fold::{Armed, Set, Write as Made, step};

use crate::{
    TuneError,
    lock::{self, Lock, Tried},
};

/// Where journals are kept unless asked otherwise.
pub const DEFAULT_STATE: &str = "/var/lib/netwright";

/// A place for journals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    state: PathBuf,
}

/// A change set's journal, open for more.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    next_seq: u64,
    /// The last line has no end: the next record begins with one.
    torn: bool,
    /// Why nothing can be written to it, where that is known from the beginning.
    shut: Option<TuneError>,
    /// What it could not be told.
    untold: Vec<Event>,
    /// The change set's number.
    pub id: u64,
}

impl Store {
    /// Nothing is made or read yet.
    pub fn at(state: impl Into<PathBuf>) -> Self {
        Self { state: state.into() }
    }

    /// The folder of the journals.
    pub fn folder(&self) -> PathBuf {
        self.state.join("journal")
    }

    /// The folder above it.
    pub fn state(&self) -> &Path {
        &self.state
    }

    fn lock_file(&self) -> PathBuf {
        self.state.join("lock")
    }

    fn file_of(&self, id: u64) -> PathBuf {
        self.folder().join(format!("{id:06}.jsonl"))
    }

    /// Whether a change is being made or undone right now.
    pub fn is_locked(&self) -> bool {
        lock::is_held(&self.lock_file())
    }

    /// Makes the folders, on disk.
    fn make(&self) -> Result<(), TuneError> {
        let folder = self.folder();
        if folder.is_dir() {
            return Ok(());
        }
        let failed = |e: std::io::Error| TuneError::io(&folder.display().to_string(), &e);
        DirBuilder::new().recursive(true).mode(0o755).create(&folder).map_err(failed)?;
        for made in [Some(folder.as_path()), Some(&self.state), self.state.parent()] {
            let Some(made) = made.filter(|m| !m.as_os_str().is_empty()) else { continue };
            sync_folder(made).map_err(failed)?;
        }
        Ok(())
    }

    /// Takes the lock. `wait` says how long for, `None` as long as it takes; `waiting` is told
    /// once who has it.
    ///
    /// # Errors
    /// When somebody else has it, or the folder cannot be made.
    pub fn lock(
        &self,
        wait: Option<Duration>,
        waiting: &mut dyn FnMut(&str),
    ) -> Result<Lock, TuneError> {
        /// A look by another command takes the lock for a moment.
        const A_LOOK: Duration = Duration::from_millis(100);
        self.make()?;
        let begun = Instant::now();
        let mut told = false;
        loop {
            let holder = match lock::try_lock(&self.lock_file())? {
                Tried::Ours(lock) => return Ok(lock),
                Tried::Theirs(holder) => {
                    holder.map_or("another process".into(), |pid| format!("process {pid}"))
                }
            };
            if wait.is_some_and(|w| begun.elapsed() >= w.max(A_LOOK)) {
                return Err(TuneError::Environment(format!(
                    "{holder} is changing this host right now (lock {})",
                    self.lock_file().display()
                )));
            }
            if !told && begun.elapsed() >= A_LOOK {
                told = true;
                waiting(&format!("waiting for {holder}, which is changing this host right now"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Numbers of all change sets, ascending; none where there never was one.
    pub fn ids(&self) -> Vec<u64> {
        let Ok(entries) = fs::read_dir(self.folder()) else { return vec![] };
        let id = |e: Result<fs::DirEntry, _>| -> Option<u64> {
            e.ok()?.file_name().to_str()?.strip_suffix(".jsonl")?.parse().ok()
        };
        let mut ids: Vec<u64> = entries.filter_map(id).collect();
        ids.sort_unstable();
        ids
    }

    /// One change set as its journal tells; `None` where its first record was never written:
    /// then nothing was done either.
    ///
    /// # Errors
    /// When the file cannot be read or makes no sense; the message names the line.
    pub fn set(&self, id: u64) -> Result<Option<Set>, TuneError> {
        let path = self.file_of(id);
        let name = path.display().to_string();
        let bytes = fs::read(&path).map_err(|e| TuneError::io(&name, &e))?;
        let damaged = |why: &str| TuneError::Environment(format!("{name}: {why}; {BY_HAND}"));
        let records = read::records(&bytes).map_err(|why| match why {
            Unread::Damaged(_) => damaged(&why.to_string()),
            Unread::Newer(_) => TuneError::Environment(format!("{name}: {why}")),
        })?;
        // A file gets its name once its first record is on disk.
        if records.is_empty() {
            return Err(damaged(match bytes.is_empty() {
                true => "the file is empty; the journal is damaged",
                false => "no line of it is a record; the journal is damaged",
            }));
        }
        Ok(Set::fold(records))
    }

    /// The last change after `id` whose journal a newer netwright wrote: what it set is not known.
    pub fn newer_after(&self, id: u64) -> Option<u64> {
        let is_newer = |id: &u64| {
            let records = fs::read(self.file_of(*id)).map(|bytes| read::records(&bytes));
            matches!(records, Ok(Err(Unread::Newer(_))))
        };
        self.ids().into_iter().rev().take_while(|later| *later > id).find(is_newer)
    }

    /// Whether it can be a place for journals; one that is not there is.
    ///
    /// # Errors
    /// [`TuneError::Environment`] where there is something else than a folder.
    pub fn is_place(&self) -> Result<(), TuneError> {
        let folder = self.folder();
        let other = match fs::metadata(&folder) {
            Ok(there) => !there.is_dir(),
            Err(e) => e.kind() == ErrorKind::NotADirectory,
        };
        if !other {
            return Ok(());
        }
        let path = if self.state.is_dir() { &folder } else { &self.state };
        Err(TuneError::Environment(format!(
            "{}: is no folder; journals are kept in one (--state-dir, NETWRIGHT_STATE)",
            path.display()
        )))
    }

    /// Whether all of it may be read.
    ///
    /// # Errors
    /// The first file or folder that is there and cannot be read; [`TuneError::Denied`] where this
    /// process may not.
    pub fn may_read(&self) -> Result<(), TuneError> {
        let folder = self.folder();
        let unread =
            |path: &Path, e: &std::io::Error| TuneError::io(&path.display().to_string(), e);
        match fs::read_dir(&folder) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(unread(&folder, &e)),
            _ => {}
        }
        for path in self.ids().into_iter().map(|id| self.file_of(id)) {
            match File::open(&path) {
                Err(e) if e.kind() == ErrorKind::PermissionDenied => return Err(unread(&path, &e)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Every change set, ascending; what makes no sense is in the second list.
    pub fn sets(&self) -> (Vec<Set>, Vec<String>) {
        let (mut sets, mut damaged) = (Vec::new(), Vec::new());
        for id in self.ids() {
            match self.set(id) {
                Ok(set) => sets.extend(set),
                Err(e) => damaged.push(e.to_string()),
            }
        }
        (sets, damaged)
    }

    /// Begins a change set with its first record, made by its number. Only with the lock. Cut short,
    /// there is no such set.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(&self, _: &Lock, first: impl FnOnce(u64) -> Event) -> Result<Journal, TuneError> {
        let id = self.ids().last().map_or(1, |last| last + 1);
        let path = self.file_of(id);
        let failed = |e: std::io::Error| TuneError::io(&path.display().to_string(), &e);
        let unnamed = self.folder().join("begun.new");
        remove(&unnamed).map_err(failed)?;
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o644)
            .open(&unnamed)
            .map_err(failed)?;
        let mut journal = Journal {
            file,
            path: path.clone(),
            next_seq: 1,
            torn: false,
            shut: None,
            untold: vec![],
            id,
        };
        if let Err(e) = journal.sync(first(id)) {
            let _ = remove(&unnamed);
            return Err(e);
        }
        fs::rename(&unnamed, &path).map_err(failed)?;
        sync_folder(&self.folder()).map_err(failed)?;
        Ok(journal)
    }

    /// Goes on with a change set. Only with the lock.
    ///
    /// # Errors
    /// When the journal cannot be opened or makes no sense.
    pub fn resume(&self, id: u64, _: &Lock) -> Result<Journal, TuneError> {
        let path = self.file_of(id);
        let name = path.display().to_string();
        let failed = |e: std::io::Error| TuneError::io(&name, &e);
        let file = OpenOptions::new().read(true).append(true).open(&path).map_err(failed)?;
        Self::opened(file, path, id)
    }

    /// The same to undo: the old values count, so on a file system that is read-only the journal is
    /// one that can be told nothing. Only with the lock.
    ///
    /// # Errors
    /// When the journal cannot be read or makes no sense.
    pub fn resume_to_undo(&self, id: u64, lock: &Lock) -> Result<Journal, TuneError> {
        let path = self.file_of(id);
        let failed = |e: std::io::Error| TuneError::io(&path.display().to_string(), &e);
        match OpenOptions::new().append(true).open(&path) {
            Err(e) if e.kind() == ErrorKind::ReadOnlyFilesystem => {
                let file = File::open(&path).map_err(failed)?;
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
        Ok(Journal { file, path, next_seq, torn, shut: None, untold: vec![], id })
    }
}

impl Journal {
    /// Appends a record and waits until it is on disk.
    ///
    /// # Errors
    /// When it cannot be written: then what it announces must not be done.
    pub fn sync(&mut self, event: Event) -> Result<(), TuneError> {
        self.append(event)?;
        self.file.sync_data().map_err(|e| TuneError::io(&self.path.display().to_string(), &e))
    }

    /// Appends a record; a crash of the machine may lose it, a crash of this process not.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, event: Event) -> Result<(), TuneError> {
        let told = match &self.shut {
            Some(why) => Err(why.clone()),
            None => self.write(&event),
        };
        if told.is_err() {
            self.untold.push(event);
        }
        told
    }

    /// What it could not be told, in order.
    pub fn untold(self) -> Vec<Event> {
        self.untold
    }

    fn write(&mut self, event: &Event) -> Result<(), TuneError> {
        let failed = |e: &std::io::Error| TuneError::io(&self.path.display().to_string(), e);
        let record = Record { seq: self.next_seq, at_unix_ms: now_unix_ms(), event: event.clone() };
        // A torn line is closed first, so that this one stands alone.
        let mut line = if self.torn { vec![b'\n'] } else { vec![] };
        serde_json::to_writer(&mut line, &record).map_err(|e| failed(&e.into()))?;
        line.push(b'\n');
        // One call: a record is there or torn, never mixed with another.
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

/// What to do with a journal that makes no sense.
const BY_HAND: &str = "its lines, as far as they are there, hold the old values (\"old\"): set back by \
                       hand what is still in force, then move the file away";

fn remove(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn sync_folder(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

/// Milliseconds since 1970.
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
        store.may_read().unwrap();
        let folder = store.folder();
        std::os::unix::fs::symlink(&folder, &folder).unwrap();
        assert!(store.ids().is_empty());
        let why = store.may_read().unwrap_err().to_string();
        assert!(why.contains(&folder.display().to_string()), "{why}");
        fs::remove_file(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        store.may_read().unwrap();
    }
}
