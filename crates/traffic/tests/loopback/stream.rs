//! Streams with both ends in one process, over loopback and Unix sockets.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use model::{
    BitsPerSec, Nanos,
    measure::{
        Common, Direction, PeerProgram, Pin, StreamRun, StreamSpec, Transport, Wait, ZeroCopy,
    },
};
use traffic::{
    Error, Run,
    serve::{Limits, Listen, Options, Server},
};

struct PeerEnd {
    stop: Arc<AtomicBool>,
    target: String,
    thread: Option<JoinHandle<()>>,
}

impl PeerEnd {
    fn start(listen: Listen) -> Self {
        let options = Options {
            listen: vec![listen],
            data_ports: None,
            secret: None,
            limits: Limits::default(),
            service_ns: Nanos(0),
            pin: Pin::No,
        };
        let server = Server::bind(options).unwrap();
        let target = match server.listening().first().unwrap() {
            Listen::Tcp(a) => a.to_string(),
            Listen::Unix(p) => format!("unix:{}", p.display()),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread = std::thread::spawn(move || server.run(&flag, &|_| {}).unwrap());
        Self { stop, target, thread: Some(thread) }
    }

    fn loopback() -> Self {
        Self::start(Listen::Tcp("127.0.0.1:0".parse().unwrap()))
    }
}

impl Drop for PeerEnd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

fn spec(target: &str, transport: Transport) -> StreamSpec {
    let udp = transport == Transport::Udp;
    StreamSpec {
        common: Common {
            transport,
            duration_ns: Nanos(200_000_000),
            warmup_ns: Nanos(20_000_000),
            cooldown_ns: Nanos(20_000_000),
            max_time_ns: Nanos(60_000_000_000),
            ..Common::plain(target, PeerProgram::Netwright)
        },
        direction: Direction::Forward,
        flows: vec![1],
        message_bytes: vec![if udp { 1400 } else { 128 << 10 }],
        rate: udp.then_some(BitsPerSec(20_000_000)),
        interval_ns: Nanos(100_000_000),
        zerocopy: None,
        skip_receive_copy: false,
    }
}

fn measure(spec: &StreamSpec) -> Result<Vec<StreamRun>, Error> {
    let stop = AtomicBool::new(false);
    let run = Run::new(&stop, &|_, _| {});
    let heard = Mutex::new(vec![]);
    let hear =
        |direction, interval: &_| heard.lock().unwrap().push((direction, Clone::clone(interval)));
    let measured = traffic::measure_stream(spec, None, run, &hear)?;
    assert_eq!(measured.broken, None);
    let runs = measured.document.runs;
    let intervals: usize = runs.iter().map(|r| r.intervals.len()).sum();
    assert_eq!(heard.lock().unwrap().len(), intervals, "each interval was heard");
    Ok(runs)
}

/// Checks that hold for every run on any machine.
fn sane(run: &StreamRun, spec: &StreamSpec) {
    assert!(run.bytes > 0, "{run:?}");
    assert_eq!(run.flow_bytes.iter().sum::<u64>(), run.bytes);
    assert_eq!(run.flow_bytes.len(), run.flows as usize);
    assert!(run.flow_bytes.iter().all(|b| *b > 0), "a flow starved: {:?}", run.flow_bytes);
    assert_eq!(run.intervals.iter().map(|i| i.bytes).sum::<u64>(), run.bytes);
    assert!(run.window_ns.0 >= spec.common.duration_ns.0, "{}", run.window_ns);
    let expected = run.bytes as f64 * 8e9 / run.window_ns.0 as f64;
    assert!((run.bits_per_s - expected).abs() <= expected * 1e-9);
    let mut at = 0.0;
    for i in &run.intervals {
        assert!((i.start_s - at).abs() < 1e-9, "a gap at {at}");
        at = i.end_s;
        let expected = i.bytes as f64 * 8.0 / (i.end_s - i.start_s);
        assert!((i.bits_per_s - expected).abs() <= expected * 1e-6);
    }
    let cpu = run.cpu.peer.known().unwrap();
    assert!(cpu.threads_per_unit_ns.get().unwrap() > 0.0);
    match run.transport {
        Transport::Tcp => {
            assert!(run.congestion.is_known() && run.mss_bytes.get().unwrap() > 500);
            assert!(run.retransmits.is_known());
            let last = run.intervals.last().unwrap();
            assert!(last.cwnd_bytes.get().unwrap() > 0 && last.rtt_ns.get().unwrap() > 0);
        }
        Transport::Udp => {
            let d = run.datagrams.as_ref().unwrap();
            assert!(d.sent > 0 && d.received > 0 && d.duplicates.get() == Some(0), "{d:?}");
            assert_eq!(run.bytes, d.received * run.message_bytes);
        }
        Transport::Unix => assert!(!run.retransmits.is_known() && run.datagrams.is_none()),
    }
}

#[test]
fn every_transport_direction_wait_and_shape() {
    let folder = tempfile::tempdir().unwrap();
    let path = Listen::Unix(folder.path().join("far"));
    let ends = [
        (PeerEnd::loopback(), vec![Transport::Tcp, Transport::Udp]),
        (
            PeerEnd::start(Listen::Tcp("[::1]:0".parse().unwrap())),
            vec![Transport::Tcp, Transport::Udp],
        ),
        (PeerEnd::start(path), vec![Transport::Unix]),
    ];
    for (peer, transports) in &ends {
        for transport in transports {
            for direction in [Direction::Forward, Direction::Reverse, Direction::Both] {
                let mut s = spec(&peer.target, *transport);
                s.direction = direction;
                s.flows = vec![1, 5];
                let all = measure(&s).unwrap();
                let ways = if direction == Direction::Both { 2 } else { 1 };
                assert_eq!(all.len(), 2 * ways);
                all.iter().for_each(|r| sane(r, &s));
                s.flows = vec![4];
                s.common.threads = 2;
                (s.common.wait, s.common.peer_wait) = (Wait::SpinThenBlock, Wait::SpinThenBlock);
                measure(&s).unwrap().iter().for_each(|r| sane(r, &s));
            }
        }
    }
}

#[test]
fn copies_are_spared_where_asked_and_reported_where_not() {
    let peer = PeerEnd::loopback();
    let folder = tempfile::tempdir().unwrap();
    let unix = PeerEnd::start(Listen::Unix(folder.path().join("far")));
    for (peer, transport, how) in [
        (&peer, Transport::Tcp, ZeroCopy::Sendfile),
        (&peer, Transport::Tcp, ZeroCopy::Msg),
        (&unix, Transport::Unix, ZeroCopy::Sendfile),
    ] {
        for direction in [Direction::Forward, Direction::Both] {
            let mut s = spec(&peer.target, transport);
            (s.zerocopy, s.direction) = (Some(how), direction);
            s.skip_receive_copy = transport == Transport::Tcp;
            for run in measure(&s).unwrap() {
                sane(&run, &s);
                // Loopback copies pinned pages, and the kernel reports that.
                match (how, &run.zerocopy_copied) {
                    (ZeroCopy::Msg, Some(z)) => {
                        assert!(z.completed > 0 && z.copied == z.completed, "{z:?}");
                        assert!(
                            run.warnings.iter().any(|w| w.to_string().contains("MSG_ZEROCOPY"))
                        );
                    }
                    (ZeroCopy::Sendfile, None) => {}
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    let mut s = spec(&peer.target, Transport::Udp);
    s.skip_receive_copy = true;
    measure(&s).unwrap().iter().for_each(|r| sane(r, &s));
}

#[test]
fn a_rate_is_kept_from_a_megabit_on() {
    let peer = PeerEnd::loopback();
    for transport in [Transport::Tcp, Transport::Udp] {
        for (rate, wait) in [(1e6, Wait::Block), (50e6, Wait::SpinThenBlock), (50e6, Wait::Block)] {
            let mut s = spec(&peer.target, transport);
            s.rate = Some(BitsPerSec(rate as u64));
            s.common.duration_ns = Nanos(1_000_000_000);
            (s.common.wait, s.common.peer_wait) = (wait, Wait::Block);
            (s.flows, s.direction) = (vec![3], Direction::Both);
            for run in measure(&s).unwrap() {
                sane(&run, &s);
                let off = run.bits_per_s / rate - 1.0;
                // Allows a piece more or less at each end of the window, and a busy machine.
                assert!(off.abs() < 0.06, "{transport:?} {rate} {wait:?}: {}", run.bits_per_s);
            }
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused_in_a_line() {
    let peer = PeerEnd::loopback();
    let refused = |change: fn(&mut StreamSpec), transport: Transport, says: &str| {
        let mut s = spec(&peer.target, transport);
        change(&mut s);
        let e = measure(&s).unwrap_err();
        assert!(matches!(&e, Error::Usage(w) if w.contains(says)), "{e}");
    };
    refused(|s| s.rate = None, Transport::Udp, "UDP needs a rate");
    refused(|s| s.message_bytes = vec![15], Transport::Udp, "16 to 65507");
    refused(|s| s.zerocopy = Some(ZeroCopy::Msg), Transport::Udp, "numbered");
    refused(|s| s.common.threads = 2, Transport::Tcp, "busy");
    refused(|s| s.message_bytes = vec![0], Transport::Tcp, "1 to");
}

#[test]
fn rounds_are_repeated_until_narrow_or_said_why_not() {
    let peer = PeerEnd::loopback();
    let mut s = spec(&peer.target, Transport::Tcp);
    s.rate = Some(BitsPerSec(40_000_000));
    s.common.duration_ns = Nanos(400_000_000);
    s.common.confidence_per_mille = Some(100);
    s.common.max_time_ns = Nanos(3_000_000_000);
    let run = &measure(&s).unwrap()[0];
    assert!(run.window_ns.0 >= 400_000_000);
    match &run.bits_per_s_interval {
        Some(i) if (i.high - i.low) / 2.0 <= 0.1 * i.value => assert!(i.low <= i.high),
        _ => assert!(
            run.warnings
                .iter()
                .any(|w| w.to_string().contains("not reached") || w.to_string().contains("short"))
        ),
    }
}
