//! Tests that files of a crate use each other in one direction, and that no file is too long.
//!
//! A file uses another where a path in its code leads into it, under any imported name. A module
//! and its descendants may use each other.

mod modules;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::Path,
};

use super::architecture::{crates, manifests, sources};
use modules::{MOST_HOPS, Module, modules, resolve};

/// The most lines of a file in `src`, and of one in tests or benchmarks.
const LONGEST: usize = 500;
const LONGEST_TEST: usize = 600;

/// Longer files that still must be split; the list must not grow.
const KNOWN_LONG: [&str; 0] = [];

/// Cycles that still must be resolved: a package, and files of its `src` that all reach each other.
/// The list must not grow.
const KNOWN_CIRCLES: [(&str, &str); 0] = [];

/// The modules that each module uses, with a path by which it does; without ancestors and
/// descendants.
fn uses(all: &[Module]) -> Vec<BTreeMap<usize, String>> {
    let below = |mut module: usize, ancestor: usize| loop {
        if module == ancestor {
            break true;
        }
        match all[module].parent {
            Some(parent) => module = parent,
            None => break false,
        }
    };
    let used = |id: usize| {
        let to = |path: &Vec<String>| Some((resolve(all, id, path, MOST_HOPS)?, path.join("::")));
        let all = all[id].mentions.iter().filter_map(to);
        all.filter(|(to, _)| !below(id, *to) && !below(*to, id)).collect()
    };
    (0..all.len()).map(used).collect()
}

/// The shortest cycle from `start` back to it.
fn circle(uses: &[BTreeMap<usize, String>], start: usize) -> Option<Vec<usize>> {
    let mut came_from = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(at) = open.pop_front() {
        for to in uses[at].keys() {
            if *to == start {
                let mut path = vec![at];
                while path[0] != start {
                    path.insert(0, came_from[&path[0]]);
                }
                return Some(path);
            }
            if !came_from.contains_key(to) {
                came_from.insert(*to, at);
                open.push_back(*to);
            }
        }
    }
    None
}

fn reached(uses: &[BTreeMap<usize, String>], start: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        open.extend(uses[at].keys().filter(|to| found.insert(**to)));
    }
    found
}

/// Files that all reach each other, with their shortest cycle as text.
struct Knot {
    files: BTreeSet<String>,
    circle: String,
}

/// The cycles of the crate with this root.
fn knots(root: &Path) -> Vec<Knot> {
    let all = modules(root);
    let uses = uses(&all);
    let reached: Vec<_> = (0..all.len()).map(|id| reached(&uses, id)).collect();
    let mut seen = BTreeSet::new();
    let mut knots = vec![];
    for id in (0..all.len()).filter(|id| reached[*id].contains(id)) {
        if !seen.insert(id) {
            continue;
        }
        let knot: BTreeSet<usize> =
            reached[id].iter().copied().filter(|other| reached[*other].contains(&id)).collect();
        seen.extend(&knot);
        let name = |id: usize| {
            let file = all[id].file.strip_prefix(root.parent().unwrap()).unwrap();
            file.with_extension("").display().to_string()
        };
        let circles = knot.iter().filter_map(|start| circle(&uses, *start));
        let shortest = circles.min_by_key(Vec::len).unwrap();
        let next = shortest.iter().cycle().skip(1);
        let step = |(from, to): (&usize, &usize)| {
            format!("  {}.rs uses {} of {}.rs", name(*from), uses[*from][to], name(*to))
        };
        let circle = shortest.iter().zip(next).map(step).collect::<Vec<_>>().join("\n");
        knots.push(Knot { files: knot.iter().map(|id| name(*id)).collect(), circle });
    }
    knots
}

#[test]
fn no_files_of_a_crate_use_each_other_in_a_circle() {
    let known =
        KNOWN_CIRCLES.map(|(package, files)| (package, files.split(' ').collect::<Vec<_>>()));
    let (mut new, mut left) = (vec![], BTreeSet::new());
    for package in manifests().keys() {
        let src = crates().join(package).join("src");
        for root in ["lib.rs", "main.rs"].map(|r| src.join(r)).iter().filter(|r| r.exists()) {
            for Knot { files, circle } in knots(root) {
                let holds = |(of, known): &(&str, Vec<&str>)| {
                    of == package && files.iter().all(|f| known.contains(&f.as_str()))
                };
                match known.iter().position(holds) {
                    Some(at) => drop(left.insert(at)),
                    None => new.push(format!("{package}/src ({} files):\n{circle}", files.len())),
                }
            }
        }
    }
    assert!(
        new.is_empty(),
        "files use each other in a circle; move what both need into a file of its own:\n{}",
        new.join("\n")
    );
    let mended = (0..known.len()).find(|at| !left.contains(at)).map(|at| &known[at]);
    assert!(mended.is_none(), "this circle is mended: take it from KNOWN_CIRCLES: {mended:?}");
}

#[test]
fn no_file_is_long() {
    let mut long = BTreeSet::new();
    for package in manifests().keys() {
        for folder in ["src", "tests", "benches"] {
            let folder = crates().join(package).join(folder);
            for file in if folder.exists() { sources(&folder) } else { vec![] } {
                let name = file.strip_prefix(crates()).unwrap().display().to_string();
                let is_test = !name.contains("/src/")
                    || name.ends_with("tests.rs")
                    || name.contains("/tests/");
                let most = if is_test { LONGEST_TEST } else { LONGEST };
                if fs::read_to_string(&file).unwrap().lines().count() > most {
                    long.insert(name);
                }
            }
        }
    }
    let known = BTreeSet::from(KNOWN_LONG.map(str::to_owned));
    assert_eq!(
        long, known,
        "over {LONGEST} lines, or {LONGEST_TEST} of tests: split it, or take it from KNOWN_LONG"
    );
}

/// The cycles of a crate with these files.
fn planted(files: &[(&str, &str)]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = dir.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let knots = knots(&dir.path().join("lib.rs"));
    knots.into_iter().map(|k| k.files.into_iter().collect::<Vec<_>>().join(" ")).collect()
}

/// A cycle is found however its files are named, and a look-alike is not.
#[test]
fn a_planted_circle_is_found() {
    let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::B;\npub fn own() {}\n");
    let b = ("b.rs", "use super::{c, a::A};\npub struct B;\n");
    let c =
        ("c.rs", "pub const QUOTE: char = '\"';\npub fn c<'a>() -> &'a str { \"crate::a::A\" }\n");
    let found = |a: &str, more: &[(&str, &str)]| {
        planted(&[&[lib, b, c, ("a.rs", &format!("pub struct A;\n{a}"))][..], more].concat())
    };
    for a in [
        "use crate::{c::c, b::{self as other, B}};",
        "fn f() { let _ = crate::b::B; }",
        "use crate::B;",
        "use crate::b; fn f(_: b::B) {}",
        "mod inner { use super::super::b::B; }",
        "#[cfg(test)] use crate::c; use super::b::B;",
        "const RAW: &str = r#\"\"//\"#; use crate::b::B; // '",
    ] {
        assert_eq!(found(a, &[]), ["a b"], "{a}");
    }
    for a in [
        "",
        "use crate::{c::c, own};",
        "// crate::b::B\n/* crate::b::B */ const TEXT: &str = \"crate::b::B\";",
        "#[cfg(test)] mod tests { use crate::b::B; }",
        "#[cfg(test)] #[path = \"b.rs\"] mod tests; fn b() {}",
        "use std::b::B;",
    ] {
        assert_eq!(found(a, &[]), [""; 0], "{a}");
    }
    let inside =
        [("a/inside.rs", "use super::A; use crate::a;"), ("a/other.rs", "use super::inside;")];
    assert_eq!(
        found("mod inside; mod other; use inside::X;", &inside),
        [""; 0],
        "its own children"
    );
    let siblings = [("a/inside.rs", "use super::other::O;"), ("a/other.rs", "use super::inside;")];
    assert_eq!(found("mod inside; mod other;", &siblings), ["a/inside a/other"]);
    let through = [("c.rs", "use crate::a::inside;"), ("a/inside/mod.rs", "use crate::b;")];
    let to_c = ("b.rs", "pub struct B; use crate::c::c;");
    let all = [&[lib, to_c, ("a.rs", "pub mod inside;")][..], &through[..]].concat();
    assert_eq!(planted(&all), ["a/inside/mod b c"]);
}
