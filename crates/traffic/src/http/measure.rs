//! `measure http`: one run for each number of connections.

use std::sync::atomic::Ordering;

use model::measure::{End, HttpDocument, HttpRun, HttpSpec, PeerProgram, TlsSpec, Transport};

use super::{
    pipeline::Pipeline, protocol::HttpShape, recorder::HttpRecorder, request, result, url::Url,
};
use crate::{
    Error, Result,
    assignments::{self, Assignments},
    client::{Peer, conduct::Run},
    control::secret::Secret,
    engine::{
        dial::{DialPath, is_here},
        event_loop::EventLoop,
        protocol::Connecting,
        reach::{ServerAddress, reach, tls_of},
        sums::{Rounds, rounds},
        workers::Workers,
    },
    host::calibrate,
    net::{options, tls::Tls},
    rtt::measure::{BATCH_NS, Measured, unix_s},
};

/// More requests than this under way on one connection are a mistake.
const MOST_PIPELINE: u32 = 1024;

/// Sends requests as asked.
///
/// # Errors
/// Nothing could be measured at all; what breaks later is in [`Measured::broken`].
pub fn measure(
    spec: &HttpSpec,
    secret: Option<&Secret>,
    run: Run<'_>,
) -> Result<Measured<HttpDocument>> {
    check(spec)?;
    options::check(&spec.common)?;
    let requests = request::of(spec)?;
    let server = requests.server.server();
    let tls = match requests.server.tls {
        true => Some(tls_of(&spec.tls, &server, Some("http/1.1"))?),
        false => plain(spec, &requests.server)?,
    };
    let (door, _) = reach(&spec.common, &server, tls.as_ref(), run.stop)?;
    let onlooker = match &spec.responder {
        Some(at) => Some(Peer::onlooker(at, &spec.common, secret)?),
        None => None,
    };
    let same_host = door.ip.is_none_or(is_here);
    let common = &spec.common;
    let assignments = assignments::beside(&common.pin, common.threads, same_host, door.ip)?;
    let calibration = calibrate(assignments.cpus.first().copied())?;
    // Under TLS an end writes twice in a row: its last word of the handshake, and the request. Without
    // TCP_NODELAY the second waits for the acknowledgement of the first, 40 ms.
    let plain_once = spec.new_connections && tls.is_none();
    let shape = HttpShape {
        connecting: Connecting {
            way: DialPath::new(door.to.clone(), door.transport, common, plain_once)?,
            tls,
            one_each: spec.new_connections,
            timeout_ns: spec.timeout_ns.0,
        },
        requests: requests.bytes,
        is_head: requests.is_head,
        pipeline: spec.pipeline,
    };
    let mut document = HttpDocument {
        schema_version: model::SCHEMA_VERSION,
        kind: "http".into(),
        started_unix_s: unix_s(),
        request: spec.clone(),
        local: door.local.clone(),
        peer: End {
            address: door.name.clone(),
            ..onlooker.as_ref().map_or_else(End::default, |o| o.end.clone())
        },
        floor: calibration.certificate([]),
        runs: vec![],
        interrupted: false,
    };
    let mut broken = None;
    let place = RunSetup {
        shape: &shape,
        door: &door,
        assignments: &assignments,
        same_host,
        onlooker: onlooker.as_ref(),
    };
    for &flows in &spec.flows {
        if run.stop.load(Ordering::Relaxed) || broken.is_some() {
            document.interrupted = true;
            break;
        }
        match one(spec, flows, &place, run) {
            Ok(one) => {
                document.interrupted |= one.interrupted;
                broken.clone_from(&one.broken);
                document.peer.program = one.server;
                document.runs.push(one.run);
            }
            Err(e) => broken = Some(e),
        }
    }
    document.interrupted |= broken.is_some() || run.stop.load(Ordering::Relaxed);
    document.floor = calibration.certificate(document.runs.iter().map(|r: &HttpRun| &r.cpu.local));
    match (document.runs.is_empty(), broken) {
        (true, Some(why)) => Err(why),
        (_, broken) => Ok(Measured { document, broken }),
    }
}

/// Without TLS.
///
/// # Errors
/// What was asked of TLS makes no sense then.
fn plain(spec: &HttpSpec, server: &Url) -> Result<Option<Tls>> {
    let TlsSpec { ca, insecure, resume } = &spec.tls;
    match ca.is_some() || *insecure || *resume {
        false => Ok(None),
        true => Err(Error::Usage(format!(
            "{}: TLS is spoken with https:// alone; write that, or leave out what is asked of TLS",
            server.origin()
        ))),
    }
}

/// What all runs have in common.
struct RunSetup<'a> {
    shape: &'a HttpShape,
    door: &'a ServerAddress,
    assignments: &'a Assignments,
    same_host: bool,
    onlooker: Option<&'a Peer>,
}

/// A run, and what else came of it.
struct One {
    run: HttpRun,
    server: String,
    interrupted: bool,
    broken: Option<Error>,
}

/// One number of connections, repeated while its interval is wider than was asked for.
fn one(spec: &HttpSpec, flows: u32, place: &RunSetup<'_>, run: Run<'_>) -> Result<One> {
    let RunSetup { shape, assignments, onlooker, .. } = *place;
    let workers = Workers {
        common: &spec.common,
        assignments,
        onlooker,
        connections: flows,
        rate_per_s: spec.rate_per_s,
        total: spec.requests,
        interval_ns: spec.interval_ns,
    };
    let recorder = || HttpRecorder::new(spec.rate_per_s.is_some(), BATCH_NS);
    let what = format!("http, {flows} connections");
    let Rounds { sums, why, broken } = rounds(&workers, run, &what, recorder, |task, recorder| {
        let empty = |_: &u32| Pipeline::new(shape.pipeline, shape.is_head);
        let all = task.connections.iter().map(empty).collect();
        EventLoop { protocol: shape, task }.run(all, recorder);
        task.worker.see(|seen| recorder.requests.ran_on.tell(seen));
    })?;
    let requests = &shape.requests;
    let mean = requests.iter().map(Vec::len).sum::<usize>() as f64 / requests.len().max(1) as f64;
    let mut run = result::http_run(spec, flows, assignments, place.same_host, mean, &sums);
    run.transport = place.door.transport;
    run.warnings.extend(why);
    run.warnings.extend(onlooker.zip(place.door.ip).and_then(|(peer, ip)| peer.elsewhere(ip)));
    let server = result::server(&sums.all);
    Ok(One { run, server, interrupted: sums.interrupted, broken })
}

fn check(spec: &HttpSpec) -> Result<()> {
    let usage = |why: String| Err(Error::Usage(why));
    let common = &spec.common;
    if common.transport == Transport::Udp || common.peer != PeerProgram::Server {
        return usage(
            "HTTP is measured over TCP or a Unix socket, against a server of its own".into(),
        );
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
    if !(1..=MOST_PIPELINE).contains(&spec.pipeline) {
        return usage(format!("--pipeline {}: from 1 to {MOST_PIPELINE}", spec.pipeline));
    }
    if spec.new_connections && spec.pipeline > 1 {
        return usage(
            "a connection of its own for each request carries one; leave out --pipeline or \
             --new-connections"
                .into(),
        );
    }
    if spec.requests.is_some() && common.confidence_per_mille.is_some() {
        return usage(
            "a number of requests is one round; leave out --requests or --precision".into(),
        );
    }
    if spec.rate_per_s == Some(0) || spec.requests == Some(0) {
        return usage("no requests are asked for".into());
    }
    if spec.interval_ns.is_some_and(|i| i.0 < 100_000_000) {
        return usage("an interval of at least 100ms is needed".into());
    }
    if spec.timeout_ns.0 < 1_000_000 {
        return usage("a time limit below 1ms fails requests that only wait their turn".into());
    }
    Ok(())
}
