//! `/proc/pressure/cpu`, `memory`, `io` and a cgroup's `cpu.pressure`, …: time for which tasks waited.
//!
//! **Source**: accounting/psi.rst; `kernel/sched/psi.c` (`psi_show`).

use crate::{ParseError, text};

/// Totals since boot, or since the cgroup was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Time in which at least one task waited, µs.
    pub some_us: u64,
    /// Time in which all tasks that were not idle waited, µs. `None`: no such line (`cpu` before 5.13).
    pub full_us: Option<u64>,
}

/// Reads the `total=` of each line.
///
/// # Errors
/// When there is no line `some` with a total.
pub fn parse(bytes: &[u8]) -> Result<Pressure, ParseError> {
    let total = |kind: &str| {
        text::lines(bytes).find_map(|(_, line)| {
            let mut words = line.split_ascii_whitespace();
            (words.next()? == kind).then_some(())?;
            words.find_map(|w| w.strip_prefix("total="))?.parse().ok()
        })
    };
    match total("some") {
        Some(some_us) => Ok(Pressure { some_us, full_us: total("full") }),
        None => Err(ParseError::new(1, "some avg10=0.00 avg60=0.00 avg300=0.00 total=0", bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_totals() {
        let text = b"some avg10=7.21 avg60=5.74 avg300=3.34 total=15283219433\n\
                     full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";
        let of = |b: &[u8]| parse(b).map(|p| (p.some_us, p.full_us));
        assert_eq!(of(text).unwrap(), (15_283_219_433, Some(12)));
        assert_eq!(of(b"some avg10=0.00 avg60=0.00 avg300=0.00 total=3\n").unwrap(), (3, None));
        assert!(of(b"full avg10=0.00 avg60=0.00 avg300=0.00 total=3\n").is_err());
        assert!(of(b"some avg10=0.00 total=-3\n").is_err());
        assert!(of(b"").is_err());
    }
}
