//! The server against the real `iperf3` client (Debian package `iperf3`), over loopback.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream, UdpSocket},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use interop::iperf3::{Event, Limits, Server};
use serde_json::Value;

/// A server on a free port, until dropped.
struct PeerEnd {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    events: Arc<Mutex<Vec<Event>>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl PeerEnd {
    fn on(address: &str, limits: Limits) -> Self {
        let server = Server::bind(&[address.parse().unwrap()]).unwrap();
        let address = server.addresses()[0];
        let stop = Arc::new(AtomicBool::new(false));
        let events = Arc::new(Mutex::new(Vec::new()));
        let (ours, log) = (stop.clone(), events.clone());
        let thread = thread::spawn(move || {
            server.run(&limits, &ours, &|e| log.lock().unwrap().push(e)).unwrap();
        });
        Self { address, stop, events, thread: Some(thread) }
    }

    fn start() -> Self {
        Self::on("127.0.0.1:0", Limits::default())
    }

    /// Starts `iperf3 -J` with these arguments.
    fn client(&self, words: &str) -> Child {
        client_of(self.address, words)
    }

    fn run(&self, words: &str) -> Value {
        json(words, self.client(words))
    }

    /// Waits for an event that `fits`.
    fn event(&self, fits: impl Fn(&Event) -> bool) -> Event {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(e) = self.events.lock().unwrap().iter().find(|e| fits(e)) {
                return e.clone();
            }
            assert!(Instant::now() < until, "no such event: {:?}", self.events.lock().unwrap());
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn ended(&self, with: &str) {
        self.event(|e| why_ended(e).is_some_and(|why| why.contains(with)));
    }
}

impl Drop for PeerEnd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || thread::panicking());
    }
}

fn why_ended(event: &Event) -> Option<&str> {
    match event {
        Event::Broken { why, .. } | Event::TurnedAway { why, .. } => Some(why),
        _ => None,
    }
}

fn client_of(server: SocketAddr, words: &str) -> Child {
    Command::new("timeout")
        .args(["60", "iperf3", "-J", "-c", &server.ip().to_string()])
        .args(["-p", &server.port().to_string()])
        .args(words.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("iperf3 runs (Debian package iperf3)")
}

fn json(words: &str, child: Child) -> Value {
    let out = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    let err = String::from_utf8_lossy(&out.stderr);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{words}: {e}: {text} {err}"))
}

fn at(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path}: {value:#}"))
}

/// Checks that hold for every complete result.
fn complete(words: &str, value: &Value) {
    assert!(value.get("error").is_none(), "{words}: {value:#}");
    assert!(at(value, "/end/sum_received/bytes") > 0.0, "{words}: {value:#}");
    assert!(at(value, "/end/sum_sent/bytes") > 0.0, "{words}: {value:#}");
    assert!(at(value, "/end/sum_received/seconds") > 0.0, "{words}");
    let cpu = |k: &str| at(value, &format!("/end/cpu_utilization_percent/remote_{k}"));
    let (total, user, system) = (cpu("total"), cpu("user"), cpu("system"));
    assert!(total > 0.0 && total < 100.0 * 20.0, "{words}: {total}");
    assert!(
        (user + system - total).abs() < 0.1 + total / 100.0,
        "{words}: {user}+{system}={total}"
    );
}

#[test]
fn every_option_gives_a_complete_result() {
    let peer = PeerEnd::start();
    for words in [
        "-t 1",
        "-t 1 -R",
        "-t 1 --bidir",
        "-t 1 -P 4",
        "-t 1 -P 3 -R -N",
        "-t 1 -P 2 --bidir -l 8K",
        "-t 1 -w 100K -M 1000 -C cubic -S 0x10",
        "-t 1 -R -w 100K -M 1000 -C cubic -S 0x10 -Z --repeating-payload",
        "-t 1 -b 100M --fq-rate 200M",
        "-t 1 -R -b 100M/5 --fq-rate 200M",
        "-t 1 -O 1",
        "-t 1 -u -b 20M",
        "-t 1 -u -b 20M -R --udp-counters-64bit --repeating-payload --dont-fragment",
        "-t 1 -u -b 20M --bidir -P 2 -l 1000",
        "-t 1 -u -b 20M -O 1 --udp-counters-64bit -w 100K",
        "-n 20M",
        "-n 20M -R",
        "-k 100 -P 2",
        "-u -n 1M -b 50M",
        "-u -k 50 -R -b 50M -l 1000",
        "-t 1 -A 0,0 -T title --extra-data hello -R",
    ] {
        complete(words, &peer.run(words));
    }
}

#[test]
fn both_ends_agree_on_a_number_of_bytes() {
    let peer = PeerEnd::start();
    for words in
        ["-n 50M", "-n 50M -P 4", "-k 300 -l 64K", "-n 5M -u -b 100M", "-k 200 -u -b 50M -l 1200"]
    {
        let value = peer.run(words);
        let (sent, received) =
            (at(&value, "/end/sum_sent/bytes"), at(&value, "/end/sum_received/bytes"));
        let lost = value.pointer("/end/sum/lost_packets").and_then(Value::as_f64).unwrap_or(0.0);
        assert!(sent == received || lost > 0.0, "{words}: {sent} sent, {received} received");
    }
}

#[test]
fn figures_of_a_known_rate_are_that_rate() {
    let peer = PeerEnd::start();
    for words in ["-t 2 -b 40M -R", "-t 2 -u -b 40M -R", "-t 2 -u -b 40M -l 1200 -R"] {
        let value = peer.run(words);
        let rate = at(&value, "/end/sum_received/bits_per_second");
        assert!((rate / 40e6 - 1.0).abs() < 0.05, "{words}: {rate}");
    }
}

#[test]
fn four_clients_at_once_get_their_own_results() {
    let peer = PeerEnd::start();
    // Includes two UDP clients of one host: their datagrams cannot be distinguished.
    let words = [
        "-t 3 -P 2 -b 40M",
        "-t 3 -u -b 30M -P 2",
        "-t 3 -u -b 20M -R -l 1000",
        "-t 3 --bidir -b 10M -O 1",
    ];
    let rates = [80e6, 60e6, 20e6, 10e6];
    let clients = words.map(|w| (w, peer.client(w)));
    for ((words, client), rate) in clients.into_iter().zip(rates) {
        let value = json(words, client);
        complete(words, &value);
        // Received, or reported as lost on a busy host.
        let measured = at(&value, "/end/sum_received/bits_per_second");
        let lost = value.pointer("/end/sum/lost_percent").and_then(Value::as_f64).unwrap_or(0.0);
        let sent = measured / (1.0 - lost / 100.0);
        assert!((sent / rate - 1.0).abs() < 0.1, "{words}: {measured}, {lost}% lost");
    }
}

#[test]
fn many_streams_and_both_families() {
    let peer = PeerEnd::on("[::]:0", Limits::default());
    for (host, words) in [
        ("127.0.0.1", "-t 1 -P 128"),
        ("::1", "-t 1 -P 64 -R"),
        ("127.0.0.1", "-t 1 -u -P 32 -b 1M -l 500"),
        ("::1", "-t 1 -u -P 8 -b 1M --bidir -l 500"),
        ("127.0.0.2", "-t 1 -u -b 1M"),
    ] {
        let address = SocketAddr::new(host.parse().unwrap(), peer.address.port());
        let value = json(words, client_of(address, words));
        complete(words, &value);
    }
}

#[test]
fn the_client_gets_our_own_output_when_it_asks() {
    let peer = PeerEnd::start();
    let value = peer.run("-t 2 -O 1 -b 50M --get-server-output");
    let text = value["server_output_text"].as_str().unwrap();
    assert!(text.starts_with("Accepted connection from 127.0.0.1, port "), "{text}");
    assert!(text.contains("(omitted)"), "{text}");
    let mut ends =
        text.lines().filter_map(|l| l.split_once("[RX-S]   0.00-")?.1.split_whitespace().next());
    let end: f64 = ends.next_back().unwrap().parse().unwrap();
    assert!((1.9..2.2).contains(&end), "{text}");
}

/// The server's answer to a connection that sends `bytes`, until it closes.
fn answer(peer: &PeerEnd, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(peer.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.write_all(bytes).unwrap();
    let mut said = Vec::new();
    let _ = socket.read_to_end(&mut said);
    said
}

/// A cookie, then parameters of this length.
fn asking(parameters: &[u8]) -> Vec<u8> {
    let mut all = b"abcdefghijklmnopqrstuvwxyz2345677777\0".to_vec();
    all.extend((parameters.len() as u32).to_be_bytes());
    all.extend(parameters);
    all
}

#[test]
fn bad_guests_do_not_disturb_a_running_test() {
    let step = Duration::from_secs(1);
    let peer = PeerEnd::on("127.0.0.1:0", Limits { step, strangers: 64, ..Limits::default() });
    let guest = peer.client("-t 6 -i 0.5 -b 80M");
    peer.event(|e| matches!(e, Event::Started { .. }));

    assert_eq!(answer(&peer, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), b"");
    peer.ended("that is no cookie");
    // Parameters that are too long, no JSON, no object, nested a million deep, or cut in half.
    assert_eq!(answer(&peer, &[&asking(b"")[..37], &u32::MAX.to_be_bytes()].concat()), [9]);
    peer.ended("parameters of 4294967295 bytes");
    assert_eq!(answer(&peer, &asking(b"{tcp")), [9]);
    assert_eq!(answer(&peer, &asking(&[b'['; 8000])), [9]);
    peer.ended("parameters that are no JSON");
    assert_eq!(answer(&peer, &asking(b"[]")), [9, 254, 0, 0, 0, 114, 0, 0, 0, 0]);
    assert_eq!(answer(&peer, &asking(br#"{"sctp":true}"#)), [9, 254, 0, 0, 0, 18, 0, 0, 0, 0]);
    assert_eq!(answer(&peer, &asking(br#"{"tcp":true,"parallel":4000000000}"#))[..2], [9, 254]);
    assert_eq!(
        answer(&peer, &asking(br#"{"tcp":true,"authtoken":"x"}"#))[..6],
        [9, 254, 0, 0, 0, 142]
    );
    assert_eq!(answer(&peer, &asking(b"{}")[..40]), [9]);
    peer.ended("it did not send parameters in time");
    // A client without streams, a half-open connection, and too many unidentified connections.
    assert_eq!(answer(&peer, &asking(br#"{"tcp":true}"#)), [9, 10, 11]);
    peer.ended("did not open its streams");
    let strangers: Vec<_> = (0..200).map(|_| TcpStream::connect(peer.address).unwrap()).collect();
    let mut slow = TcpStream::connect(peer.address).unwrap();
    for _ in 0..20 {
        let _ = slow.write_all(b"a");
        thread::sleep(Duration::from_millis(100));
    }
    peer.ended("did not say in time");
    // Invalid UDP data: to the port, and as an unexpected first datagram of a stream.
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    for n in 0..1000u32 {
        udp.send_to(&n.to_be_bytes(), peer.address).unwrap();
        udp.send_to(b"9876", peer.address).unwrap();
    }
    drop(strangers);

    let value = json("guest", guest);
    complete("guest", &value);
    let rate = at(&value, "/end/sum_received/bits_per_second");
    assert!((rate / 80e6 - 1.0).abs() < 0.1, "{rate}");
}

#[test]
fn clients_that_vanish_are_forgotten() {
    let limits = Limits { clients: 1, idle: Duration::from_secs(2), ..Limits::default() };
    let peer = PeerEnd::on("127.0.0.1:0", limits);
    for words in ["-t 60", "-t 60 -R", "-t 60 -u -b 100M -R", "-t 60 --bidir -P 4"] {
        let mut client = peer.client(words);
        peer.event(|e| matches!(e, Event::Started { .. }));
        thread::sleep(Duration::from_millis(300));
        // `timeout` forwards it; iperf3 sends CLIENT_TERMINATE or just ends.
        end(&client, libc::SIGTERM);
        client.wait().unwrap();
        peer.event(|e| why_ended(e).is_some());
        peer.events.lock().unwrap().clear();
        complete(words, &peer.run("-t 1"));
        peer.events.lock().unwrap().clear();
    }
    // A stopped client: alive, with open connections, and silent.
    for words in ["-t 60", "-t 60 -R", "-t 60 -u -b 1M"] {
        let mut client = peer.client(words);
        peer.event(|e| matches!(e, Event::Started { .. }));
        end(&client, libc::SIGSTOP);
        let busy = peer.run("-t 1");
        assert!(busy["error"].as_str().unwrap().contains("the server is busy"), "{busy:#}");
        peer.ended("nothing moved");
        complete(words, &peer.run("-t 1"));
        // It finds its connections closed.
        end(&client, libc::SIGCONT);
        client.wait().unwrap();
        peer.events.lock().unwrap().clear();
    }
}

/// Sends a signal to `iperf3` below `timeout`.
fn end(client: &Child, signal: i32) {
    let children = format!("/proc/{0}/task/{0}/children", client.id());
    let pid: i32 = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
    // SAFETY: a signal to a process that this test started.
    unsafe { libc::kill(pid, signal) };
}

#[test]
fn the_server_ends_what_has_no_end() {
    let limits = Limits { duration: Duration::from_secs(1), ..Limits::default() };
    let peer = PeerEnd::on("127.0.0.1:0", limits);
    let value = peer.run("-t 0");
    assert!(value["error"].as_str().unwrap().contains("the server has terminated"), "{value:#}");
    peer.ended("its test took longer than 1 s");
    // Exceeds the limits of all tests together.
    let peer = PeerEnd::on("127.0.0.1:0", Limits { streams: 3, ..Limits::default() });
    let value = peer.run("-t 1 -P 2 --bidir");
    assert!(
        value["error"].as_str().unwrap().contains("unable to create a new stream"),
        "{value:#}"
    );
    complete("-P 3", &peer.run("-t 1 -P 3"));
}

#[test]
fn a_stopped_server_tells_its_clients() {
    let peer = PeerEnd::start();
    let client = peer.client("-t 30");
    peer.event(|e| matches!(e, Event::Started { .. }));
    drop(peer);
    let value = json("-t 30", client);
    assert!(value["error"].as_str().unwrap().contains("the server has terminated"), "{value:#}");
}

#[test]
fn what_the_kernel_lacks_is_said_with_its_error() {
    let peer = PeerEnd::start();
    for (parameters, code, errno) in [
        (&br#"{"tcp":true,"congestion":"nosuch"}"#[..], 134, libc::ENOENT),
        (br#"{"tcp":true,"window":2000000000}"#, 141, 0),
    ] {
        let ask = asking(parameters);
        let mut control = TcpStream::connect(peer.address).unwrap();
        control.write_all(&ask).unwrap();
        let mut said = [0; 2];
        control.read_exact(&mut said).unwrap();
        assert_eq!(said, [9, 10]);
        let mut stream = TcpStream::connect(peer.address).unwrap();
        stream.write_all(&ask[..37]).unwrap();
        let mut said = [0; 9];
        control.read_exact(&mut said).unwrap();
        let refused = [&[254][..], &i32::to_be_bytes(code), &errno.to_be_bytes()].concat();
        assert_eq!(said[..], refused);
    }
}
