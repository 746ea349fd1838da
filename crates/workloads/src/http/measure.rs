//! `measure http`: one run for each number of connections.

use model::measure::{End, HttpDocument, HttpRun, HttpSpec, PeerProgram, TlsSpec, Transport};
use traffic::{
    Error, Result,
    client::Peer,
    control::secret::Secret,
    engine::{
        assignments::{self, Assignments},
        conduct::Run,
        dial::{DialPath, is_here},
        event_loop::EventLoop,
        floor::calibrate,
        load::{Load, OneRun, Sweep, sweep},
        measured::{BATCH_NS, Measured, unix_s},
        protocol::Connecting,
        reach::{ServerAddress, reach, tls_of},
        sums::{Rounds, rounds},
        workers::Workers,
    },
    net::{options, tls::Tls},
};

use super::{
    pipeline::Pipeline, protocol::HttpShape, recorder::HttpRecorder, request, result, url::Url,
};

/// Measures HTTP requests as requested.
///
/// # Errors
/// Nothing could be measured; later failures are in [`Measured::broken`].
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
    let observer = match &spec.responder {
        Some(at) => Some(Peer::observer(at, &spec.common, secret)?),
        None => None,
    };
    let same_host = door.ip.is_none_or(is_here);
    let common = &spec.common;
    let assignments = assignments::beside(&common.pin, common.threads, same_host, door.ip)?;
    let calibration = calibrate(assignments.cpus.first().copied())?;
    // A TLS client writes twice in a row: its last handshake message, then the request. Without
    // TCP_NODELAY the second write waits for the acknowledgement of the first, up to 40 ms.
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
            ..observer.as_ref().map_or_else(End::default, |o| o.end.clone())
        },
        floor: calibration.certificate([]),
        runs: vec![],
        interrupted: false,
    };
    let place = RunSetup {
        shape: &shape,
        door: &door,
        assignments: &assignments,
        same_host,
        observer: observer.as_ref(),
    };
    let program = &mut document.peer.program;
    let Sweep { runs, interrupted, broken } = sweep(&spec.flows, run.stop, |flows| {
        let (one, server) = one(spec, flows, &place, run)?;
        *program = server;
        Ok(one)
    });
    (document.runs, document.interrupted) = (runs, interrupted);
    document.floor = calibration.certificate(document.runs.iter().map(|r: &HttpRun| &r.cpu.local));
    match (document.runs.is_empty(), broken) {
        (true, Some(why)) => Err(why),
        (_, broken) => Ok(Measured { document, broken }),
    }
}

/// Without TLS: checks that no TLS option is set.
///
/// # Errors
/// A TLS option is set, which has no effect on `http:`.
fn plain(spec: &HttpSpec, server: &Url) -> Result<Option<Tls>> {
    let TlsSpec { ca, insecure, resume } = &spec.tls;
    match ca.is_some() || *insecure || *resume {
        false => Ok(None),
        true => Err(Error::Usage(format!(
            "{}: TLS needs an https:// URL; use one, or leave out the TLS options",
            server.origin()
        ))),
    }
}

/// State shared by all runs.
struct RunSetup<'a> {
    shape: &'a HttpShape,
    door: &'a ServerAddress,
    assignments: &'a Assignments,
    same_host: bool,
    observer: Option<&'a Peer>,
}

/// One number of connections, repeated until its interval meets `--precision`; also returns the
/// server's name for itself.
fn one(
    spec: &HttpSpec,
    flows: u32,
    place: &RunSetup<'_>,
    run: Run<'_>,
) -> Result<(OneRun<HttpRun>, String)> {
    let RunSetup { shape, assignments, observer, .. } = *place;
    let workers = Workers {
        common: &spec.common,
        assignments,
        observer,
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
    run.warnings.extend(observer.zip(place.door.ip).and_then(|(peer, ip)| peer.elsewhere(ip)));
    let server = result::server(&sums.all);
    Ok((OneRun { run, interrupted: sums.interrupted, broken }, server))
}

fn check(spec: &HttpSpec) -> Result<()> {
    let usage = |why: String| Err(Error::Usage(why));
    let common = &spec.common;
    if common.transport == Transport::Udp || common.peer != PeerProgram::Server {
        return usage("HTTP is measured over TCP or a Unix socket, against an HTTP server".into());
    }
    Load {
        common,
        flows: &spec.flows,
        pipeline: spec.pipeline,
        one_each: spec.new_connections,
        rate_per_s: spec.rate_per_s,
        total: spec.requests,
        interval_ns: spec.interval_ns,
        timeout_ns: spec.timeout_ns,
        what: "requests",
        option: "--requests",
    }
    .check()
}
