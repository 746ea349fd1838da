//! `measure rtt`: runs one combination of parameters after the other.

use std::{
    os::fd::{AsRawFd, RawFd},
    sync::atomic::Ordering,
};

use model::{
    Nanos, Warning,
    measure::{Common, Engine, RttDocument, RttRun, RttSpec, Transport, Wait, WaitVariant},
};
use socket2::Socket;

use super::{
    many::RttClient,
    result,
    single::{self, RttShape},
    split,
    sums::{Round, Sums},
    uring,
};
use crate::{
    Error, Result,
    client::{Peer, flows},
    control::{
        message::{Test, TestKind},
        secret::Secret,
    },
    engine::{
        assignments::{self, Assignments},
        conduct::{MeasuredWindow, Run, conduct},
        confidence::Next,
        ends::Ended,
        floor::calibrate,
        measured::{BATCH_NS, Measured, unix_s},
        rtt_recorder::RttRecorder,
        schedule::Schedule,
        window::Window,
        worker_pool::WorkerPool,
    },
    net::{LARGEST_DATAGRAM, now_ns, options, own_files},
};

/// One combination of message sizes and number of flows.
#[derive(Debug, Clone, Copy)]
struct Point {
    request_bytes: u64,
    response_bytes: u64,
    flows: u32,
}

fn points(spec: &RttSpec) -> Vec<Point> {
    let mut all = vec![];
    for &flows in &spec.flows {
        for &request_bytes in &spec.request_bytes {
            let own = [request_bytes];
            let responses =
                if spec.response_bytes.is_empty() { &own[..] } else { &spec.response_bytes };
            for &response_bytes in responses {
                all.push(Point { request_bytes, response_bytes, flows });
            }
        }
    }
    all
}

/// Measures round trips as requested.
///
/// # Errors
/// Nothing could be measured; later failures are in [`Measured::broken`].
pub fn measure(
    spec: &RttSpec,
    secret: Option<&Secret>,
    run: Run<'_>,
) -> Result<Measured<RttDocument>> {
    check(spec)?;
    let peer = Peer::connect(&spec.common, secret)?;
    let local =
        assignments::local(&spec.common.pin, spec.common.threads, peer.same_host, peer.address)?;
    let calibration = calibrate(local.cpus.first().copied())?;
    let mut document = RttDocument {
        schema_version: model::SCHEMA_VERSION,
        kind: "rtt".into(),
        started_unix_s: unix_s(),
        request: spec.clone(),
        local: peer.local.clone(),
        peer: peer.end.clone(),
        floor: calibration.certificate([]),
        runs: vec![],
        wait_split: None,
        interrupted: false,
    };
    let threads = spec.common.threads.max(spec.peer_threads.unwrap_or(0));
    let waits = [spec.common.wait, spec.common.peer_wait];
    let engine = uring::of_sweep(spec.engine, &spec.flows, threads, waits);
    let spec = &RttSpec { engine, ..spec.clone() };
    let broken = match spec.wait_split {
        true => split_runs(spec, &peer, &local, run, &mut document),
        false => all_points(spec, &peer, &local, run, &mut document),
    };
    document.interrupted |= run.stop.load(Ordering::Relaxed);
    document.floor = calibration.certificate(document.runs.iter().map(|r| &r.cpu.local));
    match (document.runs.is_empty(), broken) {
        (true, Some(why)) => Err(why),
        (_, broken) => Ok(Measured { document, broken }),
    }
}

/// The variants of the wait split, for the first size and number of flows.
fn split_runs(
    spec: &RttSpec,
    peer: &Peer,
    local: &Assignments,
    run: Run<'_>,
    document: &mut RttDocument,
) -> Option<Error> {
    let point = points(spec).into_iter().next()?;
    let mut done = vec![];
    let mut broken = None;
    for variant in split::variants(spec, local.cpus.first().copied(), peer.same_host) {
        if run.stop.load(Ordering::Relaxed) || broken.is_some() {
            document.interrupted = true;
            break;
        }
        let step = document.floor.clock_step_ns;
        match one(&variant.spec, point, peer, local, run, step) {
            Ok(Measured { document: mut run, broken: why }) => {
                document.interrupted |= why.is_some();
                broken = why;
                if let Some(why) = variant.why {
                    let ends = &mut run.placement;
                    (ends.local.why, ends.peer.why) = (why.into(), why.into());
                }
                done.push(WaitVariant { name: variant.name.into(), run });
            }
            Err(e) => broken = Some(e),
        }
    }
    document.runs = done.iter().map(|v| v.run.clone()).collect();
    document.wait_split = Some(split::split(done));
    broken
}

fn all_points(
    spec: &RttSpec,
    peer: &Peer,
    local: &Assignments,
    run: Run<'_>,
    document: &mut RttDocument,
) -> Option<Error> {
    let mut broken = None;
    for point in points(spec) {
        if run.stop.load(Ordering::Relaxed) {
            document.interrupted = true;
            break;
        }
        match one(spec, point, peer, local, run, document.floor.clock_step_ns) {
            Ok(Measured { document: done, broken: why }) => {
                document.interrupted |= why.is_some();
                document.runs.push(done);
                broken = why;
            }
            Err(e) => broken = Some(e),
        }
        if broken.is_some() {
            break;
        }
    }
    broken
}

fn check(spec: &RttSpec) -> Result<()> {
    let usage = |why: String| Err(Error::Usage(why));
    let common = &spec.common;
    if spec.request_bytes.is_empty() || spec.flows.is_empty() {
        return usage("no size or no number of flows is given".into());
    }
    if let Some(few) = spec.flows.iter().find(|f| **f < common.threads) {
        return usage(format!(
            "{few} flow{} cannot keep {} threads busy; give at least as many flows",
            if *few == 1 { "" } else { "s" },
            common.threads
        ));
    }
    if spec.engine == Engine::IoUring && [common.wait, common.peer_wait].contains(&Wait::BusyPoll) {
        return usage("--engine io_uring does not poll the NIC's queue; use epoll".into());
    }
    let sizes = || spec.request_bytes.iter().chain(&spec.response_bytes);
    if sizes().any(|n| *n == 0) {
        return usage("a request and a response have at least 1 byte".into());
    }
    let most = if common.transport == Transport::Udp { LARGEST_DATAGRAM } else { u64::MAX };
    if let Some(n) = sizes().find(|n| **n > most) {
        return usage(format!("a datagram of {n} bytes; at most {most} are possible"));
    }
    if spec.queue_depth == 0 || common.threads == 0 {
        return usage("at least one request outstanding and one thread are needed".into());
    }
    if spec.peer_threads == Some(0) {
        return usage("at least one thread is needed at the server".into());
    }
    if spec.rate_per_s == Some(0) {
        return usage("a rate of 0 sends nothing".into());
    }
    Ok(())
}

/// The test to request from the server.
fn test_of(spec: &RttSpec, point: Point, assignments: &Assignments) -> Test {
    let Common { warmup_ns, duration_ns, cooldown_ns, .. } = &spec.common;
    Test {
        kind: TestKind::Rtt {
            request_bytes: point.request_bytes,
            response_bytes: point.response_bytes,
            queue_depth: spec.queue_depth,
        },
        transport: spec.common.transport,
        flows: point.flows,
        threads: spec.peer_threads.unwrap_or(spec.common.threads),
        wait: spec.common.peer_wait,
        pin: spec.common.peer_pin.clone(),
        local_cpus: assignments.cpus.iter().copied().collect(),
        socket: spec.common.socket.clone(),
        max_time_ns: Nanos(warmup_ns.0 + duration_ns.0 + cooldown_ns.0),
        engine: spec.engine,
        service_ns: spec.service_ns,
    }
}

/// One point, repeated until its interval meets `--precision`.
fn one(
    spec: &RttSpec,
    point: Point,
    peer: &Peer,
    assignments: &Assignments,
    run: Run<'_>,
    clock_step_ns: u64,
) -> Result<Measured<RttRun>> {
    let test = test_of(spec, point, assignments);
    let mut sums = Sums::new(clock_step_ns);
    let begun = now_ns();
    loop {
        let what = result::progress_text(spec, point.request_bytes, point.flows, sums.rounds);
        let round = match round(spec, &test, peer, assignments, run, &what) {
            Ok(round) => round,
            Err(e) if sums.rounds == 0 => return Err(e),
            Err(e) => {
                let document = result::rtt_run(spec, &test, assignments, peer.same_host, sums);
                return Ok(Measured { document, broken: Some(e) });
            }
        };
        sums.add(&round);
        let Round { broken, ended, .. } = round;
        let ends = broken.is_some() || ended.course.interrupted;
        let next =
            if ends { Next::Done(None) } else { result::next(spec, &sums, now_ns() - begun) };
        if let Next::Done(why) = next {
            let mut document = result::rtt_run(spec, &test, assignments, peer.same_host, sums);
            document.warnings.extend(why);
            return Ok(Measured { document, broken });
        }
    }
}

/// One round: opens connections, starts threads, runs the window, fetches the report.
fn round(
    spec: &RttSpec,
    test: &Test,
    peer: &Peer,
    assignments: &Assignments,
    run: Run<'_>,
    what: &str,
) -> Result<Round> {
    let ready = peer.ask(test)?;
    if let Some(asked) = test.service_ns.filter(|asked| *asked != ready.service_ns) {
        return Err(Error::Environment(format!(
            "{} does not support a service time of {asked}; run the same version at both ends",
            peer.name
        )));
    }
    let sockets = flows::open(peer, &spec.common, test, &ready)?;
    let mut warnings = peer.await_connected()?;
    let prepared = sockets.iter().filter_map(|s| options::prepare(s, spec.common.wait));
    warnings.extend(prepared.take(1));
    let (pool, window) = (WorkerPool::new(spec.common.threads as usize), Window::closed());
    let open_loop = spec.rate_per_s.is_some();
    let mut recorders: Vec<RttRecorder> =
        pool.workers.iter().map(|_| RttRecorder::new(open_loop, BATCH_NS)).collect();
    let shape = shape_of(spec, test);
    let course = std::thread::scope(|threads| -> Result<MeasuredWindow> {
        for (n, recorder) in recorders.iter_mut().enumerate() {
            let (pool, window, shape, sockets) = (&pool, &window, &shape, &sockets);
            let work =
                move || local_thread(n, spec, shape, sockets, assignments, pool, window, recorder);
            if let Err(e) = std::thread::Builder::new()
                .name(format!("nw-client-{n}"))
                .spawn_scoped(threads, work)
            {
                pool.break_off(Error::io("no thread", &e));
            }
        }
        while pool.tids().len() < pool.workers.len() && !pool.stopping() {
            std::thread::yield_now();
        }
        let mut guard = Watchdog::new(spec);
        let course = conduct(run, Some(peer), &spec.common, &pool, &window, what, &mut |_| {
            guard.look(&pool)
        });
        pool.end();
        Ok(course)
    })?;
    let broken = pool.broken().or_else(|| course.silent.clone());
    drop(sockets);
    let report = match &broken {
        None => Some(peer.finish()?),
        Some(_) => None,
    };
    let ended = Ended { ready, course, seen: pool.seen(), report, warnings };
    Ok(Round { ended, recorders, broken })
}

fn shape_of(spec: &RttSpec, test: &Test) -> RttShape {
    let (request_bytes, response_bytes) = match test.kind {
        TestKind::Rtt { request_bytes, response_bytes, .. } => (request_bytes, response_bytes),
        _ => (1, 1),
    };
    RttShape {
        transport: test.transport,
        request_bytes,
        response_bytes,
        wait: spec.common.wait,
        timeout_ns: spec.timeout_ns.0,
        service_ns: think_time_ns(spec),
        without_overrun: spec.service_ns.is_some(),
        echo: false,
    }
}

/// Think time of a thread after a response; not used with a schedule.
fn think_time_ns(spec: &RttSpec) -> u64 {
    spec.think_time_ns.filter(|_| spec.rate_per_s.is_none()).map_or(0, |ns| ns.0)
}

#[allow(clippy::too_many_arguments, reason = "a thread is handed everything once")]
fn local_thread(
    n: usize,
    spec: &RttSpec,
    shape: &RttShape,
    sockets: &[Socket],
    assignments: &Assignments,
    pool: &WorkerPool,
    window: &Window,
    recorder: &mut RttRecorder,
) {
    let Some(worker) = pool.workers.get(n) else { return };
    if let Some(Err(e)) =
        assignments.cpus.get(n % assignments.cpus.len().max(1)).map(|c| assignments::pin(*c))
    {
        worker.see(|seen| seen.warnings.push(Warning::NotPinned { why: e.to_string() }));
    }
    let threads = pool.workers.len();
    let fds: Vec<RawFd> = sockets.iter().skip(n).step_by(threads).map(|s| s.as_raw_fd()).collect();
    own_files::keep_only(fds.clone());
    let _running = worker.sleeper.begin();
    let schedule = spec.rate_per_s.map(|rate| {
        let gap_ns = 1e9 * threads as f64 / rate as f64;
        // Threads take turns in the schedule; the first requests are due after all have begun.
        let start_ns = now_ns() + 1_000_000 + (gap_ns * n as f64 / threads as f64) as u64;
        Schedule { start_ns, gap_ns }
    });
    match (fds.as_slice(), &schedule) {
        ([fd], None) if spec.queue_depth == 1 && spec.engine != Engine::Epoll => {
            worker.see(|seen| seen.used(single::PLAIN));
            single::local(*fd, shape, window, pool, worker, recorder);
        }
        (fds, _) => {
            let queue_depth = spec.queue_depth;
            // A schedule needs timed wake-ups, a datagram a timeout, and think time a pause between
            // messages.
            let streams = schedule.is_none()
                && spec.common.transport != Transport::Udp
                && think_time_ns(spec) == 0;
            let engine = if streams { spec.engine } else { Engine::Epoll };
            let (incoming, outgoing) = (shape.response_bytes, shape.request_bytes);
            let uring = uring::flows(engine, fds, incoming, outgoing, queue_depth, worker);
            let local = RttClient { shape, window, pool, worker, queue_depth, schedule };
            match uring {
                Some(flows) => uring::local::run(&local, flows, fds, recorder),
                None => {
                    worker.see(|seen| seen.used(uring::EPOLL));
                    local.run(fds, recorder);
                }
            }
        }
    }
}

/// Wakes threads that wait for a lost datagram, so that they check the time.
struct Watchdog {
    every_ns: u64,
    since: u64,
}

impl Watchdog {
    fn new(spec: &RttSpec) -> Self {
        let udp = spec.common.transport == Transport::Udp;
        let every_ns = if udp { spec.timeout_ns.0 / 4 } else { u64::MAX };
        Self { every_ns, since: now_ns() }
    }

    fn look(&mut self, pool: &WorkerPool) {
        if self.every_ns == u64::MAX || now_ns() - self.since < self.every_ns {
            return;
        }
        self.since = now_ns();
        pool.workers.iter().for_each(|m| m.sleeper.wake());
    }
}
