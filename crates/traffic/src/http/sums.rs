//! All rounds of a run added up, in memory that does not grow with their number.

use model::measure::HttpSpec;
use stats::{Estimate, Series, interval};

use super::recorder::Recorder;
use crate::{
    Error,
    client::{
        conduct::Course,
        confidence::{self, Next},
        ends::{Around, Ends},
    },
    control::message::{FarReport, Ready},
    team::Seen,
};

/// What one round of a run left behind.
#[derive(Debug)]
pub struct Round {
    pub recorders: Vec<Recorder>,
    pub course: Course,
    pub seen: Seen,
    /// Of a responder on the server's host, where there is one.
    pub report: Option<FarReport>,
    pub broken: Option<Error>,
}

/// The rounds so far.
#[derive(Debug)]
pub struct Sums {
    pub rounds: usize,
    /// The windows: with a number of requests it ends with the last of them.
    pub window_ns: u64,
    /// Whether one ended before its time, or before all that was asked for.
    pub cut_short: bool,
    /// All threads' records; of batches see `series`.
    pub all: Recorder,
    /// All threads' batches, one round after the other.
    series: Option<Series>,
    /// What stood around them.
    pub ends: Ends,
}

impl Sums {
    /// Of no round yet.
    pub fn new(spec: &HttpSpec) -> Self {
        Self {
            rounds: 0,
            window_ns: 0,
            cut_short: false,
            all: Recorder::new(spec.rate_per_s.is_some(), 0),
            series: None,
            ends: Ends::default(),
        }
    }

    /// Adds a round.
    pub fn add(&mut self, spec: &HttpSpec, round: &Round) {
        let Round { course, seen, report, .. } = round;
        let mut one = Recorder::new(spec.rate_per_s.is_some(), 0);
        round.recorders.iter().for_each(|r| one.add(r));
        let cut_short = match spec.requests {
            Some(all) => one.settled() < all,
            None => course.cut_short,
        };
        let window_ns = match spec.requests.is_some() && !cut_short {
            true => one.last_ns.saturating_sub(course.start_ns),
            false => course.window_ns,
        };
        self.add_batches(round, course.start_ns + window_ns);
        self.all.add(&one);
        self.window_ns += window_ns;
        self.cut_short |= cut_short;
        self.ends.add_around(Around {
            ready: &Ready { why: "not ours to place".into(), ..Ready::default() },
            marks: &course.marks,
            seen,
            report: report.as_ref(),
            warnings: &[],
        });
        self.rounds += 1;
    }

    fn add_batches(&mut self, round: &Round, until: u64) {
        let mut parts =
            round.recorders.iter().filter_map(|r| Some(r.batches.as_ref()?.series(until)));
        let Some(mut one) = parts.next() else { return };
        // Batches of one beginning and of lengths that double are always alike.
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

    /// The estimates that a run rests on: its median and its rate.
    pub fn estimates(&self) -> (Option<Estimate>, Option<Estimate>) {
        let Some(series) = &self.series else { return (None, None) };
        let median = interval::of_quantile(series, &self.all.latency, 0.5);
        (median.ok(), interval::of_rate(series).ok())
    }

    /// Whether the rounds suffice for the interval that was asked for, that of the median
    /// latency, after so long.
    pub fn next(&self, spec: &HttpSpec, took_ns: u64) -> Next {
        confidence::next(&spec.common, &[self.estimates().0], took_ns)
    }
}
