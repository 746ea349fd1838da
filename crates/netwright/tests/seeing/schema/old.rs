//! Tests that documents of earlier versions are still read: real ones, kept in `documents/VERSION`.
//!
//! For a new version, `KEEP=0.2.0 cargo test -p netwright --test seeing schema::` keeps one of each kind.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::READERS;

/// Reads a document as its type does, and returns it as that type writes it.
pub type Reader = fn(&str) -> serde_json::Result<Value>;

pub fn read<T: DeserializeOwned + Serialize>(text: &str) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_str::<T>(text)?)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeing/schema/documents")
}

/// Keeps this document where the environment asks for it; one that is there stays.
pub fn keep(name: &str, text: &str) {
    let Some(version) = std::env::var_os("KEEP") else { return };
    let folder = folder().join(version);
    let path = folder.join(format!("{name}.json"));
    if !path.exists() {
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(path, text).expect("a document");
    }
}

/// Where the new form lacks something that the old document has.
fn lost(old: &Value, new: &Value, at: &str) -> Vec<String> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => old
            .iter()
            .flat_map(|(key, value)| match new.get(key) {
                Some(other) => lost(value, other, &format!("{at}.{key}")),
                // An absent key and null are the same to every reader.
                None if value.is_null() => vec![],
                None => vec![format!("{at}.{key}")],
            })
            .collect(),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            let pairs = old.iter().zip(new).enumerate();
            pairs.flat_map(|(n, (old, new))| lost(old, new, &format!("{at}[{n}]"))).collect()
        }
        (Value::Number(old), Value::Number(new)) if old.as_f64() == new.as_f64() => vec![],
        _ if old == new => vec![],
        _ => vec![format!("{at}: {old} became {new}")],
    }
}

#[test]
fn documents_of_every_version_are_still_read_whole() {
    let mut seen = 0;
    for version in fs::read_dir(folder()).expect("the kept documents") {
        for file in fs::read_dir(version.expect("an entry").path()).expect("a version") {
            let path = file.expect("an entry").path();
            let name = path.file_stem().and_then(|n| n.to_str()).expect("a name");
            let reader = READERS.iter().find(|(known, _)| *known == name);
            let (_, reader) = reader.unwrap_or_else(|| panic!("no document {name} any more"));
            let text = fs::read_to_string(&path).expect("text");
            let new = reader(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let old: Value = serde_json::from_str(&text).expect("JSON");
            let lost = lost(&old, &new, "");
            assert!(lost.is_empty(), "{}: not read: {lost:#?}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 28, "only {seen} documents");
}

/// The comparison sees a key that is renamed, and a value that is read as another.
#[test]
fn what_is_not_read_is_found() {
    let old = serde_json::json!({"a": {"b": [1, {"c": "d"}]}, "n": null});
    assert!(lost(&old, &serde_json::json!({"a": {"b": [1, {"c": "d", "e": 1}]}}), "").is_empty());
    for new in [
        serde_json::json!({"a": {"b": [1, {"k": "d"}]}}),
        serde_json::json!({"a": {"b": [2, {"c": "d"}]}}),
        serde_json::json!({"a": {"b": [1]}}),
        serde_json::json!({}),
    ] {
        assert_eq!(lost(&old, &new, "").len(), 1, "{new}");
    }
    let (_, reader) = READERS.iter().find(|(name, _)| *name == "lint").expect("lint");
    assert!(reader("{\"schema_version\":1}").is_err(), "a document without its keys was read");
}
