//! Totals over all rounds of a run, in bounded memory.

use std::collections::{BTreeMap, BTreeSet};

use stats::{Estimate, Histogram, Series, interval};

use crate::{
    Error,
    engine::{
        ends::{Ended, Ends},
        rtt_recorder::{Placed, RttRecorder},
    },
};

/// Result of one round.
#[derive(Debug)]
pub struct Round {
    pub ended: Ended,
    pub recorders: Vec<RttRecorder>,
    pub broken: Option<Error>,
}

/// The rounds so far.
#[derive(Debug, Default)]
pub struct Sums {
    pub rounds: usize,
    /// Smallest step of the clock: values apart by only this are no separate modes.
    pub clock_step_ns: u64,
    pub window_ns: u64,
    pub by_placement: BTreeMap<Placed, Histogram>,
    /// All threads' batches, round after round.
    series: Option<Series>,
    pub from_send: Histogram,
    pub lag: Histogram,
    /// Round trips that ended within the windows.
    pub answered: u64,
    /// Open loop: schedule lag of the slowest thread at a round's end.
    pub schedule_lag_ns: u64,
    /// Open loop: requests due within the windows but never sent.
    pub not_started: u64,
    pub lost: u64,
    pub late: u64,
    /// Context of the rounds.
    pub ends: Ends,
    /// I/O engines that the client used.
    local_engines: BTreeSet<&'static str>,
    peer_engine: String,
    /// The server's mean service time, as reported.
    pub peer_service_time_ns: Option<f64>,
}

impl Sums {
    /// Sums over no round trips, by a clock of this resolution.
    pub fn new(clock_step_ns: u64) -> Self {
        Self { clock_step_ns, ..Self::default() }
    }

    pub fn add(&mut self, round: &Round) {
        let ended = &round.ended;
        self.window_ns += ended.course.window_ns;
        for recorder in &round.recorders {
            self.add_samples(recorder);
        }
        self.add_batches(round);
        self.ends.add(ended);
        self.local_engines.extend(&ended.seen.engines);
        if let Some(report) = ended.report.as_ref().filter(|r| !r.engine.is_empty()) {
            self.peer_engine.clone_from(&report.engine);
        }
        self.peer_service_time_ns = ended.report.as_ref().and_then(|r| r.service_ns);
        self.rounds += 1;
    }

    /// I/O engines of both ends; the client's alone if the server reports none.
    pub fn engine(&self) -> String {
        let local = self.local_engines.iter().copied().collect::<Vec<_>>().join(" and ");
        match self.peer_engine.as_str() {
            "" => format!("{local} at the client"),
            peer => format!("{local} at the client, {peer} at the server"),
        }
    }

    fn add_samples(&mut self, recorder: &RttRecorder) {
        for (placed, h) in &recorder.by_placement {
            self.by_placement.entry(*placed).or_default().add(h);
        }
        if let (Some(s), Some(l)) = (&recorder.from_send, &recorder.lag) {
            self.from_send.add(s);
            self.lag.add(l);
        }
        self.answered += recorder.answered;
        self.schedule_lag_ns = self.schedule_lag_ns.max(recorder.schedule_lag_ns);
        self.not_started += recorder.not_started;
        self.lost += recorder.lost;
        self.late += recorder.late;
        self.ends.add_local_ran_on(&recorder.ran_on());
    }

    fn add_batches(&mut self, round: &Round) {
        let course = &round.ended.course;
        let until = course.start_ns + course.window_ns;
        let mut parts =
            round.recorders.iter().filter_map(|r| Some(r.batches.as_ref()?.series(until)));
        let Some(mut one) = parts.next() else { return };
        // Batches from one start that double in length always align.
        parts.for_each(|p| {
            let _ = one.add(&p);
        });
        match &mut self.series {
            None => self.series = Some(one),
            Some(all) => {
                let _ = all.append(&one);
            }
        }
    }

    pub fn total(&self) -> Histogram {
        let mut sum = Histogram::new();
        self.by_placement.values().for_each(|h| sum.add(h));
        sum
    }

    /// The estimates of the median and of the rate.
    pub fn estimates(&self) -> (Option<Estimate>, Option<Estimate>) {
        let Some(series) = &self.series else { return (None, None) };
        let median = interval::of_quantile(series, &self.total(), 0.5);
        (median.ok(), interval::of_rate(series).ok())
    }
}
