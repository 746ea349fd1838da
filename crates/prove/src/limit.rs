//! Whether a change is shown to cost less than a limit.

use model::prove::{Direction, Limit, ProveDocument};

/// Sets `document.limit`: whether each metric is shown to be worse by less than this share, by the
/// harmful end of its 95% interval. A metric without a ratio, or without an interval, is not.
pub fn hold(document: &mut ProveDocument, share: f64) {
    let within = document.metrics.iter().all(|metric| {
        let verdict = &metric.verdict;
        let end = match metric.direction {
            Direction::LowerIsBetter => verdict.high,
            Direction::HigherIsBetter => verdict.low.map(|low| -low),
        };
        // A difference has no share: then only a proof of no harm is within the limit.
        end.is_some_and(|end| end <= if verdict.difference { 0.0 } else { share })
    });
    let held = within && !document.metrics.is_empty();
    document.limit = Some(Limit { share, held });
}
