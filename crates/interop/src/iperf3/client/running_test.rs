//! One test: streams, warm-up, window, results.

use std::{net::SocketAddr, sync::atomic::Ordering, thread, time::Duration};

use model::measure::{Direction, StreamInterval, StreamSpec};
use probe::Root;
use traffic::{
    Error, ErrorContext, OnInterval, Result, Run, engine::assignments::Assignments,
    host::CounterSnapshot, net::now_ns,
};

use super::{
    Point,
    dialogue::Dialogue,
    interval::{Arrivals, IperfCounters, interval},
};
use crate::iperf3::{
    flow::{Flow, FlowCounters, FlowSnapshot, FlowThreads, Load},
    params::Params,
    results::{self, Results, Stream},
    sock,
    wire::{Broken, Until},
};

/// Interval of checking the stop flag and the server.
const SLICE: Duration = Duration::from_millis(50);
/// Time for datagrams in transit to arrive after the last send: the server counts nothing after the
/// end message.
const LANDING: Duration = Duration::from_millis(200);

/// A completed test: its parameters, and the counters at its start and end.
#[derive(Debug)]
pub struct FinishedTest {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub same_host: bool,
    pub asked: Params,
    pub point: Point,
    pub assignments: Assignments,
    pub start: IperfCounters,
    pub end: IperfCounters,
    /// Counters when all senders had stopped.
    pub stopped: FlowSnapshot,
    pub intervals: [Vec<StreamInterval>; 2],
    pub arrivals: Arrivals,
    /// Congestion control of the sending sockets.
    pub congestion: Option<String>,
    pub ids: Vec<u64>,
    /// The results that the server sent after the test; `None` if it sent none.
    pub theirs: Option<Results>,
    pub interrupted: bool,
    pub broken: Option<Error>,
}

/// Runs one test with a server that waits for its streams.
///
/// # Errors
/// The streams cannot be opened, the server does not begin, or this host gives no memory or no
/// thread. A test that breaks later is a result, with the error in [`FinishedTest::broken`].
pub fn run(
    spec: &StreamSpec,
    point: Point,
    asked: &Params,
    dialogue: Dialogue,
    assignments: Assignments,
    (run, on_interval): (Run<'_>, OnInterval<'_>),
) -> Result<FinishedTest> {
    let sockets = dialogue.streams(spec, asked)?;
    let flow = |(n, socket)| Flow::new(results::stream_id(n), asked.client_sends(n), socket);
    let flows: Vec<Flow> = sockets.into_iter().enumerate().map(flow).collect();
    let load = Load::new(asked).doing(|| "no memory for what is sent")?;
    let cpus: Vec<u32> = assignments.cpus.iter().map(|c| c.0).collect();
    thread::scope(|scope| {
        let pool = FlowThreads::start(scope, &flows, &load, &cpus).doing(|| "no thread")?;
        let tids = pool.tids();
        dialogue.await_running(run.stop)?;
        pool.go();
        let root = Root::live();
        let mut course = RunningTest {
            spec,
            asked,
            dialogue: &dialogue,
            flows: &flows,
            pool: &pool,
            run,
            on_interval,
            tids,
            root: &root,
            begun: now_ns(),
            what: format!("stream {} B, {} flows", point.message_bytes, point.flows),
            interrupted: false,
            broken: None,
        };
        let parts = course.measure()?;
        Ok(FinishedTest {
            local: dialogue.local,
            remote: dialogue.remote,
            same_host: dialogue.same_host(),
            asked: asked.clone(),
            point,
            assignments,
            start: parts.start,
            end: parts.end,
            stopped: parts.stopped,
            intervals: parts.intervals,
            arrivals: parts.arrivals,
            congestion: flows.first().and_then(|f| sock::congestion(&f.socket)),
            ids: flows.iter().map(|f| f.id).collect(),
            theirs: parts.theirs,
            interrupted: course.interrupted,
            broken: course.broken.take(),
        })
    })
}

struct RunningTest<'a> {
    spec: &'a StreamSpec,
    asked: &'a Params,
    dialogue: &'a Dialogue,
    flows: &'a [Flow],
    pool: &'a FlowThreads<'a>,
    run: Run<'a>,
    on_interval: OnInterval<'a>,
    tids: Vec<i32>,
    root: &'a Root,
    begun: u64,
    what: String,
    interrupted: bool,
    broken: Option<Error>,
}

struct Parts {
    start: IperfCounters,
    end: IperfCounters,
    stopped: FlowSnapshot,
    intervals: [Vec<StreamInterval>; 2],
    arrivals: Arrivals,
    theirs: Option<Results>,
}

impl RunningTest<'_> {
    fn measure(&mut self) -> Result<Parts> {
        let warm = self.begun + self.asked.omit_s * 1_000_000_000;
        self.wait_until(warm);
        if let Some(e) = self.broken.take() {
            return Err(e);
        }
        // The cost of reading the host's counters must not be within the window.
        let host = CounterSnapshot::take(&self.tids, self.root);
        let start = IperfCounters { host, flows: self.pool.snapshot() };
        let (end, intervals, arrivals) = self.window(&start);
        self.pool.stop(|f| f.sends);
        let stopped = self.pool.snapshot();
        let theirs =
            if self.broken.is_none() { self.results(&start, &end, &stopped) } else { None };
        self.pool.stop(|_| true);
        Ok(Parts { start, end, stopped, intervals, arrivals, theirs })
    }

    /// Runs the window; reads the counters at the end of each interval.
    fn window(
        &mut self,
        start: &IperfCounters,
    ) -> (IperfCounters, [Vec<StreamInterval>; 2], Arrivals) {
        let from = start.flows.at_ns;
        let end = from + self.spec.common.duration_ns.0;
        let every = self.spec.interval_ns.0.max(1_000_000);
        let mut lines = [Vec::new(), Vec::new()];
        let mut arrivals = Arrivals::default();
        let mut before = start.clone();
        let mut next = from + every;
        loop {
            // A very short last interval is merged with the previous one.
            let at = if next + every / 10 >= end { end } else { next };
            self.wait_until(at);
            let flows = self.pool.snapshot();
            let now = IperfCounters { flows, host: CounterSnapshot::take(&self.tids, self.root) };
            arrivals.look(self.flows);
            for (sends, lines) in [true, false].into_iter().zip(&mut lines) {
                if now.flows.flows.iter().any(|f| f.sends == sends) {
                    let line = interval(start, &before, &now, sends, self.asked.udp);
                    (self.on_interval)(
                        if sends { Direction::Forward } else { Direction::Reverse },
                        &line,
                    );
                    lines.push(line);
                }
            }
            if at == end || self.interrupted || self.broken.is_some() {
                return (now, lines, arrivals);
            }
            before = now;
            next += every;
        }
    }

    /// Waits until a time, a stop, or an error.
    fn wait_until(&mut self, at: u64) {
        let whole = self.asked.omit_s * 1_000_000_000 + self.spec.common.duration_ns.0;
        while !self.interrupted && self.broken.is_none() {
            let now = now_ns();
            if now >= at {
                return;
            }
            let share = (now - self.begun) as f64 / whole.max(1) as f64;
            (self.run.progress)(&self.what, share.min(1.0));
            let left = Duration::from_nanos(at - now);
            // The control connection is polled with millisecond timeouts; the rest is slept.
            match left.checked_sub(Duration::from_millis(2)) {
                Some(most) => self.listen(most.min(SLICE)),
                None => thread::sleep(left),
            }
            self.interrupted |= self.run.stop.load(Ordering::Relaxed);
        }
    }

    /// Handles unexpected messages of the server during the test.
    fn listen(&mut self, time: Duration) {
        let until = Until::after(Duration::from_secs(1), self.run.stop);
        self.broken = match self.dialogue.control.listen(time) {
            Ok(None) => None,
            Ok(Some(state)) => Some(self.dialogue.odd(state, until)),
            Err(b) => Some(self.died(b)),
        };
        let broke = self.flows.iter().find_map(Flow::failed);
        if let (None, Some(e)) = (&self.broken, broke) {
            let what = format!("{}: a stream broke", self.dialogue.remote);
            self.broken = Some(Error::io(what, &e));
        }
    }

    fn died(&self, b: Broken) -> Error {
        match b {
            Broken::Closed => Error::Environment(format!(
                "{}: the server died within the test: the control connection is closed",
                self.dialogue.remote
            )),
            b => self.dialogue.error(b),
        }
    }

    /// Ends the test and fetches the server's results.
    fn results(
        &mut self,
        start: &IperfCounters,
        end: &IperfCounters,
        stopped: &FlowSnapshot,
    ) -> Option<Results> {
        if self.asked.udp && self.flows.iter().any(|f| f.sends) {
            thread::sleep(LANDING);
        }
        let ours = || self.ours(start, end, stopped);
        match self.dialogue.exchange(ours) {
            Ok(results) => Some(results),
            Err(e) => {
                self.broken = Some(e);
                None
            }
        }
    }

    /// This end's results, for the server.
    fn ours(&self, start: &IperfCounters, end: &IperfCounters, stopped: &FlowSnapshot) -> Results {
        let sends = self.flows.iter().any(|f| f.sends);
        let marks = start.flows.flows.iter().zip(&stopped.flows);
        let seconds = end.flows.seconds_since(&start.flows);
        let one = |(flow, (from, to)): (&Flow, (&FlowCounters, &FlowCounters))| Stream {
            id: flow.id,
            bytes: to.bytes.saturating_sub(from.bytes),
            retransmits: super::interval::retransmits(from, to),
            jitter_s: to.jitter_ns as f64 / 1e9,
            errors: to.missing(),
            packets: if flow.sends { to.datagrams } else { to.highest },
            omitted: Some((from.missing(), if flow.sends { from.datagrams } else { from.highest })),
            start_s: 0.0,
            end_s: seconds,
        };
        Results {
            cpu: self.pool.cpu(&start.flows, &end.flows),
            sender_has_retransmits: sends.then_some(!self.asked.udp),
            congestion: self.flows.first().and_then(|f| sock::congestion(&f.socket)),
            output: None,
            streams: self.flows.iter().zip(marks).map(one).collect(),
        }
    }
}
