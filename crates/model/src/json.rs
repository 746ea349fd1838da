//! The one way from JSON's text to a value, and back.

use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Error, Value};

/// Memory that the values of a text may take: this, and so many times its length. By the estimate below
/// the documents of this repository take 9 times (median of 75) to 21; a list of objects with one empty key
/// takes 90.
const BASE_BYTES: usize = 64 << 20;
const TIMES: usize = 24;
/// The most that they may take.
const MOST_BYTES: usize = 512 << 20;

/// Reads `text` as a `T`. Where an object has a key twice, the last one counts.
///
/// serde makes the code of a type once for each form that it reads: text by slice, text by string, a
/// [`Value`], its own buffer. So all documents are read as a [`Value`] first, and from that alone
/// (docs/decisions/0020-size.md).
///
/// # Errors
///
/// As [`value`]; what is no `T`, without its place.
pub fn read<T: DeserializeOwned>(text: impl AsRef<[u8]>) -> Result<T, Error> {
    T::deserialize(&value(text.as_ref())?)
}

/// Reads `text`, one document, of whatever kind.
///
/// # Errors
///
/// What is no JSON, with its line and column; what would take more memory than a document of its length
/// does.
pub fn value(text: &[u8]) -> Result<Value, Error> {
    bounded(text)?;
    serde_json::from_slice(text)
}

/// Whether the values of `text` take no more memory than a document of its length does; before it is read.
///
/// # Errors
///
/// They would take more.
pub fn bounded(text: &[u8]) -> Result<(), Error> {
    let most = text.len().saturating_mul(TIMES).saturating_add(BASE_BYTES).min(MOST_BYTES);
    // No text takes more than this many times its length.
    if text.len() > most / 100 && value_bytes(text) > most {
        return Err(Error::custom(format!(
            "its values would take more than {most} bytes of memory"
        )));
    }
    Ok(())
}

/// What the values of a text take in memory, about: an object has room for eleven keys from the first on,
/// and each key or element takes its own place.
fn value_bytes(text: &[u8]) -> usize {
    const OBJECT: usize = 660;
    const ELEMENT: usize = 64;
    let (mut bytes, mut quoted, mut escaped) = (0usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' => bytes = bytes.saturating_add(OBJECT),
            b'[' | b',' => bytes = bytes.saturating_add(ELEMENT),
            _ => {}
        }
    }
    bytes
}

/// Indents the text of a document, two spaces a level, as `serde_json::to_string_pretty` does, which
/// would make the code of all types once more.
pub fn indented(line: &str) -> String {
    let mut out = String::with_capacity(line.len() * 2);
    let (mut level, mut quoted) = (0usize, false);
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' => quoted = !quoted,
            '\\' if quoted => {
                out.push(c);
                out.extend(characters.next());
                continue;
            }
            _ if quoted => {}
            '{' | '[' => {
                out.push(c);
                match characters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        level += 1;
                        new_line(&mut out, level);
                    }
                }
                continue;
            }
            '}' | ']' => {
                level = level.saturating_sub(1);
                new_line(&mut out, level);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, level);
                continue;
            }
            ':' => {
                out.push_str(": ");
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

fn new_line(out: &mut String, level: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", level));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..6)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_document_is_indented_as_the_library_does(value in any_json()) {
            prop_assert_eq!(indented(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        }
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        assert_eq!(
            read::<Value>("[1,]").unwrap_err().to_string(),
            "trailing comma at line 1 column 4"
        );
        assert!(read::<Vec<u64>>("[1, -1]").is_err());
        assert_eq!(read::<Vec<u64>>("[1, 2]").unwrap(), [1, 2]);
    }

    #[test]
    fn what_would_take_many_times_its_length_is_refused() {
        let of = |element: &str, n: usize| format!("[{}0]", element.repeat(n));
        assert!(read::<Value>(of(r#"{"":0},"#, 10_000)).is_ok());
        let refused = read::<Value>(of(r#"{"":0},"#, 1_000_000)).unwrap_err().to_string();
        assert!(refused.contains("bytes of memory"), "{refused}");
        // A real document of that length, and brackets within a text.
        let text = r#"{"name":"eth0","rx_packets":123456,"tx_packets":123456,"node":null},"#;
        assert!(read::<Value>(of(text, 100_000)).is_ok());
        assert!(read::<Value>(of(&format!("\"\\\"{}\",", "{,[".repeat(100)), 10_000)).is_ok());
    }
}
