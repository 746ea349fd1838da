//! Tests of file arguments that name an endless or blocking file.

use std::time::{Duration, Instant};

use crate::support::{NETWRIGHT, output};

/// A command for each kind of file argument; `FILE` is the name.
const COMMANDS: [&[&str]; 10] = [
    &["lint", "FILE"],
    &["measure", "rtt", "127.0.0.1:9", "--secret-file", "FILE"],
    &["measure", "http", "https://127.0.0.1:9/", "--ca", "FILE"],
    &["measure", "http", "http://127.0.0.1:9/", "--body-file", "FILE"],
    &["measure", "--rerun", "FILE"],
    &["prove", "FILE"],
    &["prove", "--resume", "--record", "FILE"],
    &["tune", "plan", "FILE"],
    &["tune", "plan", "--profile", "./FILE.toml"],
    &["watch", "--replay", "FILE"],
];

#[test]
fn what_has_no_end_is_one_line_and_exit_code_4() {
    let folder = tempfile::tempdir().unwrap();
    let huge = folder.path().join("huge");
    std::fs::File::create(&huge).unwrap().set_len(1 << 40).unwrap();
    for file in ["/dev/zero", huge.to_str().unwrap()] {
        for command in COMMANDS {
            let link = folder.path().join("link.toml");
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(file, &link).unwrap();
            let name = link.to_str().unwrap();
            let args: Vec<&str> =
                command.iter().map(|a| if a.contains("FILE") { name } else { a }).collect();
            let begun = Instant::now();
            let out = output(NETWRIGHT, &args);
            let said = String::from_utf8(out.stderr).unwrap();
            assert_eq!(out.status.code(), Some(4), "{args:?} of {file}: {said}");
            assert_eq!(said.lines().count(), 1, "{args:?} of {file}: {said}");
            assert!(begun.elapsed() < Duration::from_secs(10), "{args:?} of {file}");
        }
    }
}
