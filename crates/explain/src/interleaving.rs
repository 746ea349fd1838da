//! Interleaves rounds of the workload and of the network alone, and collects their results.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use model::{Nanos, explain::Level, measure::Quantiles};
use stats::{
    decompose::{Pair, Round},
    paired::{centre, median, spread},
};
use traffic::{Error, Result};

use crate::{
    round_counts::RoundCounts,
    workload::{Observed, Workload},
};

/// Rounds of each level for the predictions.
const LEVEL_ROUNDS: usize = 3;

/// How long an empty round is tried again: a server may restart. A server that is silent for longer
/// hangs.
const PATIENCE: Duration = Duration::from_secs(5);
/// An empty round that took longer than this is not tried again. A shorter one is tried at least
/// once more, as one failure may be chance.
const STILL: Duration = Duration::from_secs(9);
/// The same limit for a first round, before the server is known to answer.
const AT_FIRST: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(250);

/// Measures a first round, before interleaving; tried once more where it failed quickly.
///
/// # Errors
/// It failed twice.
pub fn at_first(
    what: &dyn Workload,
    clients: u32,
    round: Nanos,
    run: traffic::Run<'_>,
    counts: &RoundCounts,
) -> Result<Observed> {
    let again = |tries: usize, took: Duration| tries == 1 && took < AT_FIRST;
    repeated(|| what.run(clients, round, run), again, run, counts)
}

/// Measures a round, again while it is empty and `again` agrees. `again` gets the number of tries
/// and the time they took.
fn repeated(
    measure: impl Fn() -> Result<Observed>,
    again: impl Fn(usize, Duration) -> bool,
    run: traffic::Run<'_>,
    counts: &RoundCounts,
) -> Result<Observed> {
    let (begun, mut nothing) = (Instant::now(), vec![]);
    loop {
        match measure() {
            Err(Error::Environment(why) | Error::Silent(why))
                if again(nothing.len() + 1, begun.elapsed())
                    && !run.stop.load(Ordering::Relaxed) =>
            {
                nothing.push(why);
                std::thread::sleep(PAUSE);
            }
            Ok(seen) => {
                counts.saw(&seen);
                nothing.into_iter().for_each(|why| counts.left_out(why));
                return Ok(seen);
            }
            other => return other,
        }
    }
}

/// The two interleaved workloads, and how their rounds are run.
#[derive(Clone, Copy)]
pub struct Interleaving<'a> {
    pub workload: &'a dyn Workload,
    pub network: &'a dyn Workload,
    /// The length of a round.
    pub round: Nanos,
    pub run: traffic::Run<'a>,
    /// Counts over all rounds.
    pub counts: &'a RoundCounts,
}

/// How long pairs are measured: at first, and at most.
#[derive(Debug, Clone, Copy)]
pub struct Lengths {
    pub first: Nanos,
    pub most: Nanos,
}

/// Pairs of rounds with the same number of clients.
#[derive(Debug, Default)]
pub struct Pairs {
    /// A round of each workload, one after the other.
    pub pairs: Vec<Pair>,
    pub workload: Vec<Observed>,
    pub network: Vec<Observed>,
}

impl Interleaving<'_> {
    pub fn over(&self) -> bool {
        self.run.stop.load(Ordering::Relaxed)
    }

    /// A run without progress output, for a single round.
    fn quiet(&self) -> traffic::Run<'_> {
        traffic::Run { progress: &|_, _| {}, ..self.run }
    }

    /// Measures pairs for `length`, in blocks of A B B A, `least` of them at least. Pairs before a
    /// failure are kept.
    pub fn pairs(&self, clients: u32, length: Nanos, least: usize) -> (Pairs, Option<Error>) {
        self.pairs_until(clients, Lengths { first: length, most: length }, least, |_| true)
    }

    /// The same, then half as long again and again, until `enough` or the most. It checks this
    /// seldom: a check after each pair would stop at one that fits by chance.
    pub fn pairs_until(
        &self,
        clients: u32,
        lengths: Lengths,
        least: usize,
        enough: impl Fn(&Pairs) -> bool,
    ) -> (Pairs, Option<Error>) {
        let (begun, mut all) = (Instant::now(), Pairs::default());
        let (mut turn, mut length) = (0, lengths.first.0);
        let mut what = format!("explain, {clients} client{}", if clients == 1 { "" } else { "s" });
        while !self.over() {
            let elapsed = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            if turn >= least && elapsed >= length {
                if elapsed >= lengths.most.0 || enough(&all) {
                    break;
                }
                if length == lengths.first.0 {
                    what.push_str(", until the parts add up");
                }
                length = (length + lengths.first.0.div_ceil(2)).min(lengths.most.0);
            }
            let share = elapsed as f64 / length.max(1) as f64;
            (self.run.progress)(&what, share.min(1.0));
            match self.pair(clients, turn % 2 == 0) {
                // A round that Ctrl-C interrupted must not be paired with a complete one.
                Ok(_) if self.over() => break,
                Ok((w, n)) => {
                    all.pairs.push(Pair { workload: w.round, network: n.round });
                    all.workload.push(w);
                    all.network.push(n);
                }
                // An interrupted round may be empty; that is no failure.
                Err(_) if self.over() => break,
                Err(e) => return (all, Some(e)),
            }
            turn += 1;
        }
        (all, None)
    }

    /// Measures a round; tries again for a while where nothing was answered.
    fn round(&self, what: &dyn Workload, clients: u32) -> Result<Observed> {
        let again = |tries, took| took < PATIENCE || (tries == 1 && took < STILL);
        repeated(|| what.run(clients, self.round, self.quiet()), again, self.run, self.counts)
    }

    fn pair(&self, clients: u32, first: bool) -> Result<(Observed, Observed)> {
        let workload = || self.round(self.workload, clients);
        let network = || self.round(self.network, clients);
        let (w, n) = match first {
            true => {
                let w = workload()?;
                (w, network()?)
            }
            false => {
                let n = network()?;
                (workload()?, n)
            }
        };
        let n = self.network.beside(n, &w);
        Ok((w, n))
    }

    /// Measures levels of the workload. Each is repeated, interleaved with the others, so that
    /// drift affects all alike.
    ///
    /// # Errors
    /// The workload failed; earlier rounds are discarded.
    pub fn levels(&self, clients: &[u32]) -> Result<Vec<Level>> {
        self.levels_of(self.workload, clients)
    }

    /// The same for another workload.
    ///
    /// # Errors
    /// See [`Interleaving::levels`].
    pub fn levels_of(&self, what: &dyn Workload, clients: &[u32]) -> Result<Vec<Level>> {
        let mut all: Vec<Vec<Observed>> = clients.iter().map(|_| vec![]).collect();
        for pass in 0..LEVEL_ROUNDS {
            (self.run.progress)("explain, levels", pass as f64 / LEVEL_ROUNDS as f64);
            for (n, rounds) in clients.iter().zip(&mut all) {
                if self.over() {
                    return Ok(vec![]);
                }
                match self.round(what, *n) {
                    Err(_) if self.over() => return Ok(vec![]),
                    other => rounds.push(other?),
                }
            }
        }
        Ok(all.iter().filter_map(|rounds| level(rounds)).collect())
    }
}

/// A level from its rounds.
pub fn level(rounds: &[Observed]) -> Option<Level> {
    let rates: Vec<f64> = rounds.iter().map(|o| o.round.per_s()).collect();
    let centre = centre(&rates)?;
    Some(Level {
        clients: rounds.first()?.round.clients,
        per_s: centre.value,
        low_per_s: centre.low,
        high_per_s: centre.high,
        client_cpu_ns: of(rounds, |o| o.client_cpu_ns),
        server_cpu_ns: of(rounds, |o| o.server_cpu_ns),
        host_cpu_ns: of(rounds, |o| o.host_cpu_ns),
        rounds: u32::try_from(rates.len()).unwrap_or(u32::MAX),
        spread: spread(&rates),
        others_cpus: of(rounds, |o| o.others_cpus),
    })
}

/// The median of the rounds that know the value.
pub fn of(rounds: &[Observed], what: impl Fn(&Observed) -> Option<f64>) -> Option<f64> {
    let known: Vec<f64> = rounds.iter().filter_map(what).collect();
    (!known.is_empty()).then(|| median(&known))
}

/// Medians over the rounds of each quantile and of the standard deviation; the mean is over all
/// transactions.
pub fn quantiles(rounds: &[Observed]) -> Quantiles {
    let all = |what: fn(&Quantiles) -> u64| {
        median(&rounds.iter().map(|o| what(&o.quantiles) as f64).collect::<Vec<_>>()) as u64
    };
    let each: Vec<Round> = rounds.iter().map(|o| o.round).collect();
    Quantiles {
        count: each.iter().map(|r| r.transactions).sum(),
        min: rounds.iter().map(|o| o.quantiles.min).min().unwrap_or(0),
        p50: all(|q| q.p50),
        p75: all(|q| q.p75),
        p90: all(|q| q.p90),
        p99: all(|q| q.p99),
        p999: all(|q| q.p999),
        p9999: all(|q| q.p9999),
        max: rounds.iter().map(|o| o.quantiles.max).max().unwrap_or(0),
        mean: each.iter().map(|r| r.mean_ns * r.transactions as f64).sum::<f64>()
            / each.iter().map(|r| r.transactions).sum::<u64>().max(1) as f64,
        sd: median(&rounds.iter().map(|o| o.quantiles.sd).collect::<Vec<_>>()),
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, sync::atomic::AtomicBool};

    use model::CpuId;

    use super::*;

    /// A workload with empty rounds of 1 ms.
    struct Idle;

    impl Workload for Idle {
        fn run(&self, _: u32, _: Nanos, _: traffic::Run<'_>) -> Result<Observed> {
            std::thread::sleep(Duration::from_millis(1));
            Ok(Observed::nothing())
        }

        fn paced(&self, _: u64) -> Box<dyn Workload> {
            Box::new(Self)
        }

        fn pin(&mut self, _: &[CpuId]) {}
    }

    /// How often `enough` was asked, and the number of pairs at the end.
    fn looks(first_ms: u64, most_ms: u64, enough_at: usize) -> (usize, usize) {
        let (stop, counts, asked) = (AtomicBool::new(false), RoundCounts::default(), Cell::new(0));
        let run = traffic::Run::new(&stop, &|_, _| {});
        let interleaving =
            Interleaving { workload: &Idle, network: &Idle, round: Nanos(1), run, counts: &counts };
        let lengths =
            Lengths { first: Nanos(first_ms * 1_000_000), most: Nanos(most_ms * 1_000_000) };
        let (pairs, why) = interleaving.pairs_until(1, lengths, 2, |_| {
            asked.set(asked.get() + 1);
            asked.get() >= enough_at
        });
        assert!(why.is_none());
        (asked.get(), pairs.pairs.len())
    }

    #[test]
    fn it_measures_on_until_the_pairs_are_enough_or_the_most_is_over() {
        assert_eq!(looks(20, 60, 1).0, 1);
        assert_eq!(looks(20, 60, 2).0, 2);
        // Asked after 20, 30, 40 and 50 ms; at 60 ms the time is over.
        let (asked, pairs) = looks(20, 60, 100);
        assert!((1..=4).contains(&asked) && pairs > 2, "{asked} {pairs}");
        assert_eq!(looks(20, 20, 100).0, 0, "the most is the first");
    }

    fn nothing() -> Error {
        Error::Environment("no request was answered".into())
    }

    /// How often a workload is measured that fails this often first, and its result.
    fn tried(fails: u32, again: impl Fn(usize, Duration) -> bool) -> (u32, bool, Option<u32>) {
        let (stop, counts, tries) = (AtomicBool::new(false), RoundCounts::default(), Cell::new(0));
        let run = traffic::Run::new(&stop, &|_, _| {});
        let measure = || {
            tries.set(tries.get() + 1);
            if tries.get() <= fails { Err(nothing()) } else { Ok(Observed::nothing()) }
        };
        let done = repeated(measure, again, run, &counts).is_ok();
        (tries.get(), done, counts.of("no request was answered"))
    }

    #[test]
    fn one_unlucky_round_is_left_out_and_reported_and_ends_nothing() {
        assert_eq!(tried(0, |_, _| true), (1, true, None));
        assert_eq!(tried(1, |tries, _| tries == 1), (2, true, Some(1)));
        assert_eq!(tried(2, |tries, _| tries == 1), (2, false, None), "it repeats");
    }
}
