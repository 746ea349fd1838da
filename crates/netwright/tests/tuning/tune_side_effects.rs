//! Tests of side effects: a value that changes with another one is restored, in order, and named
//! where another process set it since. In namespaces of the tests, with the kernel's own couplings.

use std::{path::Path, process::Command};

use crate::support::{
    NETWRIGHT, Namespace,
    traced::{self, End, Then},
};
use serde_json::Value;

fn tune(state: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(NETWRIGHT);
    command.arg("tune").args(args).env("NETWRIGHT_STATE", state).env_remove("SSH_CONNECTION");
    let out = command.output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (out.status.code().unwrap_or(-1), text(&out.stdout), text(&out.stderr))
}

/// A namespace with a pair of interfaces of four queues each.
fn queues() -> Namespace {
    let ns = Namespace::new();
    let pair = ["v0", "numrxqueues", "4", "numtxqueues", "4", "type", "veth", "peer", "name"];
    let peer = ["v1", "numrxqueues", "4", "numtxqueues", "4"];
    ns.run("ip", &[&["link", "add"], &pair[..], &peer].concat());
    ns
}

/// One value in two units, and a switch that sets all; also where the apply fails afterwards.
#[test]
fn what_a_setting_moves_is_put_back_byte_for_byte() {
    let (ns, state) = (queues(), tempfile::tempdir().unwrap());
    let state = state.path();
    let odd = "cd /proc/sys/net; echo 510 > ipv6/route/gc_min_interval_ms; for f in 4 6; do \
               echo 30110 > ipv$f/neigh/v0/base_reachable_time_ms; \
               echo 1110 > ipv$f/neigh/v0/retrans_time_ms; \
               echo 212993 > ipv$f/neigh/v0/unres_qlen_bytes; done; \
               echo 1 > ipv6/conf/v0/ignore_routes_with_linkdown";
    ns.run("sh", &["-c", odd]);
    let values = || {
        let script = "cd /proc/sys/net; grep . ipv6/route/gc* ipv?/neigh/v0/* \
                      ipv6/conf/*/ignore_routes_with_linkdown ipv4/conf/*/rp_filter";
        ns.run("sh", &["-c", script])
    };
    let before = values();
    let fails = "sysctl.net.ipv6.route.gc_interval=2147483647";
    for ask in [
        "sysctl.net.ipv6.route.gc_min_interval=2",
        "sysctl.net.ipv4.neigh.v0.base_reachable_time=40",
        "sysctl.net.ipv6.neigh.v0.base_reachable_time=40",
        "sysctl.net.ipv4.neigh.v0.retrans_time=300",
        "sysctl.net.ipv6.neigh.v0.retrans_time=300",
        "sysctl.net.ipv4.neigh.v0.unres_qlen=50",
        "sysctl.net.ipv6.neigh.v0.unres_qlen=50",
        "sysctl.net.ipv6.conf.all.ignore_routes_with_linkdown=1",
        "sysctl.net.ipv4.conf.default.rp_filter=2",
    ] {
        let (code, said, reported) = tune(state, &["apply", "--netns", &ns.name, ask]);
        assert!(code == 0 && values() != before, "{ask}: {said}{reported}");
        let (code, said, reported) = tune(state, &["rollback"]);
        assert_eq!(code, 0, "{ask}: {said}{reported}");
        assert_eq!(values(), before, "{ask}");
        let (code, said, reported) = tune(state, &["apply", "--netns", &ns.name, ask, fails]);
        assert!(code == 4 && reported.contains("gc_interval"), "{ask}: {code} {said}{reported}");
        assert_eq!(values(), before, "{ask} and one that fails");
    }
}

/// Forwarding and MTU change values that the later change sets; the later change's channels reset
/// values of the earlier one.
#[test]
fn what_a_later_change_moved_as_a_side_effect_is_rolled_back_first() {
    let ns = queues();
    let values = || {
        let script = "cd /proc/sys/net; cat ipv4/ip_forward ipv4/conf/*/forwarding \
                      ipv6/conf/v0/mtu /sys/class/net/v0/mtu /sys/class/net/v0/queues/*/rps_cpus";
        ns.run("sh", &["-c", script])
    };
    let before = values();
    for (first, second) in [
        ("sysctl.net.ipv4.ip_forward=1", "sysctl.net/ipv4/conf/v0/forwarding=0"),
        ("sysctl.net.ipv4.conf.v0.forwarding=1", "sysctl.net.ipv4.ip_forward=1"),
        ("nic.v0.queue.rx-0.rps_cpus=3", "nic.v0.channels=rx 2 tx 2"),
        ("nic.v0.mtu=1400", "sysctl.net.ipv6.conf.v0.mtu=1300"),
    ] {
        let state = tempfile::tempdir().unwrap();
        for one in [first, second] {
            let (code, said, reported) = tune(state.path(), &["apply", "--netns", &ns.name, one]);
            assert_eq!(code, 0, "{one}: {said}{reported}");
        }
        let between = values();
        let (code, said, reported) = tune(state.path(), &["rollback", "1"]);
        assert!(
            code == 4 && reported.contains("roll that back first"),
            "{first}: {said}{reported}"
        );
        assert_eq!(values(), between, "{first}");
        for id in ["2", "1"] {
            let (code, said, reported) = tune(state.path(), &["rollback", id]);
            assert_eq!(code, 0, "{first}, {id}: {said}{reported}");
        }
        assert_eq!(values(), before, "{first}");
    }
}

/// Settings of one plan that affect each other: all of them as requested, or none.
#[test]
fn what_one_plan_moves_along_ends_as_asked_or_is_refused_or_undone() {
    let ns = queues();
    let values = || {
        let script = "cd /proc/sys/net; grep . ipv4/ip_forward ipv4/conf/*/forwarding \
                      ipv4/conf/*/rp_filter ipv4/neigh/v0/unres_qlen* ipv6/conf/v0/mtu /sys/class/net/v0/mtu";
        ns.run("sh", &["-c", script])
    };
    let (before, state) = (values(), tempfile::tempdir().unwrap());
    let apply =
        |asks: &[&str]| tune(state.path(), &[&["apply", "--netns", &ns.name], asks].concat());
    let forward = "sysctl.net.ipv4.ip_forward=1";
    for (asks, set) in [
        (
            ["sysctl.net.ipv4.conf.default.forwarding=0", "sysctl.net.ipv4.conf.all.forwarding=1"],
            ["/default/forwarding:0", "/all/forwarding:1"],
        ),
        (["sysctl.net.ipv6.conf.v0.mtu=1350", "nic.v0.mtu=1400"], ["/v0/mtu:1350", "/v0/mtu:1400"]),
        (
            ["sysctl.net.ipv4.conf.v0.rp_filter=1", "sysctl.net.ipv4.conf.default.rp_filter=2"],
            ["/v0/rp_filter:1", "/default/rp_filter:2"],
        ),
    ] {
        // A value that does not hold before is no side effect.
        let one = asks[0].contains("default.forwarding");
        if one {
            ns.run("sysctl", &["-qw", "net.ipv4.conf.default.forwarding=1"]);
        }
        let (code, out, err) = apply(&asks);
        assert_eq!(code, 0, "{asks:?}: {out}{err}");
        let now = values();
        assert!(set.iter().all(|v| now.contains(v)), "{asks:?}: {now}");
        let (code, out, err) = tune(state.path(), &["rollback"]);
        assert_eq!(code, 0, "{asks:?}: {out}{err}");
        if one {
            ns.run("sysctl", &["-qw", "net.ipv4.conf.default.forwarding=0"]);
        }
        assert_eq!(values(), before, "{asks:?}");
    }
    for asks in [
        ["sysctl.net.ipv4.conf.all.forwarding=0", forward],
        [
            "sysctl.net.ipv4.neigh.v0.unres_qlen_bytes=80003",
            "sysctl.net.ipv4.neigh.v0.unres_qlen=50",
        ],
    ] {
        let (code, out, err) = apply(&asks);
        assert!(code == 2 && err.contains("ask for one of them"), "{asks:?}: {code} {out}{err}");
        assert_eq!(values(), before, "{asks:?}");
    }
    // It holds already, and is then changed as a side effect.
    let (code, out, err) = apply(&[forward, "sysctl.net.ipv4.conf.v0.forwarding=0"]);
    let why = "sysctl.net.ipv4.conf.v0.forwarding was to be 0 and is 1 after step 1 of 1, \
               sysctl.net.ipv4.ip_forward=1, which moves it along: apply it by itself afterwards";
    assert!(code == 4 && err.contains(why), "{code} {out}{err}");
    assert_eq!(values(), before);
}

/// The effects of a write of the interface's file, and of a driver that recreates its NAPIs, on the
/// values of single NAPIs.
#[test]
fn each_napi_gets_its_own_values_back() {
    let (ns, own) = (queues(), tempfile::tempdir().unwrap());
    ns.run("sh", &["-c", "ip link set v0 up; ip link set v1 up; ethtool -K v0 gro on"]);
    let napis = || {
        let facts = ns.netwright_json(&["inspect", "--json"]);
        let nics = facts["nics"].as_array().unwrap();
        let nic = nics.iter().find(|n| n["name"] == "v0").unwrap().clone();
        let of = |n: &Value| {
            ["defer_hard_irqs", "gro_flush_timeout_ns", "threaded", "irq_suspend_timeout_ns"]
                .map(|key| n[key].clone())
        };
        nic["napis"].as_array().expect("NAPIs, since Linux 6.8").iter().map(of).collect::<Vec<_>>()
    };
    let asks = [
        "nic.v0.napi.gro_flush_timeout.0=11111",
        "nic.v0.napi.defer_hard_irqs.1=3",
        "nic.v0.napi.irq_suspend_timeout.2=777us",
        "nic.v0.napi.threaded.3=on",
    ];
    let (code, said, reported) =
        tune(own.path(), &[&["apply", "--netns", &ns.name], &asks[..]].concat());
    assert_eq!(code, 0, "needs Linux 6.17: {said}{reported}");
    let before = napis();
    assert!(before.len() == 4 && before[0][1] == 11111 && before[2][3] == 777_000, "{before:?}");
    for (ask, sweeps) in [
        (
            "nic.v0.gro_flush_timeout=20us",
            "over the value of its own that 1 of them has (0: 11111)",
        ),
        ("nic.v0.napi_defer_hard_irqs=2", "over the value of its own that 1 of them has (1: 3)"),
        ("nic.v0.threaded=on", "over the value of its own that 1 of them has (3: 1)"),
        ("nic.v0.channels=rx 2 tx 2", ""),
        ("nic.v0.features.rx-gro=off", ""),
    ] {
        let state = tempfile::tempdir().unwrap();
        let (code, plan, reported) =
            tune(state.path(), &["plan", "--json", "--netns", &ns.name, ask]);
        assert!(code == 0 && plan.contains(sweeps), "{ask}: {plan}{reported}");
        let (code, said, reported) = tune(state.path(), &["apply", "--netns", &ns.name, ask]);
        assert!(code == 0 && napis() != before, "{ask}: {said}{reported}");
        let (code, said, reported) = tune(state.path(), &["rollback"]);
        assert_eq!(code, 0, "{ask}: {said}{reported}");
        assert_eq!(napis(), before, "{ask}");
        // Values that no fact has are read as well.
        let (code, said, reported) = tune(own.path(), &["status"]);
        assert_eq!(code, 0, "{ask}: {said}{reported}");
    }
    // A value set by another process after the side effect is reported.
    let state = tempfile::tempdir().unwrap();
    let ask = "nic.v0.gro_flush_timeout=20us";
    assert_eq!(tune(state.path(), &["apply", "--netns", &ns.name, ask]).0, 0);
    let hand = "nic.v0.napi.gro_flush_timeout.1=33333";
    assert_eq!(tune(own.path(), &["apply", "--netns", &ns.name, hand]).0, 0);
    let (code, said, reported) = tune(state.path(), &["status", "--json"]);
    let beside = changed_beside(&said, "nic.v0.gro_flush_timeout");
    assert!(
        code == 1 && beside.is_some_and(|knob| knob.contains("napi.gro_flush_timeout.1")),
        "{said}{reported}"
    );
}

/// A link that went down lost its NAPIs. They return with the values of the interface's files, so
/// only a NAPI's own value must be restored.
#[test]
fn a_link_that_is_down_has_no_napi_to_put_back() {
    let ns = queues();
    ns.run("sh", &["-c", "ip link set v0 up; ip link set v1 up; ethtool -K v0 gro on"]);
    let link = |to: &str| drop(ns.run("ip", &["link", "set", "v0", to]));
    let napis = || {
        let facts = ns.netwright_json(&["inspect", "--json"]);
        let nics = facts["nics"].as_array().unwrap();
        let nic = nics.iter().find(|n| n["name"] == "v0").unwrap();
        let keys = ["defer_hard_irqs", "gro_flush_timeout_ns", "threaded"];
        let of = |n: &Value| keys.map(|key| n[key].to_string()).join(" ");
        nic["napis"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    ns.run("sh", &["-c", "echo 7000 > /sys/class/net/v0/gro_flush_timeout"]);
    let before = napis();
    assert!(before.len() == 4 && before[0].contains("7000"), "{before:?}");
    for ask in [
        "nic.v0.gro_flush_timeout=20us",
        "nic.v0.napi_defer_hard_irqs=2",
        "nic.v0.channels=rx 2 tx 2",
        "nic.v0.features.rx-gro=off",
        "nic.v0.mtu=1400",
    ] {
        let state = tempfile::tempdir().unwrap();
        let (code, said, reported) = tune(state.path(), &["apply", "--netns", &ns.name, ask]);
        assert_eq!(code, 0, "{ask}: {said}{reported}");
        link("down");
        for args in [&["rollback", "--dry-run"][..], &["rollback"], &["status"]] {
            let (code, said, reported) = tune(state.path(), args);
            assert!(code == 0 && !said.contains("NAPI"), "{ask} {args:?}: {code} {said}{reported}");
        }
        link("up");
        assert_eq!(napis(), before, "{ask}");
    }
    // Values that the kernel cannot write now are reported, and restored once the link is up.
    let (state, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let one = "nic.v0.napi.gro_flush_timeout.1=33333";
    assert_eq!(tune(own.path(), &["apply", "--netns", &ns.name, one]).0, 0);
    let before = napis();
    let asks =
        ["apply", "--netns", &ns.name, "nic.v0.gro_flush_timeout=20us", "nic.v0.threaded=on"];
    assert_eq!(tune(state.path(), &asks).0, 0);
    link("down");
    let (code, said, reported) = tune(state.path(), &["rollback"]);
    let left = said.matches("no NAPI now").count();
    assert!(
        code == 1 && left >= 2 && said.contains("napi.gro_flush_timeout.1"),
        "{said}{reported}"
    );
    link("up");
    let (code, said, reported) = tune(state.path(), &["rollback"]);
    assert!(code == 0 && napis() == before, "{code} {said}{reported} {:?}", napis());
}

/// A value that a change affected, set by hand since.
struct CoupledValue {
    asks: &'static [&'static str],
    /// The knob that affected it, and the value's knob.
    knob: &'static str,
    beside: &'static str,
    file: &'static str,
    before: &'static str,
    by_hand: &'static str,
}

const BESIDE: [CoupledValue; 4] = [
    // Restoring the interface's MTU changes IPv6's again: the value that must stay is set once
    // more.
    CoupledValue {
        asks: &["nic.v0.mtu=1400"],
        knob: "nic.v0.mtu",
        beside: "sysctl.net.ipv6.conf.v0.mtu",
        file: "/proc/sys/net/ipv6/conf/v0/mtu",
        before: "1500",
        by_hand: "1300",
    },
    CoupledValue {
        asks: &["nic.v0.channels=rx 2 tx 2"],
        knob: "nic.v0.channels",
        beside: "nic.v0.queue.rx-0.rps_cpus",
        file: "/sys/class/net/v0/queues/rx-0/rps_cpus",
        before: "0",
        by_hand: "3",
    },
    CoupledValue {
        asks: &["sysctl.net.ipv4.ip_forward=1"],
        knob: "sysctl.net.ipv4.ip_forward",
        beside: "sysctl.net.ipv4.conf.v0.forwarding",
        file: "/proc/sys/net/ipv4/conf/v0/forwarding",
        before: "1",
        by_hand: "0",
    },
    // Both changes affect it: the last one counts, and rolling back either affects it again.
    CoupledValue {
        asks: &["sysctl.net.ipv4.ip_forward=1", "sysctl.net.ipv4.conf.default.forwarding=1"],
        knob: "sysctl.net.ipv4.conf.default.forwarding",
        beside: "sysctl.net.ipv4.conf.v0.forwarding",
        file: "/proc/sys/net/ipv4/conf/v0/forwarding",
        before: "1",
        by_hand: "0",
    },
];

#[test]
fn what_somebody_set_beside_a_change_is_named_and_overwritten_or_left() {
    for case in &BESIDE {
        let ns = queues();
        let set = |value: &str| ns.run("sh", &["-c", &format!("echo {value} > {}", case.file)]);
        set(case.before);
        let now = || ns.run("cat", &[case.file]).trim().to_owned();
        let before = now();
        let print = || {
            let files = "/proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/conf/*/* \
                         /sys/class/net/v0/queues/*/rps_cpus";
            let script = format!("grep . {files} | grep -v '^{}:'", case.file);
            ns.run("sh", &["-c", &script])
        };
        let rest = print();
        for keeps in [false, true] {
            let state = tempfile::tempdir().unwrap();
            let state = state.path();
            let asks = [&["apply", "--netns", &ns.name], case.asks].concat();
            let (code, said, reported) = tune(state, &asks);
            assert_eq!(code, 0, "{}: {said}{reported}", case.knob);
            let (code, out, err) = tune(state, &["status"]);
            assert!(code == 0 && !out.contains("(beside"), "{out}{err}");
            let (_, out, _) = tune(state, &["rollback", "--dry-run", "--json"]);
            let reported: Value = serde_json::from_str(&out).unwrap();
            assert_eq!(reported["drifted"], serde_json::json!([]), "nobody set anything yet");

            set(case.by_hand);
            let found = now();
            let (code, out, err) = tune(state, &["status", "--json"]);
            let beside = changed_beside(&out, case.knob);
            assert!(code == 1 && beside.is_some_and(|k| k.contains(case.beside)), "{out}{err}");

            let mut args = vec!["rollback", "--json", "--dry-run"];
            args.extend((!keeps).then_some("--force"));
            for dry_run in [true, false] {
                if !dry_run {
                    args.retain(|a| *a != "--dry-run");
                }
                let (code, out, err) = tune(state, &args);
                let reported: Value = serde_json::from_str(&out).unwrap();
                let [drift] = reported["drifted"].as_array().unwrap().as_slice() else {
                    panic!("{}: {out}{err}", case.knob)
                };
                assert_eq!(code, i32::from(keeps), "{out}{err}");
                assert!(
                    drift["knob"] == case.beside
                        && drift["beside"] == case.knob
                        && drift["before"] == *before
                        && drift["found"] == *found
                        && drift["kept"] == keeps,
                    "{drift}"
                );
                assert!(reported["notes"].to_string().contains(case.beside), "{out}");
                assert_eq!(now(), if dry_run || keeps { &found } else { &before }[..], "{args:?}");
            }
            assert_eq!(print(), rest, "{}: all else", case.knob);
            let (_, log, _) = tune(state, &["log"]);
            let reported = if keeps { "was left" } else { "was overwritten" };
            let line = format!("{}: {found}, set by another program, {reported}", case.beside);
            let flat = log.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(&line), "no {line:?} in {log}");
            set(case.before);
        }
    }
}

#[test]
fn killed_at_every_write_what_is_to_stay_beside_a_change_stays() {
    let ns = queues();
    let values = || {
        let script = "cat /sys/class/net/v0/mtu /proc/sys/net/ipv6/conf/v0/mtu";
        ns.run("sh", &["-c", script]).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mut points = 0;
    loop {
        let state = tempfile::tempdir().unwrap();
        let asks = ["apply", "--netns", &ns.name, "nic.v0.mtu=1400"];
        assert_eq!(tune(state.path(), &asks).0, 0);
        ns.run("sh", &["-c", "echo 1300 > /proc/sys/net/ipv6/conf/v0/mtu"]);
        assert_eq!(values(), "1400 1300");
        let at = points + 1;
        let end = traced::tune(state.path(), &["rollback"], &mut |n| {
            if n == at { Then::Kill } else { Then::GoOn }
        });
        let (code, out, err) = tune(state.path(), &["rollback"]);
        // It was closed before, or is closed now: the remaining values are reported either way.
        let ended = out.contains("No active changes") || code == 1;
        assert!(ended && values() == "1500 1300", "write {at}: {} {out}{err}", values());
        ns.run("sh", &["-c", "echo 1500 > /proc/sys/net/ipv6/conf/v0/mtu"]);
        if end != End::Killed {
            break;
        }
        points = at;
    }
    // The journal's lines, and both values.
    assert!(points >= 6, "only {points} points");
}

/// The coupled knob that another process set since, in a status document.
fn changed_beside(status: &str, knob: &str) -> Option<String> {
    let status: Value = serde_json::from_str(status).ok()?;
    let mut values = status["values"].as_array()?.iter();
    let found = values.find(|v| v["beside"] == knob && v["drift"]["kind"] == "changed")?;
    Some(found["knob"].as_str()?.to_owned())
}
