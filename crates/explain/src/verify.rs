//! Verifies predictions for this path by new measurements.

use model::explain::{ExplainDocument, Level, Prediction, Verified};
use stats::{paired::median, predict::THIS};

/// Two measurements of the same load agree within this share.
const REPEATS: f64 = 0.05;

/// Verifies predictions. Loads that the curve was fitted to are measured again too. They do not
/// support the prediction; they show whether the host still performs as it did.
pub fn verify(document: &mut ExplainDocument, measured: &[Level]) {
    document.verified = held(&mut document.predictions, &document.levels, measured);
}

fn held(all: &mut [Prediction], curve: &[Level], measured: &[Level]) -> Option<Verified> {
    let (mut errors, mut drift) = (vec![], None);
    for p in all.iter_mut().filter(|p| p.path == THIS) {
        let Some(level) = measured.iter().find(|l| l.clients == p.clients) else { continue };
        let error = p.predicted_per_s / level.per_s - 1.0;
        (p.measured_per_s, p.error) = (Some(level.per_s), Some(error));
        match curve.iter().find(|l| l.clients == p.clients) {
            Some(before) => {
                let by = moved(before, level);
                drift = [drift, by]
                    .into_iter()
                    .flatten()
                    .max_by(|a: &f64, b| a.abs().total_cmp(&b.abs()));
            }
            None => errors.push(error.abs()),
        }
    }
    let known = |what: f64| (drift.is_none() && !errors.is_empty()).then_some(what);
    (!errors.is_empty() || drift.is_some()).then(|| Verified {
        cells: u32::try_from(errors.len()).unwrap_or(u32::MAX),
        median_error: known(median(&errors)),
        worst_error: known(errors.iter().copied().fold(0.0, f64::max)),
        drift,
    })
}

/// By how much a load changed, where that exceeds its rounds' spread.
fn moved(before: &Level, now: &Level) -> Option<f64> {
    let by = now.per_s / before.per_s - 1.0;
    let apart = now.low_per_s > before.high_per_s || now.high_per_s < before.low_per_s;
    (apart && by.abs() > REPEATS).then_some(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(clients: u32, per_s: f64) -> Level {
        Level {
            clients,
            per_s,
            low_per_s: per_s * 0.99,
            high_per_s: per_s * 1.01,
            client_cpu_ns: None,
            server_cpu_ns: None,
            host_cpu_ns: None,
            ..Level::default()
        }
    }

    fn predicted(clients: u32, per_s: f64) -> Prediction {
        Prediction {
            path: THIS.into(),
            clients,
            predicted_per_s: per_s,
            low_per_s: per_s,
            high_per_s: per_s,
            naive_per_s: None,
            limiting: None,
            measured_per_s: None,
            error: None,
            inconclusive: false,
            cpu_bounded: false,
        }
    }

    #[test]
    fn what_the_curve_does_not_know_speaks_for_it_while_the_curve_repeats() {
        let curve = [level(1, 1_000.0), level(8, 6_000.0)];
        let mut all = [predicted(1, 1_000.0), predicted(3, 2_900.0), predicted(8, 6_000.0)];
        let now = [level(1, 1_030.0), level(3, 3_000.0), level(8, 5_900.0)];
        let v = held(&mut all, &curve, &now).unwrap();
        assert_eq!((v.cells, v.drift), (1, None));
        let error = 1.0 - 2_900.0 / 3_000.0;
        assert!((v.median_error.unwrap() - error).abs() < 1e-9, "{v:?}");
        assert!(all.iter().all(|p| p.measured_per_s.is_some() && p.error.is_some()));
    }

    /// The host became slower by a fifth: every prediction is off by that, none by its own error.
    #[test]
    fn a_curve_that_does_not_repeat_is_drift_and_no_error_of_the_model() {
        let curve = [level(1, 1_000.0), level(8, 6_000.0)];
        let mut all = [predicted(1, 1_000.0), predicted(3, 2_900.0), predicted(8, 6_000.0)];
        let now = [level(1, 940.0), level(3, 2_320.0), level(8, 4_800.0)];
        let v = held(&mut all, &curve, &now).unwrap();
        assert_eq!((v.cells, v.median_error, v.worst_error), (1, None, None));
        assert!((v.drift.unwrap() + 0.2).abs() < 1e-9, "the one that moved most: {v:?}");
        // Where the curve includes all loads there is still something to verify.
        let v = held(&mut all, &[level(1, 1_000.0), level(3, 2_900.0), level(8, 6_000.0)], &now);
        assert_eq!(v.unwrap().cells, 0);
        let v = held(&mut all, &curve, &[level(1, 1_005.0)]);
        assert_eq!(v, None, "nothing but the curve, and it repeats");
    }
}
