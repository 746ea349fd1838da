//! Tests of what the other host refuses, and of who may not log in there.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

use super::{Pair, candidate, complaint, document};
use crate::support::{NETWRIGHT, needs_root};

#[test]
fn what_may_not_be_asked_from_afar_is_refused() {
    let pair = Pair::new();
    let before = pair.print("right");
    let harmful = "peer:sysctl.net.ipv4.tcp_timestamps=0";
    let workload = pair.workload("0");
    let fix = |knob: &str| {
        let mut args: Vec<&str> = workload.iter().map(String::as_str).collect();
        args.extend(["--try", knob]);
        pair.fix(&args, &pair.responder()).output().unwrap()
    };
    let d = document(&fix(harmful));
    let c = candidate(&d, harmful.split_once('=').unwrap().0);
    assert_eq!(c["status"], "refused", "{c:#}");
    assert!(c["why"].as_str().unwrap().contains("protection"), "{c:#}");
    // A machine-wide setting, an unknown one or an invalid value is reported before the first
    // measurement.
    for (what, code, why) in [
        ("peer:sysctl.vm.swappiness=10", 3, "whole host's"),
        ("peer:cpu.0.governor=performance", 3, "whole host's"),
        ("peer:nothing.at.all=1", 2, "nothing.at.all"),
        ("peer:sysctl.net.core.somaxconn=many", 2, "the server: "),
        ("peer:nic.eth7.mtu=1400", 4, "the server: there is no such interface"),
    ] {
        let out = fix(what);
        let said = complaint(&out);
        assert!(out.status.code() == Some(code) && said.contains(why), "{what}: {out:?}");
        assert!(said.lines().count() == 1 && out.stdout.is_empty(), "{what}: {out:?}");
    }
    assert_eq!(before, pair.print("right"));
    // A knob of a server without `--responder`.
    let out = pair
        .left(&[
            "fix",
            "--command",
            "echo x = 1",
            "--metric",
            "x=/x = (.)/:higher",
            "--window",
            "200ms",
            "--try",
            harmful,
            "--yes",
        ])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2), "{}", complaint(&out));
}

#[test]
fn who_may_not_log_in_or_change_gets_the_reason() {
    let pair = Pair::new();
    let before = pair.print("right");
    let at = |user: &str, path: &str| format!("ssh://{user}@10.99.0.2:2222{path}");
    // A program of another version, with otherwise the same output.
    let other = pair.state.path().join("other");
    fs::write(&other, "#!/bin/sh\necho '{\"netwright\":\"0.0.9\"}'; sleep 5\n").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
    // postgres may log in, and sudo refuses.
    for (responder, code, why) in [
        (at("postgres", NETWRIGHT), 3, "log in as root, or let sudo run"),
        (at("nobody-here", NETWRIGHT), 4, "ssh failed: "),
        (at("root", "/nowhere/netwright"), 4, "no /nowhere/netwright is there: install it"),
        (at("root", "/bin/true"), 4, "netwright did not answer"),
        (at("root", other.to_str().unwrap()), 4, "netwright 0.0.9 is installed there"),
        ("ssh://root@10.99.0.2:2223".to_owned(), 4, "ssh failed: "),
        ("10.99.0.2".to_owned(), 2, "ssh://root@10.99.0.2"),
        ("ssh://-oProxyCommand=touch".to_owned(), 2, "is not of the form"),
    ] {
        let out = pair.asks(&["tune", "status"], &responder).output().unwrap();
        let said = complaint(&out);
        assert!(out.status.code() == Some(code) && said.contains(why), "{responder}: {out:?}");
        assert_eq!(said.lines().count(), 1, "{responder}: {said}");
    }
    // No key.
    let mut keyless = pair.asks(&["tune", "status"], &pair.responder());
    let options = "ssh -F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o \
        IdentityFile=/nowhere -o IdentitiesOnly=yes -o LogLevel=ERROR";
    let keyless = keyless.env("NETWRIGHT_SSH", options).output().unwrap();
    assert_eq!(keyless.status.code(), Some(4), "{keyless:?}");
    assert!(complaint(&keyless).contains("must log in without a password"), "{keyless:?}");
    assert_eq!(before, pair.print("right"));
}

/// Each input of the remote end must be a line of JSON, or it is answered by an error.
#[test]
fn a_remote_end_is_not_confused() {
    needs_root();
    let state = tempfile::tempdir().unwrap();
    let mut command = Command::new(NETWRIGHT);
    command.args(["remote", "--stdio"]).env("NETWRIGHT_STATE", state.path().join("state"));
    let mut remote = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(remote.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().contains("\"netwright\""));
    let mut stdin = remote.stdin.take().unwrap();
    for (said, answer) in [
        ("\"alive\"", "done"),
        ("GET / HTTP/1.1", "is no request"),
        ("{\"try\":{\"plan\":0}}", "there is no plan 0"),
        ("{\"keep\":{\"id\":1}}", "is not on trial"),
        ("{\"take_back\":{\"id\":1}}", "is not on trial"),
        ("{\"look\":{\"window_ns\":99999999999999,\"goal\":\"throughput\"}}", "at most"),
        ("\u{0}\u{1}", "is no request"),
        ("\"alive\"", "done"),
    ] {
        writeln!(stdin, "{said}").unwrap();
        let line = lines.next().unwrap();
        assert!(line.contains(answer), "{said}: {line}");
    }
    // An unfinished line is no request, and the end of the input ends the process.
    stdin.write_all(&vec![b' '; 17 << 20]).ok();
    drop(stdin);
    assert_eq!(remote.wait().unwrap().code(), Some(0));
    assert!(lines.next().is_none());
    assert!(!state.path().join("state").exists(), "something was changed");
}
