//! Thresholds on counters, scaled honestly to the window.

use model::Confidence;

/// Events a minute above which a counter is worth a finding (the alarm threshold that
/// monitoring systems use over a minute).
pub(crate) const PER_MINUTE: f64 = 10.0;

/// Fewest events that can be more than noise in any window, however short.
pub(crate) const LEAST: u64 = 3;

/// Whether `count` events over the window are "more than 10 a minute, sustained", and how sure
/// that is.
///
/// A window of a minute or more decides it. In a shorter one, more than 10 events are already
/// over the limit for the minute around it (medium); 3 to 10 events are over it only if they
/// keep coming (low); fewer are noise.
pub(crate) fn sustained(count: u64, window_s: f64) -> Option<Confidence> {
    if count < LEAST || window_s <= 0.0 || count as f64 * 60.0 / window_s <= PER_MINUTE {
        return None;
    }
    Some(match (window_s >= 60.0, count as f64 > PER_MINUTE) {
        (true, _) => Confidence::High,
        (false, true) => Confidence::Medium,
        (false, false) => Confidence::Low,
    })
}

/// Events per minute for alarms of single events: a count as it is up to a minute, scaled down
/// for longer windows. Never scaled up: two events in 5 s are two, not 24.
pub(crate) fn at_most_per_minute(count: u64, window_s: f64) -> f64 {
    count as f64 * (60.0 / window_s.max(60.0))
}

/// What the window's length means for the judgement, for people.
pub(crate) fn caveat(window_s: f64) -> &'static str {
    if window_s >= 60.0 {
        ""
    } else {
        "The threshold is meant for a minute; this window was shorter, so a burst cannot be told \
         from a steady state."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_a_minute_decides_and_a_short_one_is_less_sure() {
        assert_eq!(sustained(10, 60.0), None);
        assert_eq!(sustained(11, 60.0), Some(Confidence::High));
        assert_eq!(sustained(2, 5.0), None, "noise");
        assert_eq!(sustained(3, 5.0), Some(Confidence::Low));
        assert_eq!(sustained(10, 5.0), Some(Confidence::Low));
        assert_eq!(sustained(11, 5.0), Some(Confidence::Medium));
        assert_eq!(sustained(3, 60.0), None, "3 a minute");
        assert_eq!(sustained(100, 600.0), None, "10 a minute over ten minutes");
        assert_eq!(sustained(101, 600.0), Some(Confidence::High));
        assert_eq!(sustained(5, 0.0), None);
    }

    #[test]
    fn single_events_are_never_scaled_up() {
        assert_eq!(at_most_per_minute(2, 5.0), 2.0);
        assert_eq!(at_most_per_minute(2, 120.0), 1.0);
    }
}
