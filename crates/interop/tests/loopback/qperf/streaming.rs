//! Our streams to unmodified qperf servers.

use interop::qperf::{self, Limits};
use model::{
    BitsPerSec, Nanos,
    measure::{Direction, StreamDocument, StreamSpec, Transport},
};

use super::{
    measuring::{as_qperf, common, ends_agree, interrupted, refusal, run},
    peer::PeerEnd,
    real,
};

fn spec(target: &str, transport: Transport, ms: u64) -> StreamSpec {
    StreamSpec {
        common: common(target, transport, ms),
        direction: Direction::Forward,
        flows: vec![1],
        message_bytes: vec![if transport == Transport::Udp { 1400 } else { 65_536 }],
        rate: None,
        interval_ns: Nanos(100_000_000),
        zerocopy: None,
        skip_receive_copy: false,
    }
}

fn whole(spec: &StreamSpec) -> StreamDocument {
    let m = run(|r| qperf::client_stream(spec, r)).unwrap();
    assert_eq!(m.broken, None);
    m.document
}

#[test]
fn tcp_with_intervals_and_equal_counts() {
    let server = real::Server::new();
    for host in ["127.0.0.1", "[::1]"] {
        let mut s = spec(&format!("{host}:{}", server.port), Transport::Tcp, 600);
        s.message_bytes = vec![100, 65_536, 3_000_000];
        for r in &whole(&s).runs {
            assert!(r.bytes > 100_000 && r.bits_per_s > 1e6, "{r:?}");
            let parts: u64 = r.intervals.iter().map(|i| i.bytes).sum();
            assert_eq!(parts, r.bytes);
            assert!(r.intervals.len() >= 3, "{:?}", r.intervals);
            ends_agree(&r.warnings);
            assert!(r.congestion.is_known() && r.mss_bytes.is_known() && r.retransmits.is_known());
            assert!(r.cpu.peer.known().unwrap().host_busy_per_unit_ns.is_known());
        }
    }
}

#[test]
fn udp_at_a_rate() {
    let server = real::Server::new();
    let mut s = spec(&server.target(), Transport::Udp, 800);
    s.rate = Some(BitsPerSec(20_000_000));
    let d = whole(&s);
    let r = &d.runs[0];
    let g = r.datagrams.as_ref().unwrap();
    assert!(g.sent > 50 && g.received + g.lost == g.sent, "{g:?}");
    assert_eq!(r.bytes, g.received * 1400);
    // A busy machine may send less, but none sends more.
    assert!(r.bits_per_s > 1e6 && r.bits_per_s < 21e6, "{}", r.bits_per_s);
    // What came through, over its window: bits and bytes, or one end's time for both, differ.
    let of_bytes = r.bytes as f64 * 8e9 / r.window_ns.0 as f64;
    assert!((r.bits_per_s / of_bytes - 1.0).abs() < 0.02, "{} {of_bytes}", r.bits_per_s);
    assert_eq!(r.trimmed_ns, Nanos(0));
}

/// Interleaved with qperf's client; a factor of two would be bits for bytes, or one end's time for both.
#[test]
fn as_fast_as_qperf() {
    let server = real::Server::new();
    let (mut ours, mut theirs) = (vec![], vec![]);
    for _ in 0..5 {
        ours.push(whole(&spec(&server.target(), Transport::Tcp, 700)).runs[0].bits_per_s);
        let p = real::client(server.port, "127.0.0.1", &["-t", "1", "--", "tcp_bw"]);
        theirs.push(p.value("tcp_bw", "bw") * 8.0);
    }
    as_qperf("tcp_bw", ours, theirs);
}

#[test]
fn our_own_server_counts_the_same() {
    let peer = PeerEnd::new(Limits::default());
    let s = spec(&peer.target(), Transport::Tcp, 300);
    let r = whole(&s).runs.remove(0);
    ends_agree(&r.warnings);
    let (_, received, _) = peer.ended(1)[0];
    assert!(received * 65_536 >= r.bytes / 2, "{received} messages there, {} bytes here", r.bytes);
}

#[test]
fn what_qperf_cannot_do_is_refused() {
    let says = |change: fn(&mut StreamSpec)| {
        let mut s = spec("127.0.0.1:1", Transport::Tcp, 100);
        change(&mut s);
        refusal(run(|r| qperf::client_stream(&s, r)))
    };
    assert!(says(|s| s.direction = Direction::Reverse).contains("only receives"));
    assert!(says(|s| s.flows = vec![1, 2]).contains("one flow"));
    assert!(says(|s| s.message_bytes = vec![0]).contains("1 to"));
    assert!(says(|s| s.rate = Some(BitsPerSec(0))).contains("sends nothing"));
}

#[test]
fn ctrl_c_reports_what_went_through() {
    let server = real::Server::new();
    for transport in [Transport::Tcp, Transport::Udp] {
        let mut s = spec(&server.target(), transport, 30_000);
        s.rate = Some(BitsPerSec(50_000_000));
        let m = interrupted(|run| qperf::client_stream(&s, run));
        assert!(m.document.interrupted && m.document.runs[0].bytes > 1000, "{m:?}");
    }
}
