//! What a JSON schema says of each key: where it is, of which types, whether it is always there, and
//! its fixed values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// A key, or the document itself.
#[derive(Default)]
struct Key {
    types: BTreeSet<String>,
    values: BTreeSet<String>,
    /// In the `required` of every object that declares it.
    always: bool,
}

/// Lines for each key: its types (`.findings[].rule string`), that it is always there, and each of its
/// fixed values.
pub fn of(schema: &Value) -> BTreeSet<String> {
    let mut keys = BTreeMap::new();
    walk(schema, schema, "", &mut vec![], &mut keys);
    let mut lines = BTreeSet::new();
    for (at, key) in keys.iter().filter(|(at, _)| !at.is_empty()) {
        // All types in one line: a program that reads one must know of no other.
        let types: Vec<&str> = key.types.iter().map(String::as_str).collect();
        lines.insert(format!("{at} {}", types.join("|")));
        if key.always {
            lines.insert(format!("{at} always"));
        }
        lines.extend(key.values.iter().map(|v| format!("{at} = {v}")));
    }
    lines
}

fn walk<'s>(
    schema: &'s Value,
    root: &'s Value,
    at: &str,
    open: &mut Vec<&'s str>,
    keys: &mut BTreeMap<String, Key>,
) {
    if let Some(name) = schema["$ref"].as_str() {
        // A type in itself is walked once.
        if !open.contains(&name) {
            open.push(name);
            let target = root.pointer(name.trim_start_matches('#')).expect("a defined type");
            walk(target, root, at, open, keys);
            open.pop();
        }
        return;
    }
    let key = keys.entry(at.to_owned()).or_default();
    match &schema["type"] {
        Value::String(one) => drop(key.types.insert(one.clone())),
        Value::Array(many) => {
            key.types.extend(many.iter().filter_map(|t| Some(t.as_str()?.into())))
        }
        _ => {}
    }
    key.values.extend(schema["const"].as_str().map(str::to_owned));
    let values = schema["enum"].as_array().into_iter().flatten();
    key.values.extend(values.filter_map(|v| Some(v.as_str()?.to_owned())));
    for part in ["anyOf", "oneOf", "allOf"] {
        for one in schema[part].as_array().into_iter().flatten() {
            walk(one, root, at, open, keys);
        }
    }
    let always = |name: &str| {
        let required = schema["required"].as_array();
        required.is_some_and(|all| all.iter().any(|r| r == name))
    };
    for (name, of) in schema["properties"].as_object().into_iter().flatten() {
        let below = format!("{at}.{name}");
        let known = keys.contains_key(&below);
        let key = keys.entry(below.clone()).or_default();
        key.always = always(name) && (key.always || !known);
        walk(of, root, &below, open, keys);
    }
    if schema["items"].is_object() {
        walk(&schema["items"], root, &format!("{at}[]"), open, keys);
    }
    let others = schema["patternProperties"].as_object().into_iter().flatten().map(|(_, of)| of);
    for of in others.chain(Some(&schema["additionalProperties"]).filter(|of| of.is_object())) {
        walk(of, root, &format!("{at}.*"), open, keys);
    }
}
