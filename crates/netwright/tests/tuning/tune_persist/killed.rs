//! Tests of `tune persist` that is killed at a write, and of hostile names.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::{files, read, tree};
use crate::support::{
    output, run, traced,
    traced::{End, Then},
    tuned::on_a_host,
};

#[test]
fn killed_at_every_write_nothing_is_half_and_one_command_removes_all() {
    let tree = tree();
    let root = tree.path().to_str().unwrap();
    let tune = |args: &[&str]| {
        let mut all = vec!["tune"];
        all.extend(args);
        all.extend(["--root", root]);
        let out = output(crate::support::NETWRIGHT, &all);
        (out.status.code().unwrap(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let (code, err) = tune(&["apply", "irq.38.affinity=1", "sysctl.net.core.somaxconn=8192"]);
    assert_eq!(code, 0, "{err}");
    let before = files(tree.path());
    assert_eq!(tune(&["persist"]).0, 0);
    let whole = files(tree.path());
    assert!(whole.len() >= before.len() + 8, "only {} files", whole.len());
    let state = tree.path().join("var/lib/netwright");
    let ours = |all: &BTreeMap<PathBuf, String>| {
        let mut all = all.clone();
        all.retain(|p, _| *p != state.join("lock"));
        all
    };
    for (verb, done) in [("persist", &whole), ("--remove", &before)] {
        let mut points = 0;
        loop {
            let args: &[&str] = match verb {
                "persist" => &["persist"],
                _ => &["persist", "--remove"],
            };
            let other: &[&str] =
                if verb == "persist" { &["persist", "--remove"] } else { &["persist"] };
            // After an odd point it is set already.
            if points % 2 == 0 {
                assert_eq!(tune(other).0, 0);
            }
            let at = points + 1;
            let mut traced: Vec<&str> = args.to_vec();
            traced.extend(["--root", root]);
            let end = traced::tune(&state, &traced, &mut |n| {
                if n == at { Then::Kill } else { Then::GoOn }
            });
            for (path, text) in files(&tree.path().join("etc")) {
                let name = path.file_name().unwrap().to_str().unwrap();
                if !name.ends_with(".netwright-tmp") {
                    let right = whole.get(&path).or(before.get(&path));
                    assert_eq!(Some(&text), right, "{verb} killed at {at}: {}", path.display());
                }
            }
            // Alternately completed and undone.
            let (go_on, expected) = if at % 2 == 0 {
                (args, done)
            } else {
                (other, if verb == "persist" { &before } else { &whole })
            };
            let (code, err) = tune(go_on);
            assert_eq!(code, 0, "{verb} killed at {at}: {err}");
            let (now, expected) = (ours(&files(tree.path())), ours(expected));
            assert!(now == expected, "{verb} killed at {at}: {:?}", now.keys());
            if let End::Exited(code) = end {
                assert_eq!(code, 0);
                break;
            }
            points = at;
        }
        println!("{verb}: {points} points");
        assert!(points >= 16, "only {points} points");
    }
}

/// The kernel takes almost any bytes as the name of an interface.
#[test]
fn a_hostile_name_is_quoted_in_commands_and_in_no_file() {
    for name in ["$(id>x)", "`id>x`", "a;id>x", "'\";id>x'", "\u{1b}[31m;id>x", "{{7*7}}"] {
        on_a_host(|host| {
            run("ip", &["link", "set", "v1", "name", name]);
            let file = format!("/sys/class/net/{name}/tx_queue_len");
            let (knob, v0) = (format!("nic.{name}.txqueuelen=500"), "nic.v0.txqueuelen=501");
            let (code, plan, err) = host.tune(&["plan", "-v", &knob]);
            let said = plan.lines().find(|l| l.contains("same as")).unwrap().to_owned();
            assert!(code == 0 && !plan.contains('\u{1b}'), "{plan}{err}");
            let (code, out, err) = host.tune(&["apply", "--no-confirm", &knob, v0]);
            assert!(code == 0 && !(out + &err).contains('\u{1b}'), "{name:?}");
            let (code, script, err) = host.tune(&["persist", "--format", "shell"]);
            assert!(code == 0 && !script.contains('\u{1b}'), "{script}{err}");

            // A shell takes both literally.
            let folder = tempfile::tempdir().unwrap();
            let command = said.split_once("same as").unwrap().1.trim().to_owned();
            for script in [command, script] {
                fs::write(&file, "1000").unwrap();
                let mut sh = std::process::Command::new("sh");
                let out = sh.args(["-c", &script]).current_dir(&folder).output().unwrap();
                assert!(out.status.success(), "{script}: {out:?}");
                assert_eq!(read(&file), "500", "{script}");
                assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{script} ran something");
            }

            // The programs that read the files would misread the name.
            let into = tempfile::tempdir().unwrap();
            let into = ["persist", "--into", into.path().to_str().unwrap()];
            let (code, out, err) = host.tune(&into);
            let reported = (out + &err).replace('\n', " ");
            let words = reported.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                code == 1 && words.contains("holds characters that files of udev"),
                "{reported}"
            );
            for (path, text) in files(Path::new(into[2])) {
                let ours = path.starts_with(Path::new(into[2]).join("etc"));
                assert!(!ours || !text.contains(name), "{path:?}: {text}");
            }
            for form in ["ansible", "tuned"] {
                let (code, out, err) = host.tune(&["persist", "--format", form]);
                let said = out.lines().filter(|l| !l.starts_with('#')).any(|l| l.contains(name));
                assert!(code == 1 && !said && !out.contains('\u{1b}'), "{form}: {out}{err}");
            }
            assert_eq!(host.tune(&["rollback"]).0, 0);
            run("ip", &["link", "set", name, "name", "v1"]);
        });
    }
}
