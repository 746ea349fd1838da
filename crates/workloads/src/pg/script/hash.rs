//! Hash functions and permutations, as in pgbench 15.

use super::random::Rng;

/// FNV-1a over the value's eight bytes, lowest first: G. Fowler, L. Noll, K.-P. Vo, D. Eastlake and
/// T. Hansen, The FNV Non-Cryptographic Hash Algorithm. The seed changes the initial state.
pub(super) fn fnv1a(value: i64, seed: i64) -> i64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed.cast_unsigned();
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    value.to_le_bytes().into_iter().fold(start, mix).cast_signed()
}

/// The 64-bit variant A of A. Appleby's `MurmurHash2`, of the value's eight bytes.
pub(super) fn murmur2(value: i64, seed: i64) -> i64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let fold = |x: u64| x ^ (x >> 47);
    let k = fold(value.cast_unsigned().wrapping_mul(M)).wrapping_mul(M);
    let hash = (seed.cast_unsigned() ^ M.wrapping_mul(8) ^ k).wrapping_mul(M);
    fold(fold(hash).wrapping_mul(M)).cast_signed()
}

/// Position of a value in a permutation of 0 to `size` - 1 that the seed selects. Six rounds: each
/// multiplies the lower and the upper power of two of the range by an odd number, combines it with
/// another and rotates it by one bit, then shifts the whole range.
///
/// `size` must be positive.
pub(super) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    let size = size.cast_unsigned();
    if size < 2 {
        return 0;
    }
    let bits = size.ilog2();
    let mask = (1u64 << bits) - 1;
    let mut rng = Rng::new(seed.cast_unsigned());
    let mut v = value.cast_unsigned() % size;
    for _ in 0..6 {
        for upper in [false, true] {
            let odd = (rng.next_u64() & mask) | 1;
            let other = rng.next_u64() & mask;
            let place = if upper { size - 1 - v } else { v };
            if place <= mask {
                let p = (place.wrapping_mul(odd) ^ other) & mask;
                let p = ((p << 1) & mask) | (p >> (bits - 1));
                v = if upper { size - 1 - p } else { p };
            }
        }
        // Both are below 2^63.
        v = (v + rng.up_to(size - 1)) % size;
    }
    v.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_has_every_number_once() {
        for size in [1, 2, 3, 16, 17, 1000] {
            for seed in [0, 1, -5] {
                let mut all: Vec<i64> = (0..size).map(|n| permute(n, size, seed)).collect();
                all.sort_unstable();
                assert_eq!(all, (0..size).collect::<Vec<_>>(), "{size} {seed}");
            }
        }
        assert_eq!(
            permute(-1, 10, 3),
            permute(i64::from(u8::try_from(u64::MAX % 10).unwrap()), 10, 3)
        );
        assert!((0..i64::MAX).contains(&permute(i64::MAX - 1, i64::MAX, 9)));
    }
}
