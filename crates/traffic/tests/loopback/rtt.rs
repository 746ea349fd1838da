//! Both ends in one process over loopback and Unix sockets, and peers that misbehave.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use model::{
    Nanos,
    measure::{Common, Engine, PeerProgram, Pin, RttRun, RttSpec, Transport, Wait},
};
use traffic::{
    Error, Run, Secret,
    serve::{Limits, Listen, Options, Server},
};

struct PeerEnd {
    stop: Arc<AtomicBool>,
    target: String,
    thread: Option<JoinHandle<()>>,
}

impl PeerEnd {
    fn start(options: Options) -> Self {
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
        Self::start(options(Listen::Tcp("127.0.0.1:0".parse().unwrap())))
    }
}

impl Drop for PeerEnd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

fn options(listen: Listen) -> Options {
    Options {
        listen: vec![listen],
        data_ports: None,
        secret: None,
        limits: Limits::default(),
        service_ns: Nanos(0),
        pin: Pin::No,
    }
}

fn spec(target: &str, transport: Transport) -> RttSpec {
    RttSpec {
        common: Common {
            transport,
            duration_ns: Nanos(200_000_000),
            warmup_ns: Nanos(20_000_000),
            cooldown_ns: Nanos(20_000_000),
            max_time_ns: Nanos(60_000_000_000),
            ..Common::plain(target, PeerProgram::Netwright)
        },
        request_bytes: vec![64],
        response_bytes: vec![],
        flows: vec![1],
        queue_depth: 1,
        rate_per_s: None,
        timeout_ns: Nanos(200_000_000),
        wait_split: false,
        service_ns: None,
        think_time_ns: None,
        peer_threads: None,
        engine: Engine::Auto,
    }
}

fn measure(spec: &RttSpec, secret: Option<&Secret>) -> Result<Vec<RttRun>, Error> {
    let stop = AtomicBool::new(false);
    let run = Run::new(&stop, &|_, _| {});
    let measured = traffic::measure_rtt(spec, secret, run)?;
    assert_eq!(measured.broken, None);
    Ok(measured.document.runs)
}

fn sane(run: &RttRun) {
    assert!(run.transactions > 20, "{run:?}");
    assert_eq!(run.rtt_ns.count, run.transactions);
    let q = &run.rtt_ns;
    assert!(q.min > 500 && q.min <= q.p50 && q.p50 <= q.p99 && q.p99 <= q.max, "{q:?}");
    assert_eq!((run.lost, run.late), (0, 0));
}

#[test]
fn every_transport_wait_and_shape() {
    let folder = tempfile::tempdir().unwrap();
    let path = Listen::Unix(folder.path().join("far"));
    let ends = [
        (PeerEnd::loopback(), vec![Transport::Tcp, Transport::Udp]),
        (
            PeerEnd::start(options(Listen::Tcp("[::1]:0".parse().unwrap()))),
            vec![Transport::Tcp, Transport::Udp],
        ),
        (PeerEnd::start(options(path)), vec![Transport::Unix]),
    ];
    for (peer, transports) in &ends {
        for transport in transports {
            let mut s = spec(&peer.target, *transport);
            s.request_bytes = vec![1, 3000];
            s.flows = vec![1, 5];
            for run in measure(&s, None).unwrap() {
                sane(&run);
            }
            (s.queue_depth, s.flows) = (3, vec![1]);
            for run in measure(&s, None).unwrap() {
                sane(&run);
            }
            (s.response_bytes, s.request_bytes) = (vec![1, 40_000], vec![700]);
            (s.common.threads, s.queue_depth, s.flows) = (2, 3, vec![5]);
            (s.common.wait, s.common.peer_wait) = (Wait::SpinThenBlock, Wait::SpinThenBlock);
            for run in measure(&s, None).unwrap() {
                sane(&run);
            }
            (s.rate_per_s, s.response_bytes) = (Some(2000), vec![]);
            for run in measure(&s, None).unwrap() {
                assert!((250..=450).contains(&run.transactions), "{}", run.transactions);
                // Latencies also include requests due in the window that ended after it.
                let times = run.transactions..=run.transactions + 15;
                assert_eq!(run.send_lag_ns.as_ref().unwrap().count, run.rtt_ns.count);
                assert!(times.contains(&run.rtt_ns.count), "{run:?}");
            }
        }
    }
}

#[test]
fn a_secret_is_demanded_proved_and_refused() {
    let mut o = options(Listen::Tcp("127.0.0.1:0".parse().unwrap()));
    o.secret = Some(Secret::new("correct horse").unwrap());
    let peer = PeerEnd::start(o);
    let s = spec(&peer.target, Transport::Tcp);
    let e = measure(&s, None).unwrap_err();
    assert!(matches!(&e, Error::Denied(w) if w.contains("--secret-file")), "{e}");
    let e = measure(&s, Some(&Secret::new("wrong horse").unwrap())).unwrap_err();
    assert!(matches!(&e, Error::Denied(w) if w.contains("not the one")), "{e}");
    sane(&measure(&s, Some(&Secret::new("correct horse").unwrap())).unwrap()[0]);
}

#[test]
fn a_thread_that_computes_between_two_requests_asks_as_much_less_often() {
    const THINK: u64 = 2_000_000;
    let peer = PeerEnd::loopback();
    for transport in [Transport::Tcp, Transport::Udp] {
        let mut s = spec(&peer.target, transport);
        s.think_time_ns = Some(Nanos(THINK));
        // The client has a thread for each flow, the server one for all; then the client has one
        // too.
        for threads in [3, 1] {
            (s.flows, s.common.threads, s.peer_threads) = (vec![3], threads, Some(1));
            for run in measure(&s, None).unwrap() {
                assert_eq!((run.threads, run.lost), (threads, 0));
                // A thread can answer at most this many in the window, plus one begun before.
                let most = u64::from(threads) * (run.window_ns.0 / THINK + 1);
                assert!((3..=most).contains(&run.transactions), "{} of {most}", run.transactions);
                // If no other flow's thread computes meanwhile, the answer takes less.
                assert!(threads == 1 || run.rtt_ns.min < THINK, "{:?}", run.rtt_ns);
            }
        }
        s.peer_threads = Some(0);
        assert!(matches!(measure(&s, None).unwrap_err(), Error::Usage(_)));
    }
}

/// Runs with one engine at both ends.
fn engine_runs(
    peer: &PeerEnd,
    transport: Transport,
    engine: Engine,
    change: impl Fn(&mut RttSpec),
) {
    let mut s = spec(&peer.target, transport);
    s.engine = engine;
    change(&mut s);
    let named = match engine {
        Engine::IoUring => "io_uring at the client, io_uring at the server",
        _ => "epoll at the client, epoll at the server",
    };
    for run in measure(&s, None).unwrap() {
        assert_eq!(run.engine, named, "{:?}", run.warnings);
        sane(&run);
        // Little's law (1961): rate times time is the number under way. Loosely, because of the
        // ends of the window and flows starved on a loaded machine. Far fewer means stalled flows.
        let (flows, mean) = (f64::from(run.flows * run.queue_depth), run.rtt_ns.mean);
        let under_way = run.transactions_per_s * mean / 1e9;
        let short = mean < 0.05 * run.window_ns.0 as f64;
        let plausible = !short || (0.2..=2.0).contains(&(under_way / flows));
        assert!(plausible, "{under_way} of {flows} under way: {engine:?} {run:?}");
    }
}

#[test]
fn a_sweep_over_flows_has_one_engine() {
    let peer = PeerEnd::loopback();
    let mut s = spec(&peer.target, Transport::Tcp);
    s.flows = vec![1, 8, 64];
    let used = |s: &RttSpec| -> Vec<String> {
        measure(s, None).unwrap().into_iter().map(|run| run.engine).collect()
    };
    assert_eq!(used(&s), ["epoll at the client, epoll at the server"; 3]);
    // With one number of flows, the fastest engine is chosen.
    s.flows = vec![1];
    assert_eq!(used(&s), ["send/recv at the client, send/recv at the server"]);
}

#[test]
fn both_engines_move_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = Listen::Unix(folder.path().join("far"));
    let ends =
        [(PeerEnd::loopback(), Transport::Tcp), (PeerEnd::start(options(path)), Transport::Unix)];
    for (peer, transport) in &ends {
        for engine in [Engine::Epoll, Engine::IoUring] {
            engine_runs(peer, *transport, engine, |s| {
                (s.request_bytes, s.flows) = (vec![1, 700, 40_000], vec![5, 200]);
            });
            engine_runs(peer, *transport, engine, |s| {
                (s.request_bytes, s.response_bytes) = (vec![700], vec![1, 40_000]);
                (s.common.threads, s.queue_depth, s.flows) = (2, 3, vec![12]);
                (s.common.wait, s.common.peer_wait) = (Wait::SpinThenBlock, Wait::Spin);
            });
            // More than the sockets have room for: sends end within messages.
            engine_runs(peer, *transport, engine, |s| {
                (s.request_bytes, s.response_bytes) = (vec![60_000], vec![50_000]);
                (s.queue_depth, s.flows) = (4, vec![3]);
                s.common.socket.buffer_bytes = Some(model::Bytes(8192));
            });
        }
    }
}

#[test]
fn a_server_that_dies_is_one_line_with_both_engines() {
    for engine in [Engine::Epoll, Engine::IoUring] {
        let peer = PeerEnd::loopback();
        let mut s = spec(&peer.target, Transport::Tcp);
        (s.engine, s.flows, s.common.duration_ns) = (engine, vec![20], Nanos(20_000_000_000));
        let begun = std::time::Instant::now();
        let death = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(400));
            drop(peer);
        });
        let stop = AtomicBool::new(false);
        let run = Run::new(&stop, &|_, _| {});
        let broken = match traffic::measure_rtt(&s, None, run) {
            Ok(measured) => measured.broken.unwrap(),
            Err(e) => e,
        };
        assert!(matches!(&broken, Error::Environment(w) if w.lines().count() == 1), "{broken}");
        assert!(begun.elapsed().as_secs() < 15, "{:?}", begun.elapsed());
        death.join().unwrap();
    }
}

/// A task that computes on one CPU until it is dropped.
struct Hog(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Hog {
    fn on(cpu: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread = std::thread::spawn(move || {
            // SAFETY: a set of bits, for which all zeros are an empty one; the CPU is within it.
            unsafe {
                let mut mask: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(cpu, &mut mask);
                assert_eq!(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &mask), 0);
            }
            while !flag.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        Self(stop, Some(thread))
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        let _ = self.1.take().unwrap().join();
    }
}

/// Another task takes the CPU of a server that computes. The round trips of a closed loop are the
/// clients over the rate; the server's own clock says by how much its service times took longer.
#[test]
fn round_trips_exclude_by_how_much_a_requested_service_time_took_longer() {
    const SERVICE: f64 = 10e6;
    let end = PeerEnd::loopback();
    // SAFETY: it only reads this thread's CPU.
    let cpu = usize::try_from(unsafe { libc::sched_getcpu() }).unwrap();
    let _hog = Hog::on(cpu);
    for flows in [1, 2] {
        let mut spec = spec(&end.target, Transport::Tcp);
        spec.common.duration_ns = Nanos(2_000_000_000);
        spec.common.peer_pin = Pin::List([model::CpuId(cpu as u32)].into_iter().collect());
        spec.engine = Engine::PerMessage;
        spec.flows = vec![flows];
        spec.service_ns = Some(Nanos(SERVICE as u64));
        let run = &measure(&spec, None).unwrap()[0];
        let whole = f64::from(flows) * 1e9 / run.transactions_per_s;
        let overrun = run.peer_service_ns.unwrap() - SERVICE;
        let off = run.rtt_ns.mean - (whole - overrun);
        assert!(overrun > 0.03 * SERVICE, "the task took nothing: {run:?}");
        assert!(off.abs() < 0.3 * overrun, "{flows}: {off} of {overrun} in {whole}: {run:?}");
    }
}
