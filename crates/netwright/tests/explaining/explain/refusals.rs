//! Tests of what `explain` refuses, and of paths and servers that end in the middle.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use super::{alone, document, sound};
use crate::support::{NETWRIGHT, output, serve::Serve, through::Through};

/// It reports the expected duration at once, as it will take long.
#[test]
fn a_path_that_cannot_be_is_found_before_anything_is_measured() {
    let _alone = alone();
    let serve = Serve::start(&["--service-time", "50us"]);
    let target = format!("rtt://{}", serve.target());
    let out =
        output(NETWRIGHT, &["explain", &target, "--duration", "1h", "--path", "host=127.0.0.1:1"]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(4), "{said}");
    assert!(said.contains("--path host=127.0.0.1:1: ") && said.contains("refused"), "{said}");
}

#[test]
fn a_server_that_dies_leaves_what_was_measured_until_then() {
    let _alone = alone();
    let serve = Serve::start(&["--service-time", "50us"]);
    let target = format!("rtt://{}", serve.target());
    let child = Command::new(NETWRIGHT)
        .args(["explain", "--json", &target, "--duration", "60s", "--round", "50ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(8));
    drop(serve);
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(4));
    let d = document(&out);
    sound(&d);
    assert!(d.interrupted && d.rounds >= 3, "{d:?}");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("connection refused"), "{said}");
}

/// Ctrl-C while another path is measured: the results so far are printed, without the unknown path.
#[test]
fn a_path_that_was_interrupted_is_not_predicted() {
    let _alone = alone();
    let serve = Serve::start(&["--service-time", "50us"]);
    let through = Through::to(serve.target());
    let (target, path) = (format!("rtt://{}", serve.target()), format!("host={}", through.target));
    let child = Command::new(NETWRIGHT)
        .args(["explain", "--json", "--quiet", &target, "--duration", "1s", "--round", "60ms"])
        .args(["--path", "rtt=1ms", "--path", &path])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // First it checks that the path answers; other steps follow for over a second.
    through.taken.recv_timeout(Duration::from_secs(120)).unwrap();
    while through.taken.recv_timeout(Duration::from_millis(600)).is_ok() {}
    through.taken.recv_timeout(Duration::from_secs(120)).unwrap();
    // SAFETY: our own child, not waited for yet.
    assert_eq!(unsafe { libc::kill(i32::try_from(child.id()).unwrap(), libc::SIGINT) }, 0);
    let out = child.wait_with_output().unwrap();
    let d = document(&out);
    sound(&d);
    assert_eq!(out.status.code(), Some(i32::from(!d.sum.conclusive)));
    assert!(d.interrupted && d.rounds >= 3, "{d:?}");
    let known: Vec<&str> = d.other_paths.iter().map(|e| e.path.as_str()).collect();
    assert_eq!(known, ["rtt=1 ms"]);
    assert!(d.predictions.iter().all(|p| p.path != path), "{:?}", d.predictions);
    assert!(d.warnings.iter().any(|w| w.to_string().contains(&path)), "{:?}", d.warnings);
}

#[test]
fn what_cannot_be_explained_is_refused_in_a_line() {
    for (args, code, word) in [
        (&["https://127.0.0.1:1/"][..], 4, "connection refused"),
        (&["db1"], 2, "rtt://HOST"),
        (&["db1"], 2, "https://…"),
        (&["db1"], 2, "postgres://"),
        (&["http://192.0.2.1/"], 2, "--responder HOST"),
        (&["rtt://127.0.0.1:1"], 4, "connection refused"),
        (&["http://127.0.0.1:1/"], 4, "connection refused"),
        (&["rtt://127.0.0.1", "--path", "80us"], 2, "rtt=80us"),
        (&["rtt://127.0.0.1", "--flows", "5000"], 2, "4096"),
        (&["rtt://127.0.0.1", "--round", "1ms"], 2, "--round"),
        (&["http://127.0.0.1:1/", "--script", "select1"], 2, "--script is for pg://"),
        (&["http://127.0.0.1:1/", "--request", "100"], 2, "--request is for rtt://"),
        (&["pg://127.0.0.1:1/x", "--header", "A: b"], 2, "--header is for http://"),
        (&["rtt://127.0.0.1:1", "--insecure"], 2, "--insecure is for http:// and https://"),
    ] {
        let out = output(NETWRIGHT, &[&["explain"], args].concat());
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(word), "{args:?}: {said}");
    }
}
