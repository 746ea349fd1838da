//! The part of a session in which data moves, and its results.

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
    flow::{Flow, FlowCounters, FlowThreads, Mark},
    params::{Code, Params, Refused},
    results::{Results, Stream},
    sock,
    wire::{Broken, IperfState, Until, client_results_limit},
};

/// How long the control connection is listened to before other things are looked at.
const TICK: Duration = Duration::from_millis(100);
/// A line of the report.
const LINE: Duration = Duration::from_secs(1);
/// After the last byte or datagram of a test, so long without another is the end.
const QUIET: Duration = Duration::from_millis(250);
/// And all in all no longer than this.
const DRAIN: Duration = Duration::from_secs(5);
/// A broken data connection says little if the control connection breaks too, a moment later.
const AFTERMATH: Duration = Duration::from_millis(300);
/// A client that is told that its test ends has so long to close its connections.
const LET_GO: Duration = Duration::from_secs(1);

pub struct Running<'a> {
    pub session: &'a Session<'a>,
    pub asked: &'a Params,
    pub flows: &'a [Flow],
    pub pool: &'a FlowThreads<'a>,
}

/// From where to where it was measured.
struct Window {
    /// After what is omitted.
    start: Mark,
    /// When the client said that its test is over.
    end: Mark,
    /// When the last that was on its way by then had come.
    last: Mark,
}

impl Running<'_> {
    /// Lets the data flow until the client ends its test, and exchanges results.
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

    /// Data goes on until the client has read why its test ends: a stream that breaks before
    /// would be all that it tells of.
    fn let_go(&self) {
        let until = Instant::now() + LET_GO;
        while Instant::now() < until && self.session.control.listen(TICK).is_ok() {}
    }

    fn measure(&self, longest: Duration) -> Result<Event, End> {
        let mut report = Report::new(self.asked, self.session.client, self.flows);
        let begun = self.pool.mark();
        self.pool.go();
        let control = self.session.control;
        control.say(IperfState::TestRunning)?;
        let start = self.watch(begun, longest, report.as_mut())?;
        self.pool.stop(|f| f.sends);
        let end = self.pool.mark();
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
        // It says Done, or just closes.
        let _ = control.hear(Until::after(Duration::from_secs(2), self.session.stop));
        Ok(Event::Finished {
            client: self.session.client,
            received_bytes: window.last.bytes_since(&window.start, false),
            sent_bytes: window.end.bytes_since(&window.start, true),
            seconds: window.last.seconds_since(&window.start),
        })
    }

    /// A client waits for the rest of a block, or the end of the stream, before it listens again.
    fn finish_sending(&self) {
        for flow in self.flows.iter().filter(|f| f.sends && !self.asked.udp) {
            // One that is broken needs no end.
            let _ = flow.socket.shutdown(Shutdown::Write);
        }
    }

    /// What the sockets still hold is thrown away: nobody wants it.
    fn forget(&self) {
        self.pool.stop(|_| true);
        for flow in self.flows.iter().filter(|_| !self.asked.udp) {
            let _ = flow.socket.set_linger(Some(Duration::ZERO));
        }
    }

    /// Until the client says that its test is over. Gives the mark from which on it counts.
    fn watch(
        &self,
        begun: Mark,
        longest: Duration,
        mut report: Option<&mut Report>,
    ) -> Result<Mark, End> {
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
            let mark = self.pool.mark();
            if let Some(report) = &mut report {
                report.interval(self.flows, &start, &before, &mark, omit.is_some());
            }
            before = mark.clone();
            line = if omitted { now + LINE } else { line + LINE };
            if omitted {
                (start, omit) = (mark, None);
            }
        }
        // The last interval of its own, unless it is a mere moment.
        let mark = self.pool.mark();
        if let Some(report) = report.filter(|_| mark.seconds_since(&before) > 0.05) {
            report.interval(self.flows, &start, &before, &mark, false);
        }
        Ok(start)
    }

    /// Whether the test may go on.
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

    /// A data connection broke: alone, or because the client goes.
    fn broken(&self, e: &io::Error) -> End {
        match self.session.control.listen(AFTERMATH) {
            Err(b) => b.into(),
            Ok(Some(IperfState::ClientTerminate)) => End::Terminated,
            Ok(_) => Refused::io(Code::StreamWrite, "a stream broke", e).into(),
        }
    }

    /// Waits for what the client has sent and is still on its way. Of a TCP test by time that
    /// is nothing: what came within the time counts.
    fn drain(&self, start: &Mark, end: &Mark, theirs: &Results) -> Mark {
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
        last.flows = self.pool.mark().flows;
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

/// What one stream did, with what the client says that it has sent.
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
            // The last ones may be lost too: only their sender knows of those.
            let sent = their.map_or(0, |t| t.packets).max(to.highest);
            let lost = to.missing() + (sent - to.highest);
            (sent, lost, (from.missing(), from.highest))
        }
    };
    // Versions before 3.13 take all errors for measured ones.
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

/// Whether something still moves, and for how long it has.
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
