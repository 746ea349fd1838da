//! Combines both ends' figures into the runs of the result document.

use model::{
    Nanos, Reading, Warning,
    measure::{
        BothCpu, BothEvidence, Datagrams, Direction, End, EndCpu, EndPlacement, Placement,
        StreamDocument, StreamRun, StreamSpec, Wait,
    },
};
use traffic::{engine::floor::not_measured, host};

use super::{
    interval::{arrived, datagrams, retransmits},
    running_test::FinishedTest,
};
use crate::iperf3::{
    flow::FlowCounters,
    results::{Results, Stream},
};

const NOT_REPORTED: &str = "an iperf3 server does not report it";

/// A document without runs.
pub fn empty(spec: &StreamSpec) -> StreamDocument {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    StreamDocument {
        schema_version: model::SCHEMA_VERSION,
        kind: "stream".into(),
        started_unix_s: since.map_or(0, |d| d.as_secs()),
        request: spec.clone(),
        local: traffic::host::identity::of_this_host().end,
        peer: End { program: "iperf3".into(), ..End::default() },
        floor: not_measured("nothing was measured yet"),
        runs: Vec::new(),
        interrupted: false,
    }
}

/// The runs of a test, one for each direction.
pub fn runs(spec: &StreamSpec, done: FinishedTest) -> Vec<StreamRun> {
    let directions: &[Direction] = match spec.direction {
        Direction::Forward => &[Direction::Forward],
        Direction::Reverse => &[Direction::Reverse],
        Direction::Both => &[Direction::Forward, Direction::Reverse],
    };
    // Both directions share the threads: their CPU time is divided by the bytes of both.
    let all: u64 = directions.iter().flat_map(|d| Side::of(&done, *d).flow_bytes()).sum();
    directions.iter().map(|d| Side::of(&done, *d).run(spec, all)).collect()
}

/// One flow within the window.
struct Pair<'a> {
    from: &'a FlowCounters,
    /// Counters at the window's end; for a sender, after sending had stopped.
    to: &'a FlowCounters,
    their: Option<&'a Stream>,
}

/// One direction of a test.
struct Side<'a> {
    done: &'a FinishedTest,
    direction: Direction,
    sends: bool,
    pairs: Vec<Pair<'a>>,
}

impl<'a> Side<'a> {
    fn of(done: &'a FinishedTest, direction: Direction) -> Self {
        let sends = direction == Direction::Forward;
        let last = if sends { &done.stopped } else { &done.end.flows };
        let marks = done.start.flows.flows.iter().zip(&last.flows);
        let theirs = done.theirs.as_ref();
        let pairs = (marks.zip(&done.ids))
            .filter(|((_, to), _)| to.sends == sends)
            .map(|((from, to), id)| Pair { from, to, their: theirs.and_then(|t| t.stream(*id)) })
            .collect();
        Self { done, direction, sends, pairs }
    }

    /// Bytes received by each flow: the server's figures, else the best known at this end.
    fn flow_bytes(&self) -> Vec<u64> {
        let one = |p: &Pair| match (self.sends, p.their) {
            (true, Some(their)) => their.bytes,
            _ => arrived(p.from, p.to),
        };
        self.pairs.iter().map(one).collect()
    }

    /// Window length on the receiver's clock. For sent datagrams it is the sending time: the
    /// server's own window also includes the delay of the end message.
    fn window_s(&self) -> f64 {
        let (done, sends) = (self.done, self.sends);
        let theirs = self.pairs.iter().filter_map(|p| p.their);
        let theirs = theirs.map(|t| t.end_s - t.start_s).fold(0.0, f64::max);
        match (sends, done.asked.udp) {
            (true, false) if theirs > 0.0 => theirs,
            (true, _) => done.stopped.seconds_since(&done.start.flows),
            (false, _) => done.end.flows.seconds_since(&done.start.flows),
        }
    }

    fn run(&self, spec: &StreamSpec, all_bytes: u64) -> StreamRun {
        let done = self.done;
        let (asked, point) = (&done.asked, done.point);
        let flow_bytes = self.flow_bytes();
        let bytes: u64 = flow_bytes.iter().sum();
        let window_s = self.window_s();
        let here = host::between(&done.start.host, &done.end.host);
        let local = EndPlacement {
            pinned: done.assignments.cpus.clone(),
            why: done.assignments.why.clone(),
            allowed: done.assignments.allowed.clone(),
            received_on: done.arrivals.cpus.clone(),
            napi_ids: done.arrivals.napi_ids.clone(),
            migrations: here.extras.migrations.clone(),
            ..EndPlacement::default()
        };
        let peer = EndPlacement {
            migrations: Reading::absent(NOT_REPORTED),
            why: asked.server_cpu.map_or_else(String::new, |c| format!("asked for CPU {c}")),
            ..EndPlacement::default()
        };
        let [forward, reverse] = &done.intervals;
        let intervals = if self.sends { forward } else { reverse };
        let rates: Vec<f64> = intervals.iter().map(|i| i.bits_per_s).collect();
        let estimate = stats::interval::of_values(&rates, spec.interval_ns.0);
        StreamRun {
            transport: spec.common.transport,
            direction: self.direction,
            flows: point.flows,
            threads: asked.streams() as u32,
            message_bytes: point.message_bytes,
            wait: Wait::Block,
            peer_wait: Wait::Block,
            placement: Placement { local, peer, same_host: done.same_host },
            window_ns: Nanos((window_s * 1e9) as u64),
            trimmed_ns: Nanos(asked.omit_s * 1_000_000_000),
            bytes,
            bits_per_s: bytes as f64 * 8.0 / window_s.max(1e-9),
            bits_per_s_interval: estimate.ok().map(|e| e.interval),
            retransmits: self.retransmits(),
            datagrams: asked.udp.then(|| self.datagrams(&flow_bytes)),
            flow_bytes,
            modes: traffic::stream::modes::of(intervals),
            intervals: intervals.clone(),
            zerocopy_copied: None,
            congestion: self.congestion(),
            mss_bytes: self.mss(),
            cpu: BothCpu {
                local: host::per_unit(here.cpu, all_bytes),
                peer: match &done.theirs {
                    Some(theirs) => Reading::Known(peer_cpu_of(theirs, window_s, all_bytes)),
                    None => Reading::absent("the server did not report its results"),
                },
            },
            evidence: BothEvidence { local: here.moved, ..BothEvidence::default() },
            warnings: self.warnings(spec),
        }
    }

    fn retransmits(&self) -> Reading<u64> {
        let sum = |each: Option<Vec<u64>>, why: &str| match each {
            Some(each) => Reading::Known(each.iter().sum()),
            None => Reading::absent(why),
        };
        match (self.done.asked.udp, self.sends) {
            (true, _) => Reading::absent("UDP has none"),
            (false, true) => sum(
                self.pairs.iter().map(|p| retransmits(p.from, p.to)).collect(),
                "the connection is gone",
            ),
            (false, false) => sum(
                self.pairs.iter().map(|p| p.their?.retransmits).collect(),
                "the server did not report its retransmits",
            ),
        }
    }

    fn congestion(&self) -> Reading<String> {
        let theirs = self.done.theirs.as_ref().and_then(|t| t.congestion.clone());
        let name = if self.sends { self.done.congestion.clone() } else { theirs };
        match (self.done.asked.udp, name) {
            (true, _) => Reading::absent("UDP has none"),
            (false, Some(name)) => Reading::Known(name),
            (false, None) => Reading::absent("the sender did not tell"),
        }
    }

    fn mss(&self) -> Reading<u64> {
        match self.pairs.iter().find_map(|p| p.to.tcp) {
            Some(info) => Reading::Known(info.snd_mss.into()),
            None if self.done.asked.udp => Reading::absent("UDP has none"),
            None => Reading::absent(NOT_REPORTED),
        }
    }

    /// Counts of received, lost and reordered datagrams.
    fn datagrams(&self, flow_bytes: &[u64]) -> Datagrams {
        let seen: Vec<_> = self.pairs.iter().map(|p| (p.from, p.to)).collect();
        if !self.sends {
            return datagrams(&seen);
        }
        let refused = seen.iter().map(|(f, t)| t.refused.saturating_sub(f.refused)).sum();
        let sent: u64 = seen.iter().map(|(f, t)| t.datagrams.saturating_sub(f.datagrams)).sum();
        let reported: Option<Vec<&Stream>> = self.pairs.iter().map(|p| p.their).collect();
        let Some(reported) = reported else {
            return Datagrams { sent, send_refused: refused, ..Datagrams::default() };
        };
        let size = self.done.point.message_bytes.max(1);
        let received = flow_bytes.iter().map(|b| b / size).sum();
        let lost = self.pairs.iter().zip(&reported).map(|(p, t)| lost(p.to.datagrams, t)).sum();
        let jitter =
            reported.iter().map(|t| t.jitter_s).sum::<f64>() / reported.len().max(1) as f64;
        Datagrams {
            sent: received + lost,
            received,
            lost,
            reordered: Reading::absent(NOT_REPORTED),
            duplicates: Reading::absent(NOT_REPORTED),
            jitter_ns: ((jitter * 1e9) as u64).into(),
            send_refused: refused,
        }
    }

    fn warnings(&self, spec: &StreamSpec) -> Vec<Warning> {
        let (done, udp, sends) = (self.done, self.done.asked.udp, self.sends);
        let (reported, omit_s) = (done.theirs.is_some(), done.asked.omit_s);
        let first = self.pairs.iter().find_map(|p| p.their);
        let lost_in_warmup =
            sends && udp && omit_s > 0 && first.is_some_and(|t| t.omitted.is_none());
        let other_warmup = spec.common.warmup_ns.0 != omit_s * 1_000_000_000;
        let all = [
            (reported, Warning::Iperf3Cpu),
            (sends && !reported, Warning::BytesOfThisEnd),
            (sends && !udp, Warning::IntervalsAcknowledged),
            (sends && udp, Warning::IntervalsSent),
            (lost_in_warmup, Warning::Iperf3LostInWarmup),
            (other_warmup, Warning::Iperf3Warmup { seconds: omit_s }),
        ];
        all.into_iter().filter(|(said, _)| *said).map(|(_, warning)| warning).collect()
    }
}

/// Datagrams that did not arrive: those that the server reports as lost, and the last ones, which
/// it cannot detect.
fn lost(sent: u64, their: &Stream) -> u64 {
    let (omitted, _) = their.omitted.unwrap_or_default();
    their.errors.saturating_sub(omitted).saturating_add(sent.saturating_sub(their.packets))
}

/// The server's CPU time, from the percentages that it reports.
fn peer_cpu_of(theirs: &Results, window_s: f64, bytes: u64) -> EndCpu {
    let ns = |percent: f64| Reading::Known((percent.max(0.0) / 100.0 * window_s * 1e9) as u64);
    let cpu = EndCpu {
        window_ns: Nanos((window_s * 1e9) as u64),
        threads_ns: ns(theirs.cpu.total),
        threads_user_ns: ns(theirs.cpu.user),
        threads_system_ns: ns(theirs.cpu.system),
        process_ns: ns(theirs.cpu.total),
        host_ns: Reading::absent(NOT_REPORTED),
        host_busy_per_unit_ns: Reading::absent(NOT_REPORTED),
        threads_per_unit_ns: Reading::absent(NOT_REPORTED),
        voluntary_switches: Reading::absent(NOT_REPORTED),
        involuntary_switches: Reading::absent(NOT_REPORTED),
    };
    host::per_unit(cpu, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_datagrams_are_lost_too() {
        let their = Stream { errors: 7, packets: 95, ..Stream::default() };
        assert_eq!(lost(100, &their), 12);
        assert_eq!(lost(90, &their), 7);
        let knows = Stream { omitted: Some((3, 20)), ..their };
        assert_eq!(lost(100, &knows), 9);
    }
}
