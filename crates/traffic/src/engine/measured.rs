//! What a measurement gives back.

use crate::Error;

/// First length of the batches for the intervals.
pub const BATCH_NS: u64 = 20_000_000;

/// A result, and what broke it off.
#[derive(Debug)]
pub struct Measured<D> {
    pub document: D,
    /// Why there is no more of it.
    pub broken: Option<Error>,
}

/// Seconds since 1970.
pub fn unix_s() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| d.as_secs())
}
