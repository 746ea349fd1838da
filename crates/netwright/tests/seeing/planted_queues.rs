//! Queues that overflow, planted in network namespaces: `doctor` finds each, its remedy ends it,
//! and look-alikes are left alone.

use std::{
    net::{Shutdown, TcpListener, TcpStream, UdpSocket},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::support::{
    Namespace,
    planted::{
        Inside, apply, beside, doctor, figure, finding, found, knock, listener, nstat, pair, silent,
    },
};

const ADDRESS: &str = "127.0.0.1:8080";
const BATCH: Option<Duration> = Some(Duration::from_millis(600));

#[test]
fn an_accept_queue_too_short_for_its_bursts() {
    let ns = Namespace::new();
    ns.run("sysctl", &["-q", "net.core.somaxconn=2"]);
    let server = listener(&ns, ADDRESS, BATCH);
    let _clients = Inside::every(&ns, Duration::from_millis(25), || knock(ADDRESS));
    let (d, truth) = beside(&ns, || nstat(&ns, "TcpExtListenOverflows"));
    let f = found(&d, "accept_queue_overflow", ADDRESS);
    assert_eq!((&f["severity"], &f["confidence"]), (&"critical".into(), &"high".into()), "{f:#}");
    truth.holds(&d, figure(f, "ListenOverflows"));
    // A queue of limit 2 takes three.
    assert_eq!(figure(f, "accept queue of 127.0.0.1:8080"), 3, "{f:#}");
    assert!(f.to_string().contains(&format!("pid {}", std::process::id())), "{f:#}");
    apply(&ns, &d, &["sysctl.net.core.somaxconn=4096"]);
    // The finding says that the application must call listen() again.
    drop(server);
    let _again = listener(&ns, ADDRESS, BATCH);
    silent(&doctor(&ns), "accept_queue_overflow");
}

/// The look-alike: connections wait, and the queue has room.
#[test]
fn an_accept_queue_with_room_is_clear() {
    let ns = Namespace::new();
    let _server = listener(&ns, ADDRESS, None);
    let _clients = Inside::every(&ns, Duration::from_millis(50), || knock(ADDRESS));
    silent(&doctor(&ns), "accept_queue_overflow");
}

/// Connection requests with lost answers, 25 per second.
fn half_open() -> (Namespace, Namespace, Inside) {
    let (server, clients) = pair();
    // The server sends its answers to a station that does not exist.
    let nowhere = ["lladdr", "02:00:00:00:00:99", "dev", "va", "nud", "permanent"];
    server.run("ip", &[&["neigh", "replace", "10.88.0.2"][..], &nowhere].concat());
    let mac = server.run("cat", &["/sys/class/net/va/address"]);
    let known = ["lladdr", mac.trim(), "dev", "vb", "nud", "permanent"];
    clients.run("ip", &[&["neigh", "replace", "10.88.0.1"][..], &known].concat());
    let knocks = Inside::every(&clients, Duration::from_millis(40), || knock("10.88.0.1:8080"));
    (server, clients, knocks)
}

#[test]
fn more_half_open_connections_than_the_listener_may_have() {
    let (ns, _clients, _knocks) = half_open();
    ns.run("sysctl", &["-q", "net.core.somaxconn=8"]);
    let server = listener(&ns, "10.88.0.1:8080", BATCH);
    thread::sleep(Duration::from_secs(1));
    let (d, truth) = beside(&ns, || nstat(&ns, "TcpExtTCPReqQFullDoCookies"));
    let f = found(&d, "syn_queue_overflow", "listeners");
    assert_eq!(f["severity"], "warning", "{f:#}");
    truth.holds(&d, figure(f, "TCPReqQFullDoCookies"));
    // The lowered limit is the cause, and its finding has the change.
    assert_eq!(f["caused_by"][0], "below_kernel_default", "{f:#}");
    apply(&ns, &d, &["sysctl.net.core.somaxconn=4096"]);
    drop(server);
    let _again = listener(&ns, "10.88.0.1:8080", BATCH);
    silent(&doctor(&ns), "syn_queue_overflow");
}

/// The look-alike: cookies for every connection, as configured.
#[test]
fn cookies_on_purpose_are_clear() {
    let ns = Namespace::new();
    ns.run("sysctl", &["-q", "net.ipv4.tcp_syncookies=2"]);
    let _server = listener(&ns, ADDRESS, BATCH);
    let _clients = Inside::every(&ns, Duration::from_millis(25), || knock(ADDRESS));
    silent(&doctor(&ns), "syn_queue_overflow");
}

fn shaper(ns: &Namespace, rate: &str) {
    let tbf = ["root", "tbf", "rate", rate, "burst", "3000", "limit", "6000"];
    ns.run("tc", &[&["qdisc", "replace", "dev", "va"][..], &tbf].concat());
}

fn dropped(ns: &Namespace) -> u64 {
    let all = ns.run("tc", &["-s", "-j", "qdisc", "show", "dev", "va"]);
    serde_json::from_str::<Value>(&all).unwrap()[0]["drops"].as_u64().unwrap()
}

/// At most 500 datagrams per second, 4 Mbit/s.
fn datagrams(ns: &Namespace, bytes: usize) -> Inside {
    let mut socket = None;
    Inside::every(ns, Duration::from_millis(2), move || {
        let socket = socket.get_or_insert_with(|| UdpSocket::bind("10.88.0.1:0").unwrap());
        let _ = socket.send_to(&vec![0; bytes], "10.88.0.2:9999");
    })
}

#[test]
fn a_shaper_that_drops() {
    let (ns, _there) = pair();
    shaper(&ns, "500kbit");
    let _sender = datagrams(&ns, 1_000);
    thread::sleep(Duration::from_millis(300));
    let (d, truth) = beside(&ns, || dropped(&ns));
    let f = found(&d, "qdisc_drops", "va");
    assert_eq!(f["severity"], "warning", "{f:#}");
    truth.holds(&d, figure(f, "drops of tbf"));
    assert_eq!(f["changes"], Value::Array(vec![]), "a rate that somebody set is not ours: {f:#}");
    ns.run("tc", &["qdisc", "del", "dev", "va", "root"]);
    assert!(finding(&doctor(&ns), "qdisc_drops").is_none());
}

/// The look-alike: the same traffic through a shaper with enough capacity, and a configured delay.
#[test]
fn a_shaper_that_carries_everything_is_clear() {
    let (ns, _there) = pair();
    shaper(&ns, "100mbit");
    let _sender = datagrams(&ns, 1_000);
    silent(&doctor(&ns), "qdisc_drops");
}

/// Connections that the client closes first, so that it holds each port for a minute.
fn use_up(ns: &Namespace) -> [Inside; 2] {
    let server = Inside::run(ns, |stop| {
        let listener = TcpListener::bind(ADDRESS).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut held = Vec::new();
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            held.extend(listener.accept().map(|c| c.0));
            // The client's end is closed by then.
            held.drain(..held.len().saturating_sub(1));
            thread::sleep(Duration::from_millis(2));
        }
    });
    thread::sleep(Duration::from_millis(200));
    let mut made = 0;
    let clients = Inside::every(ns, Duration::from_millis(3), move || {
        let Ok(connection) = TcpStream::connect(ADDRESS) else { return };
        let _ = connection.shutdown(Shutdown::Both);
        made += 1;
        // All but a few at once; the rest show that this host opens them.
        if made > 42 {
            thread::sleep(Duration::from_millis(500));
        }
    });
    [server, clients]
}

#[test]
fn ports_that_run_out() {
    let ns = Namespace::new();
    // Over loopback a port would be reused after a second.
    ns.run("sysctl", &["-q", "net.ipv4.tcp_tw_reuse=0"]);
    ns.run("sysctl", &["-q", "net.ipv4.ip_local_port_range=40000 40049"]);
    let _load = use_up(&ns);
    thread::sleep(Duration::from_millis(400));
    let d = doctor(&ns);
    let f = found(&d, "ports_running_out", "net.ipv4.ip_local_port_range");
    assert_eq!(f["severity"], "warning", "{f:#}");
    let waiting = ns.run("ss", &["-Htan", "state", "time-wait"]).lines().count() as u64;
    let said = figure(f, "connections, listeners left out");
    assert!((41..=52).contains(&said) && said.abs_diff(waiting) <= 8, "{said}, {waiting}: {f:#}");
    // A range below the kernel's default is the cause, and its finding has the change.
    let range = d.to_string();
    assert!(range.contains("sysctl.net.ipv4.ip_local_port_range"), "{d:#}");
    apply(&ns, &d, &[]);
    silent(&doctor(&ns), "ports_running_out");
}

/// The look-alike: as many sockets in the same range, which listen and hold no port.
#[test]
fn listeners_in_the_range_are_no_connections() {
    let ns = Namespace::new();
    ns.run("sysctl", &["-q", "net.ipv4.ip_local_port_range=40000 40049"]);
    let _held = Inside::run(&ns, |stop| {
        let all: Vec<_> = (40_000..40_045).map(|p| TcpListener::bind(("127.0.0.1", p))).collect();
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(20));
        }
        drop(all);
    });
    thread::sleep(Duration::from_millis(200));
    silent(&doctor(&ns), "ports_running_out");
}

/// Connections closed while the other end is away: each holds its port until the kernel gives up.
#[test]
fn orphans_are_counted_where_they_are_and_nowhere_else() {
    const ORPHANS: u64 = 45;
    let (server, clients) = pair();
    let elsewhere = Namespace::new();
    for ns in [&clients, &elsewhere] {
        ns.run("sysctl", &["-q", "net.ipv4.ip_local_port_range=40000 40049"]);
    }
    let _server = listener(&server, "10.88.0.1:8080", None);
    let (made, wait_made) = mpsc::channel();
    let (away, wait_away) = mpsc::channel();
    let closing = Inside::run(&clients, move |_| {
        let connect = |_| TcpStream::connect("10.88.0.1:8080").unwrap();
        let all: Vec<_> = (0..ORPHANS).map(connect).collect();
        made.send(()).unwrap();
        wait_away.recv().unwrap();
        drop(all);
    });
    wait_made.recv().unwrap();
    server.run("ip", &["link", "set", "va", "down"]);
    away.send(()).unwrap();
    closing.join();
    let d = doctor(&clients);
    let f = found(&d, "ports_running_out", "net.ipv4.ip_local_port_range");
    assert_eq!(figure(f, "connections, listeners left out"), ORPHANS, "{f:#}");
    // The kernel's count of orphans is that of all namespaces.
    let all = elsewhere.run("cat", &["/proc/net/sockstat"]);
    let words: Vec<_> = all.split_whitespace().collect();
    let orphans = words.windows(2).find(|w| w[0] == "orphan").unwrap()[1];
    assert!(orphans.parse::<u64>().unwrap() >= ORPHANS, "{all}");
    silent(&doctor(&elsewhere), "ports_running_out");
}
