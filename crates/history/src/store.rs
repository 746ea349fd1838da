//! The file: records go in, and come out by number or by what they are.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use model::history::HistoryRun;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, config::DbConfig, named_params};

use crate::{
    error::HistoryError,
    filter::Filter,
    record::Record,
    schema::{self, CURRENT, Found},
    zip,
};

/// Other users may not read what was measured.
const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;

/// How long one waits for another process that writes.
const PATIENCE: Duration = Duration::from_secs(2);

/// The columns of a record without its texts.
const ROW: &str = "id, ended_unix_ms, host, host_fingerprint, kernel, netwright, command, kind, tag, \
                   exit_code, headline, change";

const WHERE: &str = "(:host IS NULL OR host = :host OR host_fingerprint = :host)
    AND (:kind IS NULL OR kind = :kind OR substr(kind, 1, length(:kind) + 1) = :kind || '-')
    AND (:tag IS NULL OR tag = :tag)
    AND (:since IS NULL OR ended_unix_ms >= :since)
    AND (:until IS NULL OR ended_unix_ms < :until)
    ORDER BY ended_unix_ms DESC, id DESC LIMIT :newest";

/// An open store.
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
        let state = schema::look(&connection).map_err(failed)?;
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
        let path = self.path.clone();
        let packed = |text: &str| zip::packed(text).map_err(|e| HistoryError::io(&path, &e));
        let (document, facts) = (packed(&record.document)?, packed(&record.facts)?);
        let command = serde_json::to_string(&record.command).unwrap_or_default();
        let added = self.connection.execute(
            "INSERT INTO run (ended_unix_ms, host, host_fingerprint, kernel, netwright, command, kind, \
             tag, exit_code, headline, change, document, facts) VALUES (:ended, :host, :fingerprint, \
             :kernel, :netwright, :command, :kind, :tag, :exit_code, :headline, :change, :document, \
             :facts)",
            named_params! {
                ":ended": signed(record.ended_unix_ms), ":host": record.host,
                ":fingerprint": record.host_fingerprint, ":kernel": record.kernel,
                ":netwright": record.netwright, ":command": command, ":kind": record.kind,
                ":tag": record.tag, ":exit_code": record.exit_code, ":headline": record.headline,
                ":change": record.change.map(signed), ":document": document, ":facts": facts,
            },
        );
        added.map_err(|e| self.failed(&e))?;
        Ok(self.connection.last_insert_rowid().unsigned_abs())
    }

    /// The wanted runs, the newest first, without their documents.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn list(&self, filter: &Filter) -> Result<Vec<HistoryRun>, HistoryError> {
        let list = || {
            let query = format!("SELECT {ROW} FROM run WHERE {WHERE}");
            let mut statement = self.connection.prepare(&query)?;
            let wanted = named_params! {
                ":host": filter.host, ":kind": filter.kind, ":tag": filter.tag,
                ":since": filter.since_unix_ms.map(signed),
                ":until": filter.until_unix_ms.map(signed),
                ":newest": filter.newest.map_or(-1, signed),
            };
            let rows = statement.query_map(wanted, of_row)?;
            rows.collect::<rusqlite::Result<Vec<HistoryRun>>>()
        };
        list().map_err(|e| self.failed(&e))
    }

    /// A run by its number; `None` where there is none.
    ///
    /// # Errors
    /// The file cannot be read, or the record is damaged.
    pub fn get(&self, id: u64) -> Result<Option<Record>, HistoryError> {
        let query = format!("SELECT {ROW}, document, facts FROM run WHERE id = ?1");
        let row = self.connection.query_row(&query, [signed(id)], |row| {
            Ok((of_row(row)?, row.get::<_, Vec<u8>>(12)?, row.get::<_, Vec<u8>>(13)?))
        });
        let Some((run, document, facts)) = row.optional().map_err(|e| self.failed(&e))? else {
            return Ok(None);
        };
        let (Some(document), Some(facts)) = (zip::unpacked(&document), zip::unpacked(&facts))
        else {
            return Err(HistoryError::Damaged {
                path: self.path.display().to_string(),
                why: format!("the document of run {id} cannot be unpacked"),
            });
        };
        Ok(Some(Record {
            ended_unix_ms: run.ended_unix_ms,
            host: run.host,
            host_fingerprint: run.host_fingerprint,
            kernel: run.kernel,
            netwright: run.netwright,
            command: run.command,
            kind: run.kind,
            tag: run.tag,
            exit_code: run.exit_code,
            headline: run.headline,
            change: run.change,
            document,
            facts,
        }))
    }

    /// Where it is.
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

fn of_row(row: &Row<'_>) -> rusqlite::Result<HistoryRun> {
    let unsigned = |n: i64| n.unsigned_abs();
    let command: String = row.get(6)?;
    Ok(HistoryRun {
        id: unsigned(row.get(0)?),
        ended_unix_ms: unsigned(row.get(1)?),
        host: row.get(2)?,
        host_fingerprint: row.get(3)?,
        kernel: row.get(4)?,
        netwright: row.get(5)?,
        command: serde_json::from_str(&command).unwrap_or_else(|_| vec![command]),
        kind: row.get(7)?,
        tag: row.get(8)?,
        exit_code: row.get(9)?,
        headline: row.get(10)?,
        change: row.get::<_, Option<i64>>(11)?.map(unsigned),
    })
}

/// SQLite's numbers are signed.
fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
