//! All rounds of a run added up, in memory that does not grow with their number.

use model::{
    Reading, Warning,
    measure::{BothCpu, Common, Placement, ServedInterval},
};
use stats::{Estimate, Series, interval};

use super::{
    assignments::Assignments,
    conduct::Run,
    confidence::{self, Next},
    ends::{self, Around, Ends},
    protocol::Record,
    workers::{Round, WorkerTask, Workers},
};
use crate::{Error, Result, control::message::Ready, net::now_ns};

/// A run: a round, or as many as `--precision` needs.
#[derive(Debug)]
pub struct Rounds<R> {
    pub sums: Sums<R>,
    /// Why the interval that was asked for was not reached.
    pub why: Option<Warning>,
    /// What broke the last one off.
    pub broken: Option<Error>,
}

/// Repeats rounds while their interval is wider than was asked for.
///
/// # Errors
/// The first one could not begin.
pub fn rounds<R: Record + Send>(
    workers: &Workers<'_>,
    run: Run<'_>,
    what: &str,
    recorder: impl Fn() -> R,
    work: impl Fn(&WorkerTask<'_>, &mut R) + Sync,
) -> Result<Rounds<R>> {
    let mut sums = Sums::new(recorder());
    let begun = now_ns();
    loop {
        let what = match workers.common.confidence_per_mille {
            Some(_) => format!("{what}, round {}", sums.rounds + 1),
            None => what.to_owned(),
        };
        let round = match workers.work(run, &what, &recorder, &work) {
            Ok(round) => round,
            Err(e) if sums.rounds == 0 => return Err(e),
            Err(e) => return Ok(Rounds { sums, why: None, broken: Some(e) }),
        };
        sums.add(workers.total, &round);
        if round.broken.is_some() || sums.interrupted {
            return Ok(Rounds { sums, why: None, broken: round.broken });
        }
        if let Next::Done(why) = sums.next(workers.common, now_ns() - begun) {
            return Ok(Rounds { sums, why, broken: None });
        }
    }
}

/// What is known of the two ends beside what was counted.
#[derive(Debug, Clone, Copy)]
pub struct EndsAsked<'a> {
    /// Whether a number in all was asked for instead of a duration.
    pub total: bool,
    /// Whether a responder on the server's host tells.
    pub responder: bool,
    pub assignments: &'a Assignments,
    pub same_host: bool,
    /// What is said where it does not.
    pub untold: &'static str,
}

/// The rounds so far.
#[derive(Debug)]
pub struct Sums<R> {
    pub rounds: usize,
    /// The windows: with a number of requests it ends with the last of them.
    pub window_ns: u64,
    /// Whether one ended before its time, or before all that was asked for.
    pub interrupted: bool,
    /// All threads' records; of batches see `series`.
    pub all: R,
    /// All threads' batches, one round after the other.
    series: Option<Series>,
    /// What stood around them.
    pub ends: Ends,
    /// Their intervals, one round after the other.
    pub intervals: Vec<ServedInterval>,
}

impl<R: Record> Sums<R> {
    /// Of no round yet; `all` is an empty record.
    pub fn new(all: R) -> Self {
        let (series, ends, intervals) = (None, Ends::default(), vec![]);
        Self { rounds: 0, window_ns: 0, interrupted: false, all, series, ends, intervals }
    }

    /// Adds a round, of which a number in all was asked for or not.
    pub fn add(&mut self, total: Option<u64>, round: &Round<R>) {
        let Round { course, seen, report, .. } = round;
        let settled: u64 = round.recorders.iter().map(|r| r.requests().settled()).sum();
        let last_ns = round.recorders.iter().map(|r| r.requests().last_ns).max().unwrap_or(0);
        let interrupted = match total {
            Some(all) => settled < all,
            None => course.interrupted,
        };
        let window_ns = match total.is_some() && !interrupted {
            true => last_ns.saturating_sub(course.start_ns),
            false => course.window_ns,
        };
        self.add_batches(round, course.start_ns + window_ns);
        round.recorders.iter().for_each(|r| self.all.add(r));
        let before_s = self.window_ns as f64 / 1e9;
        self.intervals.extend(round.intervals.iter().map(|i| ServedInterval {
            start_s: i.start_s + before_s,
            end_s: i.end_s + before_s,
            ..i.clone()
        }));
        self.window_ns += window_ns;
        self.interrupted |= interrupted;
        self.ends.add_around(Around {
            ready: &Ready { why: "not ours to place".into(), ..Ready::default() },
            marks: &course.marks,
            seen,
            report: report.as_ref(),
            warnings: &[],
        });
        self.rounds += 1;
    }

    fn add_batches(&mut self, round: &Round<R>, until: u64) {
        let mut parts = round
            .recorders
            .iter()
            .filter_map(|r| Some(r.requests().batches.as_ref()?.series(until)));
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
        let median = interval::of_quantile(series, &self.all.requests().latency, 0.5);
        (median.ok(), interval::of_rate(series).ok())
    }

    /// CPU and placement of both ends. The counts are those of a `total` that was asked for, or of a
    /// window; what the server did where no responder tells is `untold`.
    pub fn both_ends(
        &self,
        asked: &EndsAsked<'_>,
        (transactions, per_s): (u64, f64),
    ) -> (BothCpu, Placement) {
        // The looks enclose the window; with a number of them nothing moved in the rest.
        let mut cpu = match asked.total {
            true => self.ends.cpu(|_| transactions),
            false => self.ends.cpu(ends::at_rate(per_s)),
        };
        let mut placement = self.ends.placement(asked.assignments, asked.same_host);
        placement.peer.migrations = Reading::absent(asked.untold);
        if !asked.responder {
            cpu.peer = Reading::absent(asked.untold);
        }
        (cpu, placement)
    }

    /// Whether the rounds suffice for the interval that was asked for, that of the median
    /// latency, after so long.
    pub fn next(&self, common: &Common, took_ns: u64) -> Next {
        confidence::next(common, &[self.estimates().0], took_ns)
    }
}
