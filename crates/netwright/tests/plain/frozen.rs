//! Tests that nothing a program may rely on is gone or renamed since the lists of `tests/plain/frozen` were
//! written: keys of the documents, flags, exit codes, settings and rules. More may be added; `UPDATE=1` writes
//! what is new into the lists and takes nothing out of them. docs/schemas.md says what is promised.

mod keys;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::docs::{repository, text};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plain/frozen")
}

/// Fails where a line of a list is not in force any more; with `UPDATE=1` adds what is new.
fn holds(list: &str, now: &BTreeSet<String>, least: usize) {
    let path = folder().join(list);
    let written = fs::read_to_string(&path).unwrap_or_default();
    let frozen: BTreeSet<String> = written.lines().map(str::to_owned).collect();
    let gone: Vec<&String> = frozen.difference(now).collect();
    assert!(gone.is_empty(), "{list}: programs rely on what is gone or renamed: {gone:#?}");
    if std::env::var_os("UPDATE").is_some() {
        let all: Vec<&str> = frozen.union(now).map(String::as_str).collect();
        fs::write(&path, all.join("\n") + "\n").unwrap();
    }
    assert!(now.len() >= least, "{list}: only {} are in force", now.len());
}

#[test]
fn no_key_of_a_document_is_gone() {
    let mut now = BTreeSet::new();
    for entry in fs::read_dir(repository().join("docs/schema")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let schema = serde_json::from_str(&text(&path)).unwrap();
        now.extend(keys::of(&schema).into_iter().map(|line| format!("{name}{line}")));
    }
    holds("documents.txt", &now, 5_000);
}

/// The comparison finds what would break a program that reads a document.
#[test]
fn a_changed_schema_is_found() {
    let text = text(&repository().join("docs/schema/doctor.json"));
    let frozen = keys::of(&serde_json::from_str(&text).unwrap());
    let (window, rank) = ("\"window_ns\"", "\"rank\"");
    assert!(text.matches(window).count() == 2 && text.matches(rank).count() == 2);
    let required_only = format!("{window},\n");
    for (change, to) in [
        (window, "\"window\""),          // renamed
        (required_only.as_str(), ""),    // not always there
        ("\"critical\"", "\"serious\""), // a value renamed
    ] {
        let changed = text.replace(change, to);
        assert_ne!(changed, text, "{change}");
        let now = keys::of(&serde_json::from_str(&changed).unwrap());
        assert!(!frozen.is_subset(&now), "{change} → {to} was not found");
    }
    // Another type.
    let mut changed: serde_json::Value = serde_json::from_str(&text).unwrap();
    changed["$defs"]["Finding"]["properties"]["rank"] = serde_json::json!({"type": "string"});
    assert!(!frozen.is_subset(&keys::of(&changed)));
    // A new key is no break.
    let mut more: serde_json::Value = serde_json::from_str(&text).unwrap();
    more["properties"]["new_key"] = serde_json::json!({"type": "string"});
    more["required"].as_array_mut().unwrap().push("new_key".into());
    assert!(frozen.is_subset(&keys::of(&more)));
}

/// The commands with their flags, and the values of a flag that has a list of them.
fn flags() -> BTreeSet<String> {
    let mut now = BTreeSet::new();
    for entry in fs::read_dir(repository().join("share/man/man1")).unwrap() {
        let page = text(&entry.unwrap().path());
        let page =
            page.replace("\\-", "-").replace("\\fR", "").replace("\\fB", "").replace("\\fI", "");
        let usage = page.split(".SH SYNOPSIS\n").nth(1).unwrap().lines().next().unwrap();
        let words = usage.split(' ').take_while(|w| !w.starts_with(['[', '<']));
        let command = words.collect::<Vec<_>>().join(" ");
        now.insert(command.clone());
        let (mut flag, mut is_head) = (String::new(), false);
        for line in page.split("\n.SH DESCRIPTION").nth(1).unwrap().lines() {
            if line == ".TP" {
                is_head = true;
            } else if is_head {
                let long = line.split([' ', ',']).find(|w| w.starts_with("--"));
                flag = long.map(|l| format!("{command} {l}")).unwrap_or_default();
                is_head = false;
                now.extend(Some(flag.clone()).filter(|f| !f.is_empty()));
            } else if let Some(values) = line.strip_prefix("[possible values: ") {
                let values = values.trim_end_matches(']').split(", ");
                now.extend(values.map(|v| format!("{flag} {v}")).filter(|v| v.starts_with("n")));
            }
        }
    }
    now
}

#[test]
fn no_command_and_no_flag_is_gone() {
    let now = flags();
    for flag in ["netwright doctor --window", "netwright tune apply --confirm", "netwright schema"]
    {
        assert!(now.contains(flag), "the pages are read wrongly: no {flag} in {now:#?}");
    }
    holds("flags.txt", &now, 400);
}

#[test]
fn no_exit_code_and_no_rule_is_gone() {
    let page = text(&repository().join("crates/netwright/src/topics/exit-codes.txt"));
    let codes = page.lines().filter(|l| l.trim_start().starts_with(|c: char| c.is_ascii_digit()));
    let mut now: BTreeSet<String> = codes.map(|l| format!("exit code {}", l.trim())).collect();
    assert_eq!(now.len(), 6, "{now:?}");
    let rules = fs::read_dir(repository().join("crates/diagnose/src/rules")).unwrap();
    let rules = rules.map(|e| e.unwrap().path().file_stem().unwrap().display().to_string());
    now.extend(rules.filter(|r| r != "mod").map(|r| format!("rule {r}")));
    holds("names.txt", &now, 50);
}

/// The name of each setting, as it is typed, is still understood, and by the same kind.
#[test]
fn no_setting_is_gone() {
    let list = text(&folder().join("settings.txt"));
    let (mut kinds, mut seen) = (BTreeSet::new(), 0);
    for line in list.lines() {
        let (kind, name) = line.split_once(' ').unwrap();
        let target = model::knob::Target::parse(name);
        let target = target.unwrap_or_else(|| panic!("{name} is not understood any more"));
        let now = tune::knobs::ALL.iter().find(|k| (k.parse)(target).is_some()).map(|k| k.name);
        assert_eq!(now, Some(kind), "{name}");
        kinds.insert(kind);
        seen += 1;
    }
    let all: BTreeSet<&str> = tune::knobs::ALL.iter().map(|k| k.name).collect();
    let lost: Vec<_> = kinds.difference(&all).collect();
    assert!(lost.is_empty() && seen > 50, "{lost:?}, {seen}");
}
