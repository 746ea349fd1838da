//! Compresses the committed schemas, `docs/schema/*.json`, for `netwright schema`. The suite `schema` compares
//! them with the types. Passes on what `netwright --version -v` says of the build.

#![allow(clippy::expect_used, reason = "a build ends with what went wrong")]
#![allow(clippy::disallowed_methods, reason = "a build reads and writes files")]

use std::{env, fs, io::Write as _, path::PathBuf, process::Command};

use flate2::{Compression, write::DeflateEncoder};

fn main() {
    schemas();
    build();
}

/// The commit is what `NETWRIGHT_COMMIT` says: `make` and `scripts/static` set it. To ask git here would
/// build the program anew after every commit, and name the commit of a repository around the sources.
fn build() {
    println!("cargo::rerun-if-env-changed=NETWRIGHT_COMMIT");
    let of = |name: &str| env::var(name).unwrap_or_default();
    let rustc = Command::new(of("RUSTC")).arg("-V").output().expect("rustc runs");
    let commit = env::var("NETWRIGHT_COMMIT").ok().filter(|c| !c.is_empty());
    for (name, value) in [
        ("COMMIT", commit.unwrap_or_else(|| "unknown".into())),
        ("TARGET", of("TARGET")),
        ("PROFILE", of("PROFILE")),
        ("RUSTC", String::from_utf8_lossy(&rustc.stdout).trim().to_owned()),
        ("FEATURES", of("CARGO_CFG_TARGET_FEATURE").replace(',', ", ")),
    ] {
        println!("cargo::rustc-env=NETWRIGHT_{name}={value}");
    }
}

fn schemas() {
    let folder = PathBuf::from("../../docs/schema");
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(&folder).expect("docs/schema is there");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("a file").path()).collect();
    paths.sort();
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
    for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "json")) {
        let name = path.file_stem().expect("a name").to_string_lossy();
        let text = fs::read_to_string(path).expect("a schema is text");
        write!(packed, "{name}\0{text}\0").expect("memory");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to"));
    fs::write(out.join("schemas"), packed.finish().expect("memory")).expect("a file in OUT_DIR");
}
