//! `lint` with real files: every profile of Debian's tuned, a field case's recipe, files that are
//! meant to do harm, and the diff as patch(1) applies it.

use std::{fs, path::Path};

use serde_json::Value;

use crate::support::{NETWRIGHT, output};

/// The recipe of a 10 Gbit/s talk of 2008, as a field case had it.
const RECIPE: &str = "net.ipv4.tcp_sack = 0
net.ipv4.tcp_timestamps = 0
net.ipv4.tcp_mem = 10000000 10000000 10000000
net.ipv4.tcp_rmem = 10000000 10000000 10000000
net.ipv4.tcp_wmem = 10000000 10000000 10000000
net.core.rmem_max = 524287
net.core.wmem_max = 524287
net.core.rmem_default = 524287
net.core.wmem_default = 524287
net.core.optmem_max = 524287
net.core.netdev_max_backlog = 300000
fs.file-max = 65535
setpci -d 8086:1a48 e6.b=2e
service irqbalance stop
";

/// Runs `lint` for a host of 24 GiB: exit code, standard output, standard error.
fn lint(args: &[&str]) -> (i32, String, String) {
    let host = ["lint", "--kernel", "6.18", "--memory", "24GiB"];
    let out = output(NETWRIGHT, &[&host[..], args].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

fn json(args: &[&str]) -> Value {
    let (_, out, err) = lint(&[&["--json"][..], args].concat());
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"))
}

fn lines(document: &Value) -> Vec<(String, String, String)> {
    let text = |l: &Value, key: &str| l[key].as_str().unwrap().to_owned();
    let lines = document["lines"].as_array().unwrap().iter();
    lines.map(|l| (text(l, "setting"), text(l, "value"), text(l, "verdict"))).collect()
}

#[test]
fn the_answer_stands_in_the_first_lines_and_the_code() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recipe");
    fs::write(&path, RECIPE).unwrap();
    let name = path.to_str().unwrap();
    let (code, out, err) = lint(&[name]);
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    let first = out.lines().next().unwrap();
    assert!(first.starts_with("14 lines: 1 dangerous, "), "{out}");
    let host = "Linux 6.18 (given) · 24 GiB (given)";
    assert!(out.lines().take(3).any(|l| l.contains(host)), "{out}");
    let (code, out, _) = lint(&["--sarif", name]);
    let sarif: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &sarif["version"]), (1, &Value::from("2.1.0")));
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 14);
    fs::write(&path, "net.ipv4.tcp_sack = 1\n").unwrap();
    assert_eq!(lint(&[name]).0, 0);
}

/// Only lines that this test names are more than "depends", "good" or "unknown".
#[test]
fn every_profile_of_tuned_is_read_and_nothing_of_it_is_judged_by_mistake() {
    let folder = Path::new("/usr/lib/tuned");
    let mut bad: Vec<(String, String, String)> = Vec::new();
    let mut profiles = 0;
    for entry in fs::read_dir(folder).expect("tuned: `make test-deps` installs it") {
        let conf = entry.unwrap().path().join("tuned.conf");
        if !conf.is_file() {
            continue;
        }
        profiles += 1;
        let (code, out, err) = lint(&["--json", conf.to_str().unwrap()]);
        assert!(code <= 1 && err.is_empty(), "{}: {code} {err}", conf.display());
        let document: Value = serde_json::from_str(&out).unwrap();
        let overridden: Vec<bool> = document["lines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|l| l.get("overridden_by").is_some())
            .collect();
        let all = lines(&document).into_iter().zip(overridden);
        let fine = |is: &str| matches!(is, "depends" | "good" | "unknown");
        // Whether a governor exists is a matter of the machine that runs the test.
        let kernels = |name: &str| name.starts_with("sysctl.");
        let lines = all.filter(|(_, o)| !o).map(|(l, _)| l);
        bad.extend(lines.filter(|l| kernels(&l.0) && !fine(&l.2)));
    }
    assert!(profiles > 20, "only {profiles} profiles");
    bad.sort();
    bad.dedup();
    let bad: Vec<String> = bad.iter().map(|(s, v, is)| format!("{s}={v}: {is}")).collect();
    assert_eq!(bad, REVIEWED);
}

/// docs/lint.md has the reasons.
const REVIEWED: &[&str] = &[
    "sysctl.net.core.somaxconn=2048: no_effect",
    "sysctl.net.core.wmem_max=1048576: below_default",
    "sysctl.net.ipv4.tcp_rmem=4096 87380 16777216: below_default",
];

#[test]
fn the_diff_is_what_patch_takes_and_leaves_nothing_bad() {
    let folder = tempfile::tempdir().unwrap();
    let conf: String = RECIPE.lines().take(12).map(|l| format!("{l}\n# kept\n")).collect();
    let command = |l: &str| match l.split_once(" = ") {
        Some((key, value)) => format!("  sysctl -w {key}=\"{value}\"\n"),
        None => format!("{l}\n"),
    };
    let script: String = RECIPE.lines().map(command).collect();
    let script = format!("#!/bin/sh\nif true; then\n{script}fi\n");
    for (name, text) in [("a.conf", conf.trim_end()), ("b.conf", &conf), ("c.sh", &script)] {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let file = path.to_str().unwrap();
        let (code, diff, err) = lint(&["--fix", file]);
        assert_eq!((code, err.as_str()), (1, ""), "{diff}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "--fix writes nothing");
        let patch = folder.path().join("patch");
        fs::write(&patch, &diff).unwrap();
        let args = ["-p0", "-d", "/", "-i", patch.to_str().unwrap()];
        let out = output("patch", &args);
        assert!(out.status.success(), "{}{diff}", String::from_utf8_lossy(&out.stdout));
        let left = lines(&json(&[file]));
        assert!(
            left.iter().all(|l| matches!(l.2.as_str(), "depends" | "good" | "unknown")),
            "{left:?}"
        );
        if name == "c.sh" {
            assert!(output("sh", &["-n", file]).status.success());
        }
    }
}

#[test]
fn files_that_are_meant_to_do_harm_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let deep = [b"a: ".to_vec(), b"[".repeat(100_000)].concat();
    for (path, code) in [
        (file("nul.conf", b"a.b = 1\0\n"), 2),
        (file("bytes.conf", b"\xff\xfe"), 2),
        (file("deep.yml", &deep), 2),
        (file("large.conf", &b"net.core.somaxconn = 1\n".repeat(300_000)), 4),
        ("/nowhere/at/all".into(), 4),
    ] {
        let (said, out, err) = lint(&[&path]);
        assert_eq!((said, out.as_str(), err.lines().count()), (code, "", 1), "{path}: {err}");
    }
    let escapes =
        file("e.conf", b"net.\x1b[2Jx.y = \x1b]0;x\x07\nnet.core.somaxconn = \x1b[31m9\n");
    let (code, out, err) = lint(&[&escapes]);
    assert!(code == 0 && !out.contains('\x1b') && !err.contains('\x1b'), "{out:?}{err:?}");
    // A hostile name is shown without its escapes, in the page and in an error.
    let name = file("\x1b[2J\x1b]0;x\x07.conf", b"net.core.somaxconn = 9\n");
    for path in [name.clone(), format!("{name}.absent")] {
        let (_, out, err) = lint(&[&path]);
        assert!(!out.contains('\x1b') && !err.contains('\x1b'), "{out:?}{err:?}");
    }
    let (code, _, err) = lint(&["--kernel", "new", &escapes]);
    assert_eq!((code, err.lines().count() >= 1), (2, true), "{err}");
}

/// Profiles that include each other, and one that is not there, are notes.
#[test]
fn included_profiles_are_read_once() {
    let folder = tempfile::tempdir().unwrap();
    for (name, other) in [("a", "b"), ("b", "a absent")] {
        fs::create_dir(folder.path().join(name)).unwrap();
        let text = format!("[main]\ninclude={other}\n[sysctl]\nnet.ipv4.tcp_{name}ck = 0\n");
        let text = text.replace("tcp_ack", "tcp_sack").replace("tcp_bck", "tcp_timestamps");
        fs::write(folder.path().join(name).join("tuned.conf"), text).unwrap();
    }
    let path = folder.path().join("a/tuned.conf");
    let document = json(&[path.to_str().unwrap()]);
    let verdicts: Vec<String> = lines(&document).into_iter().map(|l| l.2).collect();
    assert_eq!(verdicts, ["harmful", "harmful"]);
    let notes = document["notes"].to_string();
    assert!(notes.contains("a -> b -> a") && notes.contains("the profile absent"), "{notes}");
    // A line of an included profile is changed by hand, in its own file.
    let (_, diff, err) = lint(&["--fix", path.to_str().unwrap()]);
    assert!(diff.contains("-net.ipv4.tcp_sack = 0") && !diff.contains("timestamps"), "{diff}");
    assert!(err.contains("b/tuned.conf:4: of an included profile"), "{err}");
}

/// A playbook, a manifest, a Dockerfile and a script, with the verdict of each place.
#[test]
fn each_kind_of_file_is_judged_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let verdicts = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let before = fs::read(&path).unwrap();
        let document = json(&[path.to_str().unwrap()]);
        lint(&["--fix", path.to_str().unwrap()]);
        assert_eq!(fs::read(&path).unwrap(), before, "--fix writes nothing");
        let lines = document["lines"].as_array().unwrap().iter();
        let one = |l: &Value| format!("{} {}", l["line"], l["verdict"].as_str().unwrap());
        lines.map(one).collect::<Vec<_>>()
    };
    let play = "- hosts: all\n  tasks:\n  - ansible.posix.sysctl:\n      name: net.ipv4.tcp_sack\n      value: 0\n\
                \x20 - shell: sysctl -w net.core.somaxconn=1024\n";
    assert_eq!(verdicts("play.yml", play), ["4 harmful", "6 below_default"]);
    let pod = "apiVersion: v1\nkind: Pod\nspec:\n  securityContext:\n    sysctls:\n    - name: net.core.rmem_max\n      value: '9000000'\n\
               \x20   - name: net.ipv4.tcp_syncookies\n      value: '0'\n";
    assert_eq!(verdicts("pod.yaml", pod), ["6 no_effect", "8 harmful"]);
    let image = "FROM debian\nRUN sysctl -w net.ipv4.tcp_sack=0\n";
    assert_eq!(verdicts("Dockerfile", image), ["2 no_effect"]);
    let script = "#!/bin/sh\nN=net.ipv4\nsysctl -w $N.tcp_sack=0\necho 16M > /proc/sys/net/core/rmem_max\n\
                  sysctl -w net.core.somaxconn=$(nproc)\n";
    assert_eq!(verdicts("x.sh", script), ["3 harmful", "4 wrong_unit", "5 unknown"]);
}

/// A snapshot's own kernel and memory decide.
#[test]
fn a_snapshot_is_judged_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.conf");
    fs::write(
        &path,
        "net.core.rmem_max = 1048576\nnet.ipv4.tcp_mem = 10000000 10000000 10000000\n",
    )
    .unwrap();
    let captured = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captured/numa-nic.tar.zst");
    let args = ["lint", "--json", "--root", captured, path.to_str().unwrap()];
    let out = output(NETWRIGHT, &args);
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    let facts = output(NETWRIGHT, &["inspect", "--json", "--root", captured]);
    let facts: Value = serde_json::from_slice(&facts.stdout).unwrap();
    assert_eq!(document["host"]["kernel"], facts["host"]["kernel"]);
    assert_eq!(document["host"]["memory_bytes"], facts["memory_bytes"]);
    assert_eq!(lines(&document)[1].2, "wrong_unit");
}
