//! Tests of the documents against the code: everything read or judged is documented, no link is
//! broken, and no path leaves the repository.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
    process::Command,
};

use serde_json::Value;

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// `docs/support.md` and the pages that it leads to, one after the other.
fn support() -> String {
    let folder = fs::read_dir(repository().join("docs")).unwrap().map(|e| e.unwrap().path());
    let name = |p: &PathBuf| p.file_name().unwrap().to_string_lossy().starts_with("support");
    let mut pages: Vec<PathBuf> = folder.filter(name).collect();
    pages.sort();
    assert!(pages.len() > 5, "only {pages:?}");
    pages.iter().map(|p| text(p)).collect()
}

/// Every property name anywhere in a schema.
fn properties(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(own)) = map.get("properties") {
                names.extend(own.keys().cloned());
            }
            map.values().for_each(|v| properties(v, names));
        }
        Value::Array(list) => list.iter().for_each(|v| properties(v, names)),
        _ => {}
    }
}

#[test]
fn every_fact_is_listed() {
    let schema = text(&repository().join("docs/schema/inspect.json"));
    let mut names = BTreeSet::new();
    properties(&serde_json::from_str(&schema).unwrap(), &mut names);
    assert!(names.len() > 150, "only {} properties in the schema", names.len());
    let listed = support();
    let missing: Vec<_> = names.iter().filter(|n| !listed.contains(&format!("`{n}`"))).collect();
    assert!(missing.is_empty(), "docs/support*.md say nothing of {missing:?}");
}

#[test]
fn every_rule_is_listed_once_with_its_cases() {
    let root = repository();
    let listed = support();
    let rules: Vec<String> = fs::read_dir(root.join("crates/diagnose/src/rules"))
        .unwrap()
        .filter_map(|e| Some(e.unwrap().path().file_stem()?.to_str()?.to_owned()))
        .filter(|name| name != "mod")
        .collect();
    assert!(rules.len() > 30, "only {rules:?}");
    for rule in rules {
        let row = format!("[`{rule}`](../crates/diagnose/tests/golden/{rule})");
        assert_eq!(listed.matches(&row).count(), 1, "docs/support*.md: no single row {row}");
    }
}

#[test]
fn every_knob_is_listed_once() {
    let listed = support();
    let folder = repository().join("crates/tune/src/knobs");
    let files = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_file());
    let knobs: Vec<String> =
        files.map(|p| p.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert!(knobs.len() > 10, "only {knobs:?}");
    for knob in knobs {
        let row = format!("| `{knob}` |");
        assert_eq!(listed.matches(&row).count(), 1, "docs/support*.md: no single row {row}");
    }
}

/// The pages at the top of the repository.
pub const TOP: [&str; 5] =
    ["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"];

/// These pages, and everything under `docs` and beside the fixtures.
pub fn documents() -> Vec<PathBuf> {
    let root = repository();
    let mut found: Vec<PathBuf> = TOP.map(|f| root.join(f)).into();
    let mut folders = vec![root.join("docs"), root.join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 5, "only {found:?}");
    found
}

/// The link targets of a Markdown text.
pub fn links(text: &str) -> Vec<String> {
    let ends = text.match_indices("](").map(|(at, m)| &text[at + m.len()..]);
    ends.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// A heading's anchor, as code forges make it.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn has_anchor(document: &str, wanted: &str) -> bool {
    document.lines().filter(|l| l.starts_with('#')).any(|l| anchor(l) == wanted)
}

/// The path with `..` taken out; `None` when it leaves the repository.
pub fn inside(path: &Path, root: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean.starts_with(root).then_some(clean)
}

#[test]
fn no_link_is_broken_or_leads_outside() {
    let root = repository();
    let mut followed = 0;
    for document in documents() {
        let own = text(&document);
        for link in links(&own) {
            if link.starts_with("http://") || link.starts_with("https://") {
                continue;
            }
            let at = format!("{}: ({link})", document.display());
            let (file, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() {
                document.clone()
            } else {
                assert!(!file.starts_with('/'), "{at} is absolute");
                let path = document.parent().unwrap().join(file);
                inside(&path, &root).unwrap_or_else(|| panic!("{at} leaves the repository"))
            };
            assert!(target.exists(), "{at} leads nowhere");
            assert!(fragment.is_empty() || has_anchor(&text(&target), fragment), "{at}: no anchor");
            followed += 1;
        }
    }
    assert!(followed > 30, "only {followed} links were followed");
}

#[test]
fn nothing_names_a_place_of_whoever_wrote_it() {
    for document in documents() {
        let text = text(&document);
        for place in ["/work/", "/root/", "/home/", "../shared"] {
            assert!(!text.contains(place), "{} names {place}", document.display());
        }
    }
}

/// The experiments named on pages are valid for `prove`.
#[test]
fn shipped_experiments_are_understood() {
    let folder = repository().join("docs/lab");
    let files = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path());
    let files: Vec<PathBuf> =
        files.filter(|f| f.extension().is_some_and(|e| e == "toml")).collect();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        let mut prove = Command::new(env!("CARGO_BIN_EXE_netwright"));
        prove.arg("prove").arg(&file).args(["--status", "--record", "/none/there"]);
        let out = prove.output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        // There is no record yet, which is error 4; a mistake in the file would be 2.
        assert_eq!(out.status.code(), Some(4), "{}: {said}", file.display());
    }
}

/// The experiments shown on pages use existing keys only.
#[test]
fn experiments_on_the_pages_are_understood() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("e.toml");
    let mut seen = 0;
    for page in documents() {
        let text = text(&page);
        let blocks = text.split("\n```toml\n").skip(1).filter_map(|b| b.split("\n```").next());
        for block in blocks.filter(|b| b.contains("[[factor]]")) {
            fs::write(&file, block).unwrap();
            let mut prove = Command::new(env!("CARGO_BIN_EXE_netwright"));
            prove.arg("prove").arg(&file).args(["--status", "--record", "/none/there"]);
            let out = prove.output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr);
            assert_eq!(out.status.code(), Some(4), "{}: {said}", page.display());
            seen += 1;
        }
    }
    assert!(seen >= 2, "only {seen} experiments were seen");
}

/// The last cell of a row in the table of rules, in backquotes: `SUITE::TEST`.
fn tests_named(row: &str) -> Vec<&str> {
    let proven = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap();
    proven.split('`').skip(1).step_by(2).collect()
}

/// How each rule was proven: every test named exists, and every planted fault is named by a rule.
#[test]
fn every_rule_says_how_it_was_proven() {
    let (support, tests) = (support(), Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"));
    let folders = fs::read_dir(&tests).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir());
    let folders: Vec<PathBuf> = folders.collect();
    let rules = support.split("\n## Rules\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<&str> = rules.lines().filter(|l| l.contains("tests/golden/")).collect();
    assert!(rows.len() > 30, "only {} rows", rows.len());
    let mut named = BTreeSet::new();
    for row in rows {
        let all = tests_named(row);
        let said = ["planted: `", "guest: `", "captured host: `"].iter().any(|k| row.contains(k));
        let alone = row.contains("| made-up document only: ") || row.contains("by hand |");
        assert!(if said { !all.is_empty() } else { all.is_empty() && alone }, "{row}");
        for test in all {
            let (suite, name) = test.split_once("::").unwrap_or_else(|| panic!("{test}"));
            let file = folders.iter().map(|f| f.join(format!("{suite}.rs"))).find(|f| f.is_file());
            let file = file.unwrap_or_else(|| panic!("no suite {suite}: {row}"));
            assert!(text(&file).contains(&format!("#[test]\nfn {name}()")), "no {test}: {row}");
            named.insert(test.to_owned());
            // The suite holds a finding of this rule.
            let rule = row.split('`').nth(1).unwrap();
            if suite == "doctor_guest" {
                let parts = fs::read_dir(file.with_extension("")).unwrap();
                let parts = parts.map(|e| text(&e.unwrap().path())).collect::<String>();
                assert!(parts.contains(&format!("found(\"{rule}\"")), "{test} finds no {rule}");
            }
        }
    }
    // A planted fault is a test that checks a figure of a finding or applies its change; look-alikes
    // do neither.
    for suite in ["planted_queues", "planted_settings"] {
        let source = text(&tests.join(format!("seeing/{suite}.rs")));
        for test in source.split("#[test]\nfn ").skip(1) {
            let name = test.split('(').next().unwrap();
            let body = test.split("\n}\n").next().unwrap();
            let planted = body.contains("figure(") || body.contains("apply(");
            let listed = named.contains(&format!("{suite}::{name}"));
            assert_eq!(planted, listed, "{suite}::{name} in the table of rules");
        }
    }
}
