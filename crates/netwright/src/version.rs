//! `netwright --version -v`: of what the program was made, so that two programs can be compared.

use std::fmt::Write as _;

use probe::bpf;
use sha2::{Digest, Sha256};

/// Whether `-v` was typed, too. clap ends at `--version` and does not read what follows.
pub fn is_long() -> bool {
    let long =
        |arg: &std::ffi::OsStr| matches!(arg.to_str(), Some("-v" | "--verbose" | "-vV" | "-Vv"));
    std::env::args_os().skip(1).any(|arg| long(&arg))
}

/// The version, what the build was told, and each eBPF object as `sha256sum` prints it. Nothing in it
/// depends on when or where the program was built.
pub fn long() -> String {
    let link = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
    let objects = bpf::objects();
    let mut text = format!(
        "netwright {}\n\
         commit    {}\n\
         target    {}, {link}\n\
         features  {}\n\
         profile   {}\n\
         compiler  {}\n\
         schemas   {}\n\
         eBPF      {}; the SHA-256 of {} objects:\n",
        env!("CARGO_PKG_VERSION"),
        env!("NETWRIGHT_COMMIT"),
        env!("NETWRIGHT_TARGET"),
        env!("NETWRIGHT_FEATURES"),
        env!("NETWRIGHT_PROFILE"),
        env!("NETWRIGHT_RUSTC"),
        model::SCHEMA_VERSION,
        bpf::COMPILER,
        objects.len(),
    );
    for (name, bytes) in objects {
        for byte in Sha256::digest(bytes) {
            let _ = write!(text, "{byte:02x}");
        }
        let _ = writeln!(text, "  {name}.bpf.o");
    }
    text
}
