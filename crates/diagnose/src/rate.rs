//! Thresholds on counters, scaled to the window.

use model::{Confidence, CpuId};

use crate::Case;

/// Events per minute above which a counter is a finding, as in monitoring systems' alarms.
pub(crate) const PER_MINUTE: f64 = 10.0;

/// The fewest events that count in any window; fewer are noise.
pub(crate) const LEAST: u64 = 3;

/// Whether `count` events over the window are "more than 10 a minute, sustained", and with which
/// confidence.
///
/// A window of a minute or more decides it. In a shorter window more than 10 events already exceed
/// the limit for the minute around it (medium). 3 to 10 events exceed it only if they continue
/// (low); fewer are noise.
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

/// Bits per second of a NIC's busier direction; `None` where neither was counted.
pub(crate) fn busier_way(case: &Case<'_>, nic: &str) -> Option<f64> {
    let window = case.window_s().ok()?;
    let bytes = ["rx_bytes", "tx_bytes"].map(|s| case.nic_statistic(nic, s).ok());
    bytes.into_iter().flatten().max().map(|n| n as f64 * 8.0 / window)
}

/// Events per minute for alarms of single events: the count in windows up to a minute, scaled down
/// for longer ones. It is never scaled up: two events in 5 s are two, not 24.
pub(crate) fn at_most_per_minute(count: u64, window_s: f64) -> f64 {
    count as f64 * (60.0 / window_s.max(60.0))
}

/// The fewest steps of a window that distinguish a burst from a lasting state.
const STEPS: u32 = 5;

/// How a counter grew within the window: in a burst, or in every step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pattern {
    window_s: f64,
    /// The number of steps between readings in which it grew, and of all steps; `None` where the
    /// samples lack them.
    grew: Option<(u32, u32)>,
}

impl Pattern {
    /// The growth of a counter, or of several that count the same for different families.
    pub(crate) fn of(case: &Case<'_>, names: &[&str]) -> Self {
        let grew = case.samples().ok().and_then(|samples| {
            let grew = names.iter().filter_map(|n| samples.grew_in.get(*n)).max()?;
            Some((*grew, samples.steps())).filter(|_| samples.steps() >= STEPS)
        });
        Self { window_s: case.window_s().unwrap_or_default(), grew }
    }

    /// Of a column of `softnet_stat` on the CPU where it grew most.
    pub(crate) fn of_softnet(case: &Case<'_>, cpu: CpuId, column: &str) -> Self {
        Self::of(case, &[&format!("softnet.{cpu}.{column}")])
    }

    /// Whether it grew in every step.
    pub(crate) fn is_steady(self) -> bool {
        self.grew.is_some_and(|(grew, steps)| grew >= steps)
    }

    /// The confidence of a finding: high where the growth lasted the whole window, however short.
    pub(crate) fn surer(self, sure: Confidence) -> Confidence {
        match sure {
            Confidence::Medium if self.is_steady() => Confidence::High,
            other => other,
        }
    }

    /// The consequence for the verdict, as text.
    pub(crate) fn text(self) -> String {
        match self.grew {
            Some((grew, steps)) if grew >= steps => {
                format!("The counter grew in all {steps} intervals of the window: sustained.")
            }
            Some((grew, steps)) if grew * 3 <= steps => {
                format!("The counter grew in {grew} of {steps} intervals of the window: bursts.")
            }
            Some((grew, steps)) => {
                format!("The counter grew in {grew} of {steps} intervals of the window.")
            }
            None if self.window_s >= 60.0 => String::new(),
            None => {
                "The threshold is for one minute; this window was shorter, with too few samples \
                     to tell a burst from a sustained state."
                    .into()
            }
        }
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
    fn a_short_window_of_many_readings_tells_a_burst_from_what_lasts() {
        let of = |grew| Pattern { window_s: 5.0, grew };
        let (steady, burst, unknown) = (of(Some((10, 10))), of(Some((1, 10))), of(None));
        assert_eq!(steady.surer(Confidence::Medium), Confidence::High);
        assert_eq!(burst.surer(Confidence::Medium), Confidence::Medium);
        assert_eq!(steady.surer(Confidence::Low), Confidence::Low, "few are few");
        assert!(steady.text().contains("all 10 intervals of the window"), "{}", steady.text());
        assert!(burst.text().ends_with(": bursts."), "{}", burst.text());
        assert!(unknown.text().contains("too few samples"), "{}", unknown.text());
        assert_eq!(Pattern { window_s: 60.0, grew: None }.text(), "");
    }

    #[test]
    fn single_events_are_never_scaled_up() {
        assert_eq!(at_most_per_minute(2, 5.0), 2.0);
        assert_eq!(at_most_per_minute(2, 120.0), 1.0);
    }
}
