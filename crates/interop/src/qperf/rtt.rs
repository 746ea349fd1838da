//! `measure rtt --peer qperf`: round trips with qperf's server, each recorded at this end. Its
//! tests `tcp_lat` and `udp_lat` return each message as received.

use std::{net::SocketAddr, os::fd::AsRawFd, sync::atomic::Ordering, thread};

use model::{
    Nanos, Warning,
    measure::{Common, Engine, RttDocument, RttRun, RttSpec, Transport},
};
use traffic::{
    Error, Result,
    control::message::{Ready, Test, TestKind},
    engine::{
        assignments::{self, Assignments},
        conduct::{MeasuredWindow, Run, conduct},
        confidence::Next,
        ends::Ended,
        floor::calibrate,
        measured::{BATCH_NS, Measured, unix_s},
        rtt_recorder::RttRecorder,
        window::Window,
        worker_pool::WorkerPool,
    },
    net::{now_ns, options},
    rtt::{
        result,
        single::{self, RttShape},
        sums::{Round, Sums},
    },
};

use super::{
    local::{Ask, PlacedEnd, Session, find},
    result::{affinity, check_common, peer_assignment, report, test_of, warnings},
    wire::Stat,
};

const SECOND: u64 = 1_000_000_000;
/// Largest TCP message in bytes.
const LARGEST_MESSAGE: u64 = 16 << 20;
/// Largest UDP payload over IPv4 without options, in bytes.
const LARGEST_DATAGRAM: u64 = 65_507;
/// Seconds that the server continues beyond this end, unless it is ended.
const SLACK_S: u64 = 3;
/// Time without an answer after which the server counts as failed.
const SILENT_NS: u64 = 5 * SECOND;

/// Parameters of one run, the same for all its rounds.
struct Point<'a> {
    spec: &'a RttSpec,
    test: Test,
    place: &'a PlacedEnd,
    assignments: &'a Assignments,
    assignment: Ready,
    ask: Ask,
}

/// Measures round trips against an unmodified qperf server.
///
/// # Errors
/// Nothing could be measured; later failures are in [`Measured::broken`].
pub fn client_rtt(spec: &RttSpec, run: Run<'_>) -> Result<Measured<RttDocument>> {
    check(spec)?;
    let place = find(&spec.common, run.stop)?;
    let to: SocketAddr = place.address;
    let assignments = assignments::local(&spec.common.pin, 1, place.same_host, Some(to))?;
    let calibration = calibrate(assignments.cpus.first().copied())?;
    let mut document = RttDocument {
        schema_version: model::SCHEMA_VERSION,
        kind: "rtt".into(),
        started_unix_s: unix_s(),
        request: spec.clone(),
        local: place.local.clone(),
        peer: place.end.clone(),
        floor: calibration.certificate([]),
        runs: vec![],
        wait_split: None,
        interrupted: false,
    };
    let mut broken = None;
    for &bytes in &spec.request_bytes {
        if run.stop.load(Ordering::Relaxed) || broken.is_some() {
            document.interrupted = true;
            break;
        }
        match size(spec, bytes, &place, &assignments, run, &mut document) {
            Ok(Measured { document: done, broken: why }) => {
                document.runs.push(done);
                broken = why;
            }
            Err(e) => broken = Some(e),
        }
        document.interrupted |= broken.is_some() || run.stop.load(Ordering::Relaxed);
    }
    document.floor = calibration.certificate(document.runs.iter().map(|r| &r.cpu.local));
    match (document.runs.is_empty(), broken) {
        (true, Some(why)) => Err(why),
        (_, broken) => Ok(Measured { document, broken }),
    }
}

/// Refuses options that qperf does not support.
fn check(spec: &RttSpec) -> Result<()> {
    check_common(&spec.common, &spec.flows)?;
    test_of(spec.common.transport, true)?;
    let usage = |why: String| Err(Error::Usage(why));
    if spec.queue_depth != 1 {
        return usage("with qperf at the server one request is queue_depth".into());
    }
    if spec.rate_per_s.is_some() {
        return usage("with qperf at the server there is no schedule (--rate): it is asked again when it has answered".into());
    }
    if spec.think_time_ns.is_some() || spec.peer_threads.is_some() {
        return usage(
            "with qperf at the server there is no --think-time and no --peer-threads".into(),
        );
    }
    if spec.wait_split {
        return usage(
            "the wait split needs `netwright serve` at the server: qperf only blocks".into(),
        );
    }
    if spec.request_bytes.is_empty() {
        return usage("no size is given".into());
    }
    if spec.response_bytes.iter().any(|r| spec.request_bytes != [*r]) {
        return usage("qperf answers with as many bytes as it was asked with".into());
    }
    let most = match spec.common.transport {
        Transport::Udp => LARGEST_DATAGRAM,
        _ => LARGEST_MESSAGE,
    };
    match spec.request_bytes.iter().find(|b| !(1..=most).contains(*b)) {
        Some(b) => usage(format!("a message of {b} bytes; 1 to {most} are possible")),
        None => Ok(()),
    }
}

/// Seconds after which the server ends the test by itself.
fn seconds(common: &Common) -> u32 {
    let more = common.warmup_ns.0.saturating_add(common.cooldown_ns.0);
    let whole = common.duration_ns.0.saturating_add(more).div_ceil(SECOND);
    u32::try_from(whole.saturating_add(SLACK_S)).unwrap_or(u32::MAX)
}

/// One message size, repeated until its interval meets `--precision`.
fn size(
    spec: &RttSpec,
    bytes: u64,
    place: &PlacedEnd,
    assignments: &Assignments,
    run: Run<'_>,
    document: &mut RttDocument,
) -> Result<Measured<RttRun>> {
    let common = &spec.common;
    let kind = TestKind::Rtt { request_bytes: bytes, response_bytes: bytes, queue_depth: 1 };
    let assignment = peer_assignment(common, &kind, assignments, place.same_host, place.address)?;
    let ask = Ask {
        test: test_of(common.transport, true)?,
        message: u32::try_from(bytes).unwrap_or(u32::MAX),
        seconds: seconds(common),
        affinity: affinity(&assignment),
    };
    let test = Test {
        kind,
        transport: common.transport,
        flows: 1,
        threads: 1,
        wait: model::measure::Wait::Block,
        pin: common.peer_pin.clone(),
        local_cpus: assignments.cpus.iter().copied().collect(),
        socket: common.socket.clone(),
        max_time_ns: Nanos(0),
        engine: Engine::PerMessage,
        service_ns: None,
    };
    let point = Point { spec, test, place, assignments, assignment, ask };
    let (mut sums, begun) = (Sums::new(document.floor.clock_step_ns), now_ns());
    let done = |sums: Sums, why: Option<Warning>| {
        let mut run = result::rtt_run(spec, &point.test, assignments, place.same_host, sums);
        run.peer_wait = model::measure::Wait::Block;
        run.warnings.extend(why);
        run.warnings.extend(warnings(&spec.common));
        run.warnings.push(Warning::QperfPrintsHalf { mean_ns: run.rtt_ns.mean });
        run
    };
    loop {
        let what = result::progress_text(spec, bytes, 1, sums.rounds);
        let (round, stat) = match one(&point, run, &what) {
            Ok(one) => one,
            Err(e) if sums.rounds == 0 => return Err(e),
            Err(e) => return Ok(Measured { document: done(sums, None), broken: Some(e) }),
        };
        document.peer.cpus = stat.map_or(document.peer.cpus, |s| s.cpus);
        sums.add(&round);
        let Round { broken, ended, .. } = round;
        let ends = broken.is_some() || ended.course.interrupted;
        let next =
            if ends { Next::Done(None) } else { result::next(spec, &sums, now_ns() - begun) };
        if let Next::Done(why) = next {
            return Ok(Measured { document: done(sums, why), broken });
        }
    }
}

/// One round: a separate session, since qperf has one window for each.
fn one(point: &Point<'_>, run: Run<'_>, what: &str) -> Result<(Round, Option<Stat>)> {
    let common = &point.spec.common;
    let mut session = Session::open(point.place, common, point.ask, run.stop)?;
    let mut warnings = vec![];
    warnings.extend(options::prepare(&session.data, common.wait));
    let (pool, window) = (WorkerPool::new(1), Window::closed());
    let mut recorder = RttRecorder::new(false, BATCH_NS);
    let course = exchange(point, &mut session, &pool, &window, &mut recorder, run, what);
    let mut broken = pool.broken().or_else(|| course.silent.clone());
    if let Some(words) = broken.is_some().then(|| session.gone()).flatten() {
        broken = Some(words);
    }
    let early = course.interrupted || run.stop.load(Ordering::Relaxed);
    let stat = match &broken {
        Some(_) => None,
        None => match session.finish(early) {
            Ok(stat) => Some(stat),
            // If interrupted, the server's end was not waited for.
            Err(_) if early => None,
            Err(e) => {
                broken = Some(e);
                None
            }
        },
    };
    if let Some(stat) = &stat {
        warnings.extend(disagreement(stat, pool.transactions(), point.test.transport));
    }
    let ended = Ended {
        ready: point.assignment.clone(),
        course,
        seen: pool.seen(),
        report: stat.as_ref().map(report),
        warnings,
    };
    Ok((Round { ended, recorders: vec![recorder], broken }, stat))
}

/// A warning if the ends' counts differ: the server counts each answer as a message first, and one
/// may be in transit at the end. Over UDP any excess was lost on the way back.
fn disagreement(stat: &Stat, answered: u64, transport: Transport) -> Option<Warning> {
    let there = stat.received.messages;
    let more = transport != Transport::Udp && there > answered + 1;
    (there < answered || more).then(|| Warning::EndsDisagree {
        here: answered,
        what_here: "round trips".into(),
        there,
        what_there: "messages".into(),
    })
}

/// Runs the sending thread and its window.
fn exchange(
    point: &Point<'_>,
    session: &mut Session,
    pool: &WorkerPool,
    window: &Window,
    recorder: &mut RttRecorder,
    run: Run<'_>,
    what: &str,
) -> MeasuredWindow {
    let (fd, spec) = (session.data.as_raw_fd(), point.spec);
    let bytes = u64::from(point.ask.message);
    let shape = RttShape {
        transport: spec.common.transport,
        request_bytes: bytes,
        response_bytes: bytes,
        wait: spec.common.wait,
        timeout_ns: spec.timeout_ns.0,
        service_ns: 0,
        echo: true,
    };
    let cpu = point.assignments.cpus.first().copied();
    thread::scope(|threads| {
        let work = || {
            let Some(worker) = pool.workers.first() else { return };
            if let Some(Err(e)) = cpu.map(assignments::pin) {
                worker.see(|seen| seen.warnings.push(Warning::NotPinned { why: e.to_string() }));
            }
            let _running = worker.sleeper.begin();
            worker.see(|seen| seen.used(single::PLAIN));
            single::local(fd, &shape, window, pool, worker, recorder);
        };
        let spawned = thread::Builder::new().name("nw-client-0".into()).spawn_scoped(threads, work);
        if let Err(e) = spawned {
            pool.break_off(Error::io("no thread", &e));
        }
        while pool.tids().is_empty() && !pool.stopping() {
            thread::yield_now();
        }
        let mut guard = ThreadTimeout::new(spec);
        let mut look = |_| guard.look(pool, session);
        let course = conduct(run, None, &spec.common, pool, window, what, &mut look);
        pool.end();
        course
    })
}

/// Ends a thread that waits for an answer which may never arrive.
struct ThreadTimeout {
    wake_ns: u64,
    woken_ns: u64,
    answered: u64,
    since_ns: u64,
    silent_ns: u64,
}

impl ThreadTimeout {
    fn new(spec: &RttSpec) -> Self {
        let udp = spec.common.transport == Transport::Udp;
        let wake_ns = if udp { spec.timeout_ns.0 / 4 } else { u64::MAX };
        // Over UDP silence is loss, which is counted; a failed server is detected elsewhere.
        let silent_ns = if udp { u64::MAX } else { SILENT_NS };
        let now = now_ns();
        Self { wake_ns, woken_ns: now, answered: 0, since_ns: now, silent_ns }
    }

    fn look(&mut self, pool: &WorkerPool, session: &mut Session) {
        if let Some(why) = session.gone() {
            pool.break_off(why);
        }
        let (now, answered) = (now_ns(), pool.transactions());
        if answered != self.answered {
            (self.answered, self.since_ns) = (answered, now);
        } else if now - self.since_ns > self.silent_ns {
            let s = (now - self.since_ns) / SECOND;
            pool.break_off(Error::Environment(format!("the server has not answered for {s} s")));
        }
        if now - self.woken_ns >= self.wake_ns {
            self.woken_ns = now;
            pool.workers.iter().for_each(|m| m.sleeper.wake());
        }
    }
}
