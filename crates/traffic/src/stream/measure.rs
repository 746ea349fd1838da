//! `measure stream`: runs one combination of parameters after the other.

use std::{collections::BTreeMap, sync::atomic::Ordering};

use model::{
    Nanos, Warning,
    measure::{Direction, Engine, StreamDocument, StreamRun, StreamSpec, Transport, ZeroCopy},
};

use super::{
    StreamShape,
    datagram::HEADER,
    result::{self, Round},
    side::Side,
    stream_window::{Conductor, OnInterval},
};
use crate::{
    Error, Measured, Result,
    client::{Peer, flows},
    control::{
        message::{Test, TestKind},
        secret::Secret,
    },
    engine::{
        assignments::{self, Assignments},
        conduct::Run,
        confidence::Next,
        ends::at_server,
        floor::calibrate,
        measured::unix_s,
        worker_pool::WorkerPool,
    },
    net::{LARGEST_DATAGRAM, data_flow::DataFlow, now_ns},
};

/// Shortest interval: each needs a round trip and 0.2 ms of reading counters at both ends.
const SHORTEST_INTERVAL: Nanos = Nanos(20_000_000);

/// State shared by all runs of a measurement.
struct StreamMeasurement<'a> {
    spec: &'a StreamSpec,
    peer: &'a Peer,
    assignments: &'a Assignments,
    run: Run<'a>,
    on_interval: OnInterval<'a>,
}

/// Measures streams as requested; `on_interval` is called for each interval.
///
/// # Errors
/// Nothing could be measured; later failures are in [`Measured::broken`].
pub fn measure(
    spec: &StreamSpec,
    secret: Option<&Secret>,
    run: Run<'_>,
    on_interval: OnInterval<'_>,
) -> Result<Measured<StreamDocument>> {
    check(spec)?;
    let peer = Peer::connect(&spec.common, secret)?;
    let (pin, threads) = (&spec.common.pin, spec.common.threads);
    let assignments = assignments::beside(pin, threads, peer.same_host, peer.address)?;
    let calibration = calibrate(assignments.cpus.first().copied())?;
    let mut document = StreamDocument {
        schema_version: model::SCHEMA_VERSION,
        kind: "stream".into(),
        started_unix_s: unix_s(),
        request: spec.clone(),
        local: peer.local.clone(),
        peer: peer.end.clone(),
        floor: calibration.certificate([]),
        runs: vec![],
        interrupted: false,
    };
    let measurement =
        StreamMeasurement { spec, peer: &peer, assignments: &assignments, run, on_interval };
    let mut broken = None;
    let points =
        spec.flows.iter().flat_map(|f| spec.message_bytes.iter().map(move |bytes| (*f, *bytes)));
    for (flows, bytes) in points {
        if run.stop.load(Ordering::Relaxed) {
            document.interrupted = true;
            break;
        }
        match measurement.point(flows, bytes) {
            Ok((runs, interrupted, why)) => {
                document.runs.extend(runs);
                document.interrupted |= interrupted;
                broken = why;
            }
            Err(e) => broken = Some(e),
        }
        if broken.is_some() {
            break;
        }
    }
    document.interrupted |= run.stop.load(Ordering::Relaxed);
    // Both directions of a run share one window of this host.
    let twice =
        |r: &&StreamRun| spec.direction == Direction::Both && r.direction == Direction::Reverse;
    let windows = document.runs.iter().filter(|r| !twice(r)).map(|r| &r.cpu.local);
    document.floor = calibration.certificate(windows);
    match (document.runs.is_empty(), broken) {
        (true, Some(why)) => Err(why),
        (_, broken) => Ok(Measured { document, broken }),
    }
}

fn check(spec: &StreamSpec) -> Result<()> {
    let usage = |why: String| Err(Error::Usage(why));
    let common = &spec.common;
    if spec.message_bytes.is_empty() || spec.flows.is_empty() || common.threads == 0 {
        return usage("at least one size, one flow and one thread are needed".into());
    }
    let ways = if spec.direction == Direction::Both { 2 } else { 1 };
    if let Some(few) = spec.flows.iter().find(|f| f.saturating_mul(ways) < common.threads) {
        return usage(format!(
            "{few} flows cannot keep {} threads busy; give at least as many flows",
            common.threads
        ));
    }
    let udp = common.transport == Transport::Udp;
    let (least, most) = if udp { (HEADER as u64, LARGEST_DATAGRAM) } else { (1, 16 << 20) };
    if let Some(n) = spec.message_bytes.iter().find(|n| !(least..=most).contains(*n)) {
        return usage(format!("a message of {n} bytes; {least} to {most} are possible"));
    }
    if spec.rate.is_some_and(|r| r.0 == 0) || (udp && spec.rate.is_none()) {
        return usage("UDP needs a rate above 0, or it measures how much is thrown away".into());
    }
    match (spec.zerocopy, common.transport) {
        (Some(_), Transport::Udp) => {
            return usage("datagrams are numbered and so cannot be sent without a copy".into());
        }
        (Some(ZeroCopy::Msg), Transport::Unix) => {
            return usage("Unix sockets know no MSG_ZEROCOPY; --zerocopy sendfile works".into());
        }
        _ => {}
    }
    if spec.skip_receive_copy && common.transport == Transport::Unix {
        return usage("Unix sockets know no MSG_TRUNC".into());
    }
    if spec.interval_ns.0 < SHORTEST_INTERVAL.0 {
        return usage(format!("an interval of at least {SHORTEST_INTERVAL} is needed"));
    }
    Ok(())
}

impl StreamMeasurement<'_> {
    /// The test to request from the server.
    fn test_of(&self, flows: u32, message_bytes: u64) -> Test {
        let (spec, common) = (self.spec, &self.spec.common);
        Test {
            kind: TestKind::Stream {
                direction: spec.direction,
                message_bytes,
                rate_bps: spec.rate.map(|r| r.0),
                zerocopy: spec.zerocopy,
                skip_receive_copy: spec.skip_receive_copy,
            },
            transport: common.transport,
            flows,
            threads: common.threads,
            wait: common.peer_wait,
            pin: common.peer_pin.clone(),
            local_cpus: self.assignments.cpus.iter().copied().collect(),
            socket: common.socket.clone(),
            max_time_ns: Nanos(common.warmup_ns.0 + common.duration_ns.0 + common.cooldown_ns.0),
            engine: Engine::Auto,
            service_ns: None,
        }
    }

    /// One combination of size and flows, repeated until its interval meets `--precision`. Returns
    /// its runs, whether it was interrupted, and the error that ended it.
    fn point(&self, flows: u32, bytes: u64) -> Result<(Vec<StreamRun>, bool, Option<Error>)> {
        let test = self.test_of(flows, bytes);
        let mut rounds: Vec<Round> = vec![];
        let begun = now_ns();
        let (broken, why_not) = loop {
            let what = result::progress_text(self.spec, bytes, flows, rounds.len());
            match self.round(&test, &what) {
                Ok(round) => rounds.push(round),
                Err(e) if rounds.is_empty() => return Err(e),
                Err(e) => break (Some(e), None),
            }
            let Some(last) = rounds.last() else { continue };
            if last.broken.is_some() || last.course.interrupted {
                break (last.broken.clone(), None);
            }
            match result::enough(self.spec, &rounds, now_ns() - begun) {
                Next::Again => {}
                Next::Done(why_not) => break (None, why_not),
            }
        };
        let interrupted = broken.is_some() || rounds.iter().any(|r| r.course.interrupted);
        let mut runs = result::runs(self.spec, &test, self.assignments, self.peer, &rounds);
        for run in &mut runs {
            run.warnings.extend(why_not.clone());
        }
        Ok((runs, interrupted, broken))
    }

    /// One round: opens connections, starts threads, runs the window, fetches the report.
    fn round(&self, test: &Test, what: &str) -> Result<Round> {
        let (spec, peer) = (self.spec, self.peer);
        let ready = peer.ask(test)?;
        let sockets = flows::open(peer, &spec.common, test, &ready)?;
        let mut warnings: Vec<Warning> =
            peer.await_connected()?.into_iter().map(at_server).collect();
        let flows: Vec<DataFlow> = (0..)
            .zip(sockets)
            .map(|(index, socket)| DataFlow { socket, index, peers: BTreeMap::new() })
            .collect();
        let pool = WorkerPool::new(spec.common.threads as usize);
        let shape = StreamShape::of(test, true, spec.common.wait);
        let (side, more) = Side::new(shape, flows, pool.workers.len(), vec![]);
        warnings.extend(more);
        let course = std::thread::scope(|threads| {
            for n in 0..pool.workers.len() {
                let (pool, side, assignments) = (&pool, &side, self.assignments);
                let work = move || local_thread(n, side, assignments, pool);
                if let Err(e) = std::thread::Builder::new().spawn_scoped(threads, work) {
                    pool.break_off(Error::io("no thread", &e));
                }
            }
            while pool.tids().len() < pool.workers.len() && !pool.stopping() {
                std::thread::yield_now();
            }
            let conductor = Conductor {
                run: self.run,
                peer,
                common: &spec.common,
                interval_ns: spec.interval_ns,
                side: &side,
                pool: &pool,
                what,
                on_interval: self.on_interval,
            };
            let course = conductor.conduct();
            pool.end();
            course
        });
        // A thread's error explains more than the timeout that followed it.
        let course = course.map_err(|e| pool.broken().unwrap_or(e))?;
        let broken = pool.broken().or_else(|| course.silent.clone());
        let (congestion, mss_bytes) = (side.congestion(), side.mss_bytes());
        drop(side);
        let (report, broken) = match broken {
            Some(why) => (None, Some(why)),
            None => match peer.finish() {
                Ok(report) => (Some(report), None),
                Err(e) => (None, Some(e)),
            },
        };
        let seen = pool.seen();
        Ok(Round { ready, course, seen, report, warnings, congestion, mss_bytes, broken })
    }
}

fn local_thread(n: usize, side: &Side, assignments: &Assignments, pool: &WorkerPool) {
    let Some(worker) = pool.workers.get(n) else { return };
    if let Some(Err(e)) =
        assignments.cpus.get(n % assignments.cpus.len().max(1)).map(|c| assignments::pin(*c))
    {
        worker.see(|seen| seen.warnings.push(Warning::NotPinned { why: e.to_string() }));
    }
    let _running = worker.sleeper.begin();
    side.work(n, pool, worker);
}
