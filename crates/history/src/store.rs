//! The file: records go in, and come out by number or by what they are.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use model::history::HistoryRun;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, config::DbConfig, named_params};

use crate::{
    error::HistoryError,
    filter::Filter,
    record::Record,
    rows,
    schema::{self, CURRENT, Found},
};

/// Other users may not read what was measured.
const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;

/// How long one waits for other processes that write. 24 that ended together took longer than 2 s on a
/// busy disk.
const PATIENCE: Duration = Duration::from_secs(10);

const WHERE: &str = "(:host IS NULL OR host = :host OR host_fingerprint = :host)
    AND (:kind IS NULL OR kind = :kind OR substr(kind, 1, length(:kind) + 1) = :kind || '-')
    AND (:tag IS NULL OR tag = :tag)
    AND (:since IS NULL OR ended_unix_ms >= :since)
    AND (:until IS NULL OR ended_unix_ms < :until)
    ORDER BY ended_unix_ms DESC, id DESC LIMIT :newest";

/// An open store: one SQLite file.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
}

impl Store {
    /// Opens a store to write, and makes it where there is none. An older schema is migrated.
    ///
    /// # Errors
    /// The system refuses, the file is another program's, or its schema is newer; then it is left
    /// as it is.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        make(path).map_err(|e| match HistoryError::io(path, &e) {
            // Not even its folder can be made.
            HistoryError::Absent { path } => HistoryError::Io { path, why: e.to_string() },
            other => other,
        })?;
        Self::existing(path)
    }

    /// Opens a store that is there.
    ///
    /// # Errors
    /// As of [`Store::open`]; [`HistoryError::Absent`] where there is none.
    pub fn existing(path: &Path) -> Result<Self, HistoryError> {
        let found = fs::metadata(path).map_err(|e| HistoryError::io(path, &e))?;
        let failed = |e: rusqlite::Error| HistoryError::sqlite(path, &e);
        // A pipe would wait for its other end for ever.
        if !found.is_file() {
            return Err(HistoryError::NotOurs { path: path.display().to_string() });
        }
        // Without SQLITE_OPEN_URI: a path is a path, whatever characters it has.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        careful(&connection).map_err(failed)?;
        // One reading: another process may be making the tables between two.
        let state = connection.unchecked_transaction().and_then(|t| schema::look(&t));
        let state = state.map_err(failed)?;
        let path_text = path.display().to_string();
        match state {
            Found::Ours(CURRENT) => {}
            Found::Ours(found) if found > CURRENT => {
                return Err(HistoryError::Newer { path: path_text, found, known: CURRENT });
            }
            Found::Ours(_) | Found::Empty => {
                schema::bring_up_to_date(&mut connection).map_err(failed)?;
            }
            Found::Foreign => return Err(HistoryError::NotOurs { path: path_text }),
        }
        Ok(Self { path: path.to_owned(), connection })
    }

    /// Keeps a record; returns its number. It is on disk, or the store is as before.
    ///
    /// # Errors
    /// The system refuses, or another process holds the store for more than 2 s.
    pub fn add(&mut self, record: &Record) -> Result<u64, HistoryError> {
        rows::add(&self.connection, record).map(|(id, _)| id).map_err(|e| self.failed(&e))
    }

    /// Keeps records, all of them or none. Those that are there already stay as they are; returns
    /// how many were new.
    ///
    /// # Errors
    /// As of [`Store::add`].
    pub fn add_all(&mut self, records: &[Record]) -> Result<usize, HistoryError> {
        let path = self.path.clone();
        let add = |connection: &mut Connection| {
            let all = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut new = 0;
            for record in records {
                new += usize::from(rows::add(&all, record)?.1);
            }
            all.commit().map(|()| new)
        };
        add(&mut self.connection).map_err(|e| HistoryError::sqlite(&path, &e))
    }

    /// Removes runs, all of them or none, and gives their room back.
    ///
    /// # Errors
    /// As of [`Store::add`].
    pub fn remove(&mut self, ids: &[u64]) -> Result<(), HistoryError> {
        let path = self.path.clone();
        let remove = |connection: &mut Connection| {
            let all = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for id in ids {
                all.execute("DELETE FROM run WHERE id = ?1", [rows::signed(*id)])?;
            }
            all.commit()
        };
        remove(&mut self.connection).map_err(|e| HistoryError::sqlite(&path, &e))?;
        // Without room for the copy that this takes, the file stays as large as it was.
        let _ = self.connection.execute_batch("VACUUM");
        Ok(())
    }

    /// The wanted runs, the newest first, without their documents.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn list(&self, filter: &Filter) -> Result<Vec<HistoryRun>, HistoryError> {
        let list = || {
            let query = format!("SELECT {} FROM run WHERE {WHERE}", rows::ROW);
            let mut statement = self.connection.prepare(&query)?;
            let wanted = named_params! {
                ":host": filter.host, ":kind": filter.kind, ":tag": filter.tag,
                ":since": filter.since_unix_ms.map(rows::signed),
                ":until": filter.until_unix_ms.map(rows::signed),
                ":newest": filter.newest.map_or(-1, rows::signed),
            };
            let rows = statement.query_map(wanted, rows::of_row)?;
            rows.collect::<rusqlite::Result<Vec<HistoryRun>>>()
        };
        list().map_err(|e| self.failed(&e))
    }

    /// A run by its number; `None` where there is none.
    ///
    /// # Errors
    /// The file cannot be read, or the record is damaged.
    pub fn get(&self, id: u64) -> Result<Option<Record>, HistoryError> {
        let there = "SELECT count(*) FROM run WHERE id = ?1";
        let there = self.connection.query_row(there, [rows::signed(id)], |r| r.get::<_, i64>(0));
        if there.map_err(|e| self.failed(&e))? == 0 {
            return Ok(None);
        }
        let record = rows::record(&self.connection, rows::signed(id));
        let record = record.map_err(|e| self.failed(&e))?;
        record.map(Some).ok_or_else(|| HistoryError::Damaged {
            path: self.path.display().to_string(),
            why: format!("the document of run {id} cannot be unpacked"),
        })
    }

    /// The path of the store's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, e: &rusqlite::Error) -> HistoryError {
        HistoryError::sqlite(&self.path, e)
    }
}

/// Makes the folder and an empty file, closed to others, where they are missing.
fn make(path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(FOLDER).create(folder)?;
    }
    if fs::metadata(path).is_ok() {
        return Ok(());
    }
    match OpenOptions::new().write(true).create_new(true).mode(FILE).open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

/// The file may come from anyone: nothing in its schema is run, no page is trusted.
fn careful(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.pragma_update(None, "cell_size_check", true)
}
