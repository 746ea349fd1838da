//! Both ends in one process over loopback and Unix sockets, and ends that misbehave.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use model::{
    Nanos,
    measure::{Common, FarProgram, Pin, RttRun, RttSpec, SocketOptions, Transport, Wait},
};
use traffic::{
    Error, Run, Secret,
    serve::{Limits, Listen, Options, Server},
};

struct Far {
    stop: Arc<AtomicBool>,
    target: String,
    thread: Option<JoinHandle<()>>,
}

impl Far {
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

impl Drop for Far {
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
            target: target.into(),
            far: FarProgram::Netwright,
            transport,
            family: None,
            bind: None,
            duration_ns: Nanos(200_000_000),
            warmup_ns: Nanos(20_000_000),
            cooldown_ns: Nanos(20_000_000),
            wait: Wait::Block,
            peer_wait: Wait::Block,
            pin: Pin::No,
            peer_pin: Pin::No,
            threads: 1,
            socket: SocketOptions::default(),
            confidence_per_mille: None,
            longest_ns: Nanos(60_000_000_000),
        },
        request_bytes: vec![64],
        response_bytes: vec![],
        flows: vec![1],
        outstanding: 1,
        rate_per_s: None,
        timeout_ns: Nanos(200_000_000),
        wait_split: false,
    }
}

fn measure(spec: &RttSpec, secret: Option<&Secret>) -> Result<Vec<RttRun>, Error> {
    let stop = AtomicBool::new(false);
    let run = Run { stop: &stop, progress: &|_, _| {} };
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
        (Far::loopback(), vec![Transport::Tcp, Transport::Udp]),
        (
            Far::start(options(Listen::Tcp("[::1]:0".parse().unwrap()))),
            vec![Transport::Tcp, Transport::Udp],
        ),
        (Far::start(options(path)), vec![Transport::Unix]),
    ];
    for (far, transports) in &ends {
        for transport in transports {
            let mut s = spec(&far.target, *transport);
            s.request_bytes = vec![1, 3000];
            s.flows = vec![1, 5];
            for run in measure(&s, None).unwrap() {
                sane(&run);
            }
            (s.response_bytes, s.request_bytes) = (vec![1, 40_000], vec![700]);
            (s.common.threads, s.outstanding, s.flows) = (2, 3, vec![5]);
            (s.common.wait, s.common.peer_wait) = (Wait::SpinThenBlock, Wait::SpinThenBlock);
            for run in measure(&s, None).unwrap() {
                sane(&run);
            }
            (s.rate_per_s, s.response_bytes) = (Some(2000), vec![]);
            for run in measure(&s, None).unwrap() {
                assert!((250..=450).contains(&run.transactions), "{}", run.transactions);
                assert_eq!(run.send_lag_ns.unwrap().count, run.transactions);
            }
        }
    }
}

#[test]
fn a_secret_is_demanded_proved_and_refused() {
    let mut o = options(Listen::Tcp("127.0.0.1:0".parse().unwrap()));
    o.secret = Some(Secret::new("correct horse").unwrap());
    let far = Far::start(o);
    let s = spec(&far.target, Transport::Tcp);
    let e = measure(&s, None).unwrap_err();
    assert!(matches!(&e, Error::Denied(w) if w.contains("--secret-file")), "{e}");
    let e = measure(&s, Some(&Secret::new("wrong horse").unwrap())).unwrap_err();
    assert!(matches!(&e, Error::Denied(w) if w.contains("not the one")), "{e}");
    sane(&measure(&s, Some(&Secret::new("correct horse").unwrap())).unwrap()[0]);
}
