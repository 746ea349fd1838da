//! Replays what the fuzzer of archives starts from and what it found: whole, and cut anywhere.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::{fs, path::Path};

use probe::{Root, root::Limits};

#[test]
fn no_archive_seed_breaks_the_reader() {
    let limits =
        Limits { total_bytes: 1 << 20, file_bytes: 1 << 18, entries: 200, path_bytes: 1 << 14 };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds/archive");
    let mut whole = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        // The first byte is the fuzzer's own switch.
        let bytes = bytes.get(1..).unwrap_or_default();
        for end in (0..bytes.len()).step_by(bytes.len().div_ceil(500).max(1)).chain([bytes.len()]) {
            let Ok(root) = Root::read_archive(&bytes[..end], &limits) else { continue };
            whole += 1;
            for path in ["/", "/proc", "/sys/class/net/eth0", "/netwright/answers/sysconf.json"] {
                let _ = (root.entries(path), root.read(path), root.link(path), root.resolve(path));
            }
        }
    }
    assert!(whole >= 3, "the valid ones among the seeds are read: {whole}");
}
