//! Tests of interfaces that are renamed, removed, returned, or replaced by another one of the same
//! name.

use std::{fs, process::Command};

use super::{CHANGES, namespace, tune, wait_for};
use crate::support::{
    Namespace, run,
    traced::{self, End, Then},
};

#[test]
fn a_change_whose_namespace_is_gone_is_known_to_be_gone() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let name = ns.name.clone();
    assert_eq!(tune(state, &["apply", "--netns", &name, "nic.v0.mtu=1400"]).0, 0);
    drop(ns);
    // Another `netwright tune` that looks for its own may hold it open for a moment.
    wait_for("its end", || tune(state, &["status"]).1.contains("network namespace is gone"));
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
    assert!(code == 0 && out.contains("nic.v1.mtu (now nic.lan.7.mtu)"), "{code} {out}{err}");
    // A change of the new interface is no drift; a change of the old one is.
    ns.run("ip", &["link", "set", "v1", "mtu", "1300"]);
    assert_eq!(tune(state, &["status"]).0, 0);
    ns.run("ip", &["link", "set", "lan.7", "mtu", "1350"]);
    let (code, out, _) = tune(state, &["rollback", "--dry-run"]);
    assert!(code == 1 && out.contains("1350"), "{out}");
    ns.run("ip", &["link", "set", "lan.7", "mtu", "1400"]);
    let (_, out, _) = tune(state, &["rollback", "--dry-run"]);
    assert!(out.contains("nic.v1.mtu (now nic.lan.7.mtu) would be 1500 again"), "{out}");

    // A later change of the same interface under its new name must be rolled back first.
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

/// A veth with a peer that stays, and an interface without such a link to its earlier place.
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
        // It has another name there, and returns.
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

        // Rolled back there by the named command, it is closed.
        apply(&format!("{knob}={mtu}"));
        ns.run("ip", &["link", "set", name, "netns", &other.name, "name", "eth9"]);
        run("sh", &["-c", &line]);
        let (code, out, err) = tune(state, &["rollback"]);
        assert!(code == 0 && folded(out.clone()).contains("has its old value there"), "{out}{err}");
        let (code, out, _) = tune(state, &["status"]);
        assert!(code == 0 && out.contains("No active changes"), "{out}");
        other.run("ip", &["link", "set", "eth9", "netns", &ns.name, "name", name]);
    }
    // Its kernel setting starts anew there.
    apply("sysctl.net.ipv4.conf.v0.rp_filter=2");
    ns.run("ip", &["link", "set", "v0", "netns", &other.name]);
    let (code, out, err) = tune(state, &["rollback"]);
    assert!(code == 0 && folded(out.clone()).contains("setting is reset"), "{code} {out}{err}");
    other.run("ip", &["link", "set", "v0", "netns", &ns.name]);

    // Held by an open file alone the namespace is invisible, but the peer points to it.
    apply("nic.v0.mtu=1400");
    ns.run("ip", &["link", "set", "v0", "netns", &other.name]);
    let held = fs::File::open(format!("/run/netns/{}", other.name)).unwrap();
    run("ip", &["netns", "del", &other.name]);
    let (code, out, err) = tune(state, &["rollback"]);
    let reported = "v0, whose other end v1 is here, is in another network namespace";
    assert!(code == 1 && folded(out.clone()).contains(reported), "{code} {out}{err}");
    drop(held);
    // The kernel removes such a namespace with a delay.
    for _ in 0..100 {
        if !ns.output("ip", &["link", "show", "v1"]).status.success() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let (code, out, err) = tune(state, &["rollback"]);
    assert!(code == 0 && out.contains("No active changes"), "{code} {out}{err}");
}

/// Rolled back there by the given command, and back here, it needs no further rollback.
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

/// A new interface with the name and the index of the old one.
#[test]
fn an_interface_that_took_name_and_number_of_another_is_left_alone() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let number = ns.run("cat", &["/sys/class/net/v0/ifindex"]);
    let (code, out, err) = tune(state, &["apply", "--netns", &ns.name, "nic.v0.mtu=1400"]);
    assert_eq!(code, 0, "{out}{err}");
    // A manually set address does not make another interface.
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
fn what_is_gone_with_its_value_is_reported_before_and_after_and_ends_it() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
    let affinity = format!("process.{}.affinity=0", sleeper.id());
    // The process belongs to the whole host: not with --netns.
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
fn a_change_interrupted_is_not_completed_on_another_interface() {
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

/// An interface that returned from another namespace is down, and has no qdisc until it is up: this
/// is no external change.
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
            assert!(code == 0 && !out.contains("another program"), "{args:?}: {code} {out}{err}");
        }
        let (code, out, err) = tune(state, &["rollback"]);
        assert!(code == 0 && out.contains("No active changes"), "{out}{err}");
        let (code, out, err) = tune(state, &["status"]);
        assert_eq!(code, 0, "{out}{err}");
        ns.run("ip", &["link", "set", "v0", "up"]);
        assert_eq!(qdisc(), before);
    }
}

/// If its index is taken it gets another one, which it keeps when it returns; its values stay.
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
    // By the permanent address, and by an assigned one with the peer's index.
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
        let folded = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            code == 0 && folded.contains("setting was reset"),
            "{address:?}: {code} {out}{err}"
        );
        assert_eq!(values(), before, "{address:?}: {out}{err}");
        let (code, out, err) = tune(state.path(), &["status"]);
        assert!(code == 0 && out.contains("No active changes"), "{code} {out}{err}");

        // Another interface of the same name and address does not count.
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
    // A change made without the address is found by the interface's name.
    let mut old: serde_json::Value = serde_json::from_str(&make()).unwrap();
    assert!(old["changes"][0].as_object_mut().unwrap().remove("nic").is_some());
    fs::write(&plan, old.to_string()).unwrap();
    let (code, out, err) = tune(state, &["apply", "--netns", &ns.name, "--no-confirm", file]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(ns.run("cat", &["/sys/class/net/v0/tx_queue_len"]).trim(), "500");
}

#[test]
fn a_change_interrupted_before_a_step_does_not_make_it_on_another_interface() {
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
    assert!(persist(&[]).contains("nic.w0.txqueuelen is 400 now, set by another program"));

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
