//! `measure connect`: one run for each number of flows.

use std::sync::atomic::Ordering;

use model::{
    Nanos, Warning,
    measure::{Common, ConnectDocument, ConnectRun, ConnectSpec, Engine, Transport},
};

use super::{
    ConnectShape,
    local::{ConnectClient, ConnectPath},
    ports::{self, Ports},
    recorder::Recorder,
    result::{self, Round},
};
use crate::{
    Error, Result,
    client::{Peer, flows},
    control::{
        message::{Ready, Test, TestKind},
        secret::Secret,
    },
    engine::{
        assignments::{self, Assignments},
        conduct::{MeasuredWindow, Run, conduct},
        confidence::Next,
        ends::Ended,
        floor::calibrate,
        measured::{BATCH_NS, Measured, unix_s},
        schedule::Schedule,
        window::Window,
        worker_pool::WorkerPool,
    },
    net::{self, now_ns},
};

/// Measures connections as requested.
///
/// # Errors
/// Nothing could be measured; later failures are in [`Measured::broken`].
pub fn measure(
    spec: &ConnectSpec,
    secret: Option<&Secret>,
    run: Run<'_>,
) -> Result<Measured<ConnectDocument>> {
    check(spec)?;
    let from = ports::addresses(spec)?;
    // The control connection uses the first of several local addresses.
    let mut common = spec.common.clone();
    common.bind = from.first().map(ToString::to_string);
    let peer = Peer::connect(&common, secret)?;
    let local = assignments::local(&common.pin, common.threads, peer.same_host, peer.address)?;
    let calibration = calibrate(local.cpus.first().copied())?;
    let mut document = ConnectDocument {
        schema_version: model::SCHEMA_VERSION,
        kind: "connect".into(),
        started_unix_s: unix_s(),
        request: spec.clone(),
        local: peer.local.clone(),
        peer: peer.end.clone(),
        floor: calibration.certificate([]),
        runs: vec![],
        interrupted: false,
    };
    let mut broken = None;
    for &flows in &spec.flows {
        if run.stop.load(Ordering::Relaxed) {
            document.interrupted = true;
            break;
        }
        match one(spec, flows, &peer, &local, run) {
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
    document.interrupted |= run.stop.load(Ordering::Relaxed);
    document.floor = calibration.certificate(document.runs.iter().map(|r| &r.cpu.local));
    match (document.runs.is_empty(), broken) {
        (true, Some(why)) => Err(why),
        (_, broken) => Ok(Measured { document, broken }),
    }
}

fn check(spec: &ConnectSpec) -> Result<()> {
    let usage = |why: String| Err(Error::Usage(why));
    let common = &spec.common;
    if common.transport == Transport::Udp {
        return usage("UDP makes no connections; measure them over TCP or a Unix socket".into());
    }
    if spec.flows.is_empty() || common.threads == 0 {
        return usage("no number of flows or threads is given".into());
    }
    if let Some(few) = spec.flows.iter().find(|f| **f < common.threads) {
        return usage(format!(
            "{few} flows cannot keep {} threads busy; give at least as many flows",
            common.threads
        ));
    }
    if spec.rate_per_s == Some(0) {
        return usage("a rate of 0 makes no connections".into());
    }
    if spec.timeout_ns.0 < 1_000_000 {
        return usage("a time limit below 1ms fails attempts that only wait their turn".into());
    }
    Ok(())
}

/// The test to request from the server.
fn test_of(spec: &ConnectSpec, flows: u32, assignments: &Assignments) -> Result<Test> {
    let Common { transport, threads, peer_wait, .. } = spec.common;
    Ok(Test {
        kind: TestKind::Connect {
            request_bytes: spec.request_bytes,
            response_bytes: spec.response_bytes,
            close: spec.close,
            from: ports::addresses(spec)?.into_iter().skip(1).collect(),
        },
        transport,
        flows,
        threads,
        wait: peer_wait,
        pin: spec.common.peer_pin.clone(),
        local_cpus: assignments.cpus.iter().copied().collect(),
        socket: spec.common.socket.clone(),
        max_time_ns: Nanos(ports::whole_ns(spec)),
        engine: Engine::Auto,
        service_ns: None,
    })
}

/// One number of flows, repeated until its interval meets `--precision`.
fn one(
    spec: &ConnectSpec,
    flows: u32,
    peer: &Peer,
    assignments: &Assignments,
    run: Run<'_>,
) -> Result<Measured<ConnectRun>> {
    let test = test_of(spec, flows, assignments)?;
    let (mut rounds, begun): (Vec<Round>, u64) = (vec![], now_ns());
    let finish = |rounds: Vec<Round>, broken, why: Option<Warning>| {
        let mut document = result::connect_run(spec, &test, assignments, peer, &rounds);
        document.warnings.extend(why);
        Measured { document, broken }
    };
    loop {
        let what = result::progress_text(spec, flows, rounds.len());
        let round = match round(spec, &test, peer, assignments, run, &what) {
            Ok(round) => round,
            Err(e) if rounds.is_empty() => return Err(e),
            Err(e) => return Ok(finish(rounds, Some(e), None)),
        };
        let broken = round.broken.clone();
        let ends = broken.is_some() || round.ended.course.interrupted;
        rounds.push(round);
        if ends {
            return Ok(finish(rounds, broken, None));
        }
        if let Next::Done(why) = result::next(spec, &rounds, now_ns() - begun) {
            return Ok(finish(rounds, None, why));
        }
    }
}

/// One round: starts the threads, runs the window, fetches the report.
fn round(
    spec: &ConnectSpec,
    test: &Test,
    peer: &Peer,
    assignments: &Assignments,
    run: Run<'_>,
    what: &str,
) -> Result<Round> {
    let root = probe::Root::live();
    descriptors(test.flows)?;
    let ready = peer.ask(test)?;
    let warnings = peer.await_connected()?;
    let way = ConnectPath {
        to: flows::address(peer, test, &ready, 0)?,
        from: ports::addresses(spec)?,
        socket: spec.common.socket.clone(),
    };
    let shape = shape_of(spec, &ready);
    let ports = Ports::look(&root, peer.address.map(|a| a.ip()), way.from.len());
    let (pool, window) = (WorkerPool::new(spec.common.threads as usize), Window::closed());
    let (response, open_loop) = (spec.response_bytes > 0, spec.rate_per_s.is_some());
    let mut recorders: Vec<Recorder> =
        pool.workers.iter().map(|_| Recorder::new(response, open_loop, BATCH_NS)).collect();
    let begin_ns = now_ns() + 1_000_000;
    let course = std::thread::scope(|threads| -> MeasuredWindow {
        for (n, recorder) in recorders.iter_mut().enumerate() {
            let (pool, window, shape, way) = (&pool, &window, &shape, &way);
            let flows = test.flows;
            let work = move || {
                let Some(worker) = pool.workers.get(n) else { return };
                let schedule = schedule_of(spec, begin_ns, n);
                let local = ConnectClient { shape, way, window, pool, worker, schedule };
                local_thread(n, flows, assignments, &local, recorder);
            };
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
        let course = conduct(run, Some(peer), &spec.common, &pool, &window, what, &mut |_| {});
        pool.end();
        course
    });
    let budget = ports.budget(&root);
    let broken = pool.broken().or_else(|| course.silent.clone());
    let report = match &broken {
        None => Some(peer.finish()?),
        Some(_) => None,
    };
    let ended = Ended { ready, course, seen: pool.seen(), report, warnings };
    Ok(Round { way, ports, budget, recorders, ended, broken })
}

/// Checks that this process may open this many sockets.
fn descriptors(flows: u32) -> Result<()> {
    net::raise_descriptor_limit();
    let limit = net::descriptor_limit();
    // Reserve for the program's own descriptors and for sockets being closed.
    if u64::from(flows) + 64 > limit {
        return Err(Error::Environment(format!(
            "{flows} connections at once need more descriptors than the {limit} that this process \
             may have (ulimit -n)"
        )));
    }
    Ok(())
}

fn shape_of(spec: &ConnectSpec, ready: &Ready) -> ConnectShape {
    ConnectShape {
        transport: spec.common.transport,
        request_bytes: spec.request_bytes,
        response_bytes: spec.response_bytes,
        close: spec.close,
        wait: spec.common.wait,
        timeout_ns: spec.timeout_ns.0,
        service_ns: ready.service_ns.0,
    }
}

/// Threads take turns in the schedule; the first attempt is due after all have begun.
fn schedule_of(spec: &ConnectSpec, begin_ns: u64, n: usize) -> Option<Schedule> {
    spec.rate_per_s.map(|rate| {
        let threads = f64::from(spec.common.threads);
        let gap_ns = 1e9 * threads / rate as f64;
        Schedule { start_ns: begin_ns + (gap_ns * n as f64 / threads) as u64, gap_ns }
    })
}

fn local_thread(
    n: usize,
    flows: u32,
    assignments: &Assignments,
    local: &ConnectClient<'_>,
    recorder: &mut Recorder,
) {
    let worker = local.worker;
    if let Some(Err(e)) =
        assignments.cpus.get(n % assignments.cpus.len().max(1)).map(|c| assignments::pin(*c))
    {
        worker.see(|seen| seen.warnings.push(Warning::NotPinned { why: e.to_string() }));
    }
    let threads = local.pool.workers.len();
    let mine = (n..flows as usize).step_by(threads).count();
    let _running = worker.sleeper.begin();
    local.run(mine, recorder);
    worker.see(|seen| recorder.ran_on.tell(seen));
}
