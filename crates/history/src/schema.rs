//! The tables, and how older ones are brought up to date.

use rusqlite::{Connection, TransactionBehavior};

use crate::rows;

/// Marks a file as ours: `NWHI`.
pub(crate) const APPLICATION: i64 = 0x4e57_4849;

/// The schema that this program writes.
pub(crate) const CURRENT: i64 = 2;

/// The tables of version 1. Numbers are never used again, so that a removed run's number does not
/// come to mean another run.
const FIRST: &str = "
CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    ended_unix_ms INTEGER NOT NULL,
    host TEXT NOT NULL,
    host_fingerprint TEXT NOT NULL,
    kernel TEXT NOT NULL,
    netwright TEXT NOT NULL,
    command TEXT NOT NULL,
    kind TEXT NOT NULL,
    tag TEXT NOT NULL,
    exit_code INTEGER NOT NULL,
    headline TEXT NOT NULL,
    change INTEGER,
    document BLOB NOT NULL,
    facts BLOB NOT NULL
) STRICT;
CREATE INDEX run_by_time ON run (ended_unix_ms);
CREATE INDEX run_by_tag ON run (tag) WHERE tag <> '';
";

/// What a file is.
pub(crate) enum Found {
    /// It has no table yet.
    Empty,
    /// It has the tables of this version.
    Ours(i64),
    /// It is another program's.
    Foreign,
}

/// Says whose file an open database is, without writing to it.
pub(crate) fn look(connection: &Connection) -> rusqlite::Result<Found> {
    let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
    let application = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    let objects = number("SELECT count(*) FROM sqlite_schema")?;
    Ok(match (application, version, objects) {
        (APPLICATION, 1.., 1..) => Found::Ours(version),
        (0, 0, 0) => Found::Empty,
        _ => Found::Foreign,
    })
}

/// Makes the tables, or brings them up to date; all or nothing. Another process may have done it
/// meanwhile.
pub(crate) fn bring_up_to_date(connection: &mut Connection) -> rusqlite::Result<()> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Found::Empty = look(&change)? {
        change.execute_batch(FIRST)?;
        change.pragma_update(None, "application_id", APPLICATION)?;
        change.pragma_update(None, "user_version", 1)?;
    }
    if let Found::Ours(1) = look(&change)? {
        to_2(&change)?;
        change.pragma_update(None, "user_version", 2)?;
    }
    change.commit()
}

/// Version 2 (import): each record has the hash of its content, so that it is there once.
fn to_2(change: &Connection) -> rusqlite::Result<()> {
    change.execute_batch("ALTER TABLE run ADD COLUMN content_id TEXT")?;
    let mut ids = change.prepare("SELECT id FROM run")?;
    let ids = ids.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    for id in ids {
        // A damaged record keeps its row and has no hash.
        if let Some(record) = rows::record(change, id)? {
            let content = record.content_id();
            let set = "UPDATE OR IGNORE run SET content_id = ?1 WHERE id = ?2";
            change.execute(set, rusqlite::params![content, id])?;
        }
    }
    change.execute_batch("CREATE UNIQUE INDEX run_by_content ON run (content_id)")
}
