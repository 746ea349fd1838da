//! Decides whether a run's rounds reach `--precision`; if not, advises what would.

use model::{
    Nanos, Warning,
    measure::Common,
    warning::{NotPrecise, PrecisionAdvice},
};
use stats::{Enough, Estimate};

/// Decision after a round.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    Again,
    /// Enough, or no precision was requested; or the reason why it cannot be reached.
    Done(Option<Warning>),
}

/// Whether all estimates reach the requested precision after `took_ns`; an estimate is `None` with
/// too few batches.
pub fn next(common: &Common, estimates: &[Option<Estimate>], took_ns: u64) -> Next {
    let Some(per_mille) = common.confidence_per_mille else { return Next::Done(None) };
    let goal = f64::from(per_mille) / 1000.0;
    let mut done = Next::Done(None);
    for estimate in estimates {
        match one(common, estimate.as_ref(), goal, took_ns) {
            Ok(Next::Again) => return Next::Again,
            Ok(Next::Done(_)) => {}
            Err((why, advice)) => {
                let warning = Warning::PrecisionNotReached { per_mille, why, advice };
                done = Next::Done(Some(warning));
            }
        }
    }
    done
}

/// The same for one estimate; or why it cannot be reached.
fn one(
    common: &Common,
    estimate: Option<&Estimate>,
    goal: f64,
    took_ns: u64,
) -> Result<Next, (NotPrecise, Option<PrecisionAdvice>)> {
    let longest = common.max_time_ns;
    let round = common.duration_ns.0;
    let out_of_time = took_ns.saturating_add(round) > longest.0;
    let Some(estimate) = estimate else {
        return match out_of_time {
            true => Err((
                NotPrecise::FewBatches {
                    elapsed_ns: Nanos(took_ns),
                    max_time_too: round.saturating_mul(2) > longest.0,
                },
                None,
            )),
            false => Ok(Next::Again),
        };
    };
    let half_width = estimate.relative_half_width();
    let more_time = |needed| PrecisionAdvice::MoreTime { needed_ns: Nanos(needed), half_width };
    match stats::enough(estimate, goal, Nanos(took_ns), longest) {
        Enough::Yes => Ok(Next::Done(None)),
        Enough::More { .. } if !out_of_time => Ok(Next::Again),
        Enough::More { estimated_further_ns: further } => {
            let (elapsed_ns, max_time_ns) = (Nanos(took_ns), longest);
            let needed = took_ns.saturating_add(further.0.max(round));
            let why = NotPrecise::NoRoom { half_width, elapsed_ns, max_time_ns };
            Err((why, Some(more_time(needed))))
        }
        Enough::WillNotGetThere { why, max_time_ns: Some(needs) } => {
            Err((why, Some(more_time(needs.0))))
        }
        Enough::WillNotGetThere { why, max_time_ns: None } => {
            Err((why, estimate.trend.map(|_| PrecisionAdvice::LongerWarmup)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(longest_s: u64) -> Common {
        serde_json::from_value(serde_json::json!({
            "target": "db1", "peer": "netwright", "transport": "tcp", "family": null, "bind": null,
            "duration_ns": 5_000_000_000u64, "warmup_ns": 0, "cooldown_ns": 0, "wait": "block",
            "peer_wait": "block", "pin": "auto", "peer_pin": "auto", "threads": 1,
            "socket": {"nodelay": null, "buffer_bytes": null, "mss_bytes": null, "dscp": null,
                "congestion": null},
            "confidence_per_mille": 10, "max_time_ns": longest_s * 1_000_000_000,
        }))
        .unwrap()
    }

    /// 50 batches that alternate around 100 by this much.
    fn estimate(by: f64) -> Option<Estimate> {
        let sign = |i: i32| if (i * 7919) % 13 < 6 { by } else { -by };
        let values: Vec<f64> = (0..50).map(|i| 100.0 + sign(i)).collect();
        stats::interval::of_values(&values, 100_000_000).ok()
    }

    const TOOK: u64 = 5_000_000_000;

    fn why(next: Next) -> String {
        match next {
            Next::Done(Some(why)) => why.to_string(),
            other => panic!("{other:?}"),
        }
    }

    /// Seconds in the advice `--max-time 90s` or `--max-time 12m`.
    fn advised(why: &str) -> u64 {
        let flag = why.split("--max-time ").nth(1).unwrap().split(' ').next().unwrap();
        flag.parse::<Nanos>().unwrap().0 / 1_000_000_000
    }

    #[test]
    fn it_says_what_would_do_and_that_does() {
        let e = [estimate(20.0)];
        let reported = why(next(&common(30), &e, TOOK));
        assert!(reported.starts_with("±1% was not reached: it is ±"), "{reported}");
        let longest = advised(&reported);
        assert!(longest > 30, "{reported}");
        assert_eq!(next(&common(longest), &e, TOOK), Next::Again, "{reported}");
    }

    #[test]
    fn narrow_enough_or_not_asked_is_done_and_one_of_two_goes_on() {
        let (narrow, wide) = (estimate(0.01), estimate(4.0));
        assert_eq!(next(&common(120), std::slice::from_ref(&narrow), TOOK), Next::Done(None));
        assert_eq!(next(&common(600), &[narrow, wide.clone()], TOOK), Next::Again);
        let unasked = Common { confidence_per_mille: None, ..common(120) };
        assert_eq!(next(&unasked, &[wide], TOOK), Next::Done(None));
    }

    #[test]
    fn too_few_batches_ask_for_longer_rounds() {
        assert_eq!(next(&common(120), &[None], TOOK), Next::Again);
        let reported = why(next(&common(8), &[None], TOOK));
        assert!(reported.contains("a longer --duration and --max-time"), "{reported}");
    }
}
