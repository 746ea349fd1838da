//! `netwright doctor --peer`: both hosts over the same window, while streams load the path between
//! them.

use std::{sync::atomic::AtomicBool, time::Duration};

use model::{
    Bytes, Nanos, Reading, Samples,
    measure::{Common, Direction, PeerProgram, StreamRun, StreamSpec},
};
use remote::peer_end::PeerEnd;
use report::{
    DoctorDocument,
    doctor::peer::{self, PeerDocument, PeerLoad},
};
use serde::Deserialize as _;
use traffic::Secret;

use super::doctor;
use crate::{
    answered,
    failure::{CommandEnd, Failure},
    request::{Doctor, OtherEnd},
};

/// Streams run this long before and after the windows: both ends need time to begin.
const AROUND: Nanos = Nanos(1_500_000_000);
/// Streams in each direction.
const FLOWS: u32 = 4;
const MESSAGE: Bytes = Bytes(128 << 10);

/// One host, or both ends with `--peer`.
pub fn either(request: &Doctor) -> Result<CommandEnd, Failure> {
    match &request.peer {
        Some(other) => run(request, other),
        None => doctor::run(request),
    }
}

/// Judges both hosts, and prints which end limits.
fn run(request: &Doctor, other: &OtherEnd) -> Result<CommandEnd, Failure> {
    let end = PeerEnd::connect(&other.target)?;
    let facts = request.source.facts()?;
    let serving = if other.load { Some(end.serve()?) } else { None };
    let stop = AtomicBool::new(false);
    let (samples, interrupted, theirs, load) = std::thread::scope(|scope| {
        let load = serving.map(|(address, secret)| {
            let stop = &stop;
            scope.spawn(move || stream(&address, &secret, request.window, stop))
        });
        if load.is_some() {
            std::thread::sleep(Duration::from_nanos(AROUND.0 / 2));
        }
        let theirs = scope.spawn(|| end.judge(request.window, request.goal));
        let (samples, interrupted): (Reading<Samples>, bool) = doctor::watch(request, &facts);
        let theirs = theirs.join();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        (samples, interrupted, theirs, load.map(std::thread::ScopedJoinHandle::join))
    });
    let bug = |what: &str| Failure::Bug(format!("the thread that {what} panicked"));
    let theirs = theirs.map_err(|_| bug("asked the peer"))??;
    let load = match load {
        None => None,
        Some(done) => Some(done.map_err(|_| bug("loaded the path"))??),
    };
    let theirs = DoctorDocument::deserialize(&theirs)
        .map_err(|e| Failure::Environment(format!("{}: invalid answer: {e}", other.target)))?;
    let ours = doctor::judged(request, &facts, &samples, interrupted);
    let document = PeerDocument::new(other.target.clone(), load, ours, theirs);
    answered::facts(&facts);
    answered::document(&document);
    if request.json {
        request.sink.json(&document)?;
    } else {
        let look = request.sink.look(request.verbose);
        request.sink.text(&peer::text(&document, look))?;
    }
    let ends = [doctor::answer(request, &document.local), doctor::answer(request, &document.peer)];
    Ok(if ends.contains(&CommandEnd::No) { CommandEnd::No } else { CommandEnd::Yes })
}

/// Streams both ways until `stop`.
fn stream(
    address: &str,
    secret: &str,
    window: Nanos,
    stop: &AtomicBool,
) -> Result<PeerLoad, Failure> {
    let spec = StreamSpec {
        common: Common {
            duration_ns: Nanos(window.0 + 2 * AROUND.0 + window.0 / 2),
            ..Common::plain(address, PeerProgram::Netwright)
        },
        direction: Direction::Both,
        flows: vec![FLOWS],
        message_bytes: vec![MESSAGE.0],
        rate: None,
        interval_ns: Nanos(1_000_000_000),
        zerocopy: None,
        skip_receive_copy: false,
    };
    let secret = Secret::new(secret)?;
    let quiet = |_: &str, _: f64| {};
    let measured =
        traffic::measure_stream(&spec, Some(&secret), traffic::Run::new(stop, &quiet), &|_, _| {})?;
    if let Some(why) = measured.broken {
        return Err(Failure::Environment(format!("the load broke off: {why}; or use --no-load")));
    }
    let rate = |direction: Direction| {
        let runs = measured.document.runs.iter().filter(|r: &&StreamRun| r.direction == direction);
        runs.map(|r| r.bits_per_s).sum()
    };
    Ok(PeerLoad {
        forward_bits_per_s: rate(Direction::Forward),
        reverse_bits_per_s: rate(Direction::Reverse),
    })
}
