//! The measurement of one pair, and the quota of the program that makes it.

use std::sync::atomic::AtomicBool;

use model::{
    Reading,
    measure::RttSpec,
    mesh::{MeshProbe, QuotaUse},
};
use probe::{Root, samples::own_quota};
use traffic::Secret;

use crate::{commands::export::probe as single, failure::Failure};

/// 100 datagrams a second for one second. A request that has no answer for half a second is lost;
/// the warm-up is as long, so that as many time limits end within the window as requests begin. The
/// queue is deeper than what is on its way then: no request waits for one that was lost.
const FLAGS: [&str; 11] = [
    "--udp",
    "--rate",
    "100",
    "--queue-depth",
    "64",
    "--timeout",
    "500ms",
    "--warmup",
    "500ms",
    "--duration",
    "1s",
];

/// The measurement of a target.
///
/// # Errors
/// The target is none (exit code 2).
pub fn spec(target: &str) -> Result<RttSpec, Failure> {
    single::specified(&FLAGS, target)
}

/// Measures one target.
///
/// # Errors
/// Why it could not be asked, as a line.
pub fn measure(
    spec: &RttSpec,
    secret: Option<&Secret>,
    stop: &AtomicBool,
) -> Result<MeshProbe, String> {
    let run = single::measured(spec, secret, stop)?;
    let round_trips = run.rtt_from_send_ns.unwrap_or(run.rtt_ns);
    if run.transactions == 0 && run.lost == 0 {
        return Err("nothing was sent within the window".to_owned());
    }
    Ok(MeshProbe {
        rtt_ns: (round_trips.count > 0).then_some(round_trips),
        answered: run.transactions,
        lost: run.lost,
    })
}

/// The growth of the quota's use between two readings; absent where the quota or its cgroup is another
/// one.
pub fn between(
    before: &Reading<Option<QuotaUse>>,
    after: Reading<Option<QuotaUse>>,
) -> Reading<Option<QuotaUse>> {
    const CHANGED: &str = "its CPU quota or its cgroup changed between the readings";
    let first = match before {
        Reading::Known(first) => *first,
        unknown => return unknown.clone(),
    };
    after.and_then(|last| match (first, last) {
        (None, None) => Reading::Known(None),
        (Some(first), Some(last)) => match last.since(first) {
            Some(grown) => Reading::Known(Some(grown)),
            None => Reading::absent(CHANGED),
        },
        _ => Reading::absent(CHANGED),
    })
}

/// The quota's use so far.
pub fn quota() -> Reading<Option<QuotaUse>> {
    own_quota(&Root::live())
}

#[cfg(test)]
mod tests {
    use model::Nanos;

    use super::*;

    #[test]
    fn a_quota_that_began_anew_is_not_unthrottled() {
        let of = |periods, throttled_periods| {
            let throttled_ns = Nanos(throttled_periods * 1_000);
            Reading::Known(Some(QuotaUse { periods, throttled_periods, throttled_ns }))
        };
        assert_eq!(between(&of(10, 4), of(30, 9)), of(20, 5));
        let none = Reading::Known(None);
        assert_eq!(between(&none, none.clone()), none);
        for (before, after) in [(of(10, 4), of(3, 0)), (none.clone(), of(9, 9)), (of(9, 9), none)] {
            assert!(!between(&before, after).is_known(), "{before:?}");
        }
    }
}
