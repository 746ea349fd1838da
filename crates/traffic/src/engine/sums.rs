//! Totals over all rounds of a run, in bounded memory.

use model::{
    Reading, Warning,
    measure::{BothCpu, Common, Placement, ServedInterval},
};
use stats::{Estimate, Series, interval};

use super::{
    assignments::Assignments,
    conduct::Run,
    confidence::{self, Next},
    ends::{self, Ends, RoundContext},
    protocol::Record,
    workers::{Round, WorkerTask, Workers},
};
use crate::{Error, Result, control::message::Ready, net::now_ns};

/// A run: one round, or as many as `--precision` needs.
#[derive(Debug)]
pub struct Rounds<R> {
    pub sums: Sums<R>,
    /// Why the requested precision was not reached.
    pub why: Option<Warning>,
    /// The error that ended the last round early.
    pub broken: Option<Error>,
}

/// Repeats rounds until the requested precision is reached.
///
/// # Errors
/// The first round could not begin.
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

/// Facts about both ends besides the counters.
#[derive(Debug, Clone, Copy)]
pub struct EndsAsked<'a> {
    /// Whether a total number was requested instead of a duration.
    pub total: bool,
    /// Whether a responder on the server's host reports.
    pub responder: bool,
    pub assignments: &'a Assignments,
    pub same_host: bool,
    /// The text for the server's missing figures without a responder.
    pub no_responder_reason: &'static str,
}

/// The rounds so far.
#[derive(Debug)]
pub struct Sums<R> {
    pub rounds: usize,
    /// Length of the windows; with a total, each ends with its last request.
    pub window_ns: u64,
    /// Whether a round ended early, by time or by number.
    pub interrupted: bool,
    /// All threads' records; their batches are in `series`.
    pub all: R,
    /// All threads' batches, round after round.
    series: Option<Series>,
    /// Context of the rounds.
    pub ends: Ends,
    /// Intervals of the rounds, concatenated.
    pub intervals: Vec<ServedInterval>,
}

impl<R: Record> Sums<R> {
    /// No rounds yet; `all` is an empty record.
    pub fn new(all: R) -> Self {
        let (series, ends, intervals) = (None, Ends::default(), vec![]);
        Self { rounds: 0, window_ns: 0, interrupted: false, all, series, ends, intervals }
    }

    /// Adds a round; `total` is the number of requests, if one was requested.
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
        self.ends.add_context(RoundContext {
            ready: &Ready { why: "not ours to place".into(), ..Ready::default() },
            snapshots: &course.snapshots,
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

    /// The estimates of the median and of the rate.
    pub fn estimates(&self) -> (Option<Estimate>, Option<Estimate>) {
        let Some(series) = &self.series else { return (None, None) };
        let median = interval::of_quantile(series, &self.all.requests().latency, 0.5);
        (median.ok(), interval::of_rate(series).ok())
    }

    /// CPU and placement of both ends. Counts are those of the requested `total` or of the window;
    /// without a responder the server's are `no_responder_reason`.
    pub fn both_ends(
        &self,
        asked: &EndsAsked<'_>,
        (transactions, per_s): (u64, f64),
    ) -> (BothCpu, Placement) {
        // Marks enclose the window; with a total, nothing happens outside the requests.
        let mut cpu = match asked.total {
            true => self.ends.cpu(|_| transactions),
            false => self.ends.cpu(ends::at_rate(per_s)),
        };
        let mut placement = self.ends.placement(asked.assignments, asked.same_host);
        placement.peer.migrations = Reading::absent(asked.no_responder_reason);
        if !asked.responder {
            cpu.peer = Reading::absent(asked.no_responder_reason);
        }
        (cpu, placement)
    }

    /// Whether the rounds reach the requested precision of the median latency.
    pub fn next(&self, common: &Common, took_ns: u64) -> Next {
        confidence::next(common, &[self.estimates().0], took_ns)
    }
}
