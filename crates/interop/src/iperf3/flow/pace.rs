//! Paces a sender by sleeping.

use probe::samples::clock::sleep_until;
use traffic::net::now_ns;

use super::Flow;

/// A rate from a start time. Like iperf3, makes up for all lag: the mean rate since the start is
/// kept.
pub struct Pace {
    start: u64,
    bits_per_s: u64,
}

impl Pace {
    /// `None` without a rate.
    pub fn new(bits_per_s: u64) -> Option<Self> {
        (bits_per_s > 0).then(|| Self { start: now_ns(), bits_per_s })
    }

    /// When the byte after these may be sent.
    fn due(&self, bytes: u64) -> u64 {
        let ns = u128::from(bytes) * 8_000_000_000 / u128::from(self.bits_per_s);
        self.start.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Sleeps until more bytes may be sent or the flow must stop; returns whether to send.
    pub fn wait(&self, bytes: u64, flow: &Flow) -> bool {
        let due = self.due(bytes);
        while now_ns() < due {
            if flow.stopped() {
                return false;
            }
            sleep_until(due);
        }
        !flow.stopped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_due_by_the_rate() {
        let pace = Pace { start: 1_000, bits_per_s: 8_000_000 };
        assert_eq!(pace.due(0), 1_000);
        assert_eq!(pace.due(1_000_000), 1_000_001_000);
        assert_eq!(Pace { start: 0, bits_per_s: 1 }.due(u64::MAX), u64::MAX);
        assert!(Pace::new(0).is_none());
    }
}
