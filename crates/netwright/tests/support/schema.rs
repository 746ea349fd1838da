//! Compares every document that a suite makes the program print with its committed schema.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Map, Value};

/// The folder of the committed schemas.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

pub fn schema(name: &str) -> Value {
    let path = folder().join(format!("{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("the committed schema is no JSON")
}

/// Fails where a text is not one line with a document of this name.
pub fn keeps_to(name: &str, document: &str) {
    assert_eq!(document.matches('\n').count(), 1, "one document on one line: {document}");
    let value: Value = serde_json::from_str(document).unwrap_or_else(|e| panic!("{e}: {document}"));
    let schema = schema(name);
    if let Err(why) = validate(&schema, &schema, &value, "") {
        panic!("{name} --json breaks its schema: {why}");
    }
}

/// Runs a command to its end. The output of `--json` must match its schema.
pub fn ended(command: &mut Command) -> Output {
    let out = command.output().unwrap_or_else(|e| {
        panic!("{}: {e}; `make deps` installs what the tests need", command.get_program().display())
    });
    held(command, &out.stdout);
    out
}

/// Compares a command's output with the schema of its arguments.
pub fn held(command: &Command, stdout: &[u8]) {
    let words: Vec<&OsStr> =
        std::iter::once(command.get_program()).chain(command.get_args()).collect();
    // The program may follow `ip netns exec`, `timeout` or `lab exec`.
    let is_ours = |w: &&OsStr| Path::new(w).file_name() == Some(OsStr::new("netwright"));
    let Some(at) = words.iter().rposition(is_ours) else { return };
    let asked: Vec<&str> = words.iter().skip(at + 1).filter_map(|w| w.to_str()).collect();
    if asked.iter().take_while(|w| **w != "--").any(|w| *w == "--json") {
        for line in String::from_utf8_lossy(stdout).split_inclusive('\n') {
            if let Some(name) = document(&asked, line) {
                keeps_to(&name, line);
            }
        }
    }
}

/// The document that these arguments print; `None` where none is promised.
fn document(asked: &[&str], line: &str) -> Option<String> {
    let mut words = asked.iter().filter(|w| !w.starts_with('-'));
    let command = *words.next().unwrap_or_else(|| panic!("no command in {asked:?}"));
    let kind = || {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        value["kind"].as_str().unwrap_or_else(|| panic!("no kind in {line}")).replace('_', "-")
    };
    Some(match command {
        "doctor" if asked.contains(&"--peer") => "doctor-peer".into(),
        "doctor" if asked.contains(&"--fleet") => "doctor-fleet".into(),
        "compare" | "inspect" | "doctor" | "fix" | "lint" | "mesh" | "place" | "prove"
        | "watch" => command.into(),
        // What `show` prints keeps to the schema of the run's kind, which its own command is held to.
        "history" => match *words.next().unwrap_or(&"") {
            "show" => return None,
            what => format!("history-{what}"),
        },
        "explain" => kind(),
        "measure" => format!("measure-{}", kind()),
        "tune" => match *words.next().unwrap_or(&"") {
            "confirm" | "rollback" => "tune-apply".into(),
            what => format!("tune-{what}"),
        },
        // Lines of events, and the state of practice hosts, have no schema.
        "serve" | "lab" => return None,
        other => panic!("{other} --json has no schema: {line}"),
    })
}

/// A validator for the part of JSON Schema 2020-12 that our schemas use. An unknown keyword is an
/// error, so that nothing is silently unchecked. (The `jsonschema` crate adds 59 crates to every
/// test build.)
pub fn validate(schema: &Value, root: &Value, value: &Value, at: &str) -> Result<(), String> {
    let rules = match schema {
        Value::Bool(true) => return Ok(()),
        Value::Object(rules) => rules,
        _ => return Err(format!("{at}: the schema allows nothing here")),
    };
    for (keyword, rule) in rules {
        check(keyword, rule, rules, root, value, at)
            .map_err(|why| if why.starts_with('/') { why } else { format!("{at}: {why}") })?;
    }
    Ok(())
}

fn check(
    keyword: &str,
    rule: &Value,
    rules: &Map<String, Value>,
    root: &Value,
    value: &Value,
    at: &str,
) -> Result<(), String> {
    let fits = |s: &Value| validate(s, root, value, at).is_ok();
    let alternatives = || rule.as_array().expect("a list").iter();
    let ok = match keyword {
        "$schema" | "$defs" | "title" | "description" | "format" | "default" => true,
        "$ref" => {
            let pointer = rule.as_str().expect("a text").trim_start_matches('#');
            let target = root.pointer(pointer).ok_or(format!("{pointer} is not defined"))?;
            return validate(target, root, value, at);
        }
        "type" => match rule {
            Value::Array(kinds) => kinds.iter().any(|k| is(value, k)),
            kind => is(value, kind),
        },
        "const" => rule == value,
        "enum" => rule.as_array().expect("a list").contains(value),
        "anyOf" => alternatives().any(fits),
        "oneOf" => alternatives().filter(|s| fits(s)).count() == 1,
        "minimum" => value.as_f64().is_none_or(|v| v >= rule.as_f64().expect("a number")),
        "maximum" => value.as_f64().is_none_or(|v| v <= rule.as_f64().expect("a number")),
        // The only pattern in use is that of a cpulist.
        "pattern" => {
            assert_eq!(rule, "^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$", "a new pattern");
            value.as_str().is_none_or(|s| s.parse::<model::CpuSet>().is_ok())
        }
        "required" => value
            .as_object()
            .is_none_or(|o| alternatives().all(|k| o.contains_key(k.as_str().expect("a text")))),
        "properties" => {
            for (key, inner) in value.as_object().into_iter().flatten() {
                if let Some(schema) = rule.get(key) {
                    validate(schema, root, inner, &format!("{at}/{key}"))?;
                }
            }
            true
        }
        "additionalProperties" => {
            let named = |key| rules.get("properties").is_some_and(|p| p.get(key).is_some());
            let numbered = |key| rules.contains_key("patternProperties") && is_number(key);
            for (key, inner) in value.as_object().into_iter().flatten() {
                if !named(key) && !numbered(key) {
                    validate(rule, root, inner, &format!("{at}/{key}"))?;
                }
            }
            true
        }
        "patternProperties" => {
            // The keys of maps by number (memory by node) have this one pattern.
            let numbers = rule.get("^\\d+$").expect("a new pattern of keys");
            for (key, inner) in value.as_object().into_iter().flatten() {
                if is_number(key) {
                    validate(numbers, root, inner, &format!("{at}/{key}"))?;
                }
            }
            true
        }
        "items" => {
            for (i, inner) in value.as_array().into_iter().flatten().enumerate() {
                validate(rule, root, inner, &format!("{at}/{i}"))?;
            }
            true
        }
        other => return Err(format!("the validator does not know the keyword {other}")),
    };
    let shown: String = value.to_string().chars().take(80).collect();
    if ok { Ok(()) } else { Err(format!("{shown} breaks {keyword} {rule}")) }
}

fn is_number(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_digit())
}

fn is(value: &Value, kind: &Value) -> bool {
    match kind.as_str().expect("a text") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("a new type {other}"),
    }
}
