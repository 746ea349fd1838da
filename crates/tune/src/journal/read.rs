//! A journal's bytes → its records.

use model::tune::Record;

/// The records. A line that a crash tore is one that does not parse, and has no number: the
/// next record takes it. A gap in the numbers is a lost record, which no crash makes.
///
/// # Errors
/// When a record is missing or out of order; the message names the line.
pub fn records(bytes: &[u8]) -> Result<Vec<Record>, String> {
    let mut all: Vec<Record> = Vec::new();
    for (i, line) in bytes.split(|b| *b == b'\n').enumerate() {
        let Ok(record) = serde_json::from_slice::<Record>(line) else { continue };
        let expected = all.len() as u64 + 1;
        if record.seq != expected {
            return Err(format!(
                "line {}: record {} where {expected} should be; the journal is damaged",
                i + 1,
                record.seq
            ));
        }
        all.push(record);
    }
    Ok(all)
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
        assert!(error.starts_with("line 2"), "{error}");
        assert_eq!(records(b"").unwrap(), []);
        assert_eq!(records(&[0xff, b'\n', 0, b'{']).unwrap(), []);
    }
}
