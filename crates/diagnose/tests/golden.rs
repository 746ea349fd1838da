//! Every rule against committed cases: `golden/<rule>/<case>/{facts,samples,expect}.json`, and
//! whole hosts under `golden/_whole`. `UPDATE_GOLDEN=1 cargo test -p diagnose --test golden`
//! writes `expect.json` anew: read every line of the difference before committing it.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
};

use diagnose::rules::ALL;
use model::finding::Diagnosis;
use serde_json::{Value, json};
use support::{Host, golden};

fn folders(path: &Path) -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = fs::read_dir(path)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        .map(|e| e.unwrap().path())
        .filter(|p| p.is_dir())
        .collect();
    list.sort();
    list
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|n| n.to_str()).unwrap()
}

/// The answers of one rule.
fn of_rule(d: &Diagnosis, rule: &str) -> Value {
    json!({
        "findings": d.findings.iter().filter(|f| f.rule == rule).collect::<Vec<_>>(),
        "passed": d.passed.iter().filter(|c| c.rule == rule).collect::<Vec<_>>(),
        "skipped": d.skipped.iter().filter(|n| n.rule == rule).collect::<Vec<_>>(),
    })
}

fn count(said: &Value, what: &str) -> usize {
    said[what].as_array().map_or(0, Vec::len)
}

/// Compares, or writes when asked to.
fn compare(folder: &Path, said: &Value, failures: &mut Vec<String>) {
    let path = folder.join("expect.json");
    let text = serde_json::to_string_pretty(said).unwrap() + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    } else if !path.exists() || support::json(&path) != *said {
        let was = fs::read_to_string(&path).unwrap_or_default();
        failures.push(format!("{}: expected\n{was}\nnow\n{text}", folder.display()));
    }
}

/// The case's name says what must come out, so that a regenerated file cannot hide a change.
fn keeps_its_name(folder: &Path, said: &Value) -> Option<String> {
    let (found, passed, open) =
        (count(said, "findings"), count(said, "passed"), count(said, "skipped"));
    let good = match name(folder).split('_').next() {
        Some("fires") => found > 0,
        Some("quiet") => found == 0 && passed > 0,
        Some("unknown") => found == 0 && open > 0,
        _ => false,
    };
    (!good).then(|| {
        format!(
            "{}: {found} findings, {passed} clear, {open} skipped do not fit the name (fires_…, \
             quiet_…, unknown_…)",
            folder.display()
        )
    })
}

#[test]
fn every_rule_says_what_its_cases_expect() {
    let mut failures = vec![];
    for rule in ALL {
        let cases = folders(&golden().join(rule.id));
        for kind in ["fires", "quiet", "unknown"] {
            if !cases.iter().any(|c| name(c).starts_with(kind)) {
                failures.push(format!("{}: no case {kind}_…", rule.id));
            }
        }
        for folder in cases {
            let said = of_rule(&Host::of(&folder).diagnosis(), rule.id);
            failures.extend(keeps_its_name(&folder, &said));
            compare(&folder, &said, &mut failures);
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_folder_belongs_to_a_rule() {
    for folder in folders(&golden()) {
        let name = name(&folder);
        assert!(name.starts_with('_') || ALL.iter().any(|r| r.id == name), "{name}");
    }
}

#[test]
fn whole_hosts_are_diagnosed_as_expected() {
    let mut failures = vec![];
    for folder in folders(&golden().join("_whole")) {
        let said = serde_json::to_value(Host::of(&folder).diagnosis()).unwrap();
        compare(&folder, &said, &mut failures);
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_finding_of_every_case_is_complete() {
    let all = ALL.iter().map(|r| r.id).chain(["_whole"]);
    for folder in all.flat_map(|rule| folders(&golden().join(rule))) {
        for (f, rank) in Host::of(&folder).diagnosis().findings.iter().zip(1..) {
            let at = format!("{}: {}", folder.display(), f.rule);
            assert_eq!(f.rank, rank, "{at}");
            assert!(!f.evidence.is_empty(), "{at}: no evidence");
            for e in &f.evidence {
                assert!(
                    !e.what.is_empty() && !e.value.is_empty() && !e.source.is_empty(),
                    "{at}: {e:?}"
                );
            }
            for text in [&f.title, &f.explanation, &f.expected_benefit, &f.subject] {
                assert!(!text.is_empty() && !text.contains("  "), "{at}: {text:?}");
            }
            for c in &f.changes {
                let filled = [&c.new, &c.command, &c.risk];
                assert!(filled.iter().all(|t| !t.is_empty()), "{at}: {c:?}");
                // Advice may lack the present value; a knob's value is known.
                assert!(c.knob.is_empty() || !c.old.is_empty(), "{at}: {c:?}");
            }
        }
    }
}
