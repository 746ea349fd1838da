//! The client for an unmodified `iperf3 -s`.
//!
//! The server counts what it receives from the end of the warm-up to the end message, and reports
//! one total. For intervals, this end uses its own kernel's counters.

mod dialogue;
mod document;
mod interval;
mod running_test;

use std::{
    net::SocketAddr,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use model::{
    Nanos,
    measure::{Direction, Floor, Pin, StreamDocument, StreamSpec, Transport, Wait, ZeroCopy},
};
use traffic::{
    Error, Measured, OnInterval, Result, Run,
    engine::{assignments, floor},
    net::{
        options,
        target::{Target, resolve},
    },
};

use self::dialogue::Dialogue;
use super::params::{Params, STREAMS};

/// Retry interval: a server that just ended a test is briefly down, then briefly busy.
const AGAIN: Duration = Duration::from_millis(200);
/// Longest time for such retries.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Longest warm-up that iperf3 accepts.
const WARMUP_S: u64 = 60;

/// One combination of block size and number of flows.
#[derive(Debug, Clone, Copy)]
struct Point {
    message_bytes: u64,
    flows: u32,
}

/// Measures streams with an unmodified iperf3 server.
///
/// # Errors
/// Nothing could be measured: iperf3 does not support the request, no server answers, or the server
/// is busy. Later failures are in [`Measured::broken`].
pub fn client(
    spec: &StreamSpec,
    run: Run<'_>,
    on_interval: OnInterval<'_>,
) -> Result<Measured<StreamDocument>> {
    check(spec)?;
    options::check(&spec.common)?;
    let Target::Host(host, port) = spec.common.target.parse()? else {
        return Err(Error::Usage("iperf3 has no Unix sockets; name a host".into()));
    };
    let addresses = resolve(&host, port.unwrap_or(super::PORT), spec.common.family)?;
    let mut document = document::empty(spec);
    let mut broken = None;
    for point in points(spec) {
        if run.stop.load(Ordering::Relaxed) || broken.is_some() {
            document.interrupted = true;
            break;
        }
        match one(spec, point, &addresses, run, on_interval) {
            Ok(done) => {
                document.interrupted |= done.interrupted || done.broken.is_some();
                document.local.address = done.local.to_string();
                document.peer.address = done.remote.to_string();
                broken.clone_from(&done.broken);
                document.runs.extend(document::runs(spec, done));
            }
            Err(e) if document.runs.is_empty() => return Err(e),
            Err(e) => broken = Some(e),
        }
    }
    document.floor = floor(&document);
    Ok(Measured { document, broken })
}

/// Cost of this end's loops, measured on their CPU.
fn floor(document: &StreamDocument) -> Floor {
    let pinned = document.runs.first().and_then(|r| r.placement.local.pinned.first());
    match floor::calibrate(pinned.copied()) {
        Ok(calibration) => calibration.certificate(document.runs.iter().map(|r| &r.cpu.local)),
        Err(e) => floor::not_measured(&e.to_string()),
    }
}

fn points(spec: &StreamSpec) -> Vec<Point> {
    let sizes = &spec.message_bytes;
    let of = |flows| sizes.iter().map(move |&message_bytes| Point { message_bytes, flows });
    spec.flows.iter().flat_map(|&flows| of(flows)).collect()
}

fn check(spec: &StreamSpec) -> Result<()> {
    let usage = |why: String| Err(Error::Usage(why));
    let common = &spec.common;
    if common.transport == Transport::Unix {
        return usage("iperf3 has no Unix sockets; use TCP or UDP".into());
    }
    if common.wait != Wait::Block {
        return usage("with an iperf3 server this end waits by blocking only".into());
    }
    if common.confidence_per_mille.is_some() {
        return usage("an iperf3 server cannot be asked to repeat until confident".into());
    }
    if spec.zerocopy == Some(ZeroCopy::Msg) {
        return usage("iperf3 spares copies by sendfile only".into());
    }
    if spec.flows.is_empty() || spec.message_bytes.is_empty() || common.duration_ns == Nanos(0) {
        return usage("no size, no flows or no time is given".into());
    }
    if common.transport == Transport::Udp && spec.rate.is_none() {
        return usage("UDP needs a rate: nothing else keeps it from flooding the path".into());
    }
    if let Some(n) = spec.flows.iter().find(|n| **n == 0 || u64::from(**n) > STREAMS) {
        return usage(format!("{n} flows: iperf3 has 1 to {STREAMS}"));
    }
    if common.warmup_ns.0.div_ceil(1_000_000_000) > WARMUP_S {
        return usage(format!("iperf3 warms up for {WARMUP_S} s at most"));
    }
    let most = if common.transport == Transport::Udp { 65_507 } else { 1 << 20 };
    let least = if common.transport == Transport::Udp { 16 } else { 1 };
    match spec.message_bytes.iter().find(|n| **n < least || **n > most) {
        Some(n) => usage(format!("blocks of {n} bytes: iperf3 has {least} to {most}")),
        None => Ok(()),
    }
}

/// The test's parameters for the server.
fn params(spec: &StreamSpec, point: Point) -> Params {
    let common = &spec.common;
    let socket = &common.socket;
    let server_cpu = match &common.peer_pin {
        Pin::List(cpus) => cpus.iter().next().map(|c| c.0),
        Pin::Auto | Pin::Apart | Pin::No => None,
    };
    Params {
        udp: common.transport == Transport::Udp,
        omit_s: common.warmup_ns.0.div_ceil(1_000_000_000),
        time_s: common.duration_ns.0.div_ceil(1_000_000_000),
        parallel: point.flows as usize,
        len: point.message_bytes as usize,
        reverse: spec.direction == Direction::Reverse,
        bidirectional: spec.direction == Direction::Both,
        nodelay: socket.nodelay == Some(true),
        window: socket.buffer_bytes.map(|b| u32::try_from(b.0).unwrap_or(u32::MAX)),
        mss: socket.mss_bytes,
        rate: spec.rate.map_or(0, |r| (r.0 / u64::from(point.flows)).max(1)),
        tos: socket.dscp.unwrap_or(0) << 2,
        congestion: socket.congestion.clone(),
        server_cpu,
        udp_counters_64bit: common.transport == Transport::Udp,
        zerocopy: spec.zerocopy.is_some(),
        skip_rx_copy: spec.skip_receive_copy,
        client_version: traffic::PROGRAM.into(),
        ..Params::default()
    }
}

fn one(
    spec: &StreamSpec,
    point: Point,
    addresses: &[SocketAddr],
    run: Run<'_>,
    on_interval: OnInterval<'_>,
) -> Result<running_test::FinishedTest> {
    let asked = params(spec, point);
    let dialogue = open(spec, &asked, addresses, run)?;
    let threads = u32::try_from(asked.streams()).unwrap_or(u32::MAX);
    let remote = dialogue.remote;
    let assignments =
        assignments::beside(&spec.common.pin, threads, dialogue.same_host(), Some(remote))?;
    running_test::run(spec, point, &asked, dialogue, assignments, (run, on_interval))
}

/// A server that has accepted the test, before its streams are opened.
fn open(
    spec: &StreamSpec,
    asked: &Params,
    addresses: &[SocketAddr],
    run: Run<'_>,
) -> Result<Dialogue> {
    let until = Instant::now() + PATIENCE;
    loop {
        let mut last = Error::Environment(format!("{} has no address", spec.common.target));
        for address in addresses {
            match Dialogue::begin(*address, spec, asked, run.stop) {
                Ok(done) => return Ok(done),
                Err((e, _)) if Instant::now() > until => last = e,
                Err((e, dialogue::Again::Maybe)) => last = e,
                Err((e, dialogue::Again::No)) => return Err(e),
            }
        }
        if Instant::now() > until || run.stop.load(Ordering::Relaxed) {
            return Err(last);
        }
        thread::sleep(AGAIN);
    }
}
