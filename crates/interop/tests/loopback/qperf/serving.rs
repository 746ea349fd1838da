//! Unmodified qperf clients with our server.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use interop::qperf::{Event, Limits};
use model::Nanos;

use super::{peer::PeerEnd, real};

/// All four tests in one client's run, with every verbose line.
fn all_four(peer: &PeerEnd, host: &str) {
    let args = ["-t", "1", "-vvu", "-vvt", "-vvs", "--", "tcp_lat", "tcp_bw", "udp_lat", "udp_bw"];
    let p = real::client(peer.port, host, &args);
    assert!(p.ok, "{}", p.text);
    for test in ["tcp_lat", "udp_lat"] {
        let latency = p.value(test, "latency");
        assert!((500.0..2e8).contains(&latency), "{}", p.text);
        // Every message is returned; at each end one may be in progress.
        for (a, b) in [("loc_send_msgs", "rem_recv_msgs"), ("loc_recv_msgs", "rem_send_msgs")] {
            let (a, b) = (p.value(test, a), p.value(test, b));
            assert!((a - b).abs() <= 2.0, "{test} {a} {b}\n{}", p.text);
        }
        assert_eq!(p.value(test, "rem_recv_bytes"), p.value(test, "rem_recv_msgs"));
    }
    let (bw, send, receive) =
        (p.value("tcp_bw", "bw"), p.value("tcp_bw", "send_bytes"), p.value("tcp_bw", "recv_bytes"));
    // At the end of the test, data in socket buffers counts at one end only.
    assert!(bw > 1e6 && (receive / send - 1.0).abs() < 0.2, "{}", p.text);
    assert!(p.value("udp_bw", "recv_bw") > 1e5, "{}", p.text);
    assert!(p.value("udp_bw", "recv_bytes") <= p.value("udp_bw", "send_bytes"), "{}", p.text);
    for (test, end) in
        [("tcp_lat", "rem"), ("udp_lat", "rem"), ("tcp_bw", "recv"), ("udp_bw", "recv")]
    {
        let real = p.value(test, &format!("{end}_real_time"));
        assert!((0.99e9..1.01e9).contains(&real), "{test}: {}", p.text);
        // Both ends work without pause on a host with few CPUs: neither idle nor above the total.
        let cpus = std::thread::available_parallelism().unwrap().get() as f64;
        let used = p.value(test, &format!("{end}_cpus_used"));
        assert!(used > 0.5 && used <= cpus * 130.0, "{test}: {}", p.text);
    }
    assert!(p.value("tcp_bw", "recv_cost") > 0.0, "{}", p.text);
    let ended = peer.ended(4);
    assert_eq!(
        ended.iter().map(|e| e.0).collect::<Vec<_>>(),
        ["tcp_lat", "tcp_bw", "udp_lat", "udp_bw"]
    );
    assert_eq!(ended[0].1 as f64, p.value("tcp_lat", "rem_recv_msgs"));
}

/// The client must end with an error and print it. Sometimes the text is empty, as with qperf's own
/// server: the urgent byte may wake the client before the text arrives.
fn refused(peer: &PeerEnd, args: &[&str], why: &str) {
    for _ in 0..30 {
        let p = real::client(peer.port, "127.0.0.1", args);
        assert!(!p.ok && p.text.contains("server: "), "{}", p.text);
        if p.text.contains(why) {
            return;
        }
    }
    panic!("never said {why:?}");
}

#[test]
fn the_four_tests_over_ipv4() {
    all_four(&PeerEnd::new(Limits::default()), "127.0.0.1");
}

#[test]
fn the_four_tests_over_ipv6() {
    all_four(&PeerEnd::at("[::1]:0", Limits::default()), "::1");
}

#[test]
fn both_families_at_one_door() {
    let peer = PeerEnd::at("[::]:0", Limits::default());
    for host in ["127.0.0.1", "::1", "localhost"] {
        let p = real::client(peer.port, host, &["-t", "1", "--", "udp_lat"]);
        assert!(p.ok && p.value("udp_lat", "latency") > 0.0, "{}", p.text);
    }
}

#[test]
fn options_of_the_request_are_followed() {
    let peer = PeerEnd::new(Limits::default());
    let options =
        ["-t", "1", "-m", "3000", "-sb", "200000", "-ar", "1", "-rca", "1", "-to", "9", "-vvs"];
    let p = real::client(
        peer.port,
        "127.0.0.1",
        &[&options[..], &["--", "tcp_lat", "udp_bw"]].concat(),
    );
    assert!(p.ok, "{}", p.text);
    let (messages, bytes) =
        (p.value("tcp_lat", "rem_recv_msgs"), p.value("tcp_lat", "rem_recv_bytes"));
    assert_eq!(bytes, messages * 3000.0);
    // A message larger than any buffer on this host.
    let p = real::client(
        peer.port,
        "127.0.0.1",
        &["-t", "1", "-m", "3000000", "-vvs", "--", "tcp_bw", "tcp_lat"],
    );
    assert!(p.ok && p.value("tcp_bw", "recv_msgs") >= 1.0, "{}", p.text);
    let messages = p.value("tcp_lat", "rem_recv_msgs");
    assert!(
        messages >= 1.0 && p.value("tcp_lat", "rem_recv_bytes") == messages * 3e6,
        "{}",
        p.text
    );
    // No such CPU: the client prints our line. `quit` ends its client, not our server; tests of
    // other transports are refused.
    refused(&peer, &["-rca", "1001", "--", "tcp_lat"], "cannot set processor affinity (cpu 1000)");
    refused(&peer, &["--", "quit"], "not ended by its clients");
    refused(&peer, &["--", "rds_lat"], "is not served here");
    let p = real::client(peer.port, "127.0.0.1", &["--", "conf"]);
    assert!(p.ok && p.text.contains("Linux") && p.text.contains("0.4.11"), "{}", p.text);
}

#[test]
fn several_clients_at_once_and_two_that_want_one_port() {
    let peer = PeerEnd::new(Limits::default());
    let args = ["-t", "2", "-vvs", "--", "tcp_lat"];
    let children: Vec<_> = (0..4).map(|_| real::begin(peer.port, "127.0.0.1", &args)).collect();
    let all: Vec<_> = children.into_iter().map(real::finish).collect();
    for p in &all {
        assert!(p.ok && p.value("tcp_lat", "rem_recv_msgs") > 10.0, "{}", p.text);
    }
    let most = {
        let events = peer.events.lock().unwrap();
        let mut now = 0;
        let steps = events.iter().map(|e| {
            now += match e {
                Event::Began { .. } => 1,
                _ => -1,
            };
            now
        });
        steps.max()
    };
    assert!(most > Some(1), "one after the other, not at once");
    // One UDP port for two clients: the second waits for the first, within its timeout.
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let port = port.to_string();
    let args = ["-t", "1", "-to", "20", "-ip", &port, "--", "udp_lat"];
    let two: Vec<_> = (0..2).map(|_| real::begin(peer.port, "127.0.0.1", &args)).collect();
    for p in two.into_iter().map(real::finish) {
        assert!(p.ok && p.value("udp_lat", "latency") > 0.0, "{}", p.text);
    }
}

#[test]
fn data_ports_for_a_firewall() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let peer = PeerEnd::new(Limits { data_ports: Some(port..=port), ..Limits::default() });
    // One port for all tests: one after the other over UDP, concurrently over TCP.
    let args = ["-t", "1", "-to", "20", "--", "udp_lat", "tcp_lat"];
    let two: Vec<_> = (0..2).map(|_| real::begin(peer.port, "127.0.0.1", &args)).collect();
    for p in two.into_iter().map(real::finish) {
        assert!(p.ok && p.value("tcp_lat", "latency") > 0.0, "{}", p.text);
    }
}

/// Held against the client's own count of round trips in its own time, which other load changes as
/// much as the printed latency: the whole round trip, or a quarter, fails on any machine.
#[test]
fn an_injected_service_time_shows_as_half_of_it() {
    const SERVICE_NS: f64 = 2.0e6;
    let slow = PeerEnd::new(Limits { service_ns: Nanos(2_000_000), ..Limits::default() });
    for test in ["tcp_lat", "udp_lat"] {
        let p = real::client(slow.port, "127.0.0.1", &["-t", "1", "-vvs", "-vvt", "--", test]);
        let latency = p.value(test, "latency");
        let of_a_trip = p.value(test, "loc_real_time") / p.value(test, "loc_recv_msgs");
        assert!((0.85..1.15).contains(&(latency * 2.0 / of_a_trip)), "{}", p.text);
        // The server spins at least that long.
        assert!(latency > 0.98 * SERVICE_NS / 2.0, "{}", p.text);
    }
}

#[test]
fn hostile_clients_disturb_nobody() {
    let limits = Limits { waiting: 50, patience: Duration::from_millis(1500), ..Limits::default() };
    let peer = PeerEnd::new(limits);
    let connect = || TcpStream::connect(("127.0.0.1", peer.port)).unwrap();
    let mut silent: Vec<_> = (0..100).map(|_| connect()).collect();
    let garbage: Vec<_> = (0..20)
        .map(|_| {
            let mut s = connect();
            let _ = s.write_all(&[0xff; 300]);
            s
        })
        .collect();
    let mut slow = connect();
    slow.write_all(&[0, 0, 4]).unwrap();
    // Sends a request and disappears at each step.
    let request = |test: u8| {
        let mut r = [0u8; 200];
        (r[2], r[4], r[6], r[24], r[60], r[64]) = (4, 11, test, 64, 3, 2);
        r
    };
    for test in [8, 9, 10, 11] {
        let mut gone = connect();
        gone.write_all(&request(test)).unwrap();
        let mut port = [0; 4];
        gone.read_exact(&mut port).unwrap();
        let mut later = connect();
        later.write_all(&request(test)).unwrap();
        later.read_exact(&mut port).unwrap();
        if test < 10 {
            let at = u32::from_le_bytes(port) as u16;
            let data = TcpStream::connect(("127.0.0.1", at)).unwrap();
            later.write_all(b"synchronization before test").unwrap();
            drop((later, data));
        }
    }
    let p = real::client(peer.port, "127.0.0.1", &["-t", "1", "-vvs", "--", "tcp_lat", "udp_lat"]);
    assert!(p.ok && p.value("udp_lat", "rem_recv_msgs") > 10.0, "{}", p.text);
    // Silent connections are closed by now: reading gives an end or a reset.
    for s in &mut silent {
        s.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert!(!matches!(s.read(&mut [0; 1]), Ok(1)));
    }
    drop(garbage);
}

#[test]
fn a_stopped_server_gives_its_clients_what_was_counted() {
    let peer = PeerEnd::new(Limits::default());
    let child = real::begin(peer.port, "127.0.0.1", &["-t", "3", "-vvs", "-vvt", "--", "tcp_lat"]);
    while !peer.events.lock().unwrap().iter().any(|e| matches!(e, Event::Began { .. })) {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(700));
    drop(peer);
    let p = real::finish(child);
    assert!(p.ok && p.value("tcp_lat", "rem_recv_msgs") > 10.0, "{}", p.text);
    assert!(p.value("tcp_lat", "rem_real_time") < 2.9e9, "{}", p.text);
}
