//! Tests of MTUs of stacked and of connected interfaces.

use super::{namespace, tune};
use crate::support::Namespace;

#[test]
fn both_ends_of_a_veth_are_raised_by_one_plan() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let at = ["--netns", ns.name.as_str()];
    let (code, _, err) = tune(state, &[&["plan"][..], &at, &["nic.v0.mtu=9000"]].concat());
    assert!(code == 4 && err.contains("ask for nic.v1.mtu=9000 in the same plan"), "{code} {err}");
    // A refused end carries nothing.
    let bad = ["nic.v0.mtu=9000", "nic.v1.mtu=70000"];
    let (code, out, _) = tune(state, &[&["plan"][..], &at, &bad].concat());
    assert!(code == 2 && out.contains("in the same plan"), "{code} {out}");
    // Said twice, it is requested once.
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

/// A macvlan on a bridge with one end of a veth: each plan is applied, and rolled back completely.
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
    // A port alone changes the interfaces above it, and all are restored.
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
    // Without a known neighbour the plan promises no check.
    for act in ["plan", "apply"] {
        let (code, out, err) = tune(&[act]);
        let said = (out + &err).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(code == 0 && said.contains("takes 9000 bytes is not checked"), "{act}: {said}");
    }
    assert_eq!(mtu(), "9000");
    assert_eq!(self::tune(state.path(), &["rollback"]).0, 0);

    // With a known neighbour it is probed; such packets do not arrive.
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

    // Both ends, and the link between them.
    switch.run("ip", &["link", "set", "p1", "mtu", "9000"]);
    peer.run("ip", &["link", "set", "w0", "mtu", "9000"]);
    let (code, out, err) = tune(&["apply"]);
    assert!(code == 0 && !err.contains("do not get") && !err.contains("not checked"), "{out}{err}");
    assert_eq!(mtu(), "9000");
}
