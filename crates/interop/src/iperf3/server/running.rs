//! A session's data phase, and its results.

use std::{
    io,
    net::Shutdown,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use traffic::net::now_ns;

use super::{
    Event,
    report::Report,
    session::{End, Session},
};
use crate::iperf3::{
    flow::{Flow, FlowCounters, FlowSnapshot, FlowThreads},
    params::{Code, Params, Refused},
    results::{Results, Stream},
    sock,
    wire::{Broken, IperfState, Until, client_results_limit},
};

/// Longest wait on the control connection before other checks.
const TICK: Duration = Duration::from_millis(100);
/// Interval of the report's lines.
const LINE: Duration = Duration::from_secs(1);
/// A test's data has drained when nothing arrives for this long.
const QUIET: Duration = Duration::from_millis(250);
/// Longest wait for the data to drain.
const DRAIN: Duration = Duration::from_secs(5);
/// Wait for an error of the control connection, which explains a broken data connection.
const AFTERMATH: Duration = Duration::from_millis(300);
/// Time for a client to close its connections after the server ends its test.
const LET_GO: Duration = Duration::from_secs(1);

pub struct Running<'a> {
    pub session: &'a Session<'a>,
    pub asked: &'a Params,
    pub flows: &'a [Flow],
    pub pool: &'a FlowThreads<'a>,
}

/// The counters that delimit the measurement.
struct Window {
    /// Counters after the warm-up.
    start: FlowSnapshot,
    /// Counters when the client ended its test.
    end: FlowSnapshot,
    /// Counters when the data in transit had arrived.
    last: FlowSnapshot,
}

impl Running<'_> {
    /// Runs the data phase until the client ends the test, and exchanges results.
    ///
    /// # Errors
    /// Why the test ended early, always as [`End::Reported`]: the client was told, where that was
    /// still possible.
    pub fn run(&self, longest: Duration) -> Result<Event, End> {
        self.measure(longest).map_err(|end| {
            let gone = matches!(end, End::Broken(Broken::Closed) | End::Terminated);
            let why = self.session.goodbye(end);
            if !gone {
                self.let_go();
            }
            self.forget();
            End::Reported(why)
        })
    }

    /// Keeps data flowing until the client has read why its test ends: otherwise it would report
    /// only a broken stream.
    fn let_go(&self) {
        let until = Instant::now() + LET_GO;
        while Instant::now() < until && self.session.control.listen(TICK).is_ok() {}
    }

    fn measure(&self, longest: Duration) -> Result<Event, End> {
        let mut report = Report::new(self.asked, self.session.client, self.flows);
        let begun = self.pool.snapshot();
        self.pool.go();
        let control = self.session.control;
        control.say(IperfState::TestRunning)?;
        let start = self.watch(begun, longest, report.as_mut())?;
        self.pool.stop(|f| f.sends);
        let end = self.pool.snapshot();
        self.finish_sending();
        control.say(IperfState::ExchangeResults)?;
        let most = client_results_limit(self.asked.streams());
        let theirs = control.read_json(most, "results", self.session.step())?;
        let theirs = Results::read(&theirs)?;
        let last = self.drain(&start, &end, &theirs);
        self.pool.stop(|_| true);
        let window = Window { start, end, last };
        if let Some(report) = &mut report {
            report.summary(self.flows, &window.start, &window.last);
        }
        let ours = self.results(&window, &theirs, report.map(Report::text));
        control.write_json(&ours.write())?;
        control.say(IperfState::DisplayResults)?;
        // The client sends Done, or just closes.
        let _ = control.hear(Until::after(Duration::from_secs(2), self.session.stop));
        Ok(Event::Finished {
            client: self.session.client,
            received_bytes: window.last.bytes_since(&window.start, false),
            sent_bytes: window.end.bytes_since(&window.start, true),
            seconds: window.last.seconds_since(&window.start),
        })
    }

    /// Shuts down sending: a client waits for a whole block or the end of the stream before it
    /// reads the control connection.
    fn finish_sending(&self) {
        for flow in self.flows.iter().filter(|f| f.sends && !self.asked.udp) {
            // Fails on a broken stream, which needs no shutdown.
            let _ = flow.socket.shutdown(Shutdown::Write);
        }
    }

    /// Discards data that the sockets still hold.
    fn forget(&self) {
        self.pool.stop(|_| true);
        for flow in self.flows.iter().filter(|_| !self.asked.udp) {
            let _ = flow.socket.set_linger(Some(Duration::ZERO));
        }
    }

    /// Runs until the client ends its test. Returns the counters at the end of the warm-up.
    fn watch(
        &self,
        begun: FlowSnapshot,
        longest: Duration,
        mut report: Option<&mut Report>,
    ) -> Result<FlowSnapshot, End> {
        let mut health = Health::new(longest);
        let mut omit = (self.asked.omit_s > 0)
            .then(|| health.begun + Duration::from_secs(self.asked.omit_s.min(86_400)));
        let mut line = health.begun + LINE;
        let (mut start, mut before) = (begun.clone(), begun);
        loop {
            let until = omit.map_or(line, |o| o.min(line));
            let left = until.saturating_duration_since(Instant::now());
            match self.session.control.listen(left.min(TICK))? {
                None => {}
                Some(IperfState::TestEnd) => break,
                Some(IperfState::ClientTerminate) => return Err(End::Terminated),
                Some(state) => {
                    return Err(Broken::Garbage(format!("{state:?} within the test")).into());
                }
            }
            self.check(&mut health)?;
            let now = Instant::now();
            let omitted = omit.is_some_and(|at| now >= at);
            if !omitted && now < line {
                continue;
            }
            let counters = self.pool.snapshot();
            if let Some(report) = &mut report {
                report.interval(self.flows, &start, &before, &counters, omit.is_some());
            }
            before = counters.clone();
            line = if omitted { now + LINE } else { line + LINE };
            if omitted {
                (start, omit) = (counters, None);
            }
        }
        // Adds the last interval, unless it is very short.
        let counters = self.pool.snapshot();
        if let Some(report) = report.filter(|_| counters.seconds_since(&before) > 0.05) {
            report.interval(self.flows, &start, &before, &counters, false);
        }
        Ok(start)
    }

    /// Checks whether the test may continue.
    fn check(&self, health: &mut Health) -> Result<(), End> {
        if self.session.stop.load(Ordering::Relaxed) {
            return Err(Broken::Stopped.into());
        }
        if let Some(e) = self.flows.iter().find_map(Flow::failed) {
            return Err(self.broken(&e));
        }
        let idle = self.session.registry.limits.idle;
        health.look(self.pool.moved(), idle).map_err(End::Terminate)
    }

    /// Handles a broken data connection: a single failure, or a client that disconnects.
    fn broken(&self, e: &io::Error) -> End {
        match self.session.control.listen(AFTERMATH) {
            Err(b) => b.into(),
            Ok(Some(IperfState::ClientTerminate)) => End::Terminated,
            Ok(_) => Refused::io(Code::StreamWrite, "a stream broke", e).into(),
        }
    }

    /// Waits for sent data to arrive. Not in a TCP test limited by time, which counts only data
    /// within the time.
    fn drain(&self, start: &FlowSnapshot, end: &FlowSnapshot, theirs: &Results) -> FlowSnapshot {
        let by_time = self.asked.bytes == 0 && self.asked.blocks == 0;
        if !self.asked.udp && by_time || self.flows.iter().all(|f| f.sends) {
            return end.clone();
        }
        let receiving = || self.flows.iter().zip(&start.flows).filter(|(f, _)| !f.sends);
        let (mut bytes, mut datagrams) = (0u64, 0u64);
        for (their, seen) in receiving().filter_map(|(f, s)| Some((theirs.stream(f.id)?, s))) {
            bytes = bytes.saturating_add(seen.bytes).saturating_add(their.bytes);
            datagrams = datagrams.saturating_add(their.packets);
        }
        let there = |now: (u64, u64)| match self.asked.udp {
            true => now.1 >= datagrams,
            false => now.0 >= bytes,
        };
        let mut last = end.clone();
        let begun = Instant::now();
        let mut quiet = begun;
        let mut before = (0, 0);
        loop {
            let now = self.pool.received();
            if now != before {
                before = now;
                quiet = Instant::now();
                if end.received() != now {
                    last.at_ns = now_ns();
                }
            }
            if there(now) || quiet.elapsed() > QUIET || begun.elapsed() > DRAIN {
                break;
            }
            thread::sleep(Duration::from_millis(2));
        }
        last.flows = self.pool.snapshot().flows;
        last
    }

    fn results(&self, w: &Window, theirs: &Results, output: Option<String>) -> Results {
        let sends = self.flows.iter().any(|f| f.sends);
        let marks = w.start.flows.iter().zip(&w.last.flows);
        let streams = self.flows.iter().zip(marks).map(|(flow, (from, to))| {
            let end = if flow.sends { &w.end } else { &w.last };
            let seconds = end.seconds_since(&w.start);
            stream(flow, from, to, seconds, theirs.stream(flow.id))
        });
        Results {
            cpu: self.pool.cpu(&w.start, &w.end),
            sender_has_retransmits: sends.then_some(!self.asked.udp),
            congestion: self.flows.first().and_then(|f| sock::congestion(&f.socket)),
            output,
            streams: streams.collect(),
        }
    }
}

/// Figures of one stream, combined with the number that the client has sent.
fn stream(
    flow: &Flow,
    from: &FlowCounters,
    to: &FlowCounters,
    seconds: f64,
    their: Option<&Stream>,
) -> Stream {
    let knows_omitted = their.is_some_and(|t| t.omitted.is_some());
    let (packets, lost, omitted) = match flow.sends {
        true => (to.datagrams, 0, (0, from.datagrams)),
        false => {
            // The last datagrams may be lost too: only the sender knows how many it sent.
            let sent = their.map_or(0, |t| t.packets).max(to.highest);
            let lost = to.missing() + (sent - to.highest);
            (sent, lost, (from.missing(), from.highest))
        }
    };
    // Versions before 3.13 take all errors for those of the measurement.
    let errors = if knows_omitted { lost } else { lost.saturating_sub(omitted.0) };
    let again = to.tcp.zip(from.tcp).map(|(t, f)| t.retransmits.saturating_sub(f.retransmits));
    Stream {
        id: flow.id,
        bytes: to.bytes.saturating_sub(from.bytes),
        retransmits: again.map(u64::from),
        jitter_s: to.jitter_ns as f64 / 1e9,
        errors,
        packets,
        omitted: knows_omitted.then_some(omitted),
        start_s: 0.0,
        end_s: seconds,
    }
}

/// Progress of the data, and the time since it last moved.
struct Health {
    begun: Instant,
    longest: Duration,
    moved: u64,
    since: Instant,
}

impl Health {
    fn new(longest: Duration) -> Self {
        let now = Instant::now();
        Self { begun: now, longest, moved: 0, since: now }
    }

    fn look(&mut self, moved: u64, idle: Duration) -> Result<(), String> {
        if self.begun.elapsed() > self.longest {
            return Err(format!("its test took longer than {} s", self.longest.as_secs()));
        }
        if moved != self.moved {
            (self.moved, self.since) = (moved, Instant::now());
        } else if self.since.elapsed() > idle {
            return Err(format!("nothing moved for {} s", idle.as_secs()));
        }
        Ok(())
    }
}
