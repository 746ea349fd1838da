//! Golden cases: a base host and patches over it.
//!
//! A patch is an RFC 7396 merge patch (objects merge, `null` removes, the rest replaces) with
//! three additions, because most of a host is lists:
//! - an object laid over a *list* names elements: `"id=3"`, `"name=eth0"`, `"irq=40"` (by that
//!   key), `"2"` (by position), `"*"` (all); `"+"` appends a list of new ones; `null` removes;
//! - `{"absent": "…"}` and `{"denied": "…"}` replace what they are laid over instead of merging
//!   into it: the value is missing then;
//! - `"copy": {"from": "name=eth0", …}` under `"+"` is an element made from another one.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use diagnose::Case;
use model::{Facts, Goal, Reading, Samples, finding::Diagnosis};
use serde_json::{Map, Value, json};

/// The folder of the golden cases.
pub fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

pub fn json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The healthy host that every case starts from.
pub fn base(what: &str) -> Value {
    json(&golden().join("_base").join(what))
}

/// One case, ready to be judged.
pub struct Host {
    pub facts: Facts,
    pub samples: Reading<Samples>,
    pub goal: Goal,
}

impl Host {
    pub fn new(facts: Value, samples: Value, goal: Goal) -> Result<Self, serde_json::Error> {
        // Samples are read by themselves: through `Reading` an error would not say where it is.
        let samples = match serde_json::from_value(samples.clone()) {
            Ok(samples) => Reading::Known(samples),
            Err(e) => match serde_json::from_value(samples)? {
                Reading::Known(_) => return Err(e),
                missing => missing,
            },
        };
        Ok(Self { facts: serde_json::from_value(facts)?, samples, goal })
    }

    /// The base with the patches of a folder.
    pub fn of(folder: &Path) -> Self {
        assert!(folder.is_dir(), "{} is not there", folder.display());
        let mut values = vec![];
        for what in ["facts.json", "samples.json"] {
            let mut value = base(what);
            let path = folder.join(what);
            if path.exists() {
                merge(&mut value, &json(&path), &path.display().to_string());
            }
            values.push(value);
        }
        let goal = match fs::read_to_string(folder.join("goal")) {
            Ok(text) => serde_json::from_value(json!(text.trim())).unwrap(),
            Err(_) => Goal::Throughput,
        };
        let samples = values.pop().unwrap();
        let facts = values.pop().unwrap();
        Self::new(facts, samples, goal).unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
    }

    pub fn diagnosis(&self) -> Diagnosis {
        diagnose::diagnose(&Case { facts: &self.facts, samples: &self.samples, goal: self.goal })
    }
}

/// Lays a patch over a value.
pub fn merge(target: &mut Value, patch: &Value, at: &str) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if fields.len() == 1 && (fields.contains_key("absent") || fields.contains_key("denied")) {
        *target = patch.clone();
        return;
    }
    if let Value::Array(list) = target {
        merge_list(list, fields, at);
        return;
    }
    if !target.is_object() || is_missing(target) {
        *target = Value::Object(Map::new());
    }
    let Value::Object(map) = target else { return };
    for (key, value) in fields {
        if value.is_null() {
            assert!(map.remove(key).is_some(), "{at}: there is no {key:?} to remove");
        } else {
            merge(map.entry(key.clone()).or_insert(Value::Null), value, &format!("{at}/{key}"));
        }
    }
}

fn is_missing(value: &Value) -> bool {
    value.as_object().is_some_and(|o| o.contains_key("absent") || o.contains_key("denied"))
}

fn merge_list(list: &mut Vec<Value>, patch: &Map<String, Value>, at: &str) {
    for (key, value) in patch.iter().filter(|(k, _)| *k != "+") {
        let hits: Vec<usize> = (0..list.len()).filter(|&i| selects(key, i, &list[i])).collect();
        assert!(!hits.is_empty(), "{at}: nothing in the list is {key:?}");
        for i in hits.into_iter().rev() {
            if value.is_null() {
                list.remove(i);
            } else {
                merge(&mut list[i], value, &format!("{at}/{key}"));
            }
        }
    }
    for new in patch.get("+").and_then(Value::as_array).into_iter().flatten() {
        let element = match new.get("copy").and_then(Value::as_object) {
            None => new.clone(),
            Some(copy) => {
                let from = copy["from"].as_str().unwrap();
                let i = (0..list.len()).find(|&i| selects(from, i, &list[i])).unwrap();
                let mut element = list[i].clone();
                let mut change = copy.clone();
                change.remove("from");
                merge(&mut element, &Value::Object(change), &format!("{at}/+"));
                element
            }
        };
        list.push(element);
    }
}

/// Whether a selector means this element.
fn selects(selector: &str, position: usize, element: &Value) -> bool {
    if selector == "*" || selector == position.to_string() {
        return true;
    }
    let Some((key, wanted)) = selector.split_once('=') else { return false };
    match &element[key] {
        Value::String(s) => s == wanted,
        Value::Number(n) => n.to_string() == wanted,
        // A queue: `id=rx-3`.
        Value::Object(o) => {
            let name = format!("{}-{}", o["direction"].as_str().unwrap_or(""), o["index"]);
            name == wanted
        }
        _ => false,
    }
}
