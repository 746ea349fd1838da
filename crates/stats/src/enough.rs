//! Whether a result is known narrowly enough, and if not, whether going on will help.
//!
//! The half width falls with the root of the time, so the time still needed follows from it
//! (Law and Kelton, Simulation Modeling and Analysis, section 9.4.1). Who stops at the first
//! narrow interval stops rather often where it is narrow by chance; that is why batches that are
//! not independent, or a result that drifts, are never narrow enough here.

use model::{Nanos, warning::NotPrecise};

use crate::Estimate;

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Enough {
    Yes,
    /// Go on for about so long and look again.
    More {
        /// Estimate of the time.
        estimated_further_ns: Nanos,
    },
    /// Going on does not help, or not within the time there is.
    WillNotGetThere {
        why: NotPrecise,
        /// About the time in all that would do, where time is what is missing.
        max_time_ns: Option<Nanos>,
    },
}

/// The time to go on by at least, as a share of the time so far: shorter looks cost more than
/// they bring, and the more often one looks the more often chance ends the run.
const LEAST_FURTHER: f64 = 0.25;

/// The estimate of the time still needed is itself uncertain; this much more makes it usually
/// enough.
const MARGIN: f64 = 1.15;

/// Until this share of the longest time a drift may still pass.
const EARLY: f64 = 0.5;

/// Whether the half width of `estimate` is at most a share `goal` of its value, after
/// `elapsed_ns` of the `max_time_ns` that it may take.
pub fn enough(estimate: &Estimate, goal: f64, elapsed_ns: Nanos, max_time_ns: Nanos) -> Enough {
    let width = estimate.relative_half_width();
    let drift = estimate.trend.filter(|t| t.abs() > goal);
    if width <= goal && estimate.independent && drift.is_none() {
        return Enough::Yes;
    }
    if !width.is_finite() {
        return never(NotPrecise::ValueIsZero);
    }
    let elapsed = elapsed_ns.0.max(1) as f64;
    let left = max_time_ns.0.saturating_sub(elapsed_ns.0) as f64;
    if let Some(drift) = drift {
        // It may pass (a CPU that warms up); the width beside it says nothing yet.
        if elapsed < EARLY * max_time_ns.0 as f64 {
            return Enough::More { estimated_further_ns: Nanos(elapsed as u64) };
        }
        return never(NotPrecise::Drifts { trend: drift });
    }
    // Dependent batches need to be longer: at least as long again.
    let for_width = elapsed * ((width / goal).powi(2) * MARGIN - 1.0);
    let further = for_width.max(elapsed * if estimate.independent { LEAST_FURTHER } else { 1.0 });
    if further <= left {
        return Enough::More { estimated_further_ns: Nanos(further as u64) };
    }
    let left_ns = Nanos(left as u64);
    let why = match estimate.independent {
        false => NotPrecise::BatchesResemble {
            batch_ns: estimate.batch_ns,
            correlation: estimate.lag1,
            left_ns,
        },
        true => NotPrecise::TimeTooShort {
            half_width: width,
            goal,
            elapsed_ns,
            further_ns: Nanos(further as u64),
            left_ns,
        },
    };
    Enough::WillNotGetThere { why, max_time_ns: Some(Nanos((elapsed + further) as u64)) }
}

/// However long it takes.
fn never(why: NotPrecise) -> Enough {
    Enough::WillNotGetThere { why, max_time_ns: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Batches, Histogram, interval,
        random::{SplitMix64, draws::Ar1},
    };

    const SECOND: u64 = 1_000_000_000;

    fn estimate(values: impl Iterator<Item = f64>) -> Estimate {
        interval::of_values(&values.collect::<Vec<_>>(), 100_000_000).unwrap()
    }

    fn noise(deviation: f64) -> impl Iterator<Item = f64> {
        let mut random = SplitMix64::new(11);
        (0..50).map(move |_| 100.0 + deviation * random.normal())
    }

    #[test]
    fn narrow_is_enough() {
        assert_eq!(
            enough(&estimate(noise(1.0)), 0.02, Nanos(5 * SECOND), Nanos(60 * SECOND)),
            Enough::Yes
        );
    }

    #[test]
    fn four_times_the_time_halves_the_width() {
        let e = estimate(noise(14.0));
        let goal = e.relative_half_width() / 2.0;
        let Enough::More { estimated_further_ns: Nanos(ns) } =
            enough(&e, goal, Nanos(5 * SECOND), Nanos(60 * SECOND))
        else {
            panic!("not more");
        };
        assert!((3 * 5 * SECOND..4 * 5 * SECOND).contains(&ns), "{ns}");
    }

    #[test]
    fn noise_beyond_the_time_left_is_said_with_numbers() {
        let e = estimate(noise(100.0));
        let Enough::WillNotGetThere { why, max_time_ns: Some(needs) } =
            enough(&e, 0.01, Nanos(5 * SECOND), Nanos(60 * SECOND))
        else {
            panic!("it gets there");
        };
        let why = why.to_string();
        assert!(why.contains("±1.0% takes about") && why.contains("55 s are left"), "{why}");
        // Given that much, it goes on.
        let given = enough(&e, 0.01, Nanos(5 * SECOND), Nanos(needs.0 + 1));
        assert!(needs.0 > 60 * SECOND && matches!(given, Enough::More { .. }), "{needs}");
    }

    #[test]
    fn a_drift_is_the_reason_once_it_had_time_to_pass() {
        let e = estimate(noise(1.0).enumerate().map(|(i, x)| x + i as f64));
        let early = enough(&e, 0.02, Nanos(5 * SECOND), Nanos(60 * SECOND));
        assert!(matches!(early, Enough::More { .. }), "{early:?}");
        let late = enough(&e, 0.02, Nanos(30 * SECOND), Nanos(60 * SECOND));
        assert!(
            matches!(
                &late,
                Enough::WillNotGetThere { why: NotPrecise::Drifts { trend }, max_time_ns: None }
                    if *trend > 0.0
            ),
            "{late:?}"
        );
    }

    #[test]
    fn resemblance_is_the_reason_when_no_time_is_left() {
        // Slow waves, as many up as down.
        let e =
            estimate((0..50).map(|i| 100.0 + (f64::from(i) * std::f64::consts::TAU / 25.0).cos()));
        assert!(!e.independent, "{e:?}");
        assert!(e.trend.is_none(), "{e:?}");
        assert!(matches!(
            enough(&e, 0.1, Nanos(5 * SECOND), Nanos(60 * SECOND)),
            Enough::More { .. }
        ));
        let late = enough(&e, 0.1, Nanos(5 * SECOND), Nanos(6 * SECOND));
        assert!(
            matches!(
                &late,
                Enough::WillNotGetThere {
                    why: NotPrecise::BatchesResemble { .. },
                    max_time_ns: Some(Nanos(n)),
                } if *n >= 10 * SECOND
            ),
            "{late:?}"
        );
    }

    #[test]
    fn nothing_measured_does_not_get_narrower() {
        let e = estimate((0..50).map(|_| 0.0));
        assert_eq!(enough(&e, 0.1, Nanos(5), Nanos(60)), never(NotPrecise::ValueIsZero));
    }

    /// Rounds of 2,000 correlated round trips, 10 µs apart, until the median is known to a
    /// share of `goal`; whether its interval then holds the truth, and after how many rounds.
    fn until_narrow(goal: f64, seed: u64) -> (bool, u64) {
        const ROUND_NS: u64 = 20_000_000;
        let mut x = Ar1::new(0.9, seed);
        let (mut series, mut all) = (None, Histogram::new());
        for rounds in 1.. {
            let start = (rounds - 1) * ROUND_NS;
            let mut batches = Batches::new(start, ROUND_NS / 50, Batches::CAPACITY);
            for i in 0..2_000 {
                let value = (20_000.0 * (0.3 * x.draw()).exp()) as u64;
                batches.record(start + i * 10_000, value);
                all.record(value);
            }
            let round = batches.series(start + ROUND_NS);
            let series = series.get_or_insert_with(|| Batches::new(0, ROUND_NS / 50, 4).series(0));
            series.append(&round).unwrap();
            let e = interval::of_quantile(series, &all, 0.5).unwrap();
            if enough(&e, goal, Nanos(rounds * ROUND_NS), Nanos(10 * SECOND)) == Enough::Yes {
                return ((e.interval.low..=e.interval.high).contains(&20_000.0), rounds);
            }
        }
        (false, 0)
    }

    #[test]
    fn stopping_when_narrow_still_holds_the_truth_nearly_as_often() {
        let runs: Vec<(bool, u64)> = (0..300).map(|seed| until_narrow(0.03, seed)).collect();
        let holds = runs.iter().filter(|r| r.0).count();
        let rounds = runs.iter().map(|r| r.1).sum::<u64>() as f64 / 300.0;
        assert!((264..=297).contains(&holds), "{holds} of 300");
        // One round gives ±6.7%: a half of that takes about 5.
        assert!((3.5..6.5).contains(&rounds), "{rounds}");
    }
}
