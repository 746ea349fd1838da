//! `tune --netns` and `--container`: a namespace's own settings, changed and put back from outside.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::{fs, path::Path, process::Command};

use support::{
    NETWRIGHT, Namespace, output, run,
    traced::{self, End, Then},
};

/// A namespace with a pair of interfaces.
fn namespace() -> Namespace {
    let ns = Namespace::new();
    ns.run("ip", &["link", "add", "v0", "type", "veth", "peer", "name", "v1"]);
    ns
}

/// What of it a change could reach.
fn print(ns: &Namespace) -> String {
    let script = "ip -o link | sed 's/ state .*qlen/ qlen/'; sysctl -a 2>/dev/null | \
                  grep -E '^net.(core.somaxconn|ipv4.tcp_(rmem|fin_timeout))'; \
                  cat /sys/class/net/v0/gro_flush_timeout";
    ns.run("sh", &["-c", script])
}

fn tune(state: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(NETWRIGHT);
    command.arg("tune").args(args).env("NETWRIGHT_STATE", state).env_remove("SSH_CONNECTION");
    let out = command.output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (out.status.code().unwrap_or(-1), text(&out.stdout), text(&out.stderr))
}

const CHANGES: [&str; 4] = [
    "nic.v0.mtu=1400",
    "nic.v0.gro_flush_timeout=20us",
    "sysctl.net.core.somaxconn=8192",
    "sysctl.net.ipv4.tcp_fin_timeout=30",
];

#[test]
fn a_namespace_is_changed_looked_at_and_put_back_from_outside() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let (before, host) = (print(&ns), run("sysctl", &["net.core.somaxconn"]));
    let mut args = vec!["apply", "--netns", &ns.name];
    args.extend(CHANGES);
    let (code, out, err) = tune(state, &args);
    assert_eq!(code, 0, "{out}{err}");
    assert!(ns.run("ip", &["link", "show", "v0"]).contains("mtu 1400"));
    assert_eq!(ns.run("sysctl", &["-n", "net.core.somaxconn"]).trim(), "8192");
    assert_eq!(run("sysctl", &["net.core.somaxconn"]), host, "the host's own is untouched");

    // Looked at from outside, also when somebody changes it there.
    let (code, out, err) = tune(state, &["status"]);
    assert_eq!(code, 0, "{out}{err}");
    ns.run("ip", &["link", "set", "v0", "mtu", "1300"]);
    let (code, out, _) = tune(state, &["status"]);
    assert!(code == 1 && out.contains("1300"), "{out}");
    ns.run("ip", &["link", "set", "v0", "mtu", "1400"]);

    let (code, out, err) = tune(state, &["rollback", "1"]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(print(&ns), before);
    assert_eq!(run("sysctl", &["net.core.somaxconn"]), host);
}

#[test]
fn it_is_named_by_name_path_or_process_and_only_its_own_is_changed() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let before = print(&ns);
    let mut sleeper =
        Command::new("ip").args(["netns", "exec", &ns.name, "sleep", "1000"]).spawn().unwrap();
    let pid = sleeper.id().to_string();
    // `ip` becomes the program once it is inside.
    let inside = || fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().trim() == "sleep";
    while !inside() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let path = format!("/proc/{pid}/ns/net");
    for (flag, name) in [("--netns", ns.name.as_str()), ("--netns", &path), ("--container", &pid)] {
        let (code, out, err) = tune(state, &["apply", flag, name, "nic.v0.mtu=1400"]);
        assert_eq!(code, 0, "{flag} {name}: {out}{err}");
        assert!(ns.run("ip", &["link", "show", "v0"]).contains("mtu 1400"), "{flag} {name}");
        let (code, out, err) = tune(state, &["rollback", flag, name]);
        assert_eq!(code, 0, "{flag} {name}: {out}{err}");
        assert_eq!(print(&ns), before, "{flag} {name}");
    }
    for (args, code, why) in [
        (["--netns", "no-such-one", "nic.v0.mtu=1400"], 4, "there is no network namespace"),
        (["--netns", "/etc/hostname", "nic.v0.mtu=1400"], 2, "is no network namespace"),
        (["--container", "no-such-one", "nic.v0.mtu=1400"], 4, "there is no container"),
        (["--netns", &ns.name, "sysctl.vm.swappiness=10"], 4, "is the whole host's"),
    ] {
        let mut all = vec!["plan"];
        all.extend(args);
        let (got, out, err) = tune(state, &all);
        assert!(got == code && err.contains(why), "{args:?}: {got} {out}{err}");
    }
    let out = output(
        "setpriv",
        &[
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            NETWRIGHT,
            "tune",
            "plan",
            "--netns",
            &ns.name,
            "nic.v0.mtu=1400",
        ],
    );
    let err = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(3) && err.contains("CAP_SYS_ADMIN"), "{err}");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn a_change_whose_namespace_is_gone_is_known_to_be_gone() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let name = ns.name.clone();
    assert_eq!(tune(state, &["apply", "--netns", &name, "nic.v0.mtu=1400"]).0, 0);
    drop(ns);
    let (code, out, err) = tune(state, &["status"]);
    assert!(code == 1 && out.contains("network namespace is gone"), "{code} {out}{err}");
    let (code, out, err) = tune(state, &["rollback", "1"]);
    assert!(code == 0 && out.contains("network namespace is gone"), "{code} {out}{err}");
    let (code, out, _) = tune(state, &["status"]);
    assert!(code == 0 && out.contains("Nothing of ours"), "{out}");
}

#[test]
fn killed_at_every_write_the_namespace_is_put_back_from_outside() {
    let ns = namespace();
    let before = print(&ns);
    let mut args = vec!["apply", "--netns", &ns.name, "--no-confirm"];
    args.extend(CHANGES);
    let (mut points, mut disturbed) = (0, 0);
    loop {
        let state = tempfile::tempdir().unwrap();
        let at = points + 1;
        let end = traced::tune(state.path(), &args, &mut |n| {
            if n == at { Then::Kill } else { Then::GoOn }
        });
        disturbed += usize::from(print(&ns) != before);
        let begun = state.path().join("journal/000001.jsonl").exists();
        let back = if begun { vec!["rollback", "1"] } else { vec!["rollback"] };
        let (code, out, err) = tune(state.path(), &back);
        // A journal without its first line is no change.
        assert!(code == 0 || code == 2 && err.contains("no change"), "at {at}: {out}{err}");
        assert_eq!(print(&ns), before, "killed at {at}: {out}{err}");
        if let End::Exited(code) = end {
            assert_eq!(code, 0);
            break;
        }
        points = at;
    }
    println!("{points} points, at {disturbed} of them the namespace was changed");
    assert!(disturbed >= 2 * CHANGES.len(), "only {disturbed} of {points}");
}
