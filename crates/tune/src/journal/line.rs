//! Converts a record to and from its line. A checksum distinguishes a flipped bit or an edit from a
//! line torn by a crash.

use model::{SCHEMA_VERSION, tune::Record};
use serde::Deserialize;

/// Precedes the checksum, the last field of a line.
const FIELD: &[u8] = br#","crc32":""#;
const DIGITS: usize = 8;
const END: &[u8] = br#""}"#;

/// What a line is.
#[derive(Debug)]
pub enum Line {
    Record(Box<Record>),
    /// A whole line that was altered, with the reason.
    Damaged(&'static str),
    /// A whole line of a later version.
    Newer(String),
    /// Anything else: the beginning of a record, or nothing of one.
    Part,
}

/// Fields that records of every version have.
#[derive(Deserialize)]
struct Outline {
    #[serde(rename = "seq")]
    _seq: u64,
    #[serde(default)]
    event: serde_json::Value,
    schema_version: Option<u32>,
}

/// A record's line, without its end.
///
/// # Errors
/// The record cannot be expressed in JSON.
pub fn of(record: &Record) -> serde_json::Result<Vec<u8>> {
    let bare = Record { crc32: String::new(), ..record.clone() };
    serde_json::to_vec(&bare).map(|line| sealed(&line))
}

/// A JSON object with its checksum added as the last field.
pub fn sealed(object: &[u8]) -> Vec<u8> {
    let body = object.strip_suffix(b"}").unwrap_or(object);
    let crc = format!("{:08x}", crc32(body));
    [body, FIELD, crc.as_bytes(), END].concat()
}

/// Classifies a line, given without its line end.
pub fn read(line: &[u8]) -> Line {
    let newer = |o: &Outline| {
        let theirs = o.schema_version.filter(|v| *v > SCHEMA_VERSION)?;
        Some(Line::Newer(format!("schema_version {theirs}")))
    };
    let outline = model::json::read::<Outline>(line);
    let fits = body(line).map(|(body, crc)| crc == format!("{:08x}", crc32(body)).as_bytes());
    if let Some(newer) = outline.as_ref().ok().and_then(newer).filter(|_| fits != Some(false)) {
        return newer;
    }
    match (fits, outline) {
        (Some(false), _) => {
            Line::Damaged("its checksum does not fit: a bit flipped, or it was edited")
        }
        (Some(true), outline) => match (model::json::read::<Record>(line), outline) {
            (Ok(record), _) => Line::Record(Box::new(record)),
            (_, Ok(outline)) => Line::Newer(format!("record {}", outline.event)),
            _ => Line::Damaged("is no record"),
        },
        (None, Ok(_)) => Line::Damaged(
            "has no checksum: a netwright from before there was one wrote it, or it was edited",
        ),
        (None, Err(_)) => Line::Part,
    }
}

/// The bytes that the checksum covers, and the checksum.
fn body(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_suffix(END)?;
    let (rest, crc) = rest.split_at_checked(rest.len().checked_sub(DIGITS)?)?;
    Some((rest.strip_suffix(FIELD)?, crc))
}

/// CRC-32 of IEEE 802.3, which finds every single flipped bit.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |crc: u32, byte: &u8| {
        let at = (crc ^ u32::from(*byte)) & 0xff;
        TABLE.get(at as usize).copied().unwrap_or_default() ^ (crc >> 8)
    };
    !bytes.iter().fold(!0, step)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut n = 0;
    while n < 256 {
        let mut crc = n as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
            bit += 1;
        }
        table[n] = crc;
        n += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
