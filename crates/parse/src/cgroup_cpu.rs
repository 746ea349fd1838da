//! A cgroup's CPU quota, and how often it was throttled.
//!
//! **Source**: cgroup-v2.rst (`cpu.max`, `cpu.stat`), scheduler/sched-bwc.rst (v1:
//! `cpu.cfs_quota_us`, `cpu.cfs_period_us`, `cpu.stat`).

use crate::ParseError;

/// `cpu.stat`: counters since the cgroup was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuStat {
    /// Periods in which the cgroup had something to run.
    pub periods: u64,
    /// Periods of them in which it used up its quota.
    pub throttled_periods: u64,
    /// Time for which its tasks were kept from running, ns, all CPUs together.
    pub throttled_ns: u64,
}

/// Reads `cpu.stat` of either version.
///
/// # Errors
/// When it has no counters of a quota: under v2 the root cgroup has none.
pub fn stat(bytes: &[u8]) -> Result<CpuStat, ParseError> {
    let text = String::from_utf8_lossy(bytes);
    let value = |key: &str| {
        text.lines()
            .find_map(|l| l.strip_prefix(key)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    // v1 counts nanoseconds, v2 microseconds.
    let throttled = value("throttled_time").or_else(|| value("throttled_usec")?.checked_mul(1000));
    match (value("nr_periods"), value("nr_throttled"), throttled) {
        (Some(periods), Some(throttled_periods), Some(throttled_ns)) => {
            Ok(CpuStat { periods, throttled_periods, throttled_ns })
        }
        _ => Err(ParseError::new(1, "nr_periods, nr_throttled and the time throttled", bytes)),
    }
}

/// CPUs that v2's `cpu.max` grants: `QUOTA PERIOD` in microseconds; `None` for `max`.
///
/// # Errors
/// When it is neither.
pub fn max(bytes: &[u8]) -> Result<Option<f64>, ParseError> {
    let bad = || ParseError::new(1, "QUOTA PERIOD or max PERIOD", bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| bad())?;
    let mut words = text.split_ascii_whitespace();
    let (quota, period) = (words.next().ok_or_else(bad)?, words.next().ok_or_else(bad)?);
    let period: u64 = period.parse().map_err(|_| bad())?;
    if quota == "max" {
        return Ok(None);
    }
    let quota: u64 = quota.parse().map_err(|_| bad())?;
    if period == 0 { Err(bad()) } else { Ok(Some(quota as f64 / period as f64)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_count_the_same() {
        let v1 = "nr_periods 57\nnr_throttled 41\nthrottled_time 2050000000\nnr_bursts 0\n";
        let v2 = "usage_usec 2850000\nuser_usec 2850000\nsystem_usec 0\nnr_periods 57\n\
                  nr_throttled 41\nthrottled_usec 2050000\nnr_bursts 0\n";
        let all = CpuStat { periods: 57, throttled_periods: 41, throttled_ns: 2_050_000_000 };
        assert_eq!(stat(v1.as_bytes()), Ok(all));
        assert_eq!(stat(v2.as_bytes()), Ok(all));
    }

    #[test]
    fn a_cgroup_without_a_quota_has_no_counters() {
        assert!(stat(b"usage_usec 5\nuser_usec 3\nsystem_usec 2\n").is_err());
        assert!(stat(b"nr_periods x\nnr_throttled 1\nthrottled_usec 2\n").is_err());
        assert!(
            stat(b"nr_periods 1\nnr_throttled 1\nthrottled_usec 18446744073709551615\n").is_err()
        );
    }

    #[test]
    fn cpus_of_a_quota() {
        assert_eq!(max(b"50000 100000\n"), Ok(Some(0.5)));
        assert_eq!(max(b"400000 100000\n"), Ok(Some(4.0)));
        assert_eq!(max(b"max 100000\n"), Ok(None));
        for bad in ["", "max\n", "1 0\n", "x 1\n", "-1 100000\n"] {
            assert!(max(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
