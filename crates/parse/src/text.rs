//! One-value files: a number or a word and a newline.

use std::str::FromStr;

use crate::ParseError;

/// The whole file as text without surrounding blanks; bytes that are no UTF-8 are replaced.
pub fn word(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned()
}

/// The whole file as one decimal number.
///
/// # Errors
/// When it is empty, no number, or out of the type's range (a `-1` read as unsigned).
pub fn number<T: FromStr>(bytes: &[u8]) -> Result<T, ParseError> {
    std::str::from_utf8(bytes)
        .ok()
        .and_then(|s| s.trim().parse().ok())
        .ok_or_else(|| ParseError::new(1, "a number", bytes))
}

/// Lines with their number from 1; those that are no UTF-8 are left out.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &str)> {
    bytes
        .split(|&b| b == b'\n')
        .enumerate()
        .filter_map(|(i, line)| Some((i + 1, std::str::from_utf8(line).ok()?)))
}

/// A CPU, queue or interrupt id: digits only, no larger than [`model::cpuset::MAX_ID`].
pub fn id(text: &str) -> Option<u32> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|&n| n <= model::cpuset::MAX_ID)
}

/// Numbers with blanks between them: `10 21 31`; an empty file has none.
///
/// # Errors
/// One of them is not a number of this type.
pub fn numbers<T: FromStr>(bytes: &[u8]) -> Result<Vec<T>, ParseError> {
    let bad = || ParseError::new(1, "numbers with blanks between them", bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| bad())?;
    text.split_whitespace().map(|n| n.parse().map_err(|_| bad())).collect()
}

/// The whole file as one hexadecimal number, with or without `0x` (`flags`, PCI `vendor`).
///
/// # Errors
/// When it is empty, not hexadecimal, or wider than 64 bits.
pub fn hex(bytes: &[u8]) -> Result<u64, ParseError> {
    let bad = || ParseError::new(1, "a hexadecimal number", bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| bad())?.trim();
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(bad()); // from_str_radix takes a sign
    }
    u64::from_str_radix(digits, 16).map_err(|_| bad())
}

/// The word in brackets of a choice file: `none [integrity] confidentiality`.
pub fn chosen(bytes: &[u8]) -> Option<String> {
    let text = word(bytes);
    let (_, rest) = text.split_once('[')?;
    let (inside, _) = rest.split_once(']')?;
    Some(inside.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_the_whole_file() {
        assert_eq!(number::<u32>(b"250\n"), Ok(250));
        assert_eq!(number::<i64>(b"-1\n"), Ok(-1));
        assert!(number::<u32>(b"-1\n").is_err());
        assert!(number::<u32>(b"").is_err());
        assert!(number::<u32>(b"12 13").is_err());
        assert!(number::<u32>(b"99999999999").is_err());
        assert!(number::<u32>(b"\xff").is_err());
    }

    #[test]
    fn numbers_in_a_row() {
        assert_eq!(numbers::<u32>(b"10 21  31 \n"), Ok(vec![10, 21, 31]));
        assert_eq!(numbers::<u32>(b"\n"), Ok(vec![]));
        assert_eq!(numbers::<f64>(b"350735.47 234388.90\n"), Ok(vec![350_735.47, 234_388.90]));
        assert!(numbers::<u32>(b"10 -1").is_err());
    }

    #[test]
    fn a_hexadecimal_number_may_carry_its_prefix() {
        assert_eq!(hex(b"0x1003\n"), Ok(0x1003));
        assert_eq!(hex(b"ffff"), Ok(0xffff));
        for bad in ["", "0x", "+1", "-1", "0xg", "1 2", "10000000000000000"] {
            assert!(hex(bad.as_bytes()).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn a_choice_is_in_brackets() {
        assert_eq!(chosen(b"none [integrity] confidentiality\n").as_deref(), Some("integrity"));
        assert_eq!(chosen(b"none\n"), None);
        assert_eq!(chosen(b"]x["), None);
    }
}
