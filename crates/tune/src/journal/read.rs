//! A journal's bytes → its records.

use model::{SCHEMA_VERSION, tune::Record};
use serde::Deserialize;

/// Why a journal cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// A record is missing or out of order.
    #[error("{0}; the journal is damaged")]
    Damaged(String),
    /// It holds what this netwright does not know.
    #[error("written by a newer netwright ({0}); use that one")]
    Newer(String),
}

/// What every version's records have.
#[derive(Deserialize)]
struct Outline {
    #[serde(rename = "seq")]
    _seq: u64,
    #[serde(default)]
    event: serde_json::Value,
    schema_version: Option<u32>,
}

/// The records. A line that a crash tore is one that does not parse, and has no number: the
/// next record takes it. A gap in the numbers is a lost record, which no crash makes. A whole record
/// that is not known is a later version's: what it tells of may be in force.
///
/// # Errors
/// When a record is missing, out of order (the message names the line), or of a newer version.
pub fn records(bytes: &[u8]) -> Result<Vec<Record>, Unread> {
    let mut all: Vec<Record> = Vec::new();
    for (i, line) in bytes.split(|b| *b == b'\n').enumerate() {
        // What a crash tore is no JSON.
        if let Ok(outline) = serde_json::from_slice::<Outline>(line) {
            of_a_known_version(&outline)?;
            let record = serde_json::from_slice::<Record>(line);
            let record = record.map_err(|_| unknown(&outline))?;
            let expected = all.len() as u64 + 1;
            if record.seq != expected {
                return Err(Unread::Damaged(format!(
                    "line {}: record {} where {expected} should be",
                    i + 1,
                    record.seq
                )));
            }
            all.push(record);
        }
    }
    Ok(all)
}

fn of_a_known_version(outline: &Outline) -> Result<(), Unread> {
    match outline.schema_version {
        Some(theirs) if theirs > SCHEMA_VERSION => {
            Err(Unread::Newer(format!("schema_version {theirs}")))
        }
        _ => Ok(()),
    }
}

fn unknown(outline: &Outline) -> Unread {
    Unread::Newer(format!("record {}", outline.event))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::tune::Event;

    fn journal() -> Vec<u8> {
        let events = [Event::Applied, Event::Confirmed, Event::RolledBack];
        let mut bytes = Vec::new();
        for (i, event) in events.into_iter().enumerate() {
            let record = Record { seq: i as u64 + 1, at_unix_ms: 5, event };
            serde_json::to_writer(&mut bytes, &record).unwrap();
            bytes.push(b'\n');
        }
        bytes
    }

    /// Every byte at which a crash may have torn it: what was whole before is there, and what
    /// follows the tear after a line end is too.
    #[test]
    fn torn_at_every_byte_it_gives_the_records_before() {
        let whole = journal();
        let lines: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
        for cut in 0..=whole.len() {
            let torn = &whole[..cut];
            // A line without its end is whole all the same.
            let full = lines
                .iter()
                .scan(0, |end, l| {
                    *end += l.len();
                    Some(*end - 1)
                })
                .filter(|end| *end <= cut)
                .count();
            let records = records(torn).unwrap();
            assert_eq!(records.len(), full, "cut at {cut}");
            let mut resumed = torn.to_vec();
            resumed.push(b'\n');
            let next = Record { seq: full as u64 + 1, at_unix_ms: 6, event: Event::GoneWithBoot };
            serde_json::to_writer(&mut resumed, &next).unwrap();
            resumed.push(b'\n');
            assert_eq!(super::records(&resumed).unwrap().len(), full + 1, "cut at {cut}");
        }
    }

    #[test]
    fn a_lost_record_is_damage_and_nonsense_is_none() {
        let whole = journal();
        let lines: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
        let error = records(&[lines[0], lines[2]].concat()).unwrap_err();
        assert!(error.to_string().starts_with("line 2"), "{error}");
        assert_eq!(records(b"").unwrap(), []);
        assert_eq!(records(&[0xff, b'\n', 0, b'{']).unwrap(), []);
    }

    #[test]
    fn what_a_newer_one_wrote_is_neither_torn_nor_known() {
        let line = |seq: u64, rest: &str| format!(r#"{{"seq":{seq},"at_unix_ms":5,{rest}}}"#);
        let begin = |version: u32| {
            line(
                1,
                &format!(r#""event":"begin","schema_version":{version},"plan":"of another form""#),
            )
        };
        let told = |text: &str| records(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            told(&format!("{}\n", begin(SCHEMA_VERSION + 1))),
            "written by a newer netwright (schema_version 2); use that one"
        );
        // A last record that is not known may say that all was undone, or that none of it was.
        let whole = String::from_utf8(journal()).unwrap();
        let last = format!("{whole}{}\n", line(4, r#""event":"put_aside","until":7"#));
        assert_eq!(
            told(&last),
            r#"written by a newer netwright (record "put_aside"); use that one"#
        );
        // Without its end it is one that a crash tore.
        let torn = last.trim_end().strip_suffix('}').unwrap();
        assert_eq!(records(torn.as_bytes()).unwrap().len(), 3);
    }
}
