//! The return value of a measurement.

use crate::Error;

/// Initial length of a batch for the confidence intervals.
pub const BATCH_NS: u64 = 20_000_000;

/// A result, and the error that ended it early.
#[derive(Debug)]
pub struct Measured<D> {
    pub document: D,
    /// Why the measurement is incomplete.
    pub broken: Option<Error>,
}

/// Current time in seconds since 1970 (Unix epoch).
pub fn unix_s() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| d.as_secs())
}
