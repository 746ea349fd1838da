//! Tests of the code's structure: imports point downward, pure crates stay pure, each folder is a
//! package.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Each crate and what it may import; no crate imports upward.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("parse", &["model"]),
    ("stats", &["model"]),
    ("compare", &["model", "stats"]),
    ("diagnose", &["model", "stats"]),
    ("report", &["model"]),
    ("page", &["model", "report"]),
    ("metrics", &["model", "parse"]),
    ("json", &[]),
    ("probe", &["model", "parse"]),
    ("traffic", &["model", "stats", "probe"]),
    ("workloads", &["model", "stats", "probe", "traffic"]),
    ("interop", &["model", "stats", "probe", "traffic"]),
    ("lab", &["model", "parse", "probe"]),
    ("tune", &["model", "parse", "probe"]),
    ("lint", &["model", "parse", "probe", "tune"]),
    ("prove", &["model", "stats", "probe", "tune"]),
    ("remote", &["model", "diagnose", "probe", "tune", "prove"]),
    ("explain", &["model", "stats", "probe", "traffic", "workloads"]),
    ("fix", &["model", "diagnose", "report", "probe", "tune", "prove", "remote"]),
    ("history", &["model"]),
    ("view", &["model", "diagnose", "report", "page", "probe"]),
    (
        "netwright",
        &[
            "model",
            "parse",
            "stats",
            "compare",
            "diagnose",
            "report",
            "page",
            "metrics",
            "json",
            "probe",
            "traffic",
            "workloads",
            "interop",
            "lab",
            "tune",
            "lint",
            "prove",
            "remote",
            "explain",
            "fix",
            "history",
            "view",
        ],
    ),
];

/// Crates without access to files, processes, the network or a clock.
const PURE: &[&str] =
    &["model", "parse", "stats", "compare", "diagnose", "report", "page", "metrics", "json"];

/// Pure crates may only use these outside libraries; others could bring I/O.
const PURE_MAY_USE: &[&str] =
    &["saphyr-parser", "serde", "serde_json", "schemars", "thiserror", "unicode-width"];

pub fn crates() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The `[dependencies]` section of a manifest, which ships.
fn dependencies(manifest: &str) -> Vec<String> {
    manifest
        .split("\n[")
        .find(|section| section.starts_with("dependencies]"))
        .into_iter()
        .flat_map(str::lines)
        .skip(1)
        .filter_map(|l| l.split(['.', '=', ' ']).next())
        .filter(|n| !n.is_empty() && !n.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

pub fn manifests() -> BTreeMap<String, String> {
    fs::read_dir(crates())
        .unwrap()
        .map(|e| e.unwrap())
        .filter(|e| e.path().is_dir())
        .map(|e| {
            let text = fs::read_to_string(e.path().join("Cargo.toml")).unwrap();
            (e.file_name().into_string().unwrap(), text)
        })
        .collect()
}

#[test]
fn every_folder_is_its_package_and_imports_only_downward() {
    let all = manifests();
    assert!(all.len() >= 6, "found only {:?}", all.keys());
    for (folder, manifest) in &all {
        assert!(manifest.contains(&format!("name = \"{folder}\"")), "{folder} has another name");
        let (_, allowed) = MAY_IMPORT
            .iter()
            .find(|(name, _)| name == folder)
            .unwrap_or_else(|| panic!("{folder} is not in the table of imports"));
        for dependency in dependencies(manifest).iter().filter(|d| all.contains_key(*d)) {
            assert!(allowed.contains(&dependency.as_str()), "{folder} imports {dependency} upward");
        }
    }
}

#[test]
fn pure_crates_ban_the_outside_world() {
    let all = manifests();
    let rules = fs::read_to_string(crates().join("pure.clippy.toml")).unwrap();
    for ban in ["std::fs::read", "std::process::Command::new", "std::time::Instant::now"] {
        assert!(rules.contains(ban), "the purity rules no longer ban {ban}");
    }
    for name in PURE.iter().filter(|n| all.contains_key(**n)) {
        let own = crates().join(name).join("clippy.toml");
        assert_eq!(
            fs::read_link(&own).ok().as_deref(),
            Some(Path::new("../pure.clippy.toml")),
            "{name} does not take the purity rules"
        );
        for dependency in dependencies(all.get(*name).unwrap()) {
            assert!(
                all.contains_key(&dependency) || PURE_MAY_USE.contains(&dependency.as_str()),
                "{name} is pure and may not use {dependency}"
            );
        }
    }
}

#[test]
fn only_probe_reads_the_host() {
    // A descriptor of a mount, to restore it in a new namespace.
    const OWN: [&str; 1] = ["tune/src/netns.rs"];
    let calls = ["read(", "read_to_string(", "read_dir(", "read_link(", "metadata("];
    let calls = calls.map(|call| format!("fs::{call}")).into_iter().chain(["File::open(".into()]);
    let host = ["\"/proc", "format!(\"/proc", "\"/sys", "format!(\"/sys"];
    let reads: Vec<String> = calls.flat_map(|c| host.map(|h| format!("{c}{h}"))).collect();
    let mut found = BTreeSet::new();
    for (package, _) in MAY_IMPORT.iter().filter(|(p, _)| *p != "probe") {
        for path in sources(&crates().join(package).join("src")) {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            let name = path.strip_prefix(crates()).unwrap().display().to_string();
            if !name.ends_with("tests.rs") && reads.iter().any(|r| text.contains(r)) {
                found.insert(name);
            }
        }
    }
    assert_eq!(found, OWN.map(str::to_owned).into(), "read through probe::Root");
}

pub fn sources(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        if entry.is_dir() {
            files.extend(sources(&entry));
        } else if entry.extension().is_some_and(|e| e == "rs") {
            files.push(entry);
        }
    }
    files
}

/// Files with unsafe code that no library replaces: eBPF maps, io_uring, ioctls, signal handlers,
/// forks, and the calls of `traffic::net::sys`. `clippy::undocumented_unsafe_blocks` requires a
/// reason for each.
#[test]
fn unsafe_blocks_are_few() {
    let blocks = |path: &Path| fs::read_to_string(path).unwrap().matches("unsafe {").count();
    let all = MAY_IMPORT.iter().flat_map(|(p, _)| sources(&crates().join(p).join("src")));
    let count: usize = all.map(|path| blocks(&path)).sum();
    assert!(count <= 120, "{count} unsafe blocks; rustix has a safe form of most calls");
}

/// No code may decide by the text of an error, a reason or a warning: texts can then be reworded
/// without changing what the program does.
#[test]
fn no_code_decides_by_the_text_of_a_message() {
    // Another program's output has no other form, and a line must not repeat itself.
    const OTHERS: [&str; 3] =
        ["diagnose/src/missing.rs", "report/src/inspect/mod.rs", "workloads/src/pg/why.rs"];
    let names = ["why", "said", "message", "warning", "reason", "e.to_string()", "text()"];
    let asks = [".contains(", ".starts_with(", ".ends_with("];
    let decides = |line: &str| {
        let code = line.trim_start();
        names.iter().any(|n| asks.iter().any(|a| code.contains(&format!("{n}{a}"))))
            && !code.starts_with("//")
            && !code.contains("assert")
    };
    let mut found = BTreeSet::new();
    for (package, _) in MAY_IMPORT {
        for path in sources(&crates().join(package).join("src")) {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            let name = path.strip_prefix(crates()).unwrap().display().to_string();
            if !name.ends_with("tests.rs") && text.lines().any(decides) {
                found.insert(name);
            }
        }
    }
    let allowed: BTreeSet<String> = OTHERS.iter().map(|f| (*f).to_owned()).collect();
    assert_eq!(found, allowed, "an errno, an enum or a bool decides, not a text");
}

/// Searching for a phrase in code means reading a message's text, whatever the variable's name.
#[test]
fn no_code_asks_a_text_for_a_phrase() {
    // Exceptions below `src`: text that a line already has, a command that stands for several,
    // Redis errors, the owner's name in a tuner's file, and an undo that is printed shorter.
    const OTHERS: [&str; 5] = [
        "inspect/mod.rs",
        "netns.rs",
        "redis/protocol.rs",
        "rules/conflicting_tuner.rs",
        "tune/plan.rs",
    ];
    let asks = ["contains", "starts_with", "ends_with", "strip_prefix", "strip_suffix"];
    let is_word = |w: &str| w.len() > 1 && w.chars().all(|c| c.is_ascii_lowercase());
    let is_phrase = |text: &str| {
        let words: Vec<&str> = text.split(' ').collect();
        words.windows(2).any(|pair| pair.iter().all(|w| is_word(w)))
    };
    let asks_for_one = |line: &&str| {
        let code = line.trim_start();
        let asked = asks.iter().filter_map(|ask| code.split_once(&format!(".{ask}(\"")));
        let mut texts = asked.filter_map(|(_, rest)| rest.split('"').next());
        !code.starts_with("//") && !code.contains("assert") && texts.any(is_phrase)
    };
    let mut found = BTreeSet::new();
    for (package, _) in MAY_IMPORT {
        let src = crates().join(package).join("src");
        for path in sources(&src) {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            let name = path.strip_prefix(&src).unwrap().display().to_string();
            if !name.ends_with("tests.rs") && text.lines().any(|line| asks_for_one(&line)) {
                found.insert(name);
            }
        }
    }
    let allowed: BTreeSet<String> = OTHERS.iter().map(|f| (*f).to_owned()).collect();
    assert_eq!(found, allowed, "an errno, an enum or a bool decides, not a text");
}

/// Each `path` of the map is a file, and each `function` after a path is in it.
#[test]
fn the_map_is_true() {
    let map = fs::read_to_string(crates().join("../ARCHITECTURE.md")).unwrap();
    let words: Vec<&str> = map.split('`').collect();
    let mut functions = 0;
    for (n, path) in words.iter().enumerate().filter(|(n, w)| n % 2 == 1 && w.contains("/src/")) {
        let file = crates().join(path);
        let path = if path.contains("NAME") || path.ends_with('/') {
            assert!(file.parent().unwrap().is_dir(), "ARCHITECTURE.md: no folder of {path}");
            continue;
        } else {
            path
        };
        let code = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{path}: {e}"));
        if words.get(n + 1) == Some(&" ") {
            let function = words[n + 2];
            let has = code.contains(&format!("fn {function}("))
                || code.contains(&format!("fn {function}<"));
            assert!(has, "ARCHITECTURE.md: {path} has no {function}");
            functions += 1;
        }
    }
    assert!(functions > 25, "only {functions} functions of the walks");
}
