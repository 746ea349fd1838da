//! Our client with unmodified qperf servers, and with servers that are not qperf.

use std::{
    fmt::Debug,
    io::{Read, Write},
    net::{TcpListener, UdpSocket},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use interop::qperf::{self, Limits};
use model::{
    Nanos, Warning,
    measure::{Common, Engine, PeerProgram, Pin, RttDocument, RttSpec, Transport, Wait},
};
use traffic::{Error, Measured, Result, Run};

use super::{peer::PeerEnd, real};

const MS: u64 = 1_000_000;

pub fn common(target: &str, transport: Transport, ms: u64) -> Common {
    Common {
        transport,
        duration_ns: Nanos(ms * MS),
        warmup_ns: Nanos(100 * MS),
        cooldown_ns: Nanos(50 * MS),
        max_time_ns: Nanos(0),
        ..Common::plain(target, PeerProgram::Qperf)
    }
}

fn spec(target: &str, transport: Transport, ms: u64) -> RttSpec {
    RttSpec {
        common: common(target, transport, ms),
        request_bytes: vec![1],
        response_bytes: vec![],
        flows: vec![1],
        queue_depth: 1,
        rate_per_s: None,
        timeout_ns: Nanos(200 * MS),
        wait_split: false,
        service_ns: None,
        think_time_ns: None,
        peer_threads: None,
        engine: Engine::Auto,
    }
}

pub fn run<D>(measure: impl FnOnce(Run<'_>) -> Result<Measured<D>>) -> Result<Measured<D>> {
    let stop = AtomicBool::new(false);
    measure(Run::new(&stop, &|_, _| {}))
}

/// Measures until Ctrl-C comes after 0.7 s, which must end it soon.
pub fn interrupted<D>(measure: impl FnOnce(Run<'_>) -> Result<Measured<D>>) -> Measured<D> {
    let (stop, begun) = (AtomicBool::new(false), Instant::now());
    let measured = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(700));
            stop.store(true, Ordering::Relaxed);
        });
        measure(Run::new(&stop, &|_, _| {})).unwrap()
    });
    assert!(begun.elapsed() < Duration::from_secs(20));
    measured
}

/// Why a measurement is refused.
pub fn refusal<D: Debug>(measured: Result<Measured<D>>) -> String {
    match measured.unwrap_err() {
        Error::Usage(why) => why,
        other => panic!("{other}"),
    }
}

/// Both ends counted the same.
pub fn ends_agree(warnings: &[Warning]) {
    assert!(!warnings.iter().any(|w| w.to_string().contains("disagree")), "{warnings:?}");
}

/// The medians of figures of ours and of qperf's, which machines that others use spread: an error of a
/// factor of two fails.
pub fn as_qperf(what: &str, mut ours: Vec<f64>, mut theirs: Vec<f64>) {
    ours.sort_by(f64::total_cmp);
    theirs.sort_by(f64::total_cmp);
    let ratio = ours[ours.len() / 2] / theirs[theirs.len() / 2];
    assert!((0.6..1.67).contains(&ratio), "{what}: {ours:?} {theirs:?}");
}

fn rtt(spec: &RttSpec) -> Result<Measured<RttDocument>> {
    run(|r| qperf::client_rtt(spec, r))
}

fn whole(spec: &RttSpec) -> RttDocument {
    let m = rtt(spec).unwrap();
    assert_eq!(m.broken, None);
    m.document
}

#[test]
fn sizes_over_both_transports_and_families() {
    let server = real::Server::new();
    for (transport, host) in [
        (Transport::Tcp, "127.0.0.1"),
        (Transport::Udp, "127.0.0.1"),
        (Transport::Tcp, "[::1]"),
        (Transport::Udp, "[::1]"),
    ] {
        let mut s = spec(&format!("{host}:{}", server.port), transport, 300);
        s.request_bytes = vec![1, 3, 1000, 20_000];
        let d = whole(&s);
        assert_eq!(d.peer.program, "qperf 0.4.11");
        assert!(d.peer.cpus > 0 && !d.peer.kernel.is_empty(), "{:?}", d.peer);
        assert_eq!(d.runs.len(), 4);
        for r in &d.runs {
            assert!(r.transactions > 10 && r.rtt_ns.count == r.transactions, "{r:?}");
            assert_eq!((r.lost, r.late), (0, 0), "{r:?}");
            assert!(r.rtt_ns.min > 1000 && r.rtt_ns.p50 <= r.rtt_ns.p99, "{r:?}");
            assert!(
                r.warnings.iter().any(|w| w.to_string().contains("half of the mean round trip"))
            );
            ends_agree(&r.warnings);
            let peer = r.cpu.peer.known().unwrap();
            assert!(peer.host_busy_per_unit_ns.known().unwrap() > &0.0, "{peer:?}");
        }
    }
}

#[test]
fn a_message_larger_than_the_sockets_buffers() {
    let server = real::Server::new();
    let mut s = spec(&server.target(), Transport::Tcp, 300);
    s.request_bytes = vec![4_000_000];
    let d = whole(&s);
    assert!(d.runs[0].transactions > 0 && d.runs[0].rtt_ns.min > 100_000, "{:?}", d.runs[0].rtt_ns);
}

/// Runs both clients interleaved, with one server of ours and a known service time. Neither may
/// print less than half of it; a factor of two between them (the whole round trip) fails.
#[test]
fn half_of_it_is_what_qperf_prints() {
    const HALF_NS: f64 = 1.5e6;
    let slow = PeerEnd::new(Limits { service_ns: Nanos(3 * MS), ..Limits::default() });
    for (transport, test) in [(Transport::Tcp, "tcp_lat"), (Transport::Udp, "udp_lat")] {
        let (mut ours, mut theirs) = (vec![], vec![]);
        for _ in 0..3 {
            ours.push(whole(&spec(&slow.target(), transport, 700)).runs[0].rtt_ns.mean / 2.0);
            let p = real::client(slow.port, "127.0.0.1", &["-t", "1", "--", test]);
            theirs.push(p.value(test, "latency"));
        }
        let least = ours.iter().chain(&theirs).copied().fold(f64::INFINITY, f64::min);
        assert!(least > 0.98 * HALF_NS, "{test}: {ours:?} {theirs:?}");
        as_qperf(test, ours, theirs);
    }
}

#[test]
fn an_injected_service_time_shows_whole() {
    let slow = PeerEnd::new(Limits { service_ns: Nanos(3 * MS), ..Limits::default() });
    for transport in [Transport::Tcp, Transport::Udp] {
        let d = whole(&spec(&slow.target(), transport, 500));
        let q = &d.runs[0].rtt_ns;
        assert!(q.min >= 3 * MS && q.p50 < 6 * MS, "{q:?}");
    }
    // The server counted what this end did. One message may have been in progress at the end, and
    // only its count includes warm-up and cool-down.
    for (test, received, sent) in slow.ended(2) {
        assert!(received - sent <= 1 && received > 100, "{test} {received} {sent}");
    }
}

#[test]
fn spinning_and_pinning_are_followed() {
    let server = real::Server::new();
    let mut s = spec(&server.target(), Transport::Tcp, 300);
    (s.common.wait, s.common.pin, s.common.peer_pin) = (Wait::Spin, Pin::Auto, Pin::Auto);
    let r = &whole(&s).runs[0];
    assert_eq!((r.wait, r.peer_wait), (Wait::Spin, Wait::Block));
    assert_eq!(r.placement.local.pinned.len(), 1);
    assert_eq!(r.placement.peer.pinned.len(), 1);
    assert!(r.placement.same_host);
    assert!(r.placement.local.ran_on.keys().eq(r.placement.local.pinned.iter()), "{r:?}");
    // A CPU that the server does not have: the error has the server's text.
    s.common.peer_pin = Pin::List(std::iter::once(model::CpuId(900)).collect());
    let e = rtt(&s).unwrap_err().to_string();
    assert!(e.contains("says: cannot set processor affinity (cpu 900)"), "{e}");
}

#[test]
fn what_qperf_cannot_do_is_refused() {
    let says = |change: fn(&mut RttSpec)| {
        let mut s = spec("127.0.0.1:1", Transport::Tcp, 100);
        change(&mut s);
        refusal(rtt(&s))
    };
    assert!(says(|s| s.flows = vec![2]).contains("one flow"));
    assert!(says(|s| s.rate_per_s = Some(5)).contains("no schedule"));
    assert!(says(|s| s.response_bytes = vec![2]).contains("as many bytes"));
    assert!(says(|s| s.common.transport = Transport::Unix).contains("Unix"));
    assert!(
        says(|s| (s.common.transport, s.request_bytes) = (Transport::Udp, vec![65_508]))
            .contains("65507")
    );
    assert!(says(|s| s.wait_split = true).contains("wait split"));
}

#[test]
fn nobody_and_somebody_else_there() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let e = rtt(&spec(&format!("127.0.0.1:{port}"), Transport::Tcp, 100)).unwrap_err().to_string();
    assert_eq!(
        e,
        format!("127.0.0.1:{port}: connection refused; start `qperf -lp {port}` there (or --port)")
    );
    for said in [&b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n"[..], &[0x55; 400], b""] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let other = thread::spawn(move || {
            let (mut c, _) = listener.accept().unwrap();
            let _ = c.write_all(said);
            let _ = c.shutdown(std::net::Shutdown::Write);
            let _ = c.read_to_end(&mut vec![]);
        });
        let e = rtt(&spec(&at, Transport::Tcp, 100)).unwrap_err().to_string();
        assert!(e.starts_with(&format!("qperf at {at} ")) && !e.contains('\n'), "{e}");
        other.join().unwrap();
    }
}

/// A server that follows the protocol up to the data, then runs `then`.
fn half_a_server(udp: bool, then: fn(std::net::TcpStream)) -> (String, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || {
        let mut request = [0; 200];
        let (mut c, _) = listener.accept().unwrap();
        c.read_exact(&mut request).unwrap();
        c.write_all(&qperf::wire::configuration("n", "c", "Linux 1")).unwrap();
        drop(c);
        let (mut c, _) = listener.accept().unwrap();
        c.read_exact(&mut request).unwrap();
        let (stream, datagrams) =
            (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let port = if udp { datagrams.local_addr() } else { stream.local_addr() }.unwrap().port();
        c.write_all(&u32::from(port).to_le_bytes()).unwrap();
        let data = (!udp).then(|| stream.accept().unwrap());
        c.write_all(b"synchronization before test").unwrap();
        then(c);
        drop((data, datagrams));
    });
    (at, server)
}

#[test]
fn a_server_that_dies_falls_silent_or_swallows_ends_the_measurement() {
    // The server ends early, nothing was measured: one line.
    let (at, server) = half_a_server(false, |_| thread::sleep(Duration::from_millis(400)));
    let m = rtt(&spec(&at, Transport::Tcp, 2000)).unwrap();
    let e = m.broken.unwrap().to_string();
    assert!(!e.contains('\n') && m.document.interrupted, "{e}");
    server.join().unwrap();
    // The server never answers over TCP: given up after the timeout.
    let (at, server) = half_a_server(false, |mut c| drop(c.read_to_end(&mut vec![])));
    let begun = Instant::now();
    let e = rtt(&spec(&at, Transport::Tcp, 60_000)).unwrap().broken.unwrap().to_string();
    assert!(e.contains("has not answered for"), "{e}");
    assert!(begun.elapsed() < Duration::from_secs(30));
    server.join().unwrap();
    // The server drops every datagram: losses, and a normal end.
    let (at, server) = half_a_server(true, |mut c| {
        let _ = c.read_exact(&mut [0; 27]);
        thread::sleep(Duration::from_millis(1900));
        c.write_all(&[0; 256]).unwrap();
        drop(c.read_to_end(&mut vec![]));
    });
    let m = rtt(&spec(&at, Transport::Udp, 1500)).unwrap();
    let r = &m.document.runs[0];
    assert!(m.broken.is_none() && r.transactions == 0 && r.lost >= 2, "{m:?}");
    assert!(!r.cpu.peer.is_known());
    server.join().unwrap();
}

#[test]
fn a_server_killed_in_the_middle() {
    let mut server = real::Server::new();
    let s = spec(&server.target(), Transport::Tcp, 20_000);
    thread::scope(|scope| {
        let measured = scope.spawn(|| rtt(&s));
        thread::sleep(Duration::from_millis(900));
        // The server's child serves the test; both must end.
        let children =
            std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", server.child.id()));
        for pid in children.unwrap().split_ascii_whitespace() {
            let pid = pid.parse::<i32>().unwrap();
            // SAFETY: a process started by this test's server.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        server.child.kill().unwrap();
        let m = measured.join().unwrap().unwrap();
        let e = m.broken.unwrap().to_string();
        assert!(!e.contains('\n') && m.document.interrupted, "{e}");
        assert!(m.document.runs[0].transactions > 10, "what was measured so far");
    });
}

#[test]
fn ctrl_c_reports_and_frees_the_server() {
    let server = real::Server::new();
    for transport in [Transport::Tcp, Transport::Udp] {
        let s = spec(&server.target(), transport, 30_000);
        let m = interrupted(|run| qperf::client_rtt(&s, run));
        assert!(m.document.interrupted && m.broken.is_none());
        let r = &m.document.runs[0];
        assert!(r.transactions > 10, "{transport:?}");
        assert!(r.cpu.peer.is_known(), "{transport:?}");
        // It serves the next client at once.
        let d = whole(&spec(&server.target(), Transport::Tcp, 200));
        assert!(d.runs[0].transactions > 10);
    }
}

#[test]
fn our_own_server_does_as_qperf_does() {
    let peer = PeerEnd::new(Limits::default());
    for transport in [Transport::Tcp, Transport::Udp] {
        let mut s = spec(&peer.target(), transport, 300);
        s.request_bytes = vec![1, 1000];
        let d = whole(&s);
        assert!(d.runs.iter().all(|r| r.transactions > 10 && r.lost == 0 && r.cpu.peer.is_known()));
    }
    // Both ends counted: the server at least as much as this end.
    assert_eq!(peer.ended(4).len(), 4);
}
