//! `measure rtt --peer qperf`: round trips with qperf's server, each recorded at this end. Its
//! tests `tcp_lat` and `udp_lat` return each message as received.

use std::{os::fd::AsRawFd, sync::atomic::Ordering};

use model::{
    Warning,
    measure::{RttDocument, RttRun, RttSpec, Transport},
};
use traffic::{
    Error, Result,
    control::message::{Ready, Test, TestKind},
    engine::{
        conduct::{MeasuredWindow, Run, conduct},
        confidence::Next,
        ends::Ended,
        measured::{BATCH_NS, Measured, unix_s},
        rtt_recorder::RttRecorder,
        window::Window,
        worker_pool::{Worker, WorkerPool},
    },
    net::{now_ns, options},
    rtt::{
        result,
        single::{self, RttShape},
        sums::{Round, Sums},
    },
};

use super::{
    client::{Client, each_size},
    local::{Ask, Session},
    result::{SECOND, ask, check_common, peer_ready, report, test, warnings},
    wire::Stat,
};

/// A server that does not answer for so long is given up.
const SILENT_NS: u64 = 5 * SECOND;

/// Parameters of one run, the same for all its rounds.
struct Point<'a> {
    spec: &'a RttSpec,
    test: Test,
    client: &'a Client,
    assignment: Ready,
    ask: Ask,
}

/// Measures round trips against an unmodified qperf server.
///
/// # Errors
/// Nothing could be measured; later failures are in [`Measured::broken`].
pub fn client_rtt(spec: &RttSpec, run: Run<'_>) -> Result<Measured<RttDocument>> {
    check(spec)?;
    let client = Client::new(&spec.common, run.stop)?;
    let mut document = RttDocument {
        schema_version: model::SCHEMA_VERSION,
        kind: "rtt".into(),
        started_unix_s: unix_s(),
        request: spec.clone(),
        local: client.place.local.clone(),
        peer: client.place.end.clone(),
        floor: client.calibration.certificate([]),
        runs: vec![],
        wait_split: None,
        interrupted: false,
    };
    let one = |bytes| size(spec, bytes, &client, run, &mut document);
    let (runs, broken) = each_size(&spec.request_bytes, run.stop, one)?;
    document.interrupted = broken.is_some() || run.stop.load(Ordering::Relaxed);
    document.floor = client.calibration.certificate(runs.iter().map(|r| &r.cpu.local));
    document.runs = runs;
    Ok(Measured { document, broken })
}

/// Refuses options that qperf does not support.
fn check(spec: &RttSpec) -> Result<()> {
    check_common(&spec.common, &spec.flows, &spec.request_bytes, true)?;
    let usage = |why: String| Err(Error::Usage(why));
    if spec.queue_depth != 1 {
        return usage("with qperf at the server only queue depth 1 is possible".into());
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
    if spec.response_bytes.iter().any(|r| spec.request_bytes != [*r]) {
        return usage("qperf answers with as many bytes as it was asked with".into());
    }
    Ok(())
}

/// One message size, repeated until its interval meets `--precision`.
fn size(
    spec: &RttSpec,
    bytes: u64,
    client: &Client,
    run: Run<'_>,
    document: &mut RttDocument,
) -> Result<Measured<RttRun>> {
    let common = &spec.common;
    let kind = TestKind::Rtt { request_bytes: bytes, response_bytes: bytes, queue_depth: 1 };
    let test = test(common, kind, client);
    let assignment = peer_ready(&test, client)?;
    let ask = ask(common, bytes, true, &assignment)?;
    let point = Point { spec, test, client, assignment, ask };
    let (mut sums, begun) = (Sums::new(document.floor.clock_step_ns), now_ns());
    let done = |sums: Sums, why: Option<Warning>| {
        let (assignments, same_host) = (&client.assignments, client.place.same_host);
        let mut run = result::rtt_run(spec, &point.test, assignments, same_host, sums);
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
    let mut session = Session::open(&point.client.place, common, point.ask, run.stop)?;
    let mut warnings = vec![];
    warnings.extend(options::prepare(&session.data, common.wait));
    let (pool, window) = (WorkerPool::new(1), Window::closed());
    let mut recorder = RttRecorder::new(false, BATCH_NS);
    let course = exchange(point, &mut session, &pool, &window, &mut recorder, run, what);
    let broken = pool.broken().or_else(|| course.silent.clone());
    let early = course.interrupted || run.stop.load(Ordering::Relaxed);
    let (stat, broken) = session.end(broken, early);
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
    let received = stat.received.messages;
    let more = transport != Transport::Udp && received > answered + 1;
    (received < answered || more).then(|| Warning::EndsDisagree {
        client: answered,
        client_what: "round trips".into(),
        server: received,
        server_what: "messages".into(),
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
        without_overrun: false,
        echo: true,
    };
    let work = |worker: &Worker| {
        worker.see(|seen| seen.used(single::PLAIN));
        single::local(fd, &shape, window, pool, worker, recorder);
    };
    point.client.in_thread(pool, work, || {
        let mut guard = ThreadTimeout::new(spec);
        let mut look = |_| guard.look(pool, session);
        conduct(run, None, &spec.common, pool, window, what, &mut look)
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
