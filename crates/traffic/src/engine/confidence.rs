//! Whether the rounds of a run suffice for `--precision`, and what would do where they do not.

use model::{Nanos, Warning, measure::Common};
use stats::{Enough, Estimate};

/// What to do after a round.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    Again,
    /// It suffices, or nothing was asked; or why it never will.
    Done(Option<Warning>),
}

/// Whether estimates, each `None` where its batches are too few, are as narrow as was asked for
/// after `took_ns`.
pub fn next(common: &Common, estimates: &[Option<Estimate>], took_ns: u64) -> Next {
    let Some(per_mille) = common.confidence_per_mille else { return Next::Done(None) };
    let goal = f64::from(per_mille) / 1000.0;
    let mut done = Next::Done(None);
    for estimate in estimates {
        match one(common, estimate.as_ref(), goal, took_ns) {
            Ok(Next::Again) => return Next::Again,
            Ok(Next::Done(_)) => {}
            Err(why) => {
                done = Next::Done(Some(Warning::PrecisionNotReached { per_mille, why }));
            }
        }
    }
    done
}

/// The same for one; or why it never will.
fn one(
    common: &Common,
    estimate: Option<&Estimate>,
    goal: f64,
    took_ns: u64,
) -> Result<Next, String> {
    let longest = common.max_time_ns;
    let round = common.duration_ns.0;
    let out_of_time = took_ns.saturating_add(round) > longest.0;
    let Some(estimate) = estimate else {
        return match out_of_time {
            true => Err(format!(
                "there are too few batches after {}; give it a longer --duration{}",
                Nanos(took_ns),
                if round.saturating_mul(2) > longest.0 { " and --max-time" } else { "" }
            )),
            false => Ok(Next::Again),
        };
    };
    match stats::enough(estimate, goal, Nanos(took_ns), longest) {
        Enough::Yes => Ok(Next::Done(None)),
        Enough::More { .. } if !out_of_time => Ok(Next::Again),
        Enough::More { estimated_further_ns: further } => Err(format!(
            "it is ±{:.1}% after {}, and {longest} leave no room for another round; {}",
            estimate.relative_half_width() * 100.0,
            Nanos(took_ns),
            would_do(
                took_ns.saturating_add(further.0.max(round)),
                Some(estimate.relative_half_width())
            )
        )),
        Enough::WillNotGetThere { why, max_time_ns: Some(needs) } => {
            let reached = Some(estimate.relative_half_width());
            Err(format!("{why}; {}", would_do(needs.0, reached)))
        }
        Enough::WillNotGetThere { why, max_time_ns: None } if estimate.trend.is_some() => {
            Err(format!("{why}; a longer --warmup may let it settle, more time does not"))
        }
        Enough::WillNotGetThere { why, max_time_ns: None } => Err(why),
    }
}

/// Nobody waits longer for one figure: something else has to change.
const PATIENCE_S: u64 = 1_800;

/// The flag to give, a tenth more than the estimate and rounded up as such an estimate may be;
/// or what else would help.
fn would_do(ns: u64, reached: Option<f64>) -> String {
    let s = (ns as f64 * 1.1 / 1e9).ceil() as u64;
    match s {
        0..120 => format!("--max-time {}s should do", s.next_multiple_of(10)),
        120..=PATIENCE_S => format!("--max-time {}m should do", s.div_ceil(60)),
        _ => {
            let wider = reached.map_or_else(String::new, |half| {
                format!("ask for --precision {}%, or ", (half * 100.0).ceil().clamp(1.0, 50.0))
            });
            format!(
                "that would take {}: {wider}find what makes it vary (other load at either end, \
                 --cpu for CPUs of its own, a longer --warmup)",
                roughly(s)
            )
        }
    }
}

/// Of more than half an hour.
fn roughly(s: u64) -> String {
    match s {
        0..7_200 => format!("some {} minutes", s.div_ceil(600) * 10),
        7_200..172_800 => format!("some {} hours", s.div_ceil(3_600)),
        _ => "days".into(),
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

    /// 50 batches that alternate about 100 by so much.
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

    /// The seconds of `--max-time 90s` or `--max-time 12m`.
    fn advised(why: &str) -> u64 {
        let flag = why.split("--max-time ").nth(1).unwrap().split(' ').next().unwrap();
        flag.parse::<Nanos>().unwrap().0 / 1_000_000_000
    }

    #[test]
    fn what_would_take_hours_is_not_advised_and_something_else_is() {
        let second = 1_000_000_000;
        assert_eq!(would_do(37 * second, None), "--max-time 50s should do");
        assert_eq!(would_do(25 * 60 * second, None), "--max-time 28m should do");
        let said = would_do(254 * 60 * second, Some(0.083));
        assert!(said.contains("some 5 hours") && !said.contains("--max-time"), "{said}");
        assert!(said.contains("--precision 9%") && said.contains("--cpu"), "{said}");
        assert!(would_do(u64::MAX / 2, None).contains("days: find"), "no width, no wider one");
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
