//! The buckets in which batches count their values.

use crate::scale;

/// Values are counted in units of 8 ns.
const UNIT_BITS: u32 = 3;
/// Each power of two is cut into 2^6 buckets.
const PART_BITS: u32 = 6;
/// Values of 2^32 ns and more share the last bucket.
const LIMIT_BITS: u32 = 32;
/// Buckets of a batch.
pub(crate) const BUCKETS: usize = scale::buckets::<PART_BITS>(LIMIT_BITS - UNIT_BITS);

/// The bucket of a value.
#[inline]
pub(crate) fn index(value: u64) -> usize {
    scale::index::<PART_BITS>(value.min((1 << LIMIT_BITS) - 1) >> UNIT_BITS)
}

/// The smallest value of a batch's bucket.
pub(crate) fn bucket_low(index: usize) -> u64 {
    scale::low::<PART_BITS>(index) << UNIT_BITS
}
