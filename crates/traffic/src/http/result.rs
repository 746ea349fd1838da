//! The run, from what the threads kept.

use std::collections::BTreeMap;

use model::{
    Nanos, Reading,
    measure::{HttpRun, HttpSpec, TlsRun, Transport},
};
use stats::{Histogram, Series};

use super::recorder::{Failed, Recorder};
use crate::{
    Error,
    client::{
        conduct::Course,
        ends::{self, Around, Ends},
    },
    connect::errno_text,
    control::message::Ready,
    seats::Seats,
    team::Seen,
};

const UNTOLD: &str = "a server of another kind does not tell";

/// A run that is over.
#[derive(Debug)]
pub struct Round {
    pub recorders: Vec<Recorder>,
    pub course: Course,
    pub seen: Seen,
    pub broken: Option<Error>,
}

impl Round {
    fn sum(&self, of: impl Fn(&Recorder) -> u64) -> u64 {
        self.recorders.iter().map(of).sum()
    }

    fn failed(&self) -> u64 {
        self.sum(|r| r.failed.values().sum())
    }

    fn settled(&self) -> u64 {
        self.sum(|r| r.latency.count()) + self.failed()
    }

    /// Whether it ended before its time, or before all that was asked for.
    pub fn is_cut_short(&self, spec: &HttpSpec) -> bool {
        match spec.requests {
            Some(all) => self.settled() < all,
            None => self.course.cut_short,
        }
    }

    /// The window: with a number of requests it ends with the last of them.
    fn window_ns(&self, spec: &HttpSpec) -> u64 {
        let last = self.recorders.iter().map(|r| r.last_ns).max().unwrap_or(0);
        match spec.requests.is_some() && !self.is_cut_short(spec) {
            true => last.saturating_sub(self.course.start_ns),
            false => self.course.window_ns,
        }
    }

    /// What the server calls itself.
    pub fn server(&self) -> String {
        let name = self.recorders.iter().find_map(|r| r.server.clone());
        name.unwrap_or_else(|| "an HTTP server without a name".into())
    }

    /// All threads' batches.
    fn series(&self, window_ns: u64) -> Option<Series> {
        let until = self.course.start_ns + window_ns;
        let mut parts =
            self.recorders.iter().filter_map(|r| Some(r.batches.as_ref()?.series(until)));
        let mut all = parts.next()?;
        // Batches of one beginning and of lengths that double are always alike.
        parts.for_each(|p| {
            let _ = all.add(&p);
        });
        Some(all)
    }

    fn histogram(&self, of: fn(&Recorder) -> Option<&Histogram>) -> Histogram {
        let mut sum = Histogram::new();
        self.recorders.iter().filter_map(of).for_each(|h| sum.add(h));
        sum
    }
}

/// The run.
pub fn http_run(
    spec: &HttpSpec,
    flows: u32,
    seats: &Seats,
    same_host: bool,
    round: &Round,
) -> HttpRun {
    let window_ns = round.window_ns(spec);
    let latency = round.histogram(|r| Some(&r.latency));
    let series = round.series(window_ns);
    let transactions = latency.count();
    let per_s = transactions as f64 * 1e9 / window_ns.max(1) as f64;
    let mut ends = Ends::default();
    let ready = Ready { why: "not ours to place".into(), ..Ready::default() };
    let Round { course, seen, .. } = round;
    ends.add_around(Around {
        ready: &ready,
        marks: &course.marks,
        seen,
        report: None,
        warnings: &[],
    });
    // The looks enclose the window; with a number of requests nothing moved in the rest.
    let mut cpu = match spec.requests {
        Some(_) => ends.cpu(|_| transactions),
        None => ends.cpu(ends::at_rate(per_s)),
    };
    cpu.peer = Reading::absent(UNTOLD);
    let mut placement = ends.placement(seats, same_host);
    placement.peer.migrations = Reading::absent(UNTOLD);
    let open = |of| spec.rate_per_s.map(|_| round.histogram(of).quantiles());
    HttpRun {
        transport: Transport::Tcp,
        clients: flows,
        threads: spec.common.threads,
        pipeline: spec.pipeline,
        new_connections: spec.new_connections,
        wait: spec.common.wait,
        placement,
        window_ns: Nanos(window_ns),
        trimmed_ns: Nanos(spec.common.warmup_ns.0 + spec.common.cooldown_ns.0),
        transactions,
        transactions_per_s: per_s,
        transactions_per_s_interval: series
            .as_ref()
            .and_then(|s| Some(stats::interval::of_rate(s).ok()?.interval)),
        target_per_s: spec.rate_per_s,
        latency_p50_interval_ns: series
            .as_ref()
            .and_then(|s| Some(stats::interval::of_quantile(s, &latency, 0.5).ok()?.interval)),
        latency_ns: latency.quantiles(),
        latency_from_send_ns: open(|r| r.from_send.as_ref()),
        send_lag_ns: open(|r| r.lag.as_ref()),
        first_byte_ns: round.histogram(|r| Some(&r.first_byte)).quantiles(),
        connect_ns: round.histogram(|r| Some(&r.connect)).quantiles(),
        tls_handshake_ns: spec
            .is_tls()
            .then(|| round.histogram(|r| Some(&r.handshake)).quantiles()),
        tls: tls(spec, round),
        statuses: statuses(round),
        failed: round.failed(),
        failures: failures(spec, round),
        reconnects: round.sum(|r| r.reconnects),
        not_begun: round.sum(|r| r.not_begun),
        unfinished: round.sum(|r| r.unfinished),
        response_bytes: round.sum(|r| r.bytes),
        cpu,
        evidence: ends.evidence(),
        warnings: warnings(spec, round, &ends),
    }
}

fn tls(spec: &HttpSpec, round: &Round) -> Option<TlsRun> {
    let agreed = round.recorders.iter().find_map(|r| r.agreed)?;
    Some(TlsRun {
        version: agreed.version.into(),
        cipher: agreed.cipher.into(),
        verified: !spec.tls.insecure,
        handshakes: round.sum(|r| r.handshake.count()),
        resumed: round.sum(|r| r.resumed),
    })
}

fn statuses(round: &Round) -> BTreeMap<u16, u64> {
    let mut all = BTreeMap::new();
    for recorder in &round.recorders {
        for (status, n) in (0u16..).zip(&recorder.statuses).filter(|(_, n)| **n > 0) {
            *all.entry(status).or_default() += n;
        }
    }
    all
}

fn failures(spec: &HttpSpec, round: &Round) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (why, n) in round.recorders.iter().flat_map(|r| &r.failed) {
        *all.entry(named(*why, spec.timeout_ns)).or_default() += n;
    }
    all
}

/// In words; what the kernel said, with its name.
fn named(why: Failed, limit: Nanos) -> String {
    match why {
        Failed::Connecting(errno) => format!("not connected: {}", errno_text(errno)),
        Failed::NoConnection => format!("not connected in {limit}"),
        Failed::Talking(errno) => errno_text(errno),
        Failed::NoAnswer => format!("no whole response in {limit}"),
        Failed::ClosedBefore => "closed by the server before its response".into(),
        Failed::ClosedWithin => "closed by the server within its response".into(),
        Failed::Bad(why) | Failed::Tls(why) => why.into(),
    }
}

fn warnings(spec: &HttpSpec, round: &Round, ends: &Ends) -> Vec<String> {
    let mut all = vec![];
    if spec.is_tls() && spec.tls.insecure {
        all.push(
            "the server's certificate was not checked (--insecure): whoever answered was measured"
                .into(),
        );
    }
    match round.sum(|r| r.not_begun) {
        0 => {}
        n => all.push(format!(
            "{n} requests of the schedule were not begun: every connection was busy; the times \
             leave them out. Give more --flows or a lower --rate"
        )),
    }
    match round.sum(|r| r.unfinished) {
        0 => {}
        n => all.push(format!(
            "{n} requests had no end when the run ended and count as neither answered nor failed"
        )),
    }
    let wrong: u64 = statuses(round).range(400..).map(|(_, n)| n).sum();
    if wrong > 0 {
        let share = wrong as f64 * 100.0 / round.settled().max(1) as f64;
        all.push(format!("{share:.1}% of the responses say that something is wrong (4xx, 5xx)"));
    }
    if spec.requests.is_some() && spec.rate_per_s.is_none() && round.settled() < 100 {
        all.push("so few requests say little of the server once it is warm".into());
    }
    all.extend(ends.warnings());
    all
}
