//! Connections with both ends in one process, and servers that drop, refuse or go silent.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::FromRawFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use model::{
    Nanos,
    measure::{Close, Common, ConnectRun, ConnectSpec, PeerProgram, Pin, Wait},
};
use serde_json::{Value, json};
use traffic::{
    Run,
    serve::{Limits, Listen, Options, Server},
};

fn spec(target: &str) -> ConnectSpec {
    ConnectSpec {
        common: Common {
            duration_ns: Nanos(150_000_000),
            warmup_ns: Nanos(20_000_000),
            cooldown_ns: Nanos(10_000_000),
            max_time_ns: Nanos(60_000_000_000),
            ..Common::plain(target, PeerProgram::Netwright)
        },
        flows: vec![1],
        rate_per_s: None,
        request_bytes: 0,
        response_bytes: 0,
        close: Close::Peer,
        timeout_ns: Nanos(2_000_000_000),
    }
}

fn measure(spec: &ConnectSpec) -> Vec<ConnectRun> {
    let stop = AtomicBool::new(false);
    let run = Run::new(&stop, &|_, _| {});
    let measured = traffic::measure_connect(spec, None, run).unwrap();
    assert_eq!(measured.broken, None);
    measured.document.runs
}

struct PeerEnd {
    stop: Arc<AtomicBool>,
    target: String,
    thread: Option<JoinHandle<()>>,
}

impl PeerEnd {
    fn start() -> Self {
        let server = Server::bind(Options {
            listen: vec![Listen::Tcp("127.0.0.1:0".parse().unwrap())],
            data_ports: None,
            secret: None,
            limits: Limits::default(),
            service_ns: Nanos(0),
            pin: Pin::No,
        })
        .unwrap();
        let Some(Listen::Tcp(address)) = server.listening().first().cloned() else { panic!() };
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread = std::thread::spawn(move || server.run(&flag, &|_| {}).unwrap());
        Self { stop, target: address.to_string(), thread: Some(thread) }
    }
}

impl Drop for PeerEnd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

#[test]
fn every_shape_is_counted_alike_at_both_ends() {
    let peer = PeerEnd::start();
    let mut s = spec(&peer.target);
    for close in [Close::Peer, Close::Local, Close::Reset] {
        for (request, response) in [(0, 0), (64, 1), (0, 10), (10, 0), (200_000, 300_000)] {
            for (flows, threads) in [(1, 1), (9, 2)] {
                (s.close, s.request_bytes, s.response_bytes) = (close, request, response);
                (s.flows, s.common.threads) = (vec![flows], threads);
                let run = &measure(&s)[0];
                assert!(run.connections > 0, "{run:?}");
                assert_eq!(run.peer_accepted_in_all.get(), Some(run.established_in_all));
                assert_eq!(run.connect_ns.count, run.connections);
                assert_eq!(run.first_byte_ns.is_some(), response > 0);
                assert!(run.failed.is_empty(), "{run:?}");
                let first = run.first_byte_ns.as_ref().map_or(run.connections, |q| q.count);
                assert_eq!(first, run.connections);
            }
        }
    }
}

#[test]
fn a_schedule_is_kept_and_what_it_lacks_is_said() {
    let peer = PeerEnd::start();
    let mut s = spec(&peer.target);
    s.common.duration_ns = Nanos(400_000_000);
    for wait in [Wait::Block, Wait::SpinThenBlock] {
        (s.rate_per_s, s.flows, s.common.threads) = (Some(500), vec![4], 2);
        (s.common.wait, s.common.peer_wait) = (wait, wait);
        let run = &measure(&s)[0];
        assert!((190..=210).contains(&run.connections), "{run:?}");
        assert_eq!(run.start_lag_ns.as_ref().unwrap().count, run.connections);
        assert!(run.warnings.is_empty(), "{:?}", run.warnings);
    }
}

/// A server that greets and reports correctly, with a data port that each test supplies.
struct Fake {
    target: String,
    thread: Option<JoinHandle<()>>,
}

impl Fake {
    fn with(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap().to_string();
        let thread = std::thread::spawn(move || {
            let (mut control, _) = listener.accept().unwrap();
            talk(&mut control, port);
        });
        Self { target, thread: Some(thread) }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = self.thread.take().unwrap().join();
    }
}

fn send(control: &mut TcpStream, message: &Value) {
    let text = message.to_string();
    control.write_all(b"NWT1").unwrap();
    control.write_all(&u32::try_from(text.len()).unwrap().to_be_bytes()).unwrap();
    control.write_all(text.as_bytes()).unwrap();
}

fn receive(control: &mut TcpStream) -> Option<Value> {
    let mut head = [0u8; 8];
    control.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    let mut text = vec![0; length as usize];
    control.read_exact(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn talk(control: &mut TcpStream, port: u16) {
    let absent = json!({ "absent": "a fake" });
    let hello = json!({ "protocol": 1, "program": "fake", "nonce": "00", "secret": false });
    send(control, &json!({ "hello": hello }));
    receive(control).unwrap();
    let end = json!({ "program": "fake", "kernel": "", "arch": "", "cpus": 1, "address": "" });
    send(control, &json!({ "welcome": { "proof": null, "end": end, "boot_id": "" } }));
    while let Some(said) = receive(control) {
        if said.get("test").is_some() {
            let ready = json!({ "token": "00", "ports": [port], "path": null, "pinned": [],
                "why": "", "allowed": "", "service_ns": 0 });
            send(control, &json!({ "ready": ready }));
            send(control, &json!({ "connected": { "warnings": [] } }));
        } else if said == "mark" {
            let counters = json!({ "at_ns": 0, "transactions": 0, "received_bytes": [],
                "sent_bytes": 0, "retransmits": absent, "cwnd_bytes": absent, "rtt_ns": absent,
                "migrations": absent, "datagrams": null, "zerocopy": null });
            send(control, &json!({ "marked": counters }));
        } else if said == "finish" {
            let report = json!({ "cpu": absent, "moved": {}, "ran_on": {}, "received_on": {},
                "napi_ids": {}, "migrations": absent, "congestion": absent,
                "mss_bytes": absent, "warnings": [] });
            send(control, &json!({ "report": report }));
        }
    }
}

/// Listens with room for one connection, and never accepts.
fn full_backlog() -> TcpListener {
    // SAFETY: plain calls; the descriptor is handed on as the only owner.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        assert!(fd >= 0);
        let listener = TcpListener::from_raw_fd(fd);
        assert_eq!(libc::listen(fd, 0), 0, "listening binds to a port of any address");
        listener
    }
}

#[test]
fn a_target_that_drops_every_syn_is_a_failure_and_no_hang() {
    let listener = full_backlog();
    let port = listener.local_addr().unwrap().port();
    let fake = Fake::with(port);
    let mut s = spec(&fake.target);
    // The queue takes one or two connections, which then never close.
    (s.flows, s.timeout_ns, s.common.duration_ns) =
        (vec![8], Nanos(100_000_000), Nanos(700_000_000));
    let begun = Instant::now();
    let run = &measure(&s)[0];
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(run.connections, 0, "{run:?}");
    let failed = run.failed.get("not established in 100 ms").copied().unwrap_or_default();
    assert!((6..=80).contains(&failed), "eight flows, a hundred milliseconds each: {run:?}");
    assert_eq!(run.peer_accepted_in_all.get(), None);
}

#[test]
fn a_target_that_refuses_is_not_flooded() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let fake = Fake::with(port);
    let mut s = spec(&fake.target);
    s.common.duration_ns = Nanos(300_000_000);
    let run = &measure(&s)[0];
    assert_eq!(run.connections, 0);
    let refused = run.failed.get("connection refused (ECONNREFUSED)").copied().unwrap_or_default();
    assert!((1..=31).contains(&refused), "one in 10 ms: {run:?}");
}

#[test]
fn a_target_that_never_answers_is_distinguished_from_one_that_never_accepts() {
    // The kernel accepts the connection, since there is room; then nothing follows.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let fake = Fake::with(listener.local_addr().unwrap().port());
    let mut s = spec(&fake.target);
    (s.request_bytes, s.response_bytes, s.timeout_ns) = (10, 10, Nanos(50_000_000));
    s.common.duration_ns = Nanos(400_000_000);
    let run = &measure(&s)[0];
    assert_eq!(run.connections, 0);
    let silent = "established, then no answer in 50 ms";
    assert_eq!(run.failed.keys().collect::<Vec<_>>(), [silent], "{run:?}");
    assert!(run.failed[silent] <= 9, "{run:?}");
}
