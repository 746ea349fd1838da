//! The one way from JSON's text to a value, and back.

use serde::de::DeserializeOwned;
use serde_json::{Error, Value};

/// Reads `text` as a `T`.
///
/// serde makes the code of a type once for each form that it reads: text by slice, text by string, a
/// [`Value`], its own buffer. So all documents are read as a [`Value`] first, and from that alone
/// (docs/decisions/0020-size.md).
///
/// # Errors
///
/// What is no JSON, with its line and column; what is no `T`, without.
pub fn read<T: DeserializeOwned>(text: impl AsRef<[u8]>) -> Result<T, Error> {
    T::deserialize(&serde_json::from_slice::<Value>(text.as_ref())?)
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
}
