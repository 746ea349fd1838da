//! Parses a journal's bytes into records.

use model::tune::Record;

use super::line::{self, Line};

/// Why a journal cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// A record is missing or out of order.
    #[error("{0}")]
    Damaged(String),
    /// It holds what this netwright does not know.
    #[error("{0}")]
    Newer(String),
}

/// Parses the records. A line torn by a crash is the beginning of a record without a number: the
/// next record takes that number. Any other line that is not a record as written is damage. So is a
/// gap in the numbers, which no crash makes. A whole record of an unknown type is from a later
/// version, and its changes may be in force.
///
/// # Errors
/// A record is damaged, missing, out of order (the message names the line), or of a newer version.
pub fn records(bytes: &[u8]) -> Result<Vec<Record>, JournalError> {
    let mut all: Vec<Record> = Vec::new();
    // The next record follows a torn line: its writer ended that line.
    let mut torn = None;
    for (i, whole) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
        let damaged = |why: &str| JournalError::Damaged(format!("line {}: {why}", i + 1));
        let line = whole.strip_suffix(b"\n").unwrap_or(whole);
        match line::read(line) {
            Line::Record(record) => {
                let expected = all.len() as u64 + 1;
                if record.seq != expected {
                    let is = record.seq;
                    return Err(damaged(&format!("record {is} where {expected} should be")));
                }
                all.push(*record);
                torn = None;
            }
            Line::Damaged(why) => return Err(damaged(why)),
            Line::Newer(what) => return Err(JournalError::Newer(what)),
            Line::Part if line.is_empty() => {}
            Line::Part if line.len() < whole.len() => torn = Some(damaged(NO_RECORD)),
            Line::Part => {
                let but_for_its_end = line.split_last().map(|(_, rest)| line::read(rest));
                if matches!(but_for_its_end, Some(Line::Record(_))) {
                    return Err(damaged(NO_RECORD));
                }
            }
        }
    }
    torn.map_or(Ok(all), Err)
}

const NO_RECORD: &str = "is no record, and none that a crash tore";

#[cfg(test)]
mod tests {
    use super::*;
    use model::{SCHEMA_VERSION, tune::Event};

    fn line_of(seq: u64, event: Event) -> Vec<u8> {
        let record = Record { seq, at_unix_ms: 5, event, crc32: String::new() };
        [line::of(&record).unwrap(), vec![b'\n']].concat()
    }

    fn journal() -> Vec<u8> {
        let events = [Event::Applied, Event::Confirmed, Event::RolledBack];
        let mut bytes = Vec::new();
        for (i, event) in events.into_iter().enumerate() {
            bytes.extend(line_of(i as u64 + 1, event));
        }
        bytes
    }

    /// For a tear at every byte: the whole records before it are read, and so are those written
    /// after a line end.
    #[test]
    fn torn_at_every_byte_it_gives_the_records_before() {
        let whole = journal();
        let lines: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
        for cut in 0..=whole.len() {
            let torn = &whole[..cut];
            // A line without its end is still whole.
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
            resumed.extend(line_of(full as u64 + 1, Event::GoneWithBoot));
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
        // A power cut left the file longer than its content.
        assert_eq!(records(&[whole.clone(), vec![0; 9]].concat()).unwrap().len(), 3);
        for nonsense in [&[0xff, b'\n', 0, b'{'][..], &[&whole[..], b"{}\n"].concat()] {
            records(nonsense).unwrap_err();
        }
    }

    /// A flipped bit in `writing` would hide a change that must be undone; in `rolled_back` it
    /// would undo one twice.
    #[test]
    fn no_flipped_bit_goes_unseen() {
        let whole = journal();
        for byte in 0..whole.len() {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[byte] ^= 1 << bit;
                let reported = records(&flipped);
                assert!(
                    matches!(reported, Err(JournalError::Damaged(_))),
                    "byte {byte}, bit {bit}: {reported:?}"
                );
            }
        }
    }

    #[test]
    fn a_record_without_a_checksum_is_not_believed() {
        let event = Event::Applied;
        let record = Record { seq: 1, at_unix_ms: 5, event, crc32: String::new() };
        let old = [serde_json::to_vec(&record).unwrap(), vec![b'\n']].concat();
        let why = records(&old).unwrap_err().to_string();
        assert!(why.starts_with("line 1: has no checksum"), "{why}");
    }

    #[test]
    fn what_a_newer_one_wrote_is_neither_torn_nor_known() {
        let line = |seq: u64, rest: &str| {
            let bare = format!(r#"{{"seq":{seq},"at_unix_ms":5,{rest}}}"#);
            String::from_utf8(line::sealed(bare.as_bytes())).unwrap()
        };
        let begin = |version: u32| {
            line(
                1,
                &format!(r#""event":"begin","schema_version":{version},"plan":"of another form""#),
            )
        };
        let reported = |text: &str| records(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(reported(&format!("{}\n", begin(SCHEMA_VERSION + 1))), "schema_version 2");
        // A last record that is not known may say that all was undone, or that none of it was.
        let whole = String::from_utf8(journal()).unwrap();
        let last = format!("{whole}{}\n", line(4, r#""event":"put_aside","until":7"#));
        assert_eq!(reported(&last), r#"record "put_aside""#);
        // Without its end it is one that a crash tore.
        let torn = last.trim_end().strip_suffix('}').unwrap();
        assert_eq!(records(torn.as_bytes()).unwrap().len(), 3);
    }
}
