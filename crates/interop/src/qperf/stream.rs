//! `measure stream --peer qperf`: one flow to qperf's server, by its tests `tcp_bw` and `udp_bw`.
//!
//! The server counts all data between its first and its last message, and reports one total at the
//! end. Over TCP, the window is computed from the bytes that its kernel acknowledged; over UDP the
//! window is the whole test, so there is no warm-up.

use std::{
    os::fd::AsRawFd,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use model::{
    Nanos, Reading, Warning,
    measure::{
        BothCpu, BothEvidence, Datagrams, Direction, EndPlacement, Placement, StreamDocument,
        StreamInterval, StreamRun, StreamSpec, Transport, Wait,
    },
};
use stats::interval;
use traffic::{
    Error, Result,
    control::message::{Ready, TestKind},
    engine::{
        conduct::Run,
        measured::{Measured, unix_s},
        worker_pool::{Worker, WorkerPool},
    },
    host::{self, CounterSnapshot},
    net::now_ns,
};

use super::{
    client::{Client, each_size},
    local::Session,
    result::{NOT_REPORTED, ask, check_common, end_cpu, peer_ready, test, warnings},
    sender::Sender,
    wire::Stat,
};
use crate::iperf3::sock::{TcpInfo, congestion, tcp_info};

/// How often a wait looks whether it shall end.
const LOOK_NS: u64 = 50_000_000;

/// Measures streams to an unmodified qperf server.
///
/// # Errors
/// Nothing could be measured; later failures are in [`Measured::broken`].
pub fn client_stream(spec: &StreamSpec, run: Run<'_>) -> Result<Measured<StreamDocument>> {
    check(spec)?;
    let client = Client::new(&spec.common, run.stop)?;
    let mut document = StreamDocument {
        schema_version: model::SCHEMA_VERSION,
        kind: "stream".into(),
        started_unix_s: unix_s(),
        request: spec.clone(),
        local: client.place.local.clone(),
        peer: client.place.end.clone(),
        floor: client.calibration.certificate([]),
        runs: vec![],
        interrupted: false,
    };
    let peer = &mut document.peer;
    let (runs, broken) = each_size(&spec.message_bytes, run.stop, |bytes| {
        let (done, cpus, broken) = one(spec, bytes, &client, run)?;
        peer.cpus = cpus.unwrap_or(peer.cpus);
        Ok(Measured { document: done, broken })
    })?;
    document.interrupted = broken.is_some() || run.stop.load(Ordering::Relaxed);
    document.floor = client.calibration.certificate(runs.iter().map(|r| &r.cpu.local));
    document.runs = runs;
    Ok(Measured { document, broken })
}

/// Refuses options that qperf does not support.
fn check(spec: &StreamSpec) -> Result<()> {
    check_common(&spec.common, &spec.flows, &spec.message_bytes, false)?;
    let usage = |why: String| Err(Error::Usage(why));
    if spec.direction != Direction::Forward {
        return usage("qperf's server only receives: no --direction but forward".into());
    }
    if spec.zerocopy.is_some() || spec.skip_receive_copy {
        return usage("zero copy and skipping the receiver's copy are not done with qperf".into());
    }
    if spec.rate.is_some_and(|r| r.0 == 0) {
        return usage("a rate of 0 sends nothing".into());
    }
    Ok(())
}

fn one(
    spec: &StreamSpec,
    bytes: u64,
    client: &Client,
    run: Run<'_>,
) -> Result<(StreamRun, Option<u32>, Option<Error>)> {
    let mut spec = spec.clone();
    let udp = spec.common.transport == Transport::Udp;
    let mut reported = warnings(&spec.common);
    if udp && spec.common.warmup_ns.0 + spec.common.cooldown_ns.0 > 0 {
        (spec.common.warmup_ns, spec.common.cooldown_ns) = (Nanos(0), Nanos(0));
        reported.push(Warning::QperfNoWarmup);
    }
    let common = &spec.common;
    let kind = TestKind::Stream {
        direction: Direction::Forward,
        message_bytes: bytes,
        rate_bps: None,
        zerocopy: None,
        skip_receive_copy: false,
    };
    let assignment = peer_ready(&test(common, kind, client), client)?;
    let ask = ask(common, bytes, false, &assignment)?;
    let mut session = Session::open(&client.place, common, ask, run.stop)?;
    let sender = Sender {
        message: bytes as usize,
        udp,
        rate: spec.rate.map(|r| r.0),
        refused: AtomicU64::new(0),
    };
    let pool = WorkerPool::new(1);
    let course = send(&spec, &mut session, &sender, client, &pool, run);
    let (stat, broken) = session.end(pool.broken(), run.stop.load(Ordering::Relaxed));
    let cpus = stat.as_ref().map(|s| s.cpus);
    let run =
        Parts { spec: &spec, bytes, client, assignment, sender, pool, course, stat, reported };
    Ok((run.run(), cpus, broken))
}

/// State of the sending kernel at one time.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at_ns: u64,
    tcp: Option<TcpInfo>,
}

/// A test after its data was sent.
struct SentTest {
    snapshots: (CounterSnapshot, CounterSnapshot),
    /// Samples at the window's start, at each interval's end, and at the window's end.
    samples: Vec<Sample>,
    congestion: Option<String>,
    /// Start and end time of the sender.
    sent_ns: (u64, u64),
}

/// Sends the data, and samples the sender meanwhile.
fn send(
    spec: &StreamSpec,
    session: &mut Session,
    sender: &Sender,
    client: &Client,
    pool: &WorkerPool,
    run: Run<'_>,
) -> SentTest {
    let (fd, begun) = (session.data.as_raw_fd(), now_ns());
    let work = |worker: &Worker| sender.run(fd, pool, worker);
    client.in_thread(pool, work, || {
        let mut course = watch(spec, session, pool, run);
        pool.end();
        course.sent_ns = (begun, now_ns());
        course
    })
}

/// Warm-up, window with its intervals, cool-down.
fn watch(spec: &StreamSpec, session: &mut Session, pool: &WorkerPool, run: Run<'_>) -> SentTest {
    let (root, common) = (probe::Root::live(), &spec.common);
    let what = format!("stream to qperf, {} B", session.message());
    let begun = now_ns();
    let whole = (common.warmup_ns.0 + common.duration_ns.0 + common.cooldown_ns.0).max(1) as f64;
    let until = |session: &mut Session, end: u64| {
        loop {
            let now = now_ns();
            (run.progress)(&what, ((now - begun) as f64 / whole).min(1.0));
            if let Some(why) = session.gone() {
                pool.break_off(why);
            }
            if now >= end || pool.stopping() || run.stop.load(Ordering::Relaxed) {
                return now < end;
            }
            thread::sleep(std::time::Duration::from_nanos((end - now).min(LOOK_NS)));
        }
    };
    let sample = |session: &Session| Sample { at_ns: now_ns(), tcp: tcp_info(&session.data) };
    until(session, begun + common.warmup_ns.0);
    let first = CounterSnapshot::take(&pool.tids(), &root);
    let mut samples = vec![sample(session)];
    let start = now_ns();
    let end = start + common.duration_ns.0;
    let each = spec.interval_ns.0.max(LOOK_NS);
    let mut next = start;
    loop {
        next = (next + each).min(end);
        let cut = until(session, next);
        samples.push(sample(session));
        if cut || next >= end {
            break;
        }
    }
    let last = CounterSnapshot::take(&pool.tids(), &root);
    until(session, now_ns() + common.cooldown_ns.0);
    let congestion = congestion(&session.data);
    SentTest { snapshots: (first, last), samples, congestion, sent_ns: (0, 0) }
}

/// Inputs of a run's result.
struct Parts<'a> {
    spec: &'a StreamSpec,
    bytes: u64,
    client: &'a Client,
    assignment: Ready,
    sender: Sender,
    pool: WorkerPool,
    course: SentTest,
    stat: Option<Stat>,
    reported: Vec<Warning>,
}

impl Parts<'_> {
    fn run(self) -> StreamRun {
        let common = &self.spec.common;
        let udp = common.transport == Transport::Udp;
        let here = host::between(&self.course.snapshots.0, &self.course.snapshots.1);
        let (bytes, window_ns) = if udp { self.datagram_window() } else { self.stream_window() };
        let intervals = if udp { vec![] } else { self.intervals() };
        let ends = || self.course.samples.first().zip(self.course.samples.last());
        let tcp = |of: fn(&TcpInfo, &TcpInfo) -> u64| match ends().map(|(a, b)| (a.tcp, b.tcp)) {
            Some((Some(a), Some(b))) => Reading::Known(of(&a, &b)),
            _ => Reading::absent("TCP_INFO: not read"),
        };
        let only_tcp = |r: Reading<u64>| match udp {
            true => Reading::absent("UDP has none"),
            false => r,
        };
        let peer = match &self.stat {
            Some(stat) => end_cpu(stat).map(|cpu| host::per_unit(cpu, stat.received.bytes)),
            None => Reading::absent("the server did not report"),
        };
        let rates: Vec<f64> = intervals.iter().map(|i| i.bits_per_s).collect();
        let each = self.spec.interval_ns.0;
        StreamRun {
            transport: common.transport,
            direction: Direction::Forward,
            flows: 1,
            threads: 1,
            message_bytes: self.bytes,
            wait: common.wait,
            peer_wait: Wait::Block,
            placement: self.placement(here.extras.migrations),
            window_ns: Nanos(window_ns),
            trimmed_ns: Nanos(common.warmup_ns.0 + common.cooldown_ns.0),
            bytes,
            bits_per_s: bytes as f64 * 8e9 / window_ns.max(1) as f64,
            bits_per_s_interval: interval::of_values(&rates, each).ok().map(|e| e.interval),
            retransmits: only_tcp(tcp(|a, b| {
                u64::from(b.retransmits.saturating_sub(a.retransmits))
            })),
            datagrams: self.stat.filter(|_| udp).map(|s| self.datagrams(&s)),
            modes: traffic::stream::modes::of(&intervals),
            flow_bytes: vec![bytes],
            intervals,
            zerocopy_copied: None,
            congestion: match (&self.course.congestion, udp) {
                (Some(name), false) => Reading::Known(name.clone()),
                _ => Reading::absent("UDP has none"),
            },
            mss_bytes: only_tcp(tcp(|_, b| u64::from(b.snd_mss))),
            cpu: BothCpu { local: host::per_unit(here.cpu, bytes), peer },
            evidence: BothEvidence { local: here.moved, peer: Default::default() },
            warnings: self.warnings(udp),
        }
    }

    /// Bytes acknowledged by the server's kernel within the window, and its length.
    fn stream_window(&self) -> (u64, u64) {
        let (first, last) = (self.course.samples.first(), self.course.samples.last());
        let Some((a, b)) = first.zip(last) else { return (0, 0) };
        let acked = |s: &Sample| s.tcp.map_or(0, |t| t.bytes_acked);
        (acked(b).saturating_sub(acked(a)), b.at_ns - a.at_ns)
    }

    /// All bytes received by the server, and the time of sending them.
    fn datagram_window(&self) -> (u64, u64) {
        let (from, to) = self.course.sent_ns;
        (self.stat.map_or(0, |s| s.received.bytes), to - from)
    }

    fn intervals(&self) -> Vec<StreamInterval> {
        let Some(start) = self.course.samples.first() else { return vec![] };
        let since = |s: &Sample| (s.at_ns - start.at_ns) as f64 / 1e9;
        let pairs = self.course.samples.iter().zip(self.course.samples.iter().skip(1));
        pairs
            .filter_map(|(a, b)| {
                let (before, after) = (a.tcp?, b.tcp?);
                let bytes = after.bytes_acked.saturating_sub(before.bytes_acked);
                let sent_again = after.retransmits.saturating_sub(before.retransmits);
                let window = u64::from(after.snd_cwnd) * u64::from(after.snd_mss);
                Some(StreamInterval {
                    start_s: since(a),
                    end_s: since(b),
                    bytes,
                    bits_per_s: bytes as f64 * 8e9 / (b.at_ns - a.at_ns).max(1) as f64,
                    retransmits: Reading::Known(u64::from(sent_again)),
                    cwnd_bytes: Reading::Known(window),
                    rtt_ns: Reading::Known(u64::from(after.rtt_us) * 1000),
                    migrations: Reading::absent("seen for the whole window alone"),
                    datagrams: None,
                })
            })
            .collect()
    }

    fn datagrams(&self, stat: &Stat) -> Datagrams {
        let (sent, received) = (self.pool.transactions(), stat.received.messages);
        Datagrams {
            sent,
            received,
            lost: sent.saturating_sub(received),
            reordered: Reading::absent(NOT_REPORTED),
            duplicates: Reading::absent(NOT_REPORTED),
            jitter_ns: Reading::absent(NOT_REPORTED),
            send_refused: self.sender.refused.load(Ordering::Relaxed),
        }
    }

    fn placement(&self, migrations: Reading<u64>) -> Placement {
        let assignments = &self.client.assignments;
        let local = EndPlacement {
            pinned: assignments.cpus.clone(),
            why: assignments.why.clone(),
            ran_on: self.pool.seen().ran_on,
            allowed: assignments.allowed.clone(),
            migrations,
            ..EndPlacement::default()
        };
        let peer = EndPlacement {
            pinned: self.assignment.pinned.clone(),
            why: self.assignment.why.clone(),
            allowed: self.assignment.allowed.clone(),
            migrations: Reading::absent(NOT_REPORTED),
            ..EndPlacement::default()
        };
        Placement { local, peer, same_host: self.client.place.same_host }
    }

    fn warnings(&self, udp: bool) -> Vec<Warning> {
        let mut all = self.reported.clone();
        all.extend(self.pool.seen().warnings);
        if udp {
            all.push(Warning::QperfNoIntervals);
        }
        // Whole messages at this end; the server may count part of the last, interrupted one.
        let sent = self.pool.transactions().saturating_mul(self.bytes);
        match &self.stat {
            Some(s) if !udp && !(sent..sent + self.bytes).contains(&s.received.bytes) => {
                all.push(Warning::EndsDisagree {
                    client: sent,
                    client_what: "bytes sent".into(),
                    server: s.received.bytes,
                    server_what: "received".into(),
                });
            }
            Some(_) => {}
            None => all.push(Warning::ReceiveCountMissing),
        }
        if self.spec.common.confidence_per_mille.is_some() {
            all.push(Warning::QperfNotRepeated);
        }
        all
    }
}
