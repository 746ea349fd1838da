//! Combines both ends' counters into one run of the result document.

use model::{
    Nanos, Reading, Warning,
    measure::{
        Datagrams, Direction, Placement, StreamInterval, StreamRun, StreamSpec, Transport,
        ZeroCopy, ZeroCopyCount,
    },
};
use stats::Estimate;

use super::{
    StreamShape, modes,
    part::{StreamCounters, StreamPart, both, directions, grown, per_s},
    series,
    stream_window::StreamWindow,
};
use crate::{
    Error,
    client::Peer,
    control::message::{Counters, PeerReport, Ready, Test},
    engine::{
        assignments::Assignments,
        confidence::{self, Next},
        ends::{self, Ends, RoundContext},
        worker_pool::ThreadReport,
    },
};

/// Result of one round.
#[derive(Debug)]
pub struct Round {
    pub ready: Ready,
    pub course: StreamWindow,
    pub seen: ThreadReport,
    pub report: Option<PeerReport>,
    pub warnings: Vec<Warning>,
    pub congestion: Reading<String>,
    pub mss_bytes: Reading<u64>,
    pub broken: Option<Error>,
}

impl Round {
    fn context(&self) -> RoundContext<'_> {
        RoundContext {
            ready: &self.ready,
            snapshots: &self.course.snapshots,
            seen: &self.seen,
            report: self.report.as_ref(),
            warnings: &self.warnings,
        }
    }
}

/// Status line while a run is in progress.
pub fn progress_text(spec: &StreamSpec, bytes: u64, flows: u32, rounds: usize) -> String {
    let again = match (spec.common.confidence_per_mille, rounds) {
        (Some(_), n) => format!(", round {}", n + 1),
        _ => String::new(),
    };
    format!("stream {bytes} B, {flows} flows{again}")
}

/// Bits per second over time, and the spacing of the values in nanoseconds.
fn rates(direction: Direction, rounds: &[Round]) -> (Vec<f64>, u64) {
    let (mut all, mut each) = (vec![], 0);
    for round in rounds {
        let snapshots = &round.course.snapshots;
        let looks = match (direction, &round.report) {
            (Direction::Forward, Some(report)) => report.received.clone(),
            (Direction::Forward, None) => vec![],
            _ => round.course.series.within(snapshots.0.begins_ns(), snapshots.1.ends_ns()),
        };
        let (rates, ns) = series::rates(&looks);
        all.extend(rates);
        each = ns;
    }
    (all, each)
}

fn estimate(direction: Direction, rounds: &[Round]) -> Option<Estimate> {
    let (rates, each) = rates(direction, rounds);
    stats::interval::of_values(&rates, each).ok()
}

/// Whether the rounds reach the requested precision.
pub fn enough(spec: &StreamSpec, rounds: &[Round], took_ns: u64) -> Next {
    let of = |direction| estimate(direction, rounds);
    let estimates: Vec<_> = directions(spec.direction).into_iter().map(of).collect();
    confidence::next(&spec.common, &estimates, took_ns)
}

/// The runs of the result, one for each direction.
pub fn runs(
    spec: &StreamSpec,
    test: &Test,
    assignments: &Assignments,
    peer: &Peer,
    rounds: &[Round],
) -> Vec<StreamRun> {
    let shape = StreamShape::of(test, true, spec.common.wait);
    let parts: Vec<StreamPart<'_>> = directions(spec.direction)
        .into_iter()
        .map(|direction| StreamPart { shape: &shape, direction })
        .collect();
    let bytes_of = |p: &StreamPart<'_>| -> u64 {
        rounds.iter().flat_map(|r| p.bytes(&r.course.first, &r.course.last)).sum()
    };
    // Both directions share the threads, and so their cost.
    let moved: u64 = parts.iter().map(bytes_of).sum();
    let mut ends = Ends::default();
    rounds.iter().for_each(|r| ends.add_context(r.context()));
    let placement = placement(&ends, rounds, assignments, peer);
    parts.iter().map(|p| one(p, spec, rounds, &ends, &placement, moved)).collect()
}

fn one(
    part: &StreamPart<'_>,
    spec: &StreamSpec,
    rounds: &[Round],
    ends: &Ends,
    placement: &Placement,
    moved: u64,
) -> StreamRun {
    let shape = part.shape;
    let mut flow_bytes = vec![0u64; shape.flows as usize];
    let (mut window_ns, mut intervals) = (0u64, vec![]);
    for r in rounds {
        let bytes = part.bytes(&r.course.first, &r.course.last);
        flow_bytes.iter_mut().zip(bytes).for_each(|(sum, b)| *sum = sum.saturating_add(b));
        let before_s = window_ns as f64 / 1e9;
        window_ns += part.time_ns(&r.course.first, &r.course.last);
        let mine = r.course.intervals.iter().filter(|(d, _)| *d == part.direction);
        intervals.extend(mine.map(|(_, i)| StreamInterval {
            start_s: i.start_s + before_s,
            end_s: i.end_s + before_s,
            ..i.clone()
        }));
    }
    let bytes = flow_bytes.iter().fold(0u64, |a, b| a.saturating_add(*b));
    let forward = part.direction == Direction::Forward;
    let last = rounds.last();
    let of_sender = |local: fn(&Round) -> Reading<String>,
                     peer: fn(&PeerReport) -> Reading<String>| {
        match (forward, last, last.and_then(|r| r.report.as_ref())) {
            (true, Some(r), _) => local(r),
            (false, _, Some(report)) => peer(report),
            _ => Reading::absent("the server did not report"),
        }
    };
    let congestion = of_sender(|r| r.congestion.clone(), |f| f.congestion.clone());
    let mss = match (forward, last, last.and_then(|r| r.report.as_ref())) {
        (true, Some(r), _) => r.mss_bytes.clone(),
        (false, _, Some(report)) => report.mss_bytes.clone(),
        _ => Reading::absent("the server did not report"),
    };
    let mut run = StreamRun {
        transport: shape.transport,
        direction: part.direction,
        flows: shape.flows,
        threads: spec.common.threads,
        message_bytes: shape.message_bytes as u64,
        wait: spec.common.wait,
        peer_wait: spec.common.peer_wait,
        placement: placement.clone(),
        window_ns: Nanos(window_ns),
        trimmed_ns: Nanos(spec.common.warmup_ns.0 + spec.common.cooldown_ns.0),
        bytes,
        bits_per_s: per_s(bytes, window_ns),
        bits_per_s_interval: estimate(part.direction, rounds).map(|e| e.interval),
        retransmits: ends::sum(rounds.iter().map(|r| {
            let (a, b) = (part.sender(&r.course.first), part.sender(&r.course.last));
            grown(&a.retransmits, &b.retransmits)
        })),
        datagrams: datagrams(part, rounds),
        flow_bytes,
        modes: modes::of(&intervals),
        intervals,
        zerocopy_copied: zerocopied(part, rounds),
        congestion,
        mss_bytes: mss,
        cpu: ends.cpu(|_| moved),
        evidence: ends.evidence(),
        warnings: ends.warnings(),
    };
    run.warnings.extend(ends.others(placement));
    if let Some(d) = &run.datagrams {
        let reported = ends.no_room(d.lost, placement.same_host, !forward, forward);
        run.warnings.extend(reported);
    }
    judge(&mut run, part, spec, rounds);
    run
}

fn datagrams(part: &StreamPart<'_>, rounds: &[Round]) -> Option<Datagrams> {
    let mut all: Option<Datagrams> = None;
    for r in rounds {
        let one = part.datagrams(&r.course.first, &r.course.last)?;
        let tail = part.tail(&r.course.first, &r.course.last, r.course.drained.as_ref());
        let one = Datagrams {
            sent: one.sent.saturating_add(tail),
            lost: one.lost.saturating_add(tail),
            ..one
        };
        let Some(sum) = &mut all else {
            all = Some(one);
            continue;
        };
        sum.sent += one.sent;
        sum.received += one.received;
        sum.lost += one.lost;
        sum.reordered = both(sum.reordered.clone(), one.reordered);
        sum.duplicates = both(sum.duplicates.clone(), one.duplicates);
        sum.jitter_ns = one.jitter_ns;
        sum.send_refused += one.send_refused;
    }
    all
}

fn zerocopied(part: &StreamPart<'_>, rounds: &[Round]) -> Option<ZeroCopyCount> {
    let mut all = ZeroCopyCount { completed: 0, copied: 0 };
    for r in rounds {
        let first = part.sender(&r.course.first).zerocopy.as_ref()?;
        let last = part.sender(&r.course.last).zerocopy.as_ref()?;
        all.completed += last.completed.saturating_sub(first.completed);
        all.copied += last.copied.saturating_sub(first.copied);
    }
    Some(all)
}

/// Adds warnings that follow from the figures.
fn judge(run: &mut StreamRun, part: &StreamPart<'_>, spec: &StreamSpec, rounds: &[Round]) {
    if spec.zerocopy == Some(ZeroCopy::Msg)
        && run.zerocopy_copied.as_ref().is_some_and(|z| z.completed > 0 && z.copied == z.completed)
    {
        run.warnings.push(Warning::ZerocopyCopied);
    }
    let Some(asked) = spec.rate.map(|r| r.0 as f64) else { return };
    let sent: u64 = rounds
        .iter()
        .map(|r| {
            let (a, b) = (part.sender(&r.course.first), part.sender(&r.course.last));
            b.sent_bytes.saturating_sub(a.sent_bytes)
        })
        .sum();
    let ns: u64 = rounds
        .iter()
        .map(|r| {
            let (a, b) = (part.sender(&r.course.first), part.sender(&r.course.last));
            b.at_ns.saturating_sub(a.at_ns)
        })
        .sum();
    let reached = per_s(sent, ns);
    if ns > 0 && reached < asked * 0.98 {
        let what = if spec.common.transport == Transport::Udp { "the sender" } else { "it" };
        run.warnings.push(Warning::RateNotReached { sender: what.into(), share: reached / asked });
    }
}

fn placement(ends: &Ends, rounds: &[Round], assignments: &Assignments, peer: &Peer) -> Placement {
    let moves = |of: fn(&StreamCounters) -> &Counters| {
        let one =
            |r: &Round| grown(&of(&r.course.first).migrations, &of(&r.course.last).migrations);
        ends::sum(rounds.iter().map(one))
    };
    let mut placement = ends.placement(assignments, peer.same_host);
    // Exactly the window; the snapshots enclose it.
    placement.local.migrations = moves(|l| &l.local);
    placement.peer.migrations = moves(|l| &l.peer);
    placement
}
