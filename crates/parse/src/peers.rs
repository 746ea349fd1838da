//! A list of peers: a line for each, `HOST` or `HOST:PORT`; `#` begins a comment.

use std::collections::BTreeSet;

use crate::ParseError;

/// The most bytes of a list.
pub const MOST_BYTES: usize = 1 << 20;
/// The most peers of a list.
pub const MOST_PEERS: usize = 10_000;
/// The longest entry: a name of 253 characters and a port.
const LONGEST: usize = 259;

/// Reads the entries, in their order.
///
/// # Errors
/// A line that can be no host, one that is there twice, or more than [`MOST_BYTES`] or
/// [`MOST_PEERS`].
pub fn parse(bytes: &[u8]) -> Result<Vec<String>, ParseError> {
    if bytes.len() > MOST_BYTES {
        return Err(ParseError::new(1, "a list of at most 1 MiB", b"a longer one"));
    }
    let (mut entries, mut seen) = (vec![], BTreeSet::new());
    for (n, line) in bytes.split(|b| *b == b'\n').enumerate() {
        let entry = line.split(|b| *b == b'#').next().unwrap_or_default().trim_ascii();
        if entry.is_empty() {
            continue;
        }
        let wrong = |expected| ParseError::new(n + 1, expected, entry);
        if entry.len() > LONGEST || !entry.iter().all(|b| allowed(*b)) {
            return Err(wrong("HOST or HOST:PORT"));
        }
        let text = String::from_utf8_lossy(entry).into_owned();
        if !seen.insert(text.clone()) {
            return Err(wrong("each peer once"));
        }
        if entries.len() >= MOST_PEERS {
            return Err(wrong("at most 10,000 peers"));
        }
        entries.push(text);
    }
    Ok(entries)
}

/// Names, addresses, `[::1]:7471`, `fe80::1%eth0`.
fn allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-_:[]%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_a_line() {
        let list = b"# racks\ndb1\n\n  db2:7471 # second\r\n[fd00::1]:7472\nfe80::1%eth0";
        assert_eq!(parse(list).unwrap(), ["db1", "db2:7471", "[fd00::1]:7472", "fe80::1%eth0"]);
        assert_eq!(parse(b"# nothing\n").unwrap(), [""; 0]);
    }

    #[test]
    fn what_can_be_no_peer_is_named_with_its_line() {
        let said = |list: &[u8]| parse(list).unwrap_err().to_string();
        assert_eq!(said(b"a\nb c\n"), "line 2: expected HOST or HOST:PORT, found \"b c\"");
        assert!(said(b"a\n\xff\xfe\n").starts_with("line 2: expected HOST or"));
        assert!(said(&[b'x'; 300]).starts_with("line 1: expected HOST or"));
        assert!(said(b"http://db1/\n").starts_with("line 1"));
        assert_eq!(said(b"a\nb\na\n"), "line 3: expected each peer once, found \"a\"");
    }

    #[test]
    fn a_list_has_bounds() {
        let lines = |n: usize| (0..n).map(|n| format!("h{n}\n")).collect::<String>();
        assert_eq!(parse(lines(MOST_PEERS).as_bytes()).unwrap().len(), MOST_PEERS);
        let one_more = parse(lines(MOST_PEERS + 1).as_bytes()).unwrap_err();
        assert_eq!((one_more.line, one_more.found.as_str()), (10_001, "h10000"));
        assert!(parse(&vec![b'#'; MOST_BYTES + 1]).is_err());
    }
}
