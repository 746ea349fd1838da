//! The client against the real `iperf3 -s` (Debian package `iperf3`), over loopback.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use interop::iperf3;
use model::{
    BitsPerSec, Bytes, Nanos, Reading,
    measure::{
        Common, Direction, PeerProgram, Pin, SocketOptions, StreamDocument, StreamSpec, Transport,
        Wait, ZeroCopy,
    },
};
use traffic::{Error, Measured, Run};

/// An `iperf3 -s` on a free port, until dropped.
struct PeerEnd {
    port: u16,
    child: Child,
}

impl PeerEnd {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new("iperf3")
            .args(["-s", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("iperf3 runs (Debian package iperf3)");
        let peer = Self { port, child };
        let until = Instant::now() + Duration::from_secs(10);
        while !peer.listens() {
            assert!(Instant::now() < until, "iperf3 -s does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        peer
    }

    /// Checked without connecting: a connection would count as a client.
    fn listens(&self) -> bool {
        let hex = format!(":{:04X} ", self.port);
        ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|path| {
            let table = std::fs::read_to_string(path).unwrap();
            table.lines().any(|l| l.contains(&hex) && l.contains(" 0A "))
        })
    }

    fn spec(&self, host: &str) -> StreamSpec {
        spec(&format!("{host}:{}", self.port))
    }
}

impl Drop for PeerEnd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spec(target: &str) -> StreamSpec {
    StreamSpec {
        common: Common {
            target: target.into(),
            peer: PeerProgram::Iperf3,
            transport: Transport::Tcp,
            family: None,
            bind: None,
            duration_ns: Nanos(1_000_000_000),
            warmup_ns: Nanos(0),
            cooldown_ns: Nanos(0),
            wait: Wait::Block,
            peer_wait: Wait::Block,
            pin: Pin::Auto,
            peer_pin: Pin::Auto,
            threads: 1,
            socket: SocketOptions::default(),
            confidence_per_mille: None,
            max_time_ns: Nanos(60_000_000_000),
        },
        direction: Direction::Forward,
        flows: vec![1],
        message_bytes: vec![128 << 10],
        rate: None,
        interval_ns: Nanos(250_000_000),
        zerocopy: None,
        skip_receive_copy: false,
    }
}

static NEVER: AtomicBool = AtomicBool::new(false);

fn measure_until(spec: &StreamSpec, stop: &AtomicBool) -> Result<Measured<StreamDocument>, Error> {
    iperf3::client(spec, Run::new(stop, &|_, _| {}), &|_, _| {})
}

/// A measurement that must succeed.
fn measure(spec: &StreamSpec) -> StreamDocument {
    let measured = measure_until(spec, &NEVER).unwrap();
    assert_eq!(measured.broken, None);
    assert!(!measured.document.interrupted);
    measured.document
}

#[test]
fn tcp_every_way_has_complete_runs() {
    let peer = PeerEnd::start();
    for (direction, host) in [
        (Direction::Forward, "127.0.0.1"),
        (Direction::Reverse, "[::1]"),
        (Direction::Both, "localhost"),
    ] {
        let mut spec = peer.spec(host);
        spec.direction = direction;
        spec.flows = vec![1, 3];
        let document = measure(&spec);
        let ways = if direction == Direction::Both { 2 } else { 1 };
        assert_eq!(document.runs.len(), 2 * ways);
        for run in &document.runs {
            assert_eq!(run.flow_bytes.len(), run.flows as usize);
            assert_eq!(run.flow_bytes.iter().sum::<u64>(), run.bytes);
            assert!(run.flow_bytes.iter().all(|b| *b > 0), "{run:#?}");
            assert_eq!(run.intervals.len(), 4, "{run:#?}");
            // The server's total equals the sum of the intervals, except for data in transit and
            // data that arrived before the server noticed the end: up to a tenth of a second on a
            // busy host. A missing or repeated interval would be a quarter.
            let lines: u64 = run.intervals.iter().map(|i| i.bytes).sum();
            let gap = (lines as f64 / run.bytes as f64 - 1.0).abs();
            assert!(gap < 0.24, "{lines} in the intervals, {} in all", run.bytes);
            let seconds = run.window_ns.0 as f64 / 1e9;
            assert!((0.95..1.5).contains(&seconds), "{seconds}");
            assert!(run.retransmits.is_known() && run.congestion.is_known(), "{run:#?}");
            let peer = run.cpu.peer.known().unwrap();
            assert!(peer.threads_ns.known().is_some_and(|ns| *ns > 0), "{peer:#?}");
            assert!(run.cpu.local.threads_ns.known().is_some_and(|ns| *ns > 0));
            // Within one host a stream is not pinned, and the result says so.
            let placement = &run.placement.local;
            assert!(placement.pinned.is_empty() && !placement.why.is_empty(), "{placement:?}");
            let sends = run.direction == Direction::Forward;
            assert!(run.intervals.iter().all(|i| i.cwnd_bytes.is_known() == sends));
            assert!(run.intervals.iter().all(|i| i.rtt_ns.is_known() == sends));
        }
    }
}

#[test]
fn udp_at_a_known_rate_arrives_at_that_rate() {
    let peer = PeerEnd::start();
    for direction in [Direction::Forward, Direction::Reverse, Direction::Both] {
        let mut spec = peer.spec("127.0.0.1");
        spec.common.transport = Transport::Udp;
        spec.direction = direction;
        spec.flows = vec![2];
        spec.message_bytes = vec![1000];
        spec.rate = Some(BitsPerSec(16_000_000));
        for run in measure(&spec).runs {
            let datagrams = run.datagrams.clone().unwrap();
            assert!((run.bits_per_s / 16e6 - 1.0).abs() < 0.05, "{run:#?}");
            assert_eq!(datagrams.sent, datagrams.received + datagrams.lost);
            assert_eq!(run.bytes, datagrams.received * 1000);
            let jitter = datagrams.jitter_ns.get().unwrap();
            assert!(jitter > 0 && jitter < 50_000_000, "{datagrams:?}");
            assert_eq!(run.retransmits, Reading::absent("UDP has none"));
        }
    }
}

#[test]
fn options_and_a_warm_up_are_taken() {
    let peer = PeerEnd::start();
    let mut spec = peer.spec("127.0.0.1");
    spec.common.warmup_ns = Nanos(700_000_000);
    spec.common.bind = Some("127.0.0.3".into());
    spec.common.socket = SocketOptions {
        nodelay: Some(true),
        buffer_bytes: Some(Bytes(200_000)),
        mss_bytes: Some(1000),
        dscp: Some(10),
        congestion: Some("cubic".into()),
    };
    spec.rate = Some(BitsPerSec(80_000_000));
    spec.zerocopy = Some(ZeroCopy::Sendfile);
    spec.message_bytes = vec![16 << 10];
    for direction in [Direction::Forward, Direction::Reverse] {
        spec.direction = direction;
        let document = measure(&spec);
        let run = &document.runs[0];
        assert!((run.bits_per_s / 80e6 - 1.0).abs() < 0.05, "{run:#?}");
        assert_eq!(run.congestion, Reading::Known("cubic".into()));
        assert_eq!(run.trimmed_ns, Nanos(1_000_000_000));
        assert!(
            run.warnings
                .iter()
                .any(|w| w.to_string() == "the warm-up took 1 s: iperf3 takes whole seconds only")
        );
        assert!(document.local.address.starts_with("127.0.0.3:"));
        // TCP options (timestamps) take a part of it.
        let mss = run.mss_bytes.get().unwrap_or(988);
        assert!((900..=1000).contains(&mss), "{mss}");
    }
}

#[test]
fn the_loss_of_datagrams_is_the_one_that_the_kernel_counted() {
    let peer = PeerEnd::start();
    let mut spec = peer.spec("127.0.0.1");
    spec.common.transport = Transport::Udp;
    spec.direction = Direction::Forward;
    spec.message_bytes = vec![32_000];
    // More than a receiver with this buffer can take, in bursts as long as a sleep.
    spec.common.socket.buffer_bytes = Some(Bytes(33_000));
    spec.rate = Some(BitsPerSec(8_000_000_000));
    let dropped = || -> u64 {
        let snmp = std::fs::read_to_string("/proc/net/snmp").unwrap();
        let udp: Vec<&str> = snmp.lines().filter(|l| l.starts_with("Udp: ")).collect();
        let at = udp[0].split(' ').position(|w| w == "RcvbufErrors").unwrap();
        udp[1].split(' ').nth(at).unwrap().parse().unwrap()
    };
    let before = dropped();
    let run = measure(&spec).runs.remove(0);
    let kernel = dropped() - before;
    let datagrams = run.datagrams.unwrap();
    assert!(kernel > 0, "no datagram was dropped: {datagrams:?}");
    // Other tests on this host may lose some too, but cannot reduce the losses.
    assert!(datagrams.lost <= kernel, "{datagrams:?}, kernel {kernel}");
    assert!(datagrams.lost as f64 > kernel as f64 * 0.99, "{datagrams:?}, kernel {kernel}");
}

#[test]
fn a_stop_ends_early_and_still_has_the_servers_results() {
    let peer = PeerEnd::start();
    let mut spec = peer.spec("127.0.0.1");
    spec.common.duration_ns = Nanos(60_000_000_000);
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    let measured = thread::scope(|s| {
        s.spawn(|| {
            thread::sleep(Duration::from_millis(800));
            stop.store(true, Ordering::Relaxed);
        });
        measure_until(&spec, &stop).unwrap()
    });
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(measured.document.interrupted && measured.broken.is_none(), "{measured:#?}");
    let run = &measured.document.runs[0];
    assert!(run.bytes > 0 && run.cpu.peer.is_known(), "{run:#?}");
}

#[test]
fn a_server_that_dies_leaves_what_was_measured() {
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut peer = PeerEnd::start();
        let mut spec = peer.spec("127.0.0.1");
        spec.direction = direction;
        spec.common.duration_ns = Nanos(60_000_000_000);
        let measured = thread::scope(|s| {
            s.spawn(|| {
                thread::sleep(Duration::from_millis(800));
                peer.child.kill().unwrap();
            });
            measure_until(&spec, &NEVER).unwrap()
        });
        let why = measured.broken.unwrap().to_string();
        assert!(why.contains("the server died") || why.contains("a stream broke"), "{why}");
        let run = &measured.document.runs[0];
        assert!(measured.document.interrupted && run.bytes > 0 && !run.intervals.is_empty());
        assert!(!run.cpu.peer.is_known());
    }
}

#[test]
fn a_busy_server_and_other_servers_are_named() {
    let peer = PeerEnd::start();
    let mut guest = Command::new("iperf3")
        .args(["-c", "127.0.0.1", "-t", "30", "-b", "1M", "-p", &peer.port.to_string()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(500));
    let e = measure_until(&peer.spec("127.0.0.1"), &NEVER).unwrap_err();
    assert!(e.to_string().contains("is busy with another test"), "{e}");
    guest.kill().unwrap();
    guest.wait().unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::scope(|s| {
        s.spawn(|| {
            let (mut socket, _) = listener.accept().unwrap();
            socket.write_all(b"SSH-2.0-OpenSSH\r\n").unwrap();
            let _ = socket.read_to_end(&mut Vec::new());
        });
        let e = measure_until(&spec(&format!("127.0.0.1:{port}")), &NEVER).unwrap_err();
        assert!(e.to_string().contains("does not speak iperf3's protocol: state 83"), "{e}");
    });
    // 3.12 with required credentials: SERVER_ERROR and the number, without the errno.
    thread::scope(|s| {
        s.spawn(|| {
            let (mut socket, _) = listener.accept().unwrap();
            let mut said = [0; 41];
            socket.read_exact(&mut said[..37]).unwrap();
            socket.write_all(&[9]).unwrap();
            socket.read_exact(&mut said[37..]).unwrap();
            let length = u32::from_be_bytes(said[37..].try_into().unwrap());
            socket.read_exact(&mut vec![0; length as usize]).unwrap();
            socket.write_all(&[254, 0, 0, 0, 142]).unwrap();
        });
        let e = measure_until(&spec(&format!("127.0.0.1:{port}")), &NEVER).unwrap_err();
        assert!(matches!(&e, Error::Denied(why) if why.contains("credentials")), "{e:?}");
    });
    drop(listener);
    let e = measure_until(&spec(&format!("127.0.0.1:{port}")), &NEVER).unwrap_err();
    assert!(e.to_string().contains("connection refused; start `iperf3 -s` there"), "{e}");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn what_iperf3_has_not_is_refused_before_anything_is_sent() {
    let refused = |change: fn(&mut StreamSpec)| {
        let mut spec = spec("127.0.0.1:1");
        change(&mut spec);
        match measure_until(&spec, &NEVER).unwrap_err() {
            Error::Usage(why) => why,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(|s| s.flows = vec![129]).contains("1 to 128"));
    assert!(refused(|s| s.message_bytes = vec![2 << 20]).contains("1 to 1048576"));
    assert!(refused(|s| s.common.transport = Transport::Udp).contains("UDP needs a rate"));
    assert!(refused(|s| s.common.wait = Wait::Spin).contains("blocking only"));
    assert!(refused(|s| s.zerocopy = Some(ZeroCopy::Msg)).contains("sendfile only"));
    assert!(refused(|s| s.common.target = "unix:/x".into()).contains("no Unix sockets"));
}
