//! `measure http`: one run for each number of connections.

use std::{
    net::{SocketAddr, UdpSocket},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use model::measure::{End, FarProgram, HttpDocument, HttpRun, HttpSpec, Transport};

use super::{
    near::{Near, Shape},
    reach::{reach, tls_of},
    recorder::Recorder,
    request, result,
    sums::{Round, Sums},
};
use crate::{
    Error, Result,
    client::{
        Peer,
        conduct::{Course, Run, conduct},
        confidence::Next,
        onlooker::host_only,
    },
    control::secret::Secret,
    host::calibrate,
    net::{self, now_ns, target::local_address},
    rtt::{
        many::Schedule,
        measure::{BATCH_NS, Measured, unix_s},
        recorder::Window,
    },
    seats::{self, Seats},
    team::Team,
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
    let requests = request::of(spec)?;
    let tls = tls_of(spec, &requests.server)?;
    let (to, local) = reach(spec, &requests.server, tls.as_ref())?;
    let onlooker = match &spec.responder {
        Some(at) => Some(Peer::onlooker(at, &spec.common, secret)?),
        None => None,
    };
    let same_host = is_here(to);
    let common = &spec.common;
    let seats = seats::near(&common.pin, common.threads, same_host, Some(to))?;
    let calibration = calibrate(seats.cpus.first().copied())?;
    let shape = Shape {
        to,
        from: common.bind.as_deref().map(local_address).transpose()?,
        tls,
        socket: common.socket.clone(),
        requests: requests.bytes,
        is_head: requests.is_head,
        pipeline: spec.pipeline,
        new_connections: spec.new_connections,
        wait: common.wait,
        timeout_ns: spec.timeout_ns.0,
    };
    let mut document = HttpDocument {
        schema_version: model::SCHEMA_VERSION,
        kind: "http".into(),
        started_unix_s: unix_s(),
        request: spec.clone(),
        local,
        peer: End {
            address: to.to_string(),
            ..onlooker.as_ref().map_or_else(End::default, |o| o.end.clone())
        },
        floor: calibration.certificate([]),
        runs: vec![],
        cut_short: false,
    };
    let mut broken = None;
    let place = Place { shape: &shape, seats: &seats, same_host, onlooker: onlooker.as_ref() };
    for &flows in &spec.flows {
        if run.stop.load(Ordering::Relaxed) || broken.is_some() {
            document.cut_short = true;
            break;
        }
        match one(spec, flows, &place, run) {
            Ok(one) => {
                document.cut_short |= one.cut_short;
                broken.clone_from(&one.broken);
                document.peer.program = one.server;
                document.runs.push(one.run);
            }
            Err(e) => broken = Some(e),
        }
    }
    document.cut_short |= broken.is_some() || run.stop.load(Ordering::Relaxed);
    document.floor = calibration.certificate(document.runs.iter().map(|r: &HttpRun| &r.cpu.local));
    match (document.runs.is_empty(), broken) {
        (true, Some(why)) => Err(why),
        (_, broken) => Ok(Measured { document, broken }),
    }
}

/// What all runs have in common.
struct Place<'a> {
    shape: &'a Shape,
    seats: &'a Seats,
    same_host: bool,
    onlooker: Option<&'a Peer>,
}

/// A run, and what else came of it.
struct One {
    run: HttpRun,
    server: String,
    cut_short: bool,
    broken: Option<Error>,
}

/// One number of connections, repeated while its interval is wider than was asked for.
fn one(spec: &HttpSpec, flows: u32, place: &Place<'_>, run: Run<'_>) -> Result<One> {
    let mut sums = Sums::new(spec);
    let begun = now_ns();
    let (broken, why) = loop {
        let again = match (spec.common.confidence_per_mille, sums.rounds) {
            (Some(_), n) => format!(", round {}", n + 1),
            _ => String::new(),
        };
        let what = format!("http, {flows} connections{again}");
        let round = match round(spec, flows, place, run, &what) {
            Ok(round) => round,
            Err(e) if sums.rounds == 0 => return Err(e),
            Err(e) => break (Some(e), None),
        };
        sums.add(spec, &round);
        if round.broken.is_some() || sums.cut_short {
            break (round.broken, None);
        }
        if let Next::Done(why) = sums.next(spec, now_ns() - begun) {
            break (None, why);
        }
    };
    let requests = &place.shape.requests;
    let mean = requests.iter().map(Vec::len).sum::<usize>() as f64 / requests.len().max(1) as f64;
    let mut run = result::http_run(spec, flows, place.seats, place.same_host, mean, &sums);
    run.warnings.extend(why);
    run.warnings.extend(place.onlooker.and_then(|peer| peer.elsewhere(place.shape.to)));
    let server = result::server(&sums.all);
    Ok(One { run, server, cut_short: sums.cut_short, broken })
}

fn check(spec: &HttpSpec) -> Result<()> {
    let usage = |why: String| Err(Error::Usage(why));
    let common = &spec.common;
    if common.transport != Transport::Tcp || common.far != FarProgram::Server {
        return usage("HTTP is measured over TCP, against a server of its own".into());
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
            "a number of requests is one round; leave out --requests or --confidence".into(),
        );
    }
    if spec.rate_per_s == Some(0) || spec.requests == Some(0) {
        return usage("no requests are asked for".into());
    }
    if spec.timeout_ns.0 < 1_000_000 {
        return usage("a time limit below 1ms fails requests that only wait their turn".into());
    }
    Ok(())
}

/// Whether an address is one of this network namespace's: only such can be sent from.
fn is_here(to: SocketAddr) -> bool {
    to.ip().is_loopback() || UdpSocket::bind(SocketAddr::new(to.ip(), 0)).is_ok()
}

/// One run: threads, window, what came of it.
fn round(
    spec: &HttpSpec,
    flows: u32,
    place: &Place<'_>,
    run: Run<'_>,
    what: &str,
) -> Result<Round> {
    descriptors(flows)?;
    let Place { shape, seats, onlooker, .. } = *place;
    if let Some(peer) = onlooker {
        peer.look_on(&spec.common)?;
    }
    let (team, window) = (Team::new(spec.common.threads as usize), Window::closed());
    let open_loop = spec.rate_per_s.is_some();
    let mut recorders: Vec<Recorder> =
        team.members.iter().map(|_| Recorder::new(open_loop, BATCH_NS)).collect();
    let (begin_ns, over) = (now_ns() + 1_000_000, AtomicBool::new(false));
    let course = std::thread::scope(|threads| -> Course {
        for (n, recorder) in recorders.iter_mut().enumerate() {
            let (team, window, over) = (&team, &window, &over);
            let work = move || {
                let Some(member) = team.members.get(n) else { return };
                let quota = quota_of(spec, n);
                let schedule = schedule_of(spec, begin_ns, n);
                let near = Near { shape, window, team, member, schedule, quota };
                near_thread(n, flows, seats, &near, recorder, over);
            };
            if let Err(e) =
                std::thread::Builder::new().name(format!("nw-near-{n}")).spawn_scoped(threads, work)
            {
                team.break_off(Error::io("no thread", &e));
            }
        }
        while team.tids().len() < team.members.len() && !team.stopping() {
            std::thread::yield_now();
        }
        let course = conduct(run, onlooker, &spec.common, &team, &window, what, &mut |_| {});
        over.store(true, Ordering::Release);
        team.end();
        course
    });
    let broken = team.broken().or_else(|| course.silent.clone());
    let report = match (onlooker, &broken) {
        (Some(peer), None) => Some(host_only(peer.finish()?)),
        _ => None,
    };
    Ok(Round { recorders, course, seen: team.seen(), report, broken })
}

/// Whether this process may have so many sockets.
fn descriptors(flows: u32) -> Result<()> {
    net::raise_descriptor_limit();
    let limit = net::descriptor_limit();
    // The program's own, and what the kernel has not taken back yet.
    if u64::from(flows) + 64 > limit {
        return Err(Error::Environment(format!(
            "{flows} connections need more descriptors than the {limit} that this process may have \
             (ulimit -n)"
        )));
    }
    Ok(())
}

/// A thread's part of the requests.
fn quota_of(spec: &HttpSpec, n: usize) -> Option<u64> {
    let threads = u64::from(spec.common.threads.max(1));
    spec.requests.map(|all| all / threads + u64::from((n as u64) < all % threads))
}

/// Threads take turns; the first is not due before all have begun.
fn schedule_of(spec: &HttpSpec, begin_ns: u64, n: usize) -> Option<Schedule> {
    spec.rate_per_s.map(|rate| {
        let threads = f64::from(spec.common.threads);
        let gap_ns = 1e9 * threads / rate as f64;
        // With a number of requests the beginning is that of the window.
        let begin_ns = if spec.requests.is_some() { 0 } else { begin_ns };
        Schedule { start_ns: begin_ns + (gap_ns * n as f64 / threads) as u64, gap_ns }
    })
}

fn near_thread(
    n: usize,
    flows: u32,
    seats: &Seats,
    near: &Near<'_>,
    recorder: &mut Recorder,
    over: &AtomicBool,
) {
    let (team, member) = (near.team, near.member);
    if let Some(Err(e)) = seats.cpus.get(n % seats.cpus.len().max(1)).map(|c| seats::pin(*c)) {
        member.see(|seen| seen.warnings.push(e.to_string()));
    }
    let _running = member.sleeper.begin();
    near.run((n..flows as usize).step_by(team.members.len()).count(), recorder);
    member.see(|seen| recorder.ran_on.tell(seen));
    if near.quota.is_some() {
        if team.fulfilled() {
            team.stop();
        }
        // What a thread has used of the CPU is lost with its end.
        while !over.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
