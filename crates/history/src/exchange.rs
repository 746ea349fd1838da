//! Records as compressed lines of JSON, for another store or another program.

use std::io::{BufRead, BufReader, Read, Write};

use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};
use serde::{Deserialize, Serialize};

use crate::record::Record;

/// The longest line that is read, bytes.
const LONGEST: u64 = 512 << 20;

/// The most bytes that an export may unpack to: its records are in memory until all are checked.
pub const MOST: u64 = 1 << 30;

/// The first bytes of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A record as a line. `document` and `facts` are JSON texts, byte by byte as they were stored.
#[derive(Serialize)]
struct Line<'a> {
    id: u64,
    content_id: String,
    #[serde(flatten)]
    record: &'a Record,
}

#[derive(Deserialize)]
struct OwnedLine {
    content_id: String,
    #[serde(flatten)]
    record: Record,
}

/// Writes records, a line each.
pub struct Writer<W: Write>(GzEncoder<W>);

impl<W: Write> Writer<W> {
    pub fn new(to: W) -> Self {
        Self(GzEncoder::new(to, Compression::default()))
    }

    /// Writes a record with its number here.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, id: u64, record: &Record) -> std::io::Result<()> {
        let line = Line { id, content_id: record.content_id(), record };
        self.0.write_all((serde_json::to_string(&line)? + "\n").as_bytes())
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn end(self) -> std::io::Result<W> {
        self.0.finish()
    }
}

/// Why a file cannot be imported: the line, from 1, and the reason.
#[derive(Debug, thiserror::Error)]
pub enum NoExport {
    #[error("line {line}: no record of `history export`: {why}")]
    Line { line: usize, why: String },
    #[error("line {line}: damaged: its content is not what content_id says")]
    Changed { line: usize },
    #[error(
        "unpacks to more than {} MiB; export fewer runs at once (--since, --until, --tag)", .most >> 20
    )]
    TooLarge { most: u64 },
    #[error("damaged after line {line}: {why}")]
    Broken { line: usize, why: String },
}

/// The records of an export, packed or plain.
///
/// # Errors
/// A line is no record, was changed, or cannot be unpacked; all lines have more than [`MOST`] bytes.
pub fn records(bytes: &[u8]) -> Result<Vec<Record>, NoExport> {
    records_within(bytes, MOST)
}

fn records_within(bytes: &[u8], most: u64) -> Result<Vec<Record>, NoExport> {
    let mut lines: Box<dyn BufRead> = match bytes.starts_with(&GZIP) {
        true => Box::new(BufReader::new(MultiGzDecoder::new(bytes))),
        false => Box::new(bytes),
    };
    let mut all = Vec::new();
    let mut left = most;
    loop {
        let mut text = Vec::new();
        let line = all.len() + 1;
        let read = lines.by_ref().take(LONGEST.min(left + 1)).read_until(b'\n', &mut text);
        match read.map_err(|e| NoExport::Broken { line: line - 1, why: e.to_string() })? {
            0 => return Ok(all),
            n if n as u64 > left => return Err(NoExport::TooLarge { most }),
            n => {
                left -= n as u64;
                all.push(record(&text, line)?);
            }
        }
    }
}

fn record(text: &[u8], line: usize) -> Result<Record, NoExport> {
    let of_line: OwnedLine =
        model::json::read(text).map_err(|e| NoExport::Line { line, why: e.to_string() })?;
    match of_line.record.content_id() == of_line.content_id {
        true => Ok(of_line.record),
        false => Err(NoExport::Changed { line }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(records: &[Record]) -> Vec<u8> {
        let mut to = Writer::new(Vec::new());
        for (n, record) in records.iter().enumerate() {
            to.add(n as u64, record).unwrap();
        }
        to.end().unwrap()
    }

    #[test]
    fn records_come_back_as_they_were_and_a_changed_one_does_not() {
        let record = |n: u64| Record {
            ended_unix_ms: n,
            document: format!("{{\"b\": 1.50, \"a\": \"\u{1b}\\n{n}\"}}"),
            change: Some(u64::MAX >> 1),
            ..Record::default()
        };
        let all = [record(1), record(2)];
        let bytes = packed(&all);
        assert_eq!(records(&bytes).unwrap(), all);
        assert_eq!(records(&[bytes.clone(), bytes.clone()].concat()).unwrap().len(), 4);
        assert_eq!(records(&packed(&[])).unwrap(), []);
        let mut plain = String::new();
        MultiGzDecoder::new(bytes.as_slice()).read_to_string(&mut plain).unwrap();
        assert_eq!(records(plain.as_bytes()).unwrap(), all);
        let changed = plain.replacen("\"ended_unix_ms\":2", "\"ended_unix_ms\":3", 1);
        assert!(matches!(records(changed.as_bytes()), Err(NoExport::Changed { line: 2 })));
        assert!(matches!(records(b"{}\n"), Err(NoExport::Line { line: 1, .. })));
        let size = plain.len() as u64;
        assert_eq!(records_within(&bytes, size).unwrap().len(), 2);
        for most in [1, size / 2, size - 1] {
            let refused = records_within(&bytes, most);
            assert!(matches!(refused, Err(NoExport::TooLarge { .. })), "{most}: {refused:?}");
        }
        for cut in [3, bytes.len() / 2, bytes.len() - 1] {
            assert!(records(&bytes[..cut]).is_err(), "{cut}");
        }
    }
}
