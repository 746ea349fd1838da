//! `tune --netns` and `--container`: a namespace's own settings, changed and put back from outside.

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
    assert!(code == 0 && out.contains("No active changes"), "{out}");
}

#[test]
fn a_renamed_interface_is_found_and_one_with_its_old_name_is_left_alone() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let filter = "/proc/sys/net/ipv4/conf/v1/rp_filter";
    ns.run("sh", &["-c", &format!("echo 0 > {filter}; ip link set v1 mtu 1500")]);
    let before = ns.run("sh", &["-c", "cd /sys/class/net/v1; cat mtu gro_flush_timeout"]);
    let mut args = vec!["apply", "--netns", &ns.name, "--no-confirm"];
    args.extend(["nic.v1.mtu=1400", "nic.v1.gro_flush_timeout=20us"]);
    args.extend(["nic.v1.queue.rx-0.rps_cpus=1", "sysctl.net.ipv4.conf.v1.rp_filter=2"]);
    let (code, out, err) = tune(state, &args);
    assert_eq!(code, 0, "{out}{err}");

    ns.run("ip", &["link", "set", "v1", "name", "lan.7"]);
    ns.run("ip", &["link", "add", "v1", "mtu", "1400", "type", "veth"]);
    ns.run("sh", &["-c", &format!("echo 2 > {filter}")]);
    let (code, out, err) = tune(state, &["status"]);
    assert!(code == 0 && out.contains("nic.v1.mtu (nic.lan.7.mtu now)"), "{code} {out}{err}");
    // What somebody does to the new one is no drift; what is done to ours is.
    ns.run("ip", &["link", "set", "v1", "mtu", "1300"]);
    assert_eq!(tune(state, &["status"]).0, 0);
    ns.run("ip", &["link", "set", "lan.7", "mtu", "1350"]);
    let (code, out, _) = tune(state, &["rollback", "--dry-run"]);
    assert!(code == 1 && out.contains("1350"), "{out}");
    ns.run("ip", &["link", "set", "lan.7", "mtu", "1400"]);
    let (_, out, _) = tune(state, &["rollback", "--dry-run"]);
    assert!(out.contains("nic.v1.mtu (now nic.lan.7.mtu) would be 1500 again"), "{out}");

    // A later change of the same interface under its new name goes first.
    let (code, out, err) = tune(state, &["apply", "--netns", &ns.name, "nic.lan.7.mtu=1380"]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, _, err) = tune(state, &["rollback", "1"]);
    assert!(code == 4 && err.contains("change 2 wrote nic.lan.7.mtu"), "{code} {err}");
    assert_eq!(tune(state, &["rollback", "2"]).0, 0);

    let (code, out, err) = tune(state, &["rollback", "1"]);
    assert!(code == 0 && out.contains("put back as nic.lan.7.mtu"), "{code} {out}{err}");
    let after = ns.run("sh", &["-c", "cd /sys/class/net/lan.7; cat mtu gro_flush_timeout"]);
    assert_eq!(after, before);
    let read = |file: &str| ns.run("cat", &[file]).trim().to_owned();
    assert_eq!(read("/proc/sys/net/ipv4/conf/lan.7/rp_filter"), "0");
    assert_eq!(read("/sys/class/net/lan.7/queues/rx-0/rps_cpus").replace(['0', ','], ""), "");
    assert_eq!((read("/sys/class/net/v1/mtu").as_str(), read(filter).as_str()), ("1300", "2"));
    let (code, out, _) = tune(state, &["status"]);
    assert!(code == 0 && out.contains("No active changes"), "{out}");
}

/// A veth whose other end stays, and an interface that nothing ties to where it was.
#[test]
fn an_interface_that_went_to_another_namespace_is_not_gone() {
    let (ns, other, state) = (namespace(), Namespace::new(), tempfile::tempdir().unwrap());
    let state = state.path();
    ns.run("ip", &["link", "add", "x0", "type", "ifb"]);
    let folded = |out: String| out.split_whitespace().collect::<Vec<_>>().join(" ");
    let apply = |change: &str| {
        let (code, out, err) = tune(state, &["apply", "--netns", &ns.name, "--no-confirm", change]);
        assert_eq!(code, 0, "{out}{err}");
    };
    for (name, mtu) in [("v0", "1400"), ("x0", "1401")] {
        let knob = format!("nic.{name}.mtu");
        // It is called otherwise there, and comes back.
        apply(&format!("{knob}={mtu}"));
        ns.run("ip", &["link", "set", name, "netns", &other.name, "name", "eth9"]);
        let line = format!("ip netns exec {} ip link set eth9 mtu 1500", other.name);
        let reported =
            format!("went to another network namespace, {} as eth9: `{line}`", other.name);
        for args in [&["rollback", "--dry-run"][..], &["rollback"], &["rollback"]] {
            let (code, out, err) = tune(state, args);
            let out = folded(out);
            assert!(code == 1 && out.contains(&reported), "{args:?}: {code} {out}{err}");
            assert!(!out.contains("is gone"), "{out}");
        }
        let (code, out, _) = tune(state, &["status"]);
        assert!(code == 1 && folded(out.clone()).contains(&other.name), "{code} {out}");
        other.run("ip", &["link", "set", "eth9", "netns", &ns.name, "name", name]);
        let (code, out, err) = tune(state, &["rollback"]);
        assert_eq!(code, 0, "{out}{err}");
        assert_eq!(ns.run("cat", &[&format!("/sys/class/net/{name}/mtu")]).trim(), "1500");

        // Put back there by the command that is named, it is at an end.
        apply(&format!("{knob}={mtu}"));
        ns.run("ip", &["link", "set", name, "netns", &other.name, "name", "eth9"]);
        run("sh", &["-c", &line]);
        let (code, out, err) = tune(state, &["rollback"]);
        assert!(code == 0 && folded(out.clone()).contains("has its old value there"), "{out}{err}");
        let (code, out, _) = tune(state, &["status"]);
        assert!(code == 0 && out.contains("No active changes"), "{out}");
        other.run("ip", &["link", "set", "eth9", "netns", &ns.name, "name", name]);
    }
    // A kernel setting of it begins anew there.
    apply("sysctl.net.ipv4.conf.v0.rp_filter=2");
    ns.run("ip", &["link", "set", "v0", "netns", &other.name]);
    let (code, out, err) = tune(state, &["rollback"]);
    assert!(code == 0 && out.contains("begins anew"), "{code} {out}{err}");
    other.run("ip", &["link", "set", "v0", "netns", &ns.name]);

    // Held by an open file alone, it is nowhere to be seen, but its other end tells of it.
    apply("nic.v0.mtu=1400");
    ns.run("ip", &["link", "set", "v0", "netns", &other.name]);
    let held = fs::File::open(format!("/run/netns/{}", other.name)).unwrap();
    run("ip", &["netns", "del", &other.name]);
    let (code, out, err) = tune(state, &["rollback"]);
    let reported = "v0, whose other end v1 is here, is in another network namespace";
    assert!(code == 1 && folded(out.clone()).contains(reported), "{code} {out}{err}");
    drop(held);
    // The kernel takes such a namespace down in its own time.
    for _ in 0..100 {
        if !ns.output("ip", &["link", "show", "v1"]).status.success() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let (code, out, err) = tune(state, &["rollback"]);
    assert!(code == 0 && out.contains("No active changes"), "{code} {out}{err}");
}

/// Put back there by the command that was told, and back here, it is nobody's to undo any more.
#[test]
fn what_was_put_back_elsewhere_does_not_come_back_as_ours() {
    let (ns, other, state) = (namespace(), Namespace::new(), tempfile::tempdir().unwrap());
    let state = state.path();
    ns.run("ip", &["link", "add", "d0", "type", "ifb"]);
    let before = ns.run("cat", &["/sys/class/net/d0/tx_queue_len"]);
    for again in [&["rollback"][..], &["rollback", "--all"]] {
        let ask = ["apply", "--netns", &ns.name, "--no-confirm", "nic.d0.txqueuelen=777"];
        assert_eq!(tune(state, &ask).0, 0);
        ns.run("ip", &["link", "set", "d0", "netns", &other.name]);
        let (code, out, err) = tune(state, &["rollback"]);
        assert_eq!(code, 1, "{out}{err}");
        other.run("ip", &["link", "set", "d0", "txqueuelen", before.trim()]);
        let nothing = |args: &[&str]| {
            let (code, out, err) = tune(state, args);
            assert!(code == 0 && out.contains("No active changes"), "{args:?}: {code} {out}{err}");
        };
        nothing(&["status"]);
        nothing(again);
        other.run("ip", &["link", "set", "d0", "netns", &ns.name]);
        ns.run("ip", &["link", "set", "d0", "txqueuelen", "1234"]);
        nothing(&["status"]);
        nothing(&["rollback"]);
        let now = ns.run("cat", &["/sys/class/net/d0/tx_queue_len"]);
        assert_eq!(now.trim(), "1234", "{again:?}");
        ns.run("ip", &["link", "set", "d0", "txqueuelen", before.trim()]);
    }
}

/// Made anew with the name and the number of the old one.
#[test]
fn an_interface_that_took_name_and_number_of_another_is_left_alone() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let number = ns.run("cat", &["/sys/class/net/v0/ifindex"]);
    let (code, out, err) = tune(state, &["apply", "--netns", &ns.name, "nic.v0.mtu=1400"]);
    assert_eq!(code, 0, "{out}{err}");
    // A hand's address is no other interface.
    ns.run("ip", &["link", "set", "v0", "address", "02:00:00:00:00:77"]);
    let (code, out, _) = tune(state, &["status"]);
    assert!(code == 0 && out.contains("nic.v0.mtu"), "{code} {out}");
    ns.run("ip", &["link", "del", "v0"]);
    ns.run("ip", &["link", "add", "v0", "index", number.trim(), "mtu", "1350", "type", "veth"]);
    let (code, out, err) = tune(state, &["rollback"]);
    assert!(code == 0 && out.contains("another interface is called v0 now"), "{code} {out}{err}");
    assert_eq!(ns.run("cat", &["/sys/class/net/v0/mtu"]).trim(), "1350");
}

#[test]
fn what_is_gone_with_its_value_is_told_before_and_after_and_ends_it() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
    let affinity = format!("process.{}.affinity=0", sleeper.id());
    // The process is the whole host's: not with --netns.
    let (code, out, err) = tune(state, &["apply", &affinity]);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(code, 0, "{out}{err}");
    for successor in [false, true] {
        let changes = ["nic.v0.mtu=1400", "sysctl.net.ipv4.conf.v0.rp_filter=2"];
        let mut args = vec!["apply", "--netns", &ns.name, "--no-confirm"];
        args.extend(changes);
        args.push("sysctl.net.ipv4.tcp_fin_timeout=30");
        let (code, out, err) = tune(state, &args);
        assert_eq!(code, 0, "{out}{err}");
        ns.run("ip", &["link", "del", "v0"]);
        let word = if successor {
            ns.run("ip", &["link", "add", "v0", "mtu", "1400", "type", "veth"]);
            "another interface is called v0 now: not touched"
        } else {
            "v0 is gone from this network namespace"
        };
        let (_, out, _) = tune(state, &["status", "--json"]);
        assert!(out.contains(word), "{out}");
        for dry in [true, false] {
            let mut args = vec!["rollback", if successor { "3" } else { "2" }];
            args.extend(dry.then_some("--dry-run"));
            let (code, out, err) = tune(state, &args);
            assert_eq!(code, 0, "{out}{err}");
            let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
            for change in changes {
                let knob = change.split('=').next().unwrap();
                assert!(out.contains(&format!("{knob} is gone with its value: {word}")), "{out}");
            }
        }
        assert_eq!(ns.run("sysctl", &["-n", "net.ipv4.tcp_fin_timeout"]).trim(), "60");
        if successor {
            assert_eq!(ns.run("cat", &["/sys/class/net/v0/mtu"]).trim(), "1400");
        } else {
            ns.run("ip", &["link", "add", "v0", "type", "veth", "peer", "name", "v1"]);
        }
    }
    let knob = affinity.split('=').next().unwrap();
    for args in [&["rollback", "--dry-run"][..], &["rollback"]] {
        let (code, out, err) = tune(state, args);
        let reported = format!("{knob} is gone with its value: process {} ended", sleeper.id());
        assert!(code == 0 && out.contains(&reported), "{code} {out}{err}");
    }
    let (code, out, _) = tune(state, &["status"]);
    assert!(code == 0 && out.contains("No active changes"), "{out}");
}

#[test]
fn a_change_cut_short_is_not_completed_on_another_interface() {
    let ns = namespace();
    let args = ["apply", "--netns", &ns.name, "--no-confirm", CHANGES[0], CHANGES[2]];
    for at in 1.. {
        let state = tempfile::tempdir().unwrap();
        let state = state.path();
        let end =
            traced::tune(state, &args, &mut |n| if n == at { Then::Kill } else { Then::GoOn });
        assert!(matches!(end, End::Killed), "no point was found at which it is half done");
        if !ns.run("ip", &["link", "show", "v0"]).contains("mtu 1400") {
            continue;
        }
        ns.run("ip", &["link", "del", "v0"]);
        ns.run("ip", &["link", "add", "v0", "type", "veth", "peer", "name", "v1"]);
        let (code, _, err) = tune(state, &["apply", "--finish", "1"]);
        assert!(code == 4 && err.contains("another interface is called v0"), "{code} {err}");
        assert_eq!(tune(state, &["rollback", "1"]).0, 0);
        return;
    }
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
fn cut_short_it_is_told_as_it_is_and_completed_from_outside() {
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
            // Nobody else wrote anything.
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
    // Within it, it is this one.
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
            assert!(reported["lines"].to_string().contains(&line), "no {line:?} in {out}");
            let mtu = if dry_run || kept { "mtu 1300" } else { "mtu 1500" };
            assert!(ns.run("ip", &["link", "show", "v0"]).contains(mtu), "{args:?}");
        }
        let (_, log, _) = tune(state, &["log"]);
        let reported = if kept { "was left" } else { "was overwritten" };
        assert!(log.contains(&format!("1300, which somebody set since, {reported}")), "{log}");
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

/// The watchdog too leaves what somebody else set while the change waited.
#[test]
fn the_guard_leaves_what_somebody_else_set_since() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let asks = ["apply", "--netns", &ns.name, "--confirm", "1s", "nic.v0.mtu=1400"];
    assert_eq!(tune(state, &[&asks[..], &["nic.v0.txqueuelen=500"]].concat()).0, 0);
    ns.run("ip", &["link", "set", "v0", "mtu", "1300"]);
    let link = || ns.run("ip", &["link", "show", "v0"]);
    wait_for("the watchdog", || tune(state, &["log"]).1.contains("rolled back"));
    assert!(link().contains("mtu 1300") && link().contains("qlen 1000"), "{}", link());
    let (_, log, _) = tune(state, &["log"]);
    assert!(log.contains("nic.v0.mtu: 1300, which somebody set since, was left"), "{log}");
    assert_eq!(tune(state, &["rollback", "1", "--force"]).0, 0);
    assert!(link().contains("mtu 1500"), "{}", link());
}

/// An interface that went to another namespace and came back is down, and has no discipline until it comes
/// up: nobody set that.
#[test]
fn what_the_kernel_took_away_with_the_link_is_nobodys() {
    let (ns, other, state) = (namespace(), Namespace::new(), tempfile::tempdir().unwrap());
    let state = state.path();
    ns.run("ip", &["link", "set", "v1", "up"]);
    ns.run("ip", &["link", "set", "v0", "up"]);
    let qdisc = || ns.run("tc", &["qdisc", "show", "dev", "v0"]).trim().to_owned();
    let before = qdisc();
    let away = || {
        ns.run("ip", &["link", "set", "v0", "netns", &other.name]);
        other.run("ip", &["link", "set", "v0", "netns", &ns.name]);
    };
    let down = || {
        ns.run("ip", &["link", "set", "v0", "down"]);
    };
    for (by, its) in [(&away as &dyn Fn(), ""), (&down, "pfifo")] {
        let asks =
            ["apply", "--netns", &ns.name, "nic.v0.qdisc=pfifo limit 500", "nic.v0.mtu=1400"];
        assert_eq!(tune(state, &asks).0, 0);
        by();
        assert!(qdisc().contains(its), "{}", qdisc());
        for args in [&["rollback", "--dry-run"][..], &["rollback"]] {
            let (code, out, err) = tune(state, args);
            assert!(code == 0 && !out.contains("somebody else"), "{args:?}: {code} {out}{err}");
        }
        let (code, out, err) = tune(state, &["rollback"]);
        assert!(code == 0 && out.contains("No active changes"), "{out}{err}");
        let (code, out, err) = tune(state, &["status"]);
        assert_eq!(code, 0, "{out}{err}");
        ns.run("ip", &["link", "set", "v0", "up"]);
        assert_eq!(qdisc(), before);
    }
}

/// Where its number is taken it gets another one, which it keeps when it comes back; its values stay.
#[test]
fn an_interface_that_came_back_with_another_number_is_the_same() {
    let (ns, other) = (Namespace::new(), Namespace::new());
    let number = || ns.run("cat", &["/sys/class/net/v0/ifindex"]).trim().to_owned();
    let values = || {
        let files = ["mtu", "tx_queue_len", "gro_flush_timeout"];
        ns.run("cat", &files.map(|f| format!("/sys/class/net/v0/{f}")).each_ref().map(|f| &f[..]))
    };
    let pair = ["link", "add", "v0", "index", "70", "type", "veth", "peer", "name", "v1"];
    other.run("ip", &["link", "add", "d0", "index", "70", "type", "ifb"]);
    let asks = [
        "nic.v0.mtu=1400",
        "nic.v0.txqueuelen=500",
        "nic.v0.gro_flush_timeout=20us",
        "sysctl.net.ipv4.conf.v0.rp_filter=2",
    ];
    // By the kernel's address, and by one that was given with the other end's number.
    for address in [None, Some("02:00:00:00:00:70")] {
        ns.run("ip", &pair);
        if let Some(address) = address {
            ns.run("ip", &["link", "set", "v0", "address", address]);
        }
        let (before, state) = (values(), tempfile::tempdir().unwrap());
        let apply = [&["apply", "--netns", &ns.name, "--no-confirm"], &asks[..]].concat();
        let (code, out, err) = tune(state.path(), &apply);
        assert_eq!(code, 0, "{out}{err}");
        let set = values();
        ns.run("ip", &["link", "set", "v0", "netns", &other.name]);
        other.run("ip", &["link", "set", "v0", "netns", &ns.name]);
        assert!(number() != "70" && values() == set && set != before, "{} {set}", number());
        let (code, out, err) = tune(state.path(), &["rollback"]);
        assert!(code == 0 && out.contains("began anew"), "{address:?}: {code} {out}{err}");
        assert_eq!(values(), before, "{address:?}: {out}{err}");
        let (code, out, err) = tune(state.path(), &["status"]);
        assert!(code == 0 && out.contains("No active changes"), "{code} {out}{err}");

        // Another one of its name and address is none of it.
        assert_eq!(tune(state.path(), &["apply", "--netns", &ns.name, asks[0]]).0, 0);
        let its = ns.run("cat", &["/sys/class/net/v0/address"]).trim().to_owned();
        ns.run("ip", &["link", "del", "v0"]);
        let anew = ["link", "add", "v0", "address", &its, "mtu", "1400", "type", "veth"];
        ns.run("ip", &[&anew[..], &["peer", "name", "v1"]].concat());
        let (code, out, err) = tune(state.path(), &["rollback"]);
        assert!(code == 0 && out.contains("another interface is called v0"), "{code} {out}{err}");
        assert!(values().starts_with("1400"), "{}", values());
        ns.run("ip", &["link", "del", "v0"]);
    }
}

#[test]
fn what_a_namespace_only_shows_is_refused_by_the_plan() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    // Read-only there, or not there at all: by kernel.
    for ask in ["sysctl.net.core.rmem_max=67108864", "sysctl.net.core.netdev_max_backlog=20000"] {
        for args in [&["plan"][..], &["apply", "--dry-run"], &["apply"]] {
            let args = [args, &["--netns", &ns.name, ask]].concat();
            let (code, out, err) = tune(state.path(), &args);
            assert!(code == 4 && err.contains("it is the whole host's"), "{args:?} {out}{err}");
        }
    }
    assert!(!state.path().join("journal/000001.jsonl").exists());
}

#[test]
fn findings_of_another_host_are_refused_and_none_are_nothing_to_change() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let (_, out, _) = tune(state, &["plan", "--json", "--netns", &ns.name, "nic.v0.mtu=1400"]);
    let plan: serde_json::Value = serde_json::from_str(&out).unwrap();
    let file = state.join("findings.json");
    let write = |key: &str, value: serde_json::Value, findings: serde_json::Value| {
        let mut id = plan["host"].clone();
        if !key.is_empty() {
            id[key] = value;
        }
        let document = serde_json::json!({
            "findings": findings, "host": {"name": id["name"]}, "source": {"kind": "live", "id": id},
        });
        fs::write(&file, document.to_string()).unwrap();
    };
    let none = || serde_json::json!([]);
    let file = file.to_str().unwrap();
    write("", none(), none());
    let (code, out, err) = tune(state, &["plan", "--netns", &ns.name, file]);
    assert!(code == 0 && out.contains("nothing to change"), "{code} {out}{err}");
    let (code, out, err) = tune(state, &["plan", "--json", "--netns", &ns.name, file]);
    let made: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(code == 0 && made["changes"] == none(), "{out}{err}");
    let (code, out, err) = tune(state, &["apply", "--netns", &ns.name, file]);
    assert!(code == 0 && out.contains("Nothing to change"), "{code} {out}{err}");

    let (code, out, err) = tune(state, &["plan", file]);
    assert!(code == 4 && err.contains("of another network namespace"), "{code} {out}{err}");
    for (key, why) in [
        ("name", "another host (other"),
        ("machine_id", "another host"),
        ("boot_id", "another boot"),
    ] {
        write(key, "other".into(), none());
        for command in ["plan", "apply"] {
            let (code, out, err) = tune(state, &[command, "--netns", &ns.name, file]);
            assert!(code == 4 && err.contains(why) && out.is_empty(), "{key}: {code} {out}{err}");
        }
    }
    let out = output(NETWRIGHT, &["doctor", "--json", "--window", "100ms"]);
    let reported: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(reported["source"]["id"]["boot_id"].is_string(), "{}", reported["source"]);
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
fn a_journal_that_makes_no_sense_is_no_empty_one() {
    let ns = namespace();
    let state = tempfile::tempdir().unwrap();
    let change_request = "sysctl.net.ipv4.tcp_fin_timeout=31";
    assert_eq!(tune(state.path(), &["apply", change_request, "--netns", &ns.name]).0, 0);
    let file = state.path().join("journal/000001.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    let rest = whole.split_once('\n').unwrap().1;
    for damaged in [format!("garbage\n{rest}"), "garbage\n".to_owned()] {
        fs::write(&file, damaged).unwrap();
        for command in ["status", "rollback", "log"] {
            let (code, said, reported) = tune(state.path(), &[command]);
            assert_eq!(code, 4, "{command}: {said}{reported}");
            assert!(
                reported.contains("000001.jsonl") && reported.contains("damaged"),
                "{command}: {reported}"
            );
            assert!(!said.contains("No active changes"), "{command}: {said}");
        }
        // Who uses no journal is told nothing of it.
        for (args, reported) in
            [(&["inspect", "--json"][..], false), (&["tune", "plan", change_request], true)]
        {
            let mut command = Command::new(NETWRIGHT);
            let out = command.args(args).env("NETWRIGHT_STATE", state.path()).output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr);
            assert_eq!(said.contains("000001.jsonl"), reported, "{args:?}: {said}");
        }
    }
    fs::write(&file, whole).unwrap();
    assert_eq!(tune(state.path(), &["rollback"]).0, 0);
    assert_eq!(ns.run("sysctl", &["-n", "net.ipv4.tcp_fin_timeout"]).trim(), "60");
}

/// An object of JSON as a line of a journal.
fn sealed(object: &str) -> String {
    String::from_utf8(tune::journal::sealed(object.as_bytes())).unwrap()
}

/// A journal as of a later version.
fn made_newer(journal: &str) -> String {
    let (first, rest) = journal.split_once('\n').unwrap();
    let bare = first.split_once(",\"crc32\"").unwrap().0;
    let newer = bare.replacen("\"schema_version\":1", "\"schema_version\":2", 1);
    format!("{}\n{rest}", sealed(&format!("{newer}}}")))
}

/// A bit flips in what the disk gives: nothing is taken for undone, or for never done.
#[test]
fn a_flipped_bit_in_a_journal_is_damage_whatever_it_tells() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let asks = ["apply", "--netns", &ns.name, "nic.v0.txqueuelen=500"];
    assert_eq!(tune(state.path(), &asks).0, 0);
    let file = state.path().join("journal/000001.jsonl");
    let whole = fs::read(&file).unwrap();
    let at = |what: &str| {
        let found = whole.windows(what.len()).position(|w| w == what.as_bytes());
        found.unwrap_or_else(|| panic!("no {what:?}"))
    };
    for byte in
        [0, at("begin"), at("\"old\":\"1000") + 7, at("writing"), at("applied"), whole.len() - 2]
    {
        let mut flipped = whole.clone();
        flipped[byte] ^= 1;
        fs::write(&file, &flipped).unwrap();
        for args in
            [&["status"][..], &["rollback"], &["apply", "nic.v0.mtu=1400", "--netns", &ns.name]]
        {
            let (code, out, err) = tune(state.path(), args);
            let reported = err.contains("000001.jsonl") && err.contains("damaged");
            assert!(code == 4 && reported, "byte {byte}, {args:?}: {code} {out}{err}");
        }
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(tune(state.path(), &["rollback"]).0, 0);
}

#[test]
fn what_a_newer_netwright_wrote_is_told_and_left_to_it() {
    let ns = namespace();
    let state = tempfile::tempdir().unwrap();
    let asks = ["sysctl.net.ipv4.tcp_fin_timeout=31", "nic.v0.mtu=1400"];
    for ask in asks {
        assert_eq!(tune(state.path(), &["apply", ask, "--netns", &ns.name]).0, 0);
    }
    let file = state.path().join("journal/000001.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    let newer = [
        made_newer(&whole),
        format!("{whole}{}\n", sealed(r#"{"seq":9,"at_unix_ms":5,"event":"put_aside"}"#)),
    ];
    let line = |out: &str, version: &str| {
        let line = format!("written by a newer netwright ({version}); use that one");
        let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(out.contains("000001.jsonl") && out.contains(&line), "no {line:?} in {out}");
    };
    for (journal, version) in newer.iter().zip(["schema_version 2", "record \"put_aside\""]) {
        fs::write(&file, journal).unwrap();
        let one = ["rollback", "1"];
        let dry_run = ["rollback", "1", "--dry-run"];
        let finish = ["apply", "--finish", "1"];
        let apply = ["apply", "sysctl.net.ipv4.tcp_syn_retries=5", "--netns", &ns.name];
        for args in [&one[..], &dry_run, &finish, &["confirm", "1"], &["status"], &["log"], &apply]
        {
            let (code, out, err) = tune(state.path(), args);
            assert_eq!(code, 4, "{args:?}: {out}{err}");
            line(&err, version);
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), *journal);
    }
    // The other one goes on; that not all was undone is said.
    let (code, out, err) = tune(state.path(), &["rollback", "--all"]);
    assert_eq!(code, 1, "{out}{err}");
    line(&out, "record \"put_aside\"");
    assert!(ns.run("ip", &["link", "show", "v0"]).contains("mtu 1500"), "{out}{err}");
    assert_eq!(ns.run("sysctl", &["-n", "net.ipv4.tcp_fin_timeout"]).trim(), "31");
    fs::write(&file, whole).unwrap();
    assert_eq!(tune(state.path(), &["rollback", "1"]).0, 0);
    assert_eq!(ns.run("sysctl", &["-n", "net.ipv4.tcp_fin_timeout"]).trim(), "60");
}

/// What a newer one set cannot be known: nothing is put back underneath it.
#[test]
fn a_change_beneath_a_newer_netwrights_is_left_and_a_later_one_goes_on() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let apply = |ask: &str| {
        let (code, out, err) = tune(state.path(), &["apply", ask, "--netns", &ns.name]);
        assert_eq!(code, 0, "{out}{err}");
    };
    let value = || ns.run("sysctl", &["-n", "net.ipv4.tcp_fin_timeout"]).trim().to_owned();
    for ask in ["sysctl.net.ipv4.tcp_fin_timeout=31", "sysctl.net.ipv4.tcp_fin_timeout=32"] {
        apply(ask);
    }
    apply("nic.v0.mtu=1400");
    let file = state.path().join("journal/000002.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, made_newer(&whole)).unwrap();
    let reported = "change 2 was made later by a newer netwright and may have set the same";
    // The later one goes on; the earlier one is left where it is.
    let (code, out, err) = tune(state.path(), &["rollback", "--all"]);
    let folded = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code == 1 && folded.contains(reported), "{code} {out}{err}");
    assert!(ns.run("ip", &["link", "show", "v0"]).contains("mtu 1500"), "{out}{err}");
    assert_eq!(value(), "32");
    for more in [&["1"][..], &["1", "--dry-run"], &[], &["--all"]] {
        let (code, out, err) = tune(state.path(), &[&["rollback"], more].concat());
        assert!(code == 4 && err.contains(reported), "{more:?}: {code} {out}{err}");
        assert_eq!(err.lines().filter(|l| l.contains(reported)).count(), 1, "{err}");
        assert_eq!(value(), "32", "{more:?}");
    }
    // One that was interrupted is no exception.
    let first = state.path().join("journal/000001.jsonl");
    let all = fs::read_to_string(&first).unwrap();
    let cut = all.lines().filter(|l| !l.contains("\"applied\""));
    fs::write(&first, cut.map(|l| format!("{l}\n")).collect::<String>()).unwrap();
    let (code, out, err) = tune(state.path(), &["rollback", "--unfinished"]);
    assert!(code == 4 && err.contains(reported), "{code} {out}{err}");
    assert_eq!(value(), "32");
    fs::write(&first, all).unwrap();
    fs::write(&file, whole).unwrap();
    let (code, out, err) = tune(state.path(), &["rollback", "--all"]);
    assert_eq!((code, value().as_str()), (0, "60"), "{out}{err}");
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
    // No way into it is told.
    let out = ns.output(NETWRIGHT, &["tune", "plan", "--container", "1", "nic.v0.mtu=1400"]);
    assert_ne!(out.status.code(), Some(0), "v0 is not in the first one");
    let out = run(
        NETWRIGHT,
        &["tune", "plan", "--json", "--netns", "/proc/self/ns/net", "nic.lo.mtu=1500"],
    );
    let plan: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(plan["changes"][0]["command"], "ip link set lo mtu 1500");
}

#[test]
fn apply_names_all_that_it_refuses() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let asks = ["nic.v0.mtu=nonsense", "nic.v9.mtu=1400", "sysctl.net.nothing=1", "nic.v0.mtux=1"];
    let ask = [&["apply", "--netns", &ns.name][..], &asks].concat();
    let (code, out, err) = tune(state.path(), &ask);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines.len(), asks.len(), "{err}");
    for ask in asks {
        assert_eq!(lines.iter().filter(|l| l.contains(ask)).count(), 1, "{ask}: {err}");
    }
    assert!(lines.last().is_some_and(|l| l.contains(asks[0])), "the exit code's: {err}");
}

#[test]
fn a_state_folder_that_is_no_folder_is_exit_code_4() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("file");
    fs::write(&file, "").unwrap();
    let journal = state.path().join("with");
    fs::create_dir(&journal).unwrap();
    fs::write(journal.join("journal"), "").unwrap();
    let reported = [(&file, file.clone()), (&journal, journal.join("journal"))];
    for (place, named) in &reported {
        let place = place.to_str().unwrap();
        for args in [&["status"][..], &["log"], &["rollback"], &["confirm"], &["rollback", "--all"]]
        {
            let (code, out, err) = tune(state.path(), &[args, &["--state-dir", place]].concat());
            let line = format!("{}: is no folder", named.display());
            assert!(code == 4 && err.contains(&line), "{args:?}: {code} {out}{err}");
        }
    }
    let none = state.path().join("none");
    let (code, out, err) = tune(&none, &["status"]);
    assert!(code == 0 && out.contains("No active changes"), "{code} {out}{err}");
}

/// Each line that a plan prints does from outside what the change does.
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

/// The range that a refusal names is one that this kernel takes; what it takes beyond has no meaning
/// in its documentation.
#[test]
fn ranges_are_the_kernels_own() {
    /// The kernel takes more than it gives a meaning to.
    const LAX: &[&str] = &[
        "ip_early_demux",
        "ip_no_pmtu_disc",
        "tcp_abort_on_overflow",
        "tcp_dsack",
        "tcp_early_demux",
        "tcp_fastopen",
        "tcp_fin_timeout",
        "tcp_frto",
        "tcp_keepalive_intvl",
        "tcp_keepalive_time",
        "tcp_limit_output_bytes",
        "tcp_max_syn_backlog",
        "tcp_max_tw_buckets",
        "tcp_moderate_rcvbuf",
        "tcp_mtu_probing",
        "tcp_no_metrics_save",
        "tcp_recovery",
        "tcp_rfc1337",
        "tcp_sack",
        "tcp_slow_start_after_idle",
        "tcp_syncookies",
        "tcp_thin_linear_timeouts",
        "tcp_timestamps",
        "tcp_window_scaling",
        "udp_early_demux",
        "max_dgram_qlen",
    ];
    /// Other kernels take more than this one may.
    const WIDER: &[&str] = &["tcp_ecn"];
    const EXACT: &[&str] = &[
        "somaxconn",
        "tcp_adv_win_scale",
        "tcp_app_win",
        "tcp_autocorking",
        "tcp_early_retrans",
        "tcp_ecn_fallback",
        "tcp_keepalive_probes",
        "tcp_min_snd_mss",
        "tcp_min_tso_segs",
        "tcp_notsent_lowat",
        "tcp_orphan_retries",
        "tcp_pacing_ca_ratio",
        "tcp_pacing_ss_ratio",
        "tcp_retries1",
        "tcp_retries2",
        "tcp_rmem",
        "tcp_shrink_window",
        "tcp_syn_retries",
        "tcp_synack_retries",
        "tcp_tso_win_divisor",
        "tcp_tw_reuse",
        "tcp_wmem",
        "udp_rmem_min",
        "udp_wmem_min",
    ];
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let folder = |name: &str| match name {
        "somaxconn" => "core",
        "max_dgram_qlen" => "unix",
        _ => "ipv4",
    };
    let words = |name: &str, n: i64| match name {
        "tcp_rmem" | "tcp_wmem" => format!("{n} {n} {n}"),
        _ => n.to_string(),
    };
    let names: Vec<&str> = [LAX, WIDER, EXACT].concat();
    let ask =
        |n| names.iter().map(move |k| format!("sysctl.net.{}.{k}={}", folder(k), words(k, n)));
    let mut args = vec!["plan".to_owned(), "--json".into(), "--netns".into(), ns.name.clone()];
    args.extend(ask(-99_999));
    let (code, out, err) = tune(state.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(code, 2, "{err}");
    let plan: serde_json::Value = serde_json::from_str(&out).unwrap();
    let refused = plan["refused"].as_array().unwrap();
    assert_eq!(refused.len(), names.len(), "{out}");
    let takes = |name: &str, n: i64| {
        let file = format!("/proc/sys/net/{}/{name}", folder(name));
        let value = words(name, n);
        let script = format!("echo {value} > {file} && cat {file}");
        let out = ns.output("sh", &["-c", &script]);
        let back =
            String::from_utf8_lossy(&out.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        out.status.success() && back == value
    };
    for r in refused {
        let name = r["knob"].as_str().unwrap().rsplit('.').next().unwrap();
        let why = r["why"].as_str().unwrap();
        let range = why.split("out of range: ").nth(1).unwrap_or_else(|| panic!("{name}: {why}"));
        let number =
            |i: usize| range.split(' ').filter_map(|w| w.parse::<i64>().ok()).nth(i).unwrap();
        let (least, most) = (number(0), number(1));
        // Ticks: a kernel of fewer a second takes more.
        if !WIDER.contains(&name) {
            assert!(takes(name, least) && takes(name, most), "{name}: {least} to {most}");
        }
        if !LAX.contains(&name) {
            assert!(!takes(name, least - 1) && !takes(name, most + 1), "{name}: {least} to {most}");
        }
    }
    println!("{} settings held against this kernel", refused.len());
}

/// Where the answer cannot be written the exit code says so, and what was done is told all the same.
#[test]
fn a_full_standard_output_is_exit_code_4_and_never_hides_what_was_done() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let full = |args: &[&str]| {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(NETWRIGHT);
        command.args(args).env("NETWRIGHT_STATE", state).env_remove("SSH_CONNECTION").stdout(full);
        let out = command.output().unwrap();
        (out.status.code().unwrap_or(-1), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let name = ns.name.as_str();
    let (mtu, fin) = (CHANGES[0], CHANGES[3]);
    for (args, done) in [
        (&["tune", "plan", "--netns", name, mtu][..], ""),
        (&["tune", "apply", "--netns", name, mtu], "Change 1 is in force"),
        (
            &["tune", "apply", "--netns", name, "--confirm", "1h", "--json", fin],
            "Change 2 is in force",
        ),
        (&["tune", "status"], ""),
        (&["tune", "status", "--json"], ""),
        (&["tune", "log"], ""),
        (&["tune", "confirm"], "Change 2 is confirmed"),
        (&["tune", "persist", "--dry-run"], ""),
        (&["tune", "persist", "--format", "shell"], ""),
        (&["tune", "rollback", "--dry-run"], ""),
        (&["tune", "rollback", "--all"], "Change 1 is rolled back"),
        (&["tune", "profiles"], ""),
        (&["tune", "profiles", "web"], ""),
        (&["tune", "--help"], ""),
        (&["--version"], ""),
        (&["doctor", "--window", "100ms"], ""),
        (&["doctor", "--window", "100ms", "--json"], ""),
    ] {
        let (code, err) = full(args);
        assert_eq!(code, 4, "{args:?}: {err}");
        assert!(err.contains("No space left") && err.contains(done), "{args:?}: {err}");
        assert!(!err.contains("internal error"), "{args:?}: {err}");
    }
    assert!(ns.run("ip", &["link", "show", "v0"]).contains("mtu 1500"));
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
fn both_ends_of_a_veth_are_raised_by_one_plan() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let at = ["--netns", ns.name.as_str()];
    let (code, _, err) = tune(state, &[&["plan"][..], &at, &["nic.v0.mtu=9000"]].concat());
    assert!(code == 4 && err.contains("ask for nic.v1.mtu=9000 in the same plan"), "{code} {err}");
    // An end that is refused carries nothing.
    let bad = ["nic.v0.mtu=9000", "nic.v1.mtu=70000"];
    let (code, out, _) = tune(state, &[&["plan"][..], &at, &bad].concat());
    assert!(code == 2 && out.contains("in the same plan"), "{code} {out}");
    // Said twice it is asked for once.
    let both = ["nic.v0.mtu=9000", "nic.v1.mtu=9000", "nic.v0.mtu=9000"];
    let (code, out, err) = tune(state, &[&["apply"][..], &at, &both].concat());
    assert_eq!(code, 0, "{out}{err}");
    let mtus = || ns.run("sh", &["-c", "cat /sys/class/net/v[01]/mtu"]);
    assert_eq!(mtus(), "9000\n9000\n");
    assert_eq!(tune(state, &["rollback"]).0, 0);
    assert_eq!(mtus(), "1500\n1500\n");
    let two = ["nic.v0.mtu=1400", "nic.v0.mtu=1300"];
    let (code, _, err) = tune(state, &[&["plan"][..], &at, &two].concat());
    assert!(code == 2 && err.contains("argument 1 asks for it too"), "{code} {err}");

    // The other end in another namespace is raised there.
    ns.run("ip", &["link", "add", "far", "type", "veth", "peer", "name", "near"]);
    let other = Namespace::new();
    ns.run("ip", &["link", "set", "far", "netns", &other.name]);
    let (code, _, err) = tune(state, &[&["plan"][..], &at, &["nic.near.mtu=9000"]].concat());
    assert!(code == 4 && err.contains("in another network namespace"), "{code} {err}");
}

/// A macvlan on a bridge on one end of a veth: each of the plans goes in, and comes back as it was.
#[test]
fn a_bridge_its_port_and_what_is_on_top_get_their_mtus_by_one_plan() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    ns.run("ip", &["link", "add", "br0", "type", "bridge"]);
    ns.run("ip", &["link", "set", "v0", "master", "br0"]);
    ns.run("ip", &["link", "add", "link", "br0", "name", "mv0", "type", "macvlan"]);
    let mtus = || {
        let script = "cd /sys/class/net; for n in v0 br0 mv0; do cat $n/mtu; \
                      cat /proc/sys/net/ipv6/conf/$n/mtu; done";
        ns.run("sh", &["-c", script]).replace('\n', " ")
    };
    // A port alone moves what is on top of it along, and all of it comes back.
    ns.run("sysctl", &["-w", "net.ipv6.conf.mv0.mtu=1450"]);
    let before = mtus();
    let at = ["--netns", ns.name.as_str()];
    for (port, moved) in [("1400", "1400 1400 1400 1400 1400 1400 "), ("1500", before.as_str())] {
        let (code, out, err) =
            tune(state, &[&["apply"][..], &at, &[&format!("nic.v0.mtu={port}")]].concat());
        assert_eq!(code, 0, "{out}{err}");
        assert_eq!(mtus(), moved);
        assert_eq!(tune(state, &["rollback"]).0, 0);
        assert_eq!(mtus(), before);
    }
    for mtu in ["9000", "1400"] {
        let mut asked = ["mv0", "br0", "v0", "v1"].map(|n| format!("nic.{n}.mtu={mtu}"));
        for _ in 0..2 {
            asked.reverse();
            let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
            let (code, out, err) = tune(state, &[&["plan"][..], &at, &asked].concat());
            assert!(code == 0 && out.contains("does not follow"), "{code} {out}{err}");
            let (code, out, err) = tune(state, &[&["apply"][..], &at, &asked].concat());
            assert_eq!(code, 0, "{out}{err}");
            assert_eq!(mtus(), format!("{mtu} ").repeat(6));
            let (code, out, err) = tune(state, &["rollback"]);
            assert_eq!(code, 0, "{out}{err}");
            assert_eq!(mtus(), before);
        }
    }
}

#[test]
fn an_interface_that_is_not_there_and_two_places_for_one_answer_are_refused() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let of =
        |nics: &str| tune(state, &["plan", "--netns", &ns.name, "--profile", "web", "--nic", nics]);
    let (code, _, err) = of("v0,v9");
    let reported = "--nic v9: there is no such interface here; did you mean v0?";
    assert!(code == 4 && err.contains(reported), "{code} {err}");
    let (code, out, err) = of("v0,v1");
    assert_eq!(code, 0, "{out}{err}");
    let (code, _, err) = tune(state, &["persist", "--format", "shell", "--into", "/tmp"]);
    assert!(code == 2 && err.contains("cannot be used with"), "{code} {err}");
}

#[test]
fn rollback_names_what_is_missing_and_its_dry_run_needs_nothing() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let before = print(&ns);
    let mut args = vec!["apply", "--netns", &ns.name, "--no-confirm"];
    args.extend(CHANGES);
    assert_eq!(tune(state, &args).0, 0);
    let folder = state.to_str().unwrap();
    // As an earlier netwright made them: everybody could read which changes there are.
    run("chmod", &["-R", "a+rX", folder]);
    let without = |how: &[&str], more: &[&str]| {
        let mut all = how.to_vec();
        all.extend([NETWRIGHT, "tune", "rollback", "--state-dir", folder]);
        all.extend(more);
        let out = ns.output("setpriv", &all);
        let text =
            |b: &[u8]| String::from_utf8_lossy(b).split_whitespace().collect::<Vec<_>>().join(" ");
        (out.status.code().unwrap_or(-1), text(&out.stdout), text(&out.stderr))
    };
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let (code, out, err) = without(&nobody, &["--dry-run"]);
    assert!(code == 0 && out.contains("nic.v0.mtu would be 1500 again"), "{code} {out}{err}");
    assert!(
        out.contains("This process could not do it: ") && out.contains("CAP_NET_ADMIN"),
        "{out}"
    );
    let (code, _, err) = without(&nobody, &[]);
    assert!(code == 3 && err.contains("CAP_NET_ADMIN is missing"), "{code} {err}");
    // The journal may be written, the interface not: then nothing is.
    let no_net = ["--bounding-set", "-net_admin", "--inh-caps", "-net_admin"];
    let (code, out, err) = without(&no_net, &[]);
    assert!(code == 3 && err.contains("CAP_NET_ADMIN is missing"), "{code} {out}{err}");
    assert_eq!(ns.run("sysctl", &["-n", "net.core.somaxconn"]).trim(), "8192");
    let (_, out, _) = tune(state, &["log", "--json"]);
    assert!(out.contains("\"in_force\""), "{out}");
    assert_eq!(tune(state, &["rollback"]).0, 0);
    assert_eq!(print(&ns), before);
}

#[test]
fn a_plan_goes_to_the_interface_that_it_was_made_for_or_nowhere() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let plan = state.join("plan.json");
    let file = plan.to_str().unwrap();
    let change_request = "nic.v0.txqueuelen=500";
    let make = || {
        let (code, out, err) =
            tune(state, &["plan", "--json", "--netns", &ns.name, change_request]);
        assert_eq!(code, 0, "{out}{err}");
        out
    };
    let lengths = || ns.run("sh", &["-c", "cat /sys/class/net/v*/tx_queue_len"]);
    let before = lengths();
    fs::write(&plan, make()).unwrap();
    ns.run("ip", &["link", "set", "v0", "name", "vz"]);
    for other in [false, true] {
        if other {
            ns.run("ip", &["link", "set", "v1", "name", "v0"]);
        }
        let (code, _, err) = tune(state, &["apply", "--netns", &ns.name, file]);
        let reported = "its interface was renamed: it is nic.vz.txqueuelen now; plan anew";
        assert!(code == 4 && err.contains(reported), "{code} {err}");
        assert_eq!(lengths(), before);
    }
    // One that was made without it is taken by name.
    let mut old: serde_json::Value = serde_json::from_str(&make()).unwrap();
    assert!(old["changes"][0].as_object_mut().unwrap().remove("nic").is_some());
    fs::write(&plan, old.to_string()).unwrap();
    let (code, out, err) = tune(state, &["apply", "--netns", &ns.name, "--no-confirm", file]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(ns.run("cat", &["/sys/class/net/v0/tx_queue_len"]).trim(), "500");
}

#[test]
fn a_change_cut_short_before_a_step_does_not_make_it_on_another_interface() {
    let ns = namespace();
    let args = [
        "apply",
        "--netns",
        &ns.name,
        "--no-confirm",
        "nic.v0.txqueuelen=500",
        "nic.v1.txqueuelen=500",
    ];
    for at in 1.. {
        let state = tempfile::tempdir().unwrap();
        let state = state.path();
        let end =
            traced::tune(state, &args, &mut |n| if n == at { Then::Kill } else { Then::GoOn });
        assert!(matches!(end, End::Killed), "no point was found at which it is half done");
        let journal = fs::read_to_string(state.join("journal/000001.jsonl")).unwrap_or_default();
        if journal.matches("\"writing\"").count() != 1 {
            tune(state, &["rollback"]);
            continue;
        }
        ns.run("ip", &["link", "set", "v1", "name", "vz"]);
        ns.run("ip", &["link", "add", "v1", "type", "veth", "peer", "name", "vp"]);
        let (code, _, err) = tune(state, &["apply", "--finish", "1"]);
        assert!(code == 4 && err.contains("it is nic.vz.txqueuelen now"), "{code} {err}");
        assert_eq!(ns.run("cat", &["/sys/class/net/v1/tx_queue_len"]).trim(), "1000");
        assert_eq!(tune(state, &["rollback", "1"]).0, 0);
        return;
    }
}

#[test]
fn a_journal_that_may_not_be_read_is_exit_code_3() {
    use std::os::unix::fs::PermissionsExt as _;
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let (code, out, err) = tune(state, &["apply", "--netns", &ns.name, "nic.v0.txqueuelen=500"]);
    assert_eq!(code, 0, "{out}{err}");
    let folder = state.join("journal");
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(state, 0o755);
    // As an earlier netwright made it, then as it is made.
    mode(&folder, 0o755);
    for (path, bits) in [(folder.join("000001.jsonl"), 0o600), (folder.clone(), 0o700)] {
        mode(&path, bits);
        for command in ["status", "log"] {
            let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups", NETWRIGHT];
            let mut args = nobody.to_vec();
            args.extend(["tune", command, "--state-dir", state.to_str().unwrap()]);
            let out = output("setpriv", &args);
            let err = String::from_utf8_lossy(&out.stderr).into_owned();
            let reported = format!("{}: not permitted", path.display());
            assert!(out.status.code() == Some(3) && err.contains(&reported), "{command}: {err}");
        }
    }
}

/// Whoever could write the journal could have root write anything, and whoever can lock the lock keeps the
/// watchdog from undoing.
#[test]
fn nobody_else_writes_the_journal_or_holds_the_lock() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let parent = state.path();
    let state = parent.join("new");
    let apply =
        |change_request: &str| tune(&state, &["apply", "--netns", &ns.name, change_request]);
    assert_eq!(apply("nic.v0.txqueuelen=500").0, 0);
    let (folder, lock) = (state.join("journal"), state.join("lock"));
    let file = folder.join("000001.jsonl");
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    let modes = || [&state, &folder, &lock, &file].map(|p| mode(p));
    assert_eq!(modes(), [0o700, 0o700, 0o600, 0o600]);

    // What an earlier netwright left open to others is closed, before it is needed.
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for (path, bits) in [(parent, 0o755), (&state, 0o755), (&folder, 0o755), (&lock, 0o644)] {
        set(path, bits);
    }
    assert_eq!(apply("nic.v0.mtu=1400").0, 0);
    assert_eq!(modes(), [0o700, 0o700, 0o600, 0o600]);
    let nobody =
        ["--reuid", "65534", "--clear-groups", "flock", "-s", lock.to_str().unwrap(), "true"];
    assert!(!output("setpriv", &nobody).status.success(), "nobody has the lock");
    assert_eq!(tune(&state, &["rollback"]).0, 0);

    let refused = |why: &str| {
        for args in [&["status"][..], &["log"], &["rollback"], &["apply", "nic.lo.mtu=65000"]] {
            let (code, out, err) = tune(&state, args);
            assert!(code == 4 && err.contains(why), "{args:?}: {code} {out}{err}");
            assert_eq!(ns.run("cat", &["/sys/class/net/v0/tx_queue_len"]).trim(), "500");
        }
    };
    let whole = fs::read_to_string(&file).unwrap();
    for path in [&file, &folder, &state] {
        chown(path, Some(65534), None).unwrap();
        refused("belongs to user 65534");
        chown(path, Some(0), None).unwrap();
        let before = mode(path);
        set(path, before | 0o002);
        refused("others may write to it");
        set(path, before);
    }
    let elsewhere = parent.join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    refused("is a symbolic link");
    fs::rename(&elsewhere, &file).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);
    fs::write(&elsewhere, "kept").unwrap();
    fs::remove_file(&lock).unwrap();
    symlink(&elsewhere, &lock).unwrap();
    refused("is a symbolic link");
    assert_eq!(fs::read(&elsewhere).unwrap(), b"kept");
    fs::remove_file(&lock).unwrap();
    assert_eq!(tune(&state, &["rollback"]).0, 0);
}

/// A process that may is named as the holder, and does not keep the watchdog from undoing.
#[test]
fn a_lock_that_is_held_keeps_the_guard_for_a_bound_only() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let asks = ["apply", "--netns", &ns.name, "--confirm", "1s", "nic.v0.txqueuelen=500"];
    assert_eq!(tune(state, &asks).0, 0);
    let lock = state.join("lock");
    let mut holder = Command::new("flock");
    let mut holder =
        holder.args(["-s", "-o", lock.to_str().unwrap(), "sleep", "60"]).spawn().unwrap();
    let held = |why: &str| {
        let (code, out, err) = tune(state, &["rollback", "--no-wait"]);
        assert!(code == 4 && err.contains(why), "{code} {out}{err}");
    };
    wait_for("the holder", || tune(state, &["rollback", "--no-wait"]).0 == 4);
    held(&format!("process {} is changing this host", holder.id()));
    let qlen = || ns.run("cat", &["/sys/class/net/v0/tx_queue_len"]).trim().to_owned();
    assert_eq!(qlen(), "500");
    let begun = Instant::now();
    wait_for("the watchdog", || qlen() == "1000");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    wait_for("its word", || {
        fs::read_to_string(state.join("journal/000001.jsonl")).unwrap().contains("rolled_back")
    });
    holder.kill().unwrap();
    holder.wait().unwrap();
    let (code, out, err) = tune(state, &["rollback"]);
    assert!(code == 0 && out.contains("No active changes"), "{out}{err}");
}

/// With no descriptor to spare, what cannot be looked at is not taken for absent.
#[test]
fn without_descriptors_nothing_is_said_to_be_absent() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let asks = ["apply", "--netns", &ns.name, "nic.v0.txqueuelen=500"];
    assert_eq!(tune(state.path(), &asks).0, 0);
    let folder = state.path().display().to_string();
    let mut refused = 0;
    for limit in 3..12 {
        for command in ["status", "log", "rollback --dry-run", "apply nic.v0.mtu=1400", "rollback"]
        {
            let line =
                format!("ulimit -n {limit}; exec {NETWRIGHT} tune {command} --state-dir {folder}");
            let out = ns.output("sh", &["-c", &line]);
            let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
            let (said, reported) = (text(&out.stdout), text(&out.stderr));
            let when = format!("{limit} descriptors, {command}: {:?} {said}{reported}", out.status);
            assert!(!said.contains("No active changes") && !said.contains("no change"), "{when}");
            refused += i32::from(reported.contains("EMFILE"));
            if command == "rollback" && out.status.success() {
                assert!(said.contains("Change 1 is rolled back"), "{when}");
                assert_eq!(ns.run("cat", &["/sys/class/net/v0/tx_queue_len"]).trim(), "1000");
                assert!(refused >= 3, "only {refused} were refused");
                return;
            }
            // What failed has not begun.
            let begun = state.path().join("journal/000002.jsonl").exists();
            assert_eq!(begun, command.starts_with("apply") && out.status.success(), "{when}");
            if begun {
                assert_eq!(tune(state.path(), &["rollback", "2"]).0, 0);
                fs::remove_file(state.path().join("journal/000002.jsonl")).unwrap();
            }
        }
    }
    panic!("rollback never went through");
}

/// Commands in the namespace, with the state folder a file system of its own.
fn on_its_own_file_system(ns: &Namespace, state: &Path, script: &str) -> String {
    let head = format!(
        "set -e; S={}; N='{NETWRIGHT} tune'; mount -t tmpfs -o mode=700 tmpfs $S; export NETWRIGHT_STATE=$S; \
         qlen() {{ cat /sys/class/net/v0/tx_queue_len; }}; ",
        state.display()
    );
    ns.run("sh", &["-c", &format!("{head}{script}")])
}

#[test]
fn a_guard_whose_journal_became_read_only_undoes_and_records_it_later() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let out = on_its_own_file_system(
        &ns,
        state.path(),
        "$N apply --confirm 2s nic.v0.txqueuelen=500 >$S/out; mount -o remount,ro $S; \
         for i in $(seq 100); do [ $(qlen) = 1000 ] && break; sleep 0.1; done; qlen; sleep 1.5; \
         ip link set v0 txqueuelen 700; mount -o remount,rw $S; \
         for i in $(seq 100); do grep -q rolled_back $S/journal/*1.jsonl && break; sleep 0.1; done; \
         qlen; $N log --json",
    );
    let (before, log) = out.split_at(out.find('{').unwrap());
    // Undone once, and what somebody set after it is left alone.
    assert_eq!(before.split_whitespace().collect::<Vec<_>>(), ["1000", "700"], "{out}");
    let log: serde_json::Value = serde_json::from_str(log).unwrap();
    assert_eq!(log["sets"][0]["state"], "rolled_back", "{out}");
    assert!(out.contains("it was not confirmed in time"), "{out}");
}

/// A watchdog that is stopped, beside one that has undone what it could not tell yet.
#[test]
fn a_confirmation_after_the_deadline_says_what_came_first() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let out = on_its_own_file_system(
        &ns,
        state.path(),
        "watchdog() { sed -n 's/.*\"armed\",\"pid\":\\([0-9]*\\).*/\\1/p' $S/journal/*$1.jsonl; }; \
         $N apply --confirm 1s nic.v0.txqueuelen=500 >$S/out; kill -STOP $(watchdog 1); sleep 1.2; \
         $N confirm; echo code $?; kill -CONT $(watchdog 1); \
         while [ -e /proc/$(watchdog 1) ]; do sleep 0.1; done; qlen; $N rollback; \
         $N apply --confirm 1s nic.v0.txqueuelen=500 >$S/out; mount -o remount,ro $S; \
         for i in $(seq 100); do [ $(qlen) = 1000 ] && break; sleep 0.1; done; \
         kill -STOP $(watchdog 2); mount -o remount,rw $S; $N confirm || echo code $?; \
         kill -CONT $(watchdog 2); while [ -e /proc/$(watchdog 2) ]; do sleep 0.1; done; \
         qlen; $N status",
    );
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept = "Change 1 is confirmed and stays; its time was over, and its watchdog had not begun to \
                undo it. code 0 500 Change 1 is rolled back";
    assert!(said.contains(kept), "{out}");
    let late = "Too late: change 2 was undone, and its journal was not reported: nic.v0.txqueuelen is \
                1000 again; `netwright tune rollback 2` closes it. code 1 1000 No active changes";
    assert!(said.contains(late), "{out}");
}

#[test]
fn a_read_only_journal_is_rolled_back_from_and_says_that_it_was_not_told() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let out = on_its_own_file_system(
        &ns,
        state.path(),
        "$N apply --no-confirm nic.v0.txqueuelen=500 >$S/out; mount -o remount,ro $S; \
         $N rollback || echo code $?; qlen; $N apply --no-confirm nic.v0.txqueuelen=600 2>&1 || \
         echo code $?; qlen; mount -o remount,rw $S; $N rollback; echo code $?",
    );
    assert!(out.contains("The journal could not be told"), "{out}");
    assert!(out.contains("the file system is read-only"), "{out}");
    assert_eq!(out.matches("\n1000\n").count(), 2, "{out}");
    assert!(out.trim_end().ends_with("code 0"), "{out}");
}

#[test]
fn what_has_no_limit_is_not_out_of_range() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let (code, out, err) = tune(state.path(), &["plan", "--netns", &ns.name, "nic.lo.mtu=65536"]);
    assert!(code == 0 && out.contains("NO CHANGE NEEDED"), "{code} {out}{err}");
}

#[test]
fn what_is_kept_and_not_in_force_is_told_and_so_is_a_file_that_was_not_there() {
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
        let note = "sysctl.net.ipv4.tcp_fin_timeout is 45 now, which somebody else set since";
        assert!(out.contains(note), "{out}");
    }
    ns.run("sysctl", &["-w", "net.ipv4.tcp_fin_timeout=30"]);
    let file = into.path().join("etc/sysctl.d/99-zz-netwright.conf");
    for dry in [&["--remove", "--dry-run"][..], &["--remove"]] {
        let _ = fs::remove_file(&file);
        let out = persist(dry);
        assert!(out.contains("was not there") && !out.contains("conf removed"), "{out}");
    }
    assert!(persist(&[]).contains("in force already"));
    assert!(persist(&["--remove"]).contains("99-zz-netwright.conf removed"));
    assert_eq!(tune(state, &["rollback"]).0, 0);
}

#[test]
fn what_is_kept_follows_a_renamed_interface_and_stays_when_it_is_gone() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let (state, into) = (state.path(), tempfile::tempdir().unwrap());
    let folder = into.path().to_str().unwrap();
    let args = ["apply", "--netns", &ns.name, "nic.v0.txqueuelen=500"];
    let (code, out, err) =
        tune(state, &[&args[..], &["sysctl.net.ipv4.conf.v0.rp_filter=2"]].concat());
    assert_eq!(code, 0, "{out}{err}");
    let persist = |more: &[&str]| {
        let (code, out, err) =
            tune(state, &[&["persist", "--into", folder, "--netns", &ns.name], more].concat());
        assert_eq!(code, 0, "{out}{err}");
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let link =
        |name: &str| into.path().join(format!("etc/systemd/network/00-netwright-{name}.link"));
    let settings = into.path().join("etc/sysctl.d/99-zz-netwright.conf");
    persist(&[]);
    assert!(link("v0").exists());

    ns.run("ip", &["link", "set", "v0", "name", "w0"]);
    let out = persist(&[]);
    assert!(out.contains("nic.w0.txqueuelen = 500") && out.contains("in force already"), "{out}");
    assert!(!link("v0").exists());
    let (file, lines) =
        (fs::read_to_string(link("w0")).unwrap(), fs::read_to_string(&settings).unwrap());
    assert!(file.contains("OriginalName=w0\n"), "{file}");
    assert!(lines.contains("net.ipv4.conf.w0.rp_filter = 2") && !lines.contains("v0"), "{lines}");
    ns.run("ip", &["link", "set", "w0", "txqueuelen", "400"]);
    assert!(persist(&[]).contains("nic.w0.txqueuelen is 400 now, which somebody else set"));

    ns.run("ip", &["link", "del", "w0"]);
    for successor in [false, true] {
        if successor {
            ns.run("ip", &["link", "add", "v0", "type", "veth"]);
        }
        let out = persist(&[]);
        for knob in ["nic.w0.txqueuelen", "sysctl.net.ipv4.conf.w0.rp_filter"] {
            assert!(out.contains(&format!("{knob} stays kept from before (")), "{out}");
        }
        assert_eq!(fs::read_to_string(link("w0")).unwrap(), file);
        assert_eq!(fs::read_to_string(&settings).unwrap(), lines);
    }
    persist(&["--remove"]);
    assert!(!link("w0").exists() && !settings.exists());
}

/// A host `v0` behind a switch port that carries 1,500 bytes, as the host at the other end does.
#[test]
fn an_mtu_that_the_path_does_not_carry_is_undone() {
    let (local, switch, peer) = (Namespace::new(), Namespace::new(), Namespace::new());
    let link = |a: &Namespace, x: &str, b: &Namespace, y: &str| {
        a.run("ip", &["link", "add", x, "type", "veth", "peer", "name", y, "netns", &b.name]);
    };
    link(&local, "v0", &switch, "p0");
    link(&peer, "w0", &switch, "p1");
    let up = "ip link add br0 type bridge; for p in p0 p1; do ip link set $p master br0 up; done; \
              ip link set p0 mtu 9000; ip link set br0 up";
    switch.run("sh", &["-c", up]);
    for (ns, nic, address) in [(&local, "v0", "10.9.0.1/24"), (&peer, "w0", "10.9.0.2/24")] {
        ns.run("ip", &["addr", "add", address, "dev", nic]);
        ns.run("ip", &["link", "set", nic, "up"]);
    }
    let mtu = || local.run("cat", &["/sys/class/net/v0/mtu"]).trim().to_owned();
    let state = tempfile::tempdir().unwrap();
    let tune = |args: &[&str]| {
        let ask = ["--netns", &local.name, "nic.v0.mtu=9000"];
        tune(state.path(), &[args, &ask].concat())
    };
    // Nobody is known, so nothing is said to be checked.
    for act in ["plan", "apply"] {
        let (code, out, err) = tune(&[act]);
        let said = (out + &err).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(code == 0 && said.contains("takes 9000 bytes is not checked"), "{act}: {said}");
    }
    assert_eq!(mtu(), "9000");
    assert_eq!(self::tune(state.path(), &["rollback"]).0, 0);

    // A neighbour is: it is asked, and does not get such packets.
    local.run("ping", &["-c", "1", "-W", "5", "10.9.0.2"]);
    let (code, out, err) = tune(&["plan"]);
    assert!(code == 0 && out.contains("10.9.0.2"), "{out}{err}");
    for args in [&["apply"][..], &["apply", "--peer", "10.9.0.2"]] {
        let (code, out, err) = tune(args);
        let reported = "packets of 9000 bytes do not get to 10.9.0.2 and back through v0";
        assert!(code == 4 && err.contains(reported), "{code} {out}{err}");
        assert_eq!(mtu(), "1500");
    }
    let (code, out, err) = tune(&["apply", "--peer", "10.9.0.77"]);
    assert!(code == 4 && err.contains("10.9.0.77 does not answer"), "{out}{err}");
    assert_eq!(mtu(), "1500");
    let (code, out, err) = tune(&["apply", "--i-understand"]);
    assert!(code == 0 && err.contains("do not get to 10.9.0.2"), "{out}{err}");
    assert_eq!(mtu(), "9000");
    assert_eq!(self::tune(state.path(), &["rollback"]).0, 0);

    // Both ends, and what is between.
    switch.run("ip", &["link", "set", "p1", "mtu", "9000"]);
    peer.run("ip", &["link", "set", "w0", "mtu", "9000"]);
    let (code, out, err) = tune(&["apply"]);
    assert!(code == 0 && !err.contains("do not get") && !err.contains("not checked"), "{out}{err}");
    assert_eq!(mtu(), "9000");
}
