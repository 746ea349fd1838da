//! What `netwright --version -v` says, against the objects that clang wrote and against `sha256sum`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use memchr::memmem;

use super::{COMMIT, built, repository};
use crate::support::{NETWRIGHT, output, run};

/// The objects in the build folders of a profile, by file name.
fn compiled(profile: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let folders =
        fs::read_dir(profile.join("build")).unwrap().map(|e| e.unwrap().path().join("out"));
    for file in folders.filter_map(|f| fs::read_dir(f).ok()).flatten().map(|e| e.unwrap().path()) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".bpf.o") {
            found.entry(name).or_default().push(file);
        }
    }
    found
}

/// The objects of which the whole bytes are in the program, as `sha256sum` prints them.
fn in_program(program: &str) -> Vec<String> {
    let bytes = fs::read(program).unwrap();
    let mut found = vec![];
    for (name, files) in compiled(Path::new(program).parent().unwrap()) {
        let has = |f: &PathBuf| memmem::find(&bytes, &fs::read(f).unwrap()).is_some();
        let sums = files.iter().filter(|f| has(f)).map(|f| {
            let said = output("sha256sum", &[f.to_str().unwrap()]);
            let sum = String::from_utf8(said.stdout).unwrap();
            format!("{}  {name}", sum.split(' ').next().unwrap())
        });
        let mut sums: Vec<String> = sums.collect();
        sums.dedup();
        assert_eq!(sums.len(), 1, "{name}: {files:?} in {program}");
        found.append(&mut sums);
    }
    found
}

#[test]
fn it_names_the_objects_that_are_in_the_program() {
    let sources = fs::read_dir(repository().join("crates/probe/src/bpf")).unwrap();
    let objects = sources.filter(|e| {
        let folder = e.as_ref().unwrap();
        folder.path().join(format!("{}.bpf.c", folder.file_name().display())).exists()
    });
    let objects = objects.count();
    assert!(objects > 5);
    let program = built().to_str().unwrap();
    let said = run(program, &["--version", "-v"]);
    let sums: Vec<&str> = said.lines().filter(|l| l.ends_with(".bpf.o")).collect();
    assert_eq!(sums.len(), objects, "{said}");
    assert_eq!(sums, in_program(program), "{said}");
}

#[test]
fn it_says_how_the_program_was_built() {
    let program = built().to_str().unwrap();
    let said = run(program, &["--version", "-v"]);
    let line = |word: &str| {
        let found = said.lines().find_map(|l| l.strip_prefix(word));
        found.unwrap_or_else(|| panic!("no {word}: {said}")).trim().to_owned()
    };
    assert_eq!(said.lines().next(), Some(run(program, &["--version"]).trim()));
    assert_eq!(line("commit"), COMMIT);
    assert_eq!(line("target"), format!("{}-unknown-linux-gnu, static", std::env::consts::ARCH));
    assert!(line("features").split(", ").any(|f| f == "crt-static"), "{said}");
    let rustc = String::from_utf8(output("rustc", &["-V"]).stdout).unwrap();
    assert_eq!(line("compiler"), rustc.trim());
    assert!(line("eBPF").contains("clang version "), "{said}");
    for other in [&["-vV"][..], &["-V", "--verbose"], &["-v", "--version"]] {
        assert_eq!(run(program, other), said, "{other:?}");
    }
    // The tests' own program is linked to the host's libraries.
    let own = run(NETWRIGHT, &["--version", "-v"]);
    assert!(own.contains("-linux-gnu, dynamic\n"), "{own}");
    let out = output(NETWRIGHT, &["-v", "doctor"]);
    assert_eq!(out.status.code(), Some(2), "-v alone means nothing");
}
