//! Rows of the table, and the records that they are.

use model::history::HistoryRun;
use rusqlite::{Connection, OptionalExtension, Row, named_params};

use crate::{record::Record, zip};

/// The columns of a record without its texts.
pub(crate) const ROW: &str = "id, ended_unix_ms, host, host_fingerprint, kernel, netwright, command, kind, tag, \
                   exit_code, headline, change";

/// Adds a record that is not there yet; returns its number, and whether it is new.
pub(crate) fn add(connection: &Connection, record: &Record) -> rusqlite::Result<(u64, bool)> {
    let packed = |text: &str| {
        zip::packed(text).map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))
    };
    let (document, facts) = (packed(&record.document)?, packed(&record.facts)?);
    let command = serde_json::to_string(&record.command).unwrap_or_default();
    let content = record.content_id();
    let added = connection.execute(
        "INSERT INTO run (ended_unix_ms, host, host_fingerprint, kernel, netwright, command, kind, tag, \
         exit_code, headline, change, document, facts, content_id) VALUES (:ended, :host, :fingerprint, \
         :kernel, :netwright, :command, :kind, :tag, :exit_code, :headline, :change, :document, :facts, \
         :content) ON CONFLICT (content_id) DO NOTHING",
        named_params! {
            ":ended": signed(record.ended_unix_ms), ":host": record.host,
            ":fingerprint": record.host_fingerprint, ":kernel": record.kernel,
            ":netwright": record.netwright, ":command": command, ":kind": record.kind,
            ":tag": record.tag, ":exit_code": record.exit_code, ":headline": record.headline,
            ":change": record.change.map(signed), ":document": document, ":facts": facts,
            ":content": content,
        },
    )?;
    let by_content = "SELECT id FROM run WHERE content_id = ?1";
    let id: i64 = connection.query_row(by_content, [&content], |row| row.get(0))?;
    Ok((id.unsigned_abs(), added == 1))
}

/// A record; `None` where there is none, or where its texts are damaged.
pub(crate) fn record(connection: &Connection, id: i64) -> rusqlite::Result<Option<Record>> {
    let query = format!("SELECT {ROW}, document, facts FROM run WHERE id = ?1");
    let row = connection.query_row(&query, [id], |row| {
        Ok((of_row(row)?, row.get::<_, Vec<u8>>(12)?, row.get::<_, Vec<u8>>(13)?))
    });
    let Some((run, document, facts)) = row.optional()? else { return Ok(None) };
    let texts = zip::unpacked(&document).zip(zip::unpacked(&facts));
    Ok(texts.map(|(document, facts)| Record {
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

pub(crate) fn of_row(row: &Row<'_>) -> rusqlite::Result<HistoryRun> {
    let unsigned = |n: i64| n.unsigned_abs();
    let command: String = row.get(6)?;
    Ok(HistoryRun {
        id: unsigned(row.get(0)?),
        ended_unix_ms: unsigned(row.get(1)?),
        host: row.get(2)?,
        host_fingerprint: row.get(3)?,
        kernel: row.get(4)?,
        netwright: row.get(5)?,
        command: model::json::read(&command).unwrap_or_else(|_| vec![command]),
        kind: row.get(7)?,
        tag: row.get(8)?,
        exit_code: row.get(9)?,
        headline: row.get(10)?,
        change: row.get::<_, Option<i64>>(11)?.map(unsigned),
    })
}

/// SQLite's numbers are signed.
pub(crate) fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
