//! Buckets whose width grows with the value: a power of two is cut into `2^BITS` equal parts.
//!
//! Values below `2 * 2^BITS` have a bucket each; from there on a bucket is at most `1 / 2^BITS`
//! of its values wide. Finding the bucket is a count of leading zeros, a shift and an addition;
//! no logarithm, no table, no branch.

/// The bucket of a value.
#[inline]
pub(crate) const fn index<const BITS: u32>(value: u64) -> usize {
    // With the bit set, the difference cannot fall below zero, and small values shift by none.
    let shift = 63 - BITS - (value | (1 << BITS)).leading_zeros();
    ((shift as usize) << BITS) + (value >> shift) as usize
}

/// The smallest value of a bucket.
pub(crate) const fn low<const BITS: u32>(index: usize) -> u64 {
    let index = index as u64;
    let shift = (index >> BITS).saturating_sub(1);
    (index - (shift << BITS)) << shift
}

/// How many buckets hold all values below `2^limit_bits`.
pub(crate) const fn buckets<const BITS: u32>(limit_bits: u32) -> usize {
    ((limit_bits - BITS) as usize + 1) << BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joins<const BITS: u32>(limit_bits: u32) {
        let n = buckets::<BITS>(limit_bits);
        for i in 0..n {
            let (from, next) = (low::<BITS>(i), low::<BITS>(i + 1));
            assert!(from < next, "{i}");
            assert_eq!((index::<BITS>(from), index::<BITS>(next - 1)), (i, i));
            assert!(next - from <= (from >> BITS).max(1), "{i}: {from}..{next}");
        }
        assert_eq!(low::<BITS>(n), 1 << limit_bits);
    }

    #[test]
    fn buckets_join_without_gap_or_overlap_and_are_narrow() {
        joins::<7>(40);
        joins::<6>(29);
        joins::<5>(63);
    }
}
