//! From both ends' counters to a run of the document.

use model::{
    Nanos, Reading, Warning,
    measure::{
        Datagrams, Direction, Placement, StreamInterval, StreamRun, StreamSpec, Transport,
        ZeroCopy, ZeroCopyCount,
    },
};
use stats::Estimate;

use super::{
    StreamShape, modes, series,
    stream_window::{StreamCounters, StreamWindow},
};
use crate::{
    Error,
    client::Peer,
    control::message::{Counters, PeerReport, Ready, Test},
    engine::{
        assignments::Assignments,
        confidence::{self, Next},
        ends::{self, Around, Ends},
        worker_pool::ThreadReport,
    },
};

/// What one round of a run left behind.
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
    fn around(&self) -> Around<'_> {
        Around {
            ready: &self.ready,
            marks: &self.course.marks,
            seen: &self.seen,
            report: self.report.as_ref(),
            warnings: &self.warnings,
        }
    }
}

/// What to show while a run goes on.
pub fn progress_text(spec: &StreamSpec, bytes: u64, flows: u32, rounds: usize) -> String {
    let again = match (spec.common.confidence_per_mille, rounds) {
        (Some(_), n) => format!(", round {}", n + 1),
        _ => String::new(),
    };
    format!("stream {bytes} B, {flows} flows{again}")
}

/// The directions of a run, each on its own.
pub fn directions(direction: Direction) -> Vec<Direction> {
    match direction {
        Direction::Both => vec![Direction::Forward, Direction::Reverse],
        one => vec![one],
    }
}

/// One direction of a run.
#[derive(Debug, Clone, Copy)]
pub struct StreamPart<'a> {
    pub shape: &'a StreamShape,
    /// [`Direction::Forward`] or [`Direction::Reverse`].
    pub direction: Direction,
}

/// Growth of a counter that a server tells, which may tell anything.
fn grown(before: &Reading<u64>, after: &Reading<u64>) -> Reading<u64> {
    before.clone().and_then(|b| after.clone().map(|a| a.saturating_sub(b)))
}

fn both(a: Reading<u64>, b: Reading<u64>) -> Reading<u64> {
    a.and_then(|a| b.map(|b| a.saturating_add(b)))
}

fn at(list: &[u64], index: u32) -> u64 {
    list.get(index as usize).copied().unwrap_or(0)
}

impl StreamPart<'_> {
    fn flows(&self) -> impl Iterator<Item = u32> {
        let forward = self.direction == Direction::Forward;
        let shape = *self.shape;
        (0..shape.connections()).filter(move |i| shape.goes_forward(*i) == forward)
    }

    fn receiver<'b>(&self, look: &'b StreamCounters) -> &'b Counters {
        if self.direction == Direction::Forward { &look.peer } else { &look.local }
    }

    fn sender<'b>(&self, look: &'b StreamCounters) -> &'b Counters {
        if self.direction == Direction::Forward { &look.local } else { &look.peer }
    }

    /// Bytes received between two looks, by flow.
    fn bytes(&self, before: &StreamCounters, after: &StreamCounters) -> Vec<u64> {
        let (a, b) = (&self.receiver(before).received_bytes, &self.receiver(after).received_bytes);
        self.flows().map(|i| at(b, i).saturating_sub(at(a, i))).collect()
    }

    /// On the receiver's clock.
    fn time_ns(&self, before: &StreamCounters, after: &StreamCounters) -> u64 {
        self.receiver(after).at_ns.saturating_sub(self.receiver(before).at_ns)
    }

    /// What became of the datagrams whose numbers the receiver first saw, or passed over,
    /// between two looks. One that comes late, after a look that counted it as lost, makes up
    /// for it in the next interval.
    fn datagrams(&self, before: &StreamCounters, after: &StreamCounters) -> Option<Datagrams> {
        let (a, b) = (self.receiver(before), self.receiver(after));
        let (first, last) = (a.datagrams.as_ref()?, b.datagrams.as_ref()?);
        let numbers = |i| at(&b.next_sequence, i).saturating_sub(at(&a.next_sequence, i));
        let sent: u64 = self.flows().map(numbers).fold(0, u64::saturating_add);
        let received = last.received.saturating_sub(first.received);
        let refused = |look| self.sender(look).datagrams.as_ref().map_or(0, |d| d.send_refused);
        Some(Datagrams {
            sent,
            received,
            lost: sent.saturating_sub(received),
            reordered: grown(&first.reordered, &last.reordered),
            duplicates: grown(&first.duplicates, &last.duplicates),
            jitter_ns: last.jitter_ns.clone(),
            send_refused: refused(after).saturating_sub(refused(before)),
        })
    }

    /// Datagrams sent within the window of which the receiver, in the end, had seen neither
    /// them nor any later one: lost, though no number tells it.
    fn tail(
        &self,
        first: &StreamCounters,
        last: &StreamCounters,
        drained: Option<&StreamCounters>,
    ) -> u64 {
        let Some(drained) = drained else { return 0 };
        let sent = |look, i| at(&self.sender(look).next_sequence, i);
        let seen = |i| at(&self.receiver(drained).next_sequence, i);
        let lost = |i| sent(last, i).saturating_sub(seen(i).max(sent(first, i)));
        self.flows().map(lost).fold(0, u64::saturating_add)
    }

    /// The interval between two looks; `first` is the window's beginning.
    pub fn interval(
        &self,
        first: &StreamCounters,
        before: &StreamCounters,
        after: &StreamCounters,
    ) -> StreamInterval {
        let bytes: u64 = self.bytes(before, after).iter().fold(0, |a, b| a.saturating_add(*b));
        let ns = self.time_ns(before, after);
        let since = |look| self.time_ns(first, look) as f64 / 1e9;
        let (a, b) = (self.sender(before), self.sender(after));
        StreamInterval {
            start_s: since(before),
            end_s: since(after),
            bytes,
            bits_per_s: per_s(bytes, ns),
            retransmits: grown(&a.retransmits, &b.retransmits),
            cwnd_bytes: b.cwnd_bytes.clone(),
            rtt_ns: b.rtt_ns.clone(),
            migrations: both(
                grown(&before.local.migrations, &after.local.migrations),
                grown(&before.peer.migrations, &after.peer.migrations),
            ),
            datagrams: self.datagrams(before, after),
        }
    }

    /// Bits a second by time, and the distance of the values.
    fn rates(&self, rounds: &[Round]) -> (Vec<f64>, u64) {
        let (mut all, mut each) = (vec![], 0);
        for round in rounds {
            let marks = &round.course.marks;
            let looks = match (self.direction, &round.report) {
                (Direction::Forward, Some(report)) => report.received.clone(),
                (Direction::Forward, None) => vec![],
                _ => round.course.series.within(marks.0.begins_ns(), marks.1.ends_ns()),
            };
            let (rates, ns) = series::rates(&looks);
            all.extend(rates);
            each = ns;
        }
        (all, each)
    }

    fn estimate(&self, rounds: &[Round]) -> Option<Estimate> {
        let (rates, each) = self.rates(rounds);
        stats::interval::of_values(&rates, each).ok()
    }
}

fn per_s(bytes: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { bytes as f64 * 8e9 / ns as f64 }
}

/// Whether the rounds suffice for what was asked.
pub fn enough(spec: &StreamSpec, test: &Test, rounds: &[Round], took_ns: u64) -> Next {
    let shape = StreamShape::of(test, true, spec.common.wait);
    let of = |direction| StreamPart { shape: &shape, direction }.estimate(rounds);
    let estimates: Vec<_> = directions(spec.direction).into_iter().map(of).collect();
    confidence::next(&spec.common, &estimates, took_ns)
}

/// The runs, one for each direction.
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
    rounds.iter().for_each(|r| ends.add_around(r.around()));
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
        bits_per_s_interval: part.estimate(rounds).map(|e| e.interval),
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

/// What the figures themselves give reason to say.
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
    // Exactly over the window; the marks enclose it.
    placement.local.migrations = moves(|l| &l.local);
    placement.peer.migrations = moves(|l| &l.peer);
    placement
}

#[cfg(test)]
mod tests {
    use model::measure::Wait;

    use super::*;

    fn look(sent: u64, seen: u64, received: u64) -> StreamCounters {
        let counters = |next: u64, received: u64| Counters {
            next_sequence: vec![next],
            received_bytes: vec![received * 100],
            datagrams: Some(Datagrams { received, ..Datagrams::default() }),
            ..Counters::default()
        };
        StreamCounters { local: counters(sent, 0), peer: counters(seen, received) }
    }

    fn shape() -> StreamShape {
        StreamShape {
            transport: Transport::Udp,
            direction: Direction::Forward,
            local: true,
            message_bytes: 100,
            rate_bps: Some(1),
            flows: 1,
            zerocopy: None,
            skip_receive_copy: false,
            wait: Wait::Block,
        }
    }

    #[test]
    fn what_is_on_its_way_is_neither_sent_nor_lost() {
        let shape = shape();
        let part = StreamPart { shape: &shape, direction: Direction::Forward };
        // 10 were on their way at the beginning, 20 at the end; 5 in between never came.
        let (first, last, drained) =
            (look(110, 100, 100), look(320, 300, 295), look(400, 400, 395));
        let d = part.datagrams(&first, &last).unwrap();
        assert_eq!((d.sent, d.received, d.lost), (200, 195, 5));
        assert_eq!(part.tail(&first, &last, Some(&drained)), 0);
        assert_eq!(part.bytes(&first, &last), [19_500]);
    }

    #[test]
    fn what_was_sent_and_followed_by_silence_is_lost() {
        let shape = shape();
        let part = StreamPart { shape: &shape, direction: Direction::Forward };
        // Nothing came from 150 on; 320 had been sent when the window ended.
        let (first, last, drained) =
            (look(110, 100, 100), look(320, 150, 150), look(400, 150, 150));
        assert_eq!(part.datagrams(&first, &last).unwrap().lost, 0);
        assert_eq!(part.tail(&first, &last, Some(&drained)), 170);
        // Nothing came at all.
        let (first, last, drained) = (look(110, 0, 0), look(320, 0, 0), look(400, 0, 0));
        assert_eq!(part.tail(&first, &last, Some(&drained)), 210);
        assert_eq!(part.tail(&first, &last, None), 0);
    }
}
