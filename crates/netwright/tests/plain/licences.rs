//! Tests of dependencies: from the registry only, with compatible licences, and in versions that
//! allow a security fix by one `cargo update`.

use std::{collections::BTreeSet, path::Path, process::Command};

use serde_json::Value;

/// The workspace of the program and the one of the fuzzers, which nobody distributes.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "fuzz/Cargo.toml"];

/// Permissive licences, which only require that their text is included. NCSA is LLVM's old one:
/// libFuzzer's.
const ALLOWED: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether allowed licences satisfy an SPDX expression. `/` is the old form of `OR`.
fn is_met(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut left = words.as_slice();
    let met = any(&mut left);
    assert!(left.is_empty(), "{expression}: {left:?} is left over");
    met
}

fn any(words: &mut &[&str]) -> bool {
    let mut met = all(words);
    while let ["OR", rest @ ..] = words {
        *words = rest;
        met |= all(words);
    }
    met
}

fn all(words: &mut &[&str]) -> bool {
    let mut met = one(words);
    while let ["AND", rest @ ..] = words {
        *words = rest;
        met &= one(words);
    }
    met
}

fn one(words: &mut &[&str]) -> bool {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let met = any(words);
            let [")", rest @ ..] = words else { panic!("a parenthesis is not closed") };
            *words = rest;
            met
        }
        [name, "WITH", exception, rest @ ..] => {
            *words = rest;
            ALLOWED.contains(&format!("{name} WITH {exception}").as_str())
        }
        [name, rest @ ..] => {
            *words = rest;
            ALLOWED.contains(name)
        }
        [] => panic!("a licence is missing"),
    }
}

#[test]
fn expressions_are_read_as_spdx_has_them() {
    for met in ["MIT", "MIT/GPL-3.0", "GPL-2.0 OR (MIT AND Zlib)", "(MIT OR X) AND Unicode-3.0"] {
        assert!(is_met(met), "{met}");
    }
    for not in ["GPL-3.0", "MIT AND GPL-3.0", "(GPL-3.0 OR LGPL-2.1) AND MIT", "MIT WITH X"] {
        assert!(!is_met(not), "{not}");
    }
}

/// The packages of a workspace, by its manifest. Those of `fuzz` are there after `make lint`.
fn metadata(manifest: &str) -> Vec<Value> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(manifest);
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let args = ["metadata", "--offline", "--locked", "--format-version", "1"];
    let out = Command::new(cargo)
        .args(args)
        // Dependencies of other systems are not even downloaded.
        .args(["--filter-platform", &host, "--manifest-path"])
        .arg(manifest)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let all: Value = serde_json::from_slice(&out.stdout).unwrap();
    all["packages"].as_array().unwrap().clone()
}

#[test]
fn what_comes_from_outside_is_free_and_from_the_registry() {
    let (mut wrong, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for package in MANIFESTS.into_iter().flat_map(metadata) {
        let Some(source) = package["source"].as_str() else { continue };
        let name = format!("{} {}", package["name"], package["version"]);
        seen.insert(name.clone());
        if source != "registry+https://github.com/rust-lang/crates.io-index" {
            wrong.insert(format!("{name}: from {source}"));
        }
        match package["license"].as_str() {
            Some(licence) if is_met(licence) => {}
            Some(licence) => drop(wrong.insert(format!("{name}: {licence}"))),
            None => drop(wrong.insert(format!("{name}: names no licence"))),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(seen.len() > 100, "{seen:?}");
    assert!(seen.iter().any(|name| name.contains("libfuzzer-sys")), "{seen:?}");
}

#[test]
fn a_security_fix_is_one_cargo_update_away() {
    let mut wrong = vec![];
    let packages: Vec<Value> = MANIFESTS.into_iter().flat_map(metadata).collect();
    for package in packages.iter().filter(|p| p["source"].is_null()) {
        for needed in package["dependencies"].as_array().unwrap() {
            let wanted = needed["req"].as_str().unwrap();
            if !wanted.starts_with('^') && needed["path"].is_null() {
                wrong.push(format!("{}: {} {wanted}", package["name"], needed["name"]));
            }
        }
    }
    assert!(wrong.is_empty(), "exact versions belong into Cargo.lock: {wrong:?}");
}
