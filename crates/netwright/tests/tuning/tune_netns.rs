//! Tests of `tune --netns` and `--container`: a namespace's own settings, changed and rolled back
//! from outside.

mod interfaces;
mod journals;
mod mtus;
mod refusals;

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use crate::support::{
    NETWRIGHT, Namespace, output, run,
    traced::{self, End, Then},
};

/// A namespace with a pair of interfaces.
fn namespace() -> Namespace {
    let ns = Namespace::new();
    ns.run("ip", &["link", "add", "v0", "type", "veth", "peer", "name", "v1"]);
    ns
}

/// Its values that a change could affect.
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

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(40);
    while !there() {
        assert!(Instant::now() < until, "{what} never came");
        std::thread::sleep(Duration::from_millis(50));
    }
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

    // Inspected from outside, also after another process changes it there.
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

#[test]
fn an_interrupted_change_is_reported_as_it_is_and_completed_from_outside() {
    let ns = namespace();
    let before = print(&ns);
    let args = ["apply", "--netns", &ns.name, "--no-confirm", CHANGES[0], CHANGES[2]];
    let (mut unfinished, mut not_written) = (0, 0);
    for at in 1.. {
        let state = tempfile::tempdir().unwrap();
        let end = traced::tune(state.path(), &args, &mut |n| {
            if n == at { Then::Kill } else { Then::GoOn }
        });
        let (_, out, _) = tune(state.path(), &["status", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&out).unwrap();
        if status["sets"][0]["state"] == "unfinished" {
            unfinished += 1;
            let set = &status["sets"][0];
            assert_eq!(set["namespace"], ns.name.as_str(), "{out}");
            assert!(set["net_namespace"].is_u64(), "{out}");
            // No other process wrote anything.
            for value in status["values"].as_array().unwrap() {
                let drift = value["drift"]["kind"].as_str().unwrap();
                assert!(["none", "not_written"].contains(&drift), "killed at {at}: {out}");
                not_written += usize::from(drift == "not_written");
            }
            let (code, out, _) = tune(state.path(), &["status"]);
            assert_eq!(code, 1);
            for reported in ["apply --finish 1` completes it", "rollback 1` undoes it", &ns.name] {
                assert!(out.contains(reported), "killed at {at}: no {reported:?} in {out}");
            }
            let (code, out, err) = tune(state.path(), &["apply", "--finish", "1"]);
            assert_eq!(code, 0, "killed at {at}: {out}{err}");
            assert!(ns.run("ip", &["link", "show", "v0"]).contains("mtu 1400"), "{at}");
            assert_eq!(ns.run("sysctl", &["-n", "net.core.somaxconn"]).trim(), "8192", "{at}");
        }
        tune(state.path(), &["rollback"]);
        assert_eq!(print(&ns), before, "killed at {at}");
        if let End::Exited(code) = end {
            assert_eq!(code, 0);
            break;
        }
    }
    assert!(unfinished >= 4 && not_written >= 2, "{unfinished}, {not_written}");
}

#[test]
fn status_and_log_name_the_namespace_of_a_change() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    assert_eq!(tune(state, &["apply", "--netns", &ns.name, "nic.v0.mtu=1400"]).0, 0);
    let reported = format!("in network namespace {}", ns.name);
    for command in ["status", "log"] {
        let (code, out, err) = tune(state, &[command]);
        assert!(code == 0 && out.contains(&reported), "{out}{err}");
        let (_, out, _) = tune(state, &[command, "--json"]);
        let document: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(document["sets"][0]["namespace"], ns.name.as_str(), "{out}");
    }
    let dir = state.to_str().unwrap();
    let again = ["apply", "--netns", &ns.name, "--state-dir", dir, "nic.v0.txqueuelen=500"];
    let (_, out, err) = tune(Path::new("/nowhere"), &again);
    assert!(out.contains(&format!("tune rollback 2 --state-dir {dir}`")), "{out}{err}");
    // Inside it, it is the present namespace.
    let inside = ns.run(NETWRIGHT, &["tune", "log", "--state-dir", dir]);
    assert!(inside.contains("change 1") && !inside.contains("in network namespace"), "{inside}");
}

#[test]
fn what_somebody_else_set_since_is_named_and_left_unless_it_is_to_be_overwritten() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let before = print(&ns);
    for (option, kept) in [(Some("--force"), false), (None, true)] {
        let asks = ["apply", "--netns", &ns.name, "nic.v0.mtu=1400", CHANGES[2]];
        assert_eq!(tune(state, &asks).0, 0);
        ns.run("ip", &["link", "set", "v0", "mtu", "1300"]);
        let mut args = vec!["rollback", "--json", "--dry-run"];
        args.extend(option);
        for dry_run in [true, false] {
            if !dry_run {
                args.retain(|a| *a != "--dry-run");
            }
            let (code, out, err) = tune(state, &args);
            let reported: serde_json::Value = serde_json::from_str(&out).unwrap();
            assert_eq!(code, i32::from(kept), "{out}{err}");
            assert!(
                reported["done"] == !kept && reported["drifted"].as_array().unwrap().len() == 1
            );
            let drift = &reported["drifted"][0];
            for (key, value) in [("before", "1500"), ("written", "1400"), ("found", "1300")] {
                assert_eq!(drift[key], value, "{drift}");
            }
            assert!(drift["knob"] == "nic.v0.mtu" && drift["kept"] == kept, "{drift}");
            let is_or_was = if kept || dry_run { "is" } else { "was" };
            let line = format!(
                "nic.v0.mtu {is_or_was} 1300, neither ours (1400) nor the old value (1500)"
            );
            assert!(reported["notes"].to_string().contains(&line), "no {line:?} in {out}");
            let mtu = if dry_run || kept { "mtu 1300" } else { "mtu 1500" };
            assert!(ns.run("ip", &["link", "show", "v0"]).contains(mtu), "{args:?}");
        }
        let (_, log, _) = tune(state, &["log"]);
        let reported = if kept { "was left" } else { "was overwritten" };
        assert!(log.contains(&format!("1300, set by another program, {reported}")), "{log}");
        let again = |args: &[&str]| tune(state, &[&["rollback"], args].concat());
        let (code, out, err) = again(&[]);
        assert!(code == 0 && out.contains("No active changes"), "it is said once: {out}{err}");
        if kept {
            // A change of mind.
            let (code, out, err) = again(&["2"]);
            assert!(code == 0 && out.contains("--force"), "{out}{err}");
            assert!(ns.run("ip", &["link", "show", "v0"]).contains("mtu 1300"), "{out}{err}");
            let (code, out, err) = again(&["2", "--force"]);
            assert!(code == 0 && out.contains("was overwritten"), "{out}{err}");
            let (code, out, err) = again(&["2", "--force"]);
            assert!(code == 0 && !out.contains("left then"), "{out}{err}");
        }
        assert_eq!(print(&ns), before);
    }
}

/// The watchdog too leaves a value that another process set while the change waited.
#[test]
fn the_guard_leaves_what_somebody_else_set_since() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let asks = ["apply", "--netns", &ns.name, "--confirm", "5s", "nic.v0.mtu=1400"];
    assert_eq!(tune(state, &[&asks[..], &["nic.v0.txqueuelen=500"]].concat()).0, 0);
    ns.run("ip", &["link", "set", "v0", "mtu", "1300"]);
    let link = || ns.run("ip", &["link", "show", "v0"]);
    wait_for("the watchdog", || tune(state, &["log"]).1.contains("rolled back"));
    assert!(link().contains("mtu 1300") && link().contains("qlen 1000"), "{}", link());
    let (_, log, _) = tune(state, &["log"]);
    assert!(log.contains("nic.v0.mtu: 1300, set by another program, was left"), "{log}");
    assert_eq!(tune(state, &["rollback", "1", "--force"]).0, 0);
    assert!(link().contains("mtu 1500"), "{}", link());
}

#[test]
fn two_spellings_of_a_setting_are_put_back_in_order() {
    let ns = namespace();
    let state = tempfile::tempdir().unwrap();
    let netns = ["--netns", &ns.name];
    let (dots, slashes) = ("sysctl.net.ipv4.tcp_fin_timeout", "sysctl.net/ipv4/tcp_fin_timeout");
    let ours = |args: &[&str]| tune(state.path(), &[args, &netns].concat());
    let both = [&format!("{dots}=31")[..], &format!("{slashes}=32")];
    let (code, _, said) = ours(&[&["apply"], &both[..]].concat());
    assert_eq!(code, 2, "{said}");
    for one in both {
        let (code, said, reported) = ours(&["apply", one]);
        assert_eq!(code, 0, "{said}{reported}");
    }
    let (code, said, reported) = tune(state.path(), &["rollback", "1"]);
    assert!(
        code != 0 && format!("{said}{reported}").contains("roll that back first"),
        "{said}{reported}"
    );
    assert_eq!(tune(state.path(), &["rollback", "--all"]).0, 0);
    assert_eq!(ns.run("sysctl", &["-n", "net.ipv4.tcp_fin_timeout"]).trim(), "60");
}

#[test]
fn the_namespace_that_one_is_in_is_simply_that_one() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path().to_str().unwrap();
    let inside = |args: &[&str]| {
        let out = ns.output(NETWRIGHT, &[&["tune"], args, &["--state-dir", state]].concat());
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", text(&out.stderr));
        text(&out.stdout)
    };
    let out = inside(&["apply", "--netns", &ns.name, "--no-confirm", "nic.v0.mtu=1400"]);
    assert!(out.contains("Change 1 is in force"), "{out}");
    assert!(ns.run("ip", &["link", "show", "v0"]).contains("mtu 1400"));
    inside(&["rollback", "--netns", &format!("/run/netns/{}", ns.name)]);
    assert!(ns.run("ip", &["link", "show", "v0"]).contains("mtu 1500"));
    // There is no way into it to report.
    let out = ns.output(NETWRIGHT, &["tune", "plan", "--container", "1", "nic.v0.mtu=1400"]);
    assert_ne!(out.status.code(), Some(0), "v0 is not in the first one");
    let out = run(
        NETWRIGHT,
        &["tune", "plan", "--json", "--netns", "/proc/self/ns/net", "nic.lo.mtu=1500"],
    );
    let plan: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(plan["changes"][0]["command"], "ip link set lo mtu 1500");
}

/// Each command in a plan does from outside what the change does.
#[test]
fn the_classic_command_says_how_to_get_into_the_namespace() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let before = print(&ns);
    let mut sleeper =
        Command::new("ip").args(["netns", "exec", &ns.name, "sleep", "1000"]).spawn().unwrap();
    let pid = sleeper.id().to_string();
    let inside = || fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().trim() == "sleep";
    while !inside() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let path = format!("/proc/{pid}/ns/net");
    for (flag, name, begins) in [
        ("--netns", ns.name.as_str(), format!("ip netns exec {} ", ns.name)),
        ("--netns", &path, format!("nsenter --net={path} ")),
        ("--container", &pid, format!("nsenter -t {pid} -n ")),
    ] {
        let ask = [&["plan", "--json", flag, name][..], &CHANGES].concat();
        let (code, out, err) = tune(state.path(), &ask);
        assert_eq!(code, 0, "{out}{err}");
        let plan: serde_json::Value = serde_json::from_str(&out).unwrap();
        for change in plan["changes"].as_array().unwrap() {
            let line = change["command"].as_str().unwrap();
            assert!(line.starts_with(&begins), "{line}");
            run("sh", &["-c", line]);
        }
        let (_, out, _) = tune(state.path(), &ask);
        let plan: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(plan["unchanged"].as_array().unwrap().len(), CHANGES.len(), "{out}");
        let back = "ip link set v0 mtu 1500; echo 0 > /sys/class/net/v0/gro_flush_timeout; \
                    sysctl -qw net.core.somaxconn=4096 net.ipv4.tcp_fin_timeout=60";
        ns.run("sh", &["-c", back]);
        assert_eq!(print(&ns), before);
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn what_is_kept_for_a_namespace_is_removed_from_nowhere_else_unasked() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let (state, into) = (state.path(), tempfile::tempdir().unwrap());
    let folder = into.path().to_str().unwrap();
    let tune = |args: &[&str]| tune(state, args);
    assert_eq!(tune(&["apply", "--netns", &ns.name, "sysctl.net.core.somaxconn=8192"]).0, 0);
    let persist = |more: &[&str]| tune(&[&["persist", "--into", folder], more].concat());
    let (code, out, err) = persist(&["--netns", &ns.name]);
    assert_eq!(code, 0, "{out}{err}");
    let file = into.path().join("etc/sysctl.d/99-zz-netwright.conf");
    let before = fs::read_to_string(&file).unwrap();
    for more in [&[][..], &["1"], &["--dry-run"]] {
        let (code, out, err) = persist(more);
        let reported = format!("change 1 is kept there for network namespace {}", ns.name);
        assert!(code == 4 && err.contains(&reported), "{code} {out}{err}");
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
    }
    let (code, out, err) = persist(&["--netns", &ns.name]);
    assert!(code == 0 && out.contains("  unchanged"), "{out}{err}");
    assert_eq!(persist(&["--remove"]).0, 0);
    assert!(!file.exists());
    assert_eq!(tune(&["rollback"]).0, 0);
}

#[test]
fn what_is_kept_and_not_in_force_is_reported_and_so_is_a_file_that_was_not_there() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let (state, into) = (state.path(), tempfile::tempdir().unwrap());
    let folder = into.path().to_str().unwrap();
    let setting = "sysctl.net.ipv4.tcp_fin_timeout=30";
    assert_eq!(tune(state, &["apply", "--netns", &ns.name, setting]).0, 0);
    ns.run("sysctl", &["-w", "net.ipv4.tcp_fin_timeout=45"]);
    let persist = |more: &[&str]| {
        let (code, out, err) =
            tune(state, &[&["persist", "--into", folder, "--netns", &ns.name], more].concat());
        assert_eq!(code, 0, "{out}{err}");
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for reported in ["written", "unchanged"] {
        let out = persist(&[]);
        assert!(out.contains(reported) && !out.contains("in force already"), "{out}");
        let note = "sysctl.net.ipv4.tcp_fin_timeout is 45 now, set by another program";
        assert!(out.contains(note), "{out}");
    }
    ns.run("sysctl", &["-w", "net.ipv4.tcp_fin_timeout=30"]);
    let file = into.path().join("etc/sysctl.d/99-zz-netwright.conf");
    for dry in [&["--remove", "--dry-run"][..], &["--remove"]] {
        let _ = fs::remove_file(&file);
        let out = persist(dry);
        assert!(out.contains("was removed before") && !out.contains("conf removed"), "{out}");
    }
    assert!(persist(&[]).contains("in force already"));
    assert!(persist(&["--remove"]).contains("99-zz-netwright.conf removed"));
    assert_eq!(tune(state, &["rollback"]).0, 0);
}
