//! Tests of routes' metrics, set and put back, and compared with `ip route show`. In namespaces of the
//! tests.

use std::{path::Path, process::Command};

use crate::support::{NETWRIGHT, Namespace, traced, tuned::on_a_host};

fn tune(state: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(NETWRIGHT);
    command.arg("tune").args(args).env("NETWRIGHT_STATE", state).env_remove("SSH_CONNECTION");
    let out = command.output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (out.status.code().unwrap_or(-1), text(&out.stdout), text(&out.stderr))
}

/// A namespace with routes of each kind over two interfaces.
fn routed() -> Namespace {
    let ns = Namespace::new();
    let script = "ip link add d0 type veth peer e0 && ip link add d1 type veth peer e1 && for d in d0 d1 e0 e1; do ip link set $d addrgenmode none; done && ip link set e0 up && ip link set e1 up && ip link set d0 up && \
         ip link set d1 up && ip addr add 10.1.0.1/24 dev d0 && ip addr add 10.2.0.1/24 dev d1 && \
         ip addr add 2001:db8:1::1/64 dev d0 nodad && \
         ip route add default via 10.1.0.2 src 10.1.0.1 metric 100 advmss 1300 && \
         ip route add 10.8.0.0/16 via 10.1.0.2 metric 5 && \
         ip route add 10.8.0.0/16 via 10.2.0.2 metric 7 initcwnd 33 && \
         ip route add 10.9.0.0/16 nexthop via 10.1.0.2 weight 1 nexthop via 10.2.0.2 weight 3 && \
         ip route add 10.9.1.0/24 via 10.77.0.1 dev d1 onlink proto static && \
         ip route add 10.10.0.0/16 via 10.1.0.2 table 77 && \
         ip -6 route add 2001:db8:2::/48 via 2001:db8:1::2 metric 300 pref high && \
         ip nexthop add id 5 via 10.1.0.2 dev d0 && ip route add 10.11.0.0/16 nhid 5";
    ns.run("sh", &["-c", script]);
    ns
}

fn shown(ns: &Namespace) -> String {
    ns.run("sh", &["-c", "ip route show; ip route show table 77; ip -6 route show"])
}

#[test]
fn a_metric_is_set_as_ip_route_shows_and_the_rest_of_the_route_stays() {
    let (ns, state) = (routed(), tempfile::tempdir().unwrap());
    let before = shown(&ns);
    for (ask, line) in [
        (
            "route.default.initcwnd=20",
            "default via 10.1.0.2 dev d0 src 10.1.0.1 metric 100 initcwnd 20 advmss 1300",
        ),
        (
            "route.0.0.0.0/0@100.rto_min=60ms",
            "default via 10.1.0.2 dev d0 src 10.1.0.1 metric 100 rto_min lock 60ms advmss 1300",
        ),
        ("route.10.8.0.0/16@7.initcwnd=44", "10.8.0.0/16 via 10.2.0.2 dev d1 metric 7 initcwnd 44"),
        ("route.10.8.0.0/16@7.initcwnd=none", "10.8.0.0/16 via 10.2.0.2 dev d1 metric 7"),
        ("route.10.8.0.0/16@5.initrwnd=30", "10.8.0.0/16 via 10.1.0.2 dev d0 metric 5 initrwnd 30"),
        (
            "route.10.9.1.0/24.congctl=reno",
            "10.9.1.0/24 via 10.77.0.1 dev d1 proto static onlink congctl reno",
        ),
        (
            "route.10.1.0.0/24.initcwnd=11",
            "10.1.0.0/24 dev d0 proto kernel scope link src 10.1.0.1 initcwnd 11",
        ),
        (
            "route.2001:db8:2::/48.initcwnd=12",
            "2001:db8:2::/48 via 2001:db8:1::2 dev d0 metric 300 initcwnd 12 pref high",
        ),
    ] {
        let (code, out, err) = tune(state.path(), &["apply", "--netns", &ns.name, ask]);
        assert_eq!(code, 0, "{ask}: {out}{err}");
        let now = shown(&ns);
        let words = |l: &str| {
            let mut all: Vec<String> = l.split_whitespace().map(str::to_owned).collect();
            all.sort();
            all
        };
        assert!(now.lines().any(|l| words(l) == words(line)), "{ask}: {line} is not in {now}");
        assert_eq!(now.lines().count(), before.lines().count(), "{ask}: {now}");
        let (code, out, err) = tune(state.path(), &["status"]);
        assert_eq!(code, 0, "{ask}: {out}{err}");
        let (code, out, err) = tune(state.path(), &["rollback"]);
        assert_eq!(code, 0, "{ask}: {out}{err}");
        assert_eq!(shown(&ns), before, "{ask}");
    }
    // Both next hops of one route stay.
    let ask = ["apply", "--netns", &ns.name, "route.10.9.0.0/16.initcwnd=15"];
    assert_eq!(tune(state.path(), &ask).0, 0);
    let hops = ns.run("ip", &["route", "show", "10.9.0.0/16"]);
    assert!(hops.contains("initcwnd 15") && hops.contains("10.2.0.2 dev d1 weight 3"), "{hops}");
    assert_eq!(tune(state.path(), &["rollback"]).0, 0);
    assert_eq!(shown(&ns), before);
}

/// The kernel uses the value: a connection's own first window (`TCP_INFO`) follows the route.
#[test]
fn a_connection_starts_with_the_window_of_its_route() {
    let (client, server) = (Namespace::new(), Namespace::new());
    let state = tempfile::tempdir().unwrap();
    client.run("ip", &["link", "add", "c0", "type", "veth", "peer", "c1", "netns", &server.name]);
    client.run("sh", &["-c", "ip addr add 10.9.0.1/24 dev c0; ip link set c0 up"]);
    server.run("sh", &["-c", "ip addr add 10.9.0.2/24 dev c1; ip link set c1 up"]);
    let listen = "import socket,time;s=socket.create_server(('10.9.0.2',9099));print(1,flush=True);time.sleep(600)";
    let mut listener = Command::new("ip")
        .args(["netns", "exec", &server.name, "python3", "-c", listen])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0];
    std::io::Read::read_exact(listener.stdout.as_mut().unwrap(), &mut ready).unwrap();
    // `struct tcp_info`: tcpi_snd_cwnd is its word at byte 80.
    let connect = "import socket;c=socket.create_connection(('10.9.0.2',9099));\
         print(int.from_bytes(c.getsockopt(6,11,104)[80:84],'little'))";
    let window = || client.run("python3", &["-c", connect]).trim().to_owned();
    assert_eq!(window(), "10");
    let ask = ["apply", "--netns", &client.name, "route.10.9.0.0/24.initcwnd=20"];
    let (code, out, err) = tune(state.path(), &ask);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(window(), "20");
    assert_eq!(tune(state.path(), &["rollback"]).0, 0);
    assert_eq!(window(), "10");
    listener.kill().unwrap();
    listener.wait().unwrap();
}

#[test]
fn what_a_change_would_lose_or_mistake_is_refused_and_nothing_is_written() {
    let (ns, state) = (routed(), tempfile::tempdir().unwrap());
    let before = shown(&ns);
    for (ask, code, why) in [
        (
            "route.10.8.0.0/16.initcwnd=20",
            2,
            "of the metrics 5, 7; name one: route.10.8.0.0/16@5.initcwnd",
        ),
        ("route.10.8.0.0/16@6.initcwnd=20", 4, "no such route in the main table"),
        ("route.10.10.0.0/16.initcwnd=20", 4, "no such route in the main table"),
        ("route.10.11.0.0/16.initcwnd=20", 4, "nexthop object"),
        ("route.2001:db8:1::/64.initcwnd=20", 4, "the kernel made it with an address"),
        ("route.default.initcwnd=0", 2, "out of range: 1 to 1000 segments"),
        ("route.default.rto_min=20ms", 1, "delay its acknowledgement for 40 ms"),
        ("route.default.rto_min=1.5ms", 2, "no whole number of milliseconds"),
        ("route.default.congctl=no such", 2, "no name of a congestion control"),
        ("route.default.congctl=nonesuch", 4, "has no congestion control nonesuch"),
        ("route.nowhere.initcwnd=20", 2, "route.nowhere.initcwnd"),
    ] {
        let (is, out, err) = tune(state.path(), &["apply", "--netns", &ns.name, ask]);
        assert!(is == code && (err.clone() + &out).contains(why), "{ask}: {is} {out}{err}");
        assert_eq!(shown(&ns), before, "{ask}");
    }
}

/// A second route to the same destination, as a VPN or another uplink adds it.
#[test]
fn a_route_is_put_back_though_another_one_to_its_destination_has_come() {
    let (ns, state) = (routed(), tempfile::tempdir().unwrap());
    for (ask, other) in [
        ("route.default.initcwnd=20", "default via 10.2.0.2 metric 50 initcwnd 44"),
        ("route.10.9.1.0/24.initcwnd=21", "10.9.1.0/24 via 10.2.0.2 metric 700"),
    ] {
        let other: Vec<&str> = other.split(' ').collect();
        let ip = |verb: &str| ns.run("ip", &[&["route", verb], &other[..]].concat());
        let before = shown(&ns);
        let (code, out, err) = tune(state.path(), &["apply", "--netns", &ns.name, ask]);
        assert_eq!(code, 0, "{ask}: {out}{err}");
        ip("add");
        let (code, out, err) = tune(state.path(), &["status"]);
        assert_eq!(code, 0, "{ask}: {out}{err}");
        let (code, out, err) = tune(state.path(), &["rollback"]);
        assert_eq!(code, 0, "{ask}: {out}{err}");
        ip("del");
        assert_eq!(shown(&ns), before, "{ask}");
    }
}

/// A route that was replaced meanwhile keeps what replaced it; one that is gone is named.
#[test]
fn a_route_of_somebody_else_is_left_alone() {
    let (ns, state) = (routed(), tempfile::tempdir().unwrap());
    let apply = |ask: &str| {
        let (code, out, err) = tune(state.path(), &["apply", "--netns", &ns.name, ask]);
        assert_eq!(code, 0, "{ask}: {out}{err}");
    };
    apply("route.default.initcwnd=20");
    ns.run(
        "ip",
        &["route", "replace", "default", "via", "10.1.0.9", "metric", "100", "initcwnd", "50"],
    );
    let (code, out, err) = tune(state.path(), &["rollback"]);
    assert!(
        code == 1 && out.contains("is 50, neither ours (20) nor the old value (none)"),
        "{code} {out}{err}"
    );
    let now = ns.run("ip", &["route", "show", "default"]);
    assert!(now.contains("via 10.1.0.9") && now.contains("initcwnd 50"), "{now}");
    apply("route.10.9.1.0/24.initcwnd=21");
    ns.run("ip", &["route", "del", "10.9.1.0/24"]);
    let (_, out, err) = tune(state.path(), &["rollback"]);
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("the route is gone"), "{out}{err}");
    assert_eq!(ns.run("ip", &["route", "show", "10.9.1.0/24"]), "");
}

#[test]
fn killed_at_every_write_the_routes_are_put_back() {
    on_a_host(|host| {
        let sh = |script: &str| crate::support::run("sh", &["-c", script]);
        sh(
            "ip route add default via 10.9.0.2 metric 9 && ip route add 10.8.0.0/16 via 10.9.0.2 initcwnd 33",
        );
        let before = sh("ip route show");
        let args = [
            "apply",
            "--no-confirm",
            "route.default.rto_min=60ms",
            "route.10.8.0.0/16.initcwnd=none",
        ];
        let (mut points, mut disturbed) = (0, 0);
        loop {
            let state = tempfile::tempdir().unwrap();
            let at = points + 1;
            let end = traced::tune(state.path(), &args, &mut |n| {
                if n == at { traced::Then::Kill } else { traced::Then::GoOn }
            });
            disturbed += usize::from(sh("ip route show") != before);
            let (code, out, err) = host.tune_in(state.path(), &["rollback"]);
            assert_eq!(code, 0, "killed at write {at}: {out}{err}");
            assert_eq!(sh("ip route show"), before, "killed at write {at}");
            if let traced::End::Exited(code) = end {
                assert_eq!(code, 0, "apply itself failed");
                break;
            }
            points = at;
        }
        assert!(
            points >= 8 && disturbed >= 4,
            "{points} points, at {disturbed} the host was changed"
        );
    });
}
