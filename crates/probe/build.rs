//! Compiles the eBPF programs, `src/bpf/<name>/<name>.bpf.c`, with the machine's clang. One object
//! serves all kernels and processors; differences are resolved when a program is loaded.

#![allow(clippy::expect_used, reason = "a build ends with what went wrong")]
#![allow(clippy::disallowed_methods, reason = "a build reads and writes files")]

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// Newer ones first; the plain name last, for it may be anything.
const CLANGS: [&str; 8] =
    ["clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14", "clang", "clang-13"];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to"));
    let bpf = Path::new("src/bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rerun-if-changed={}", bpf.display());
    let clang = clang();
    println!("cargo::rustc-env=NETWRIGHT_CLANG={}", version(&clang));
    for entry in std::fs::read_dir(bpf).expect("src/bpf is there").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let source = entry.path().join(format!("{name}.bpf.c"));
        if source.exists() {
            compile(&clang, &source, &out.join(format!("{name}.bpf.o")));
        }
    }
}

fn clang() -> String {
    let chosen = env::var("CLANG").ok();
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    chosen.or_else(|| CLANGS.iter().find(|n| runs(n)).map(|n| (*n).to_owned())).unwrap_or_else(
        || panic!("no clang to compile the eBPF programs with: install it (Debian: clang), or name one by CLANG"),
    )
}

/// The first line of `clang --version`.
fn version(clang: &str) -> String {
    let out = Command::new(clang).arg("--version").output().expect("clang runs");
    String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().to_owned()
}

fn compile(clang: &str, source: &Path, object: &Path) {
    // The object names its sources, for messages of the kernel: the same in every folder.
    let here = env::current_dir().expect("cargo starts in the package's folder");
    // The oldest instruction set that the kernels from 4.14 know; clang's default grows.
    let done = Command::new(clang)
        .args(["-target", "bpf", "-mcpu=v2", "-O2", "-g", "-Wall", "-Werror", "-std=gnu11"])
        .args(["-I", "src/bpf/include", "-c"])
        .arg(format!("-ffile-prefix-map={}=.", here.display()))
        .arg(source)
        .arg("-o")
        .arg(object)
        .output();
    match done {
        Ok(run) if run.status.success() => {}
        Ok(run) => panic!("{}:\n{}", source.display(), String::from_utf8_lossy(&run.stderr)),
        Err(e) => panic!("{clang}: {e}"),
    }
}
