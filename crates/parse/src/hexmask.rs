//! CPU masks in hex, 32 bits a group, highest first: `00000001,00000000` is CPU 32.
//! **Source**: `bitmap_print_to_pagebuf` (`%*pb`) in the kernel's `lib/bitmap.c`; found in
//! `smp_affinity`, `rps_cpus`, `xps_cpus`, `IRQBALANCE_BANNED_CPUS`.

use model::CpuSet;

use crate::ParseError;

/// Parses a mask of any width. A group shorter than eight digits is the kernel's top group or
/// a person's shorthand: both mean "right-aligned within its 32 bits".
///
/// # Errors
/// When there is no digit at all, a group is longer than eight digits (unless it is the only
/// one, as in a person's `0x…` mask), or something is not hex.
pub fn parse(bytes: &[u8]) -> Result<CpuSet, ParseError> {
    let bad = || ParseError::new(1, "a hex mask such as 0000ffff,00000000", bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| bad())?.trim_end_matches('\0').trim();
    let text = text.strip_prefix("0x").unwrap_or(text);
    let max_digits = (model::cpuset::MAX_ID as usize + 1) / 4;
    if text.is_empty() || text.len() > max_digits * 2 {
        return Err(bad());
    }
    let single = !text.contains(',');
    // Nibbles from the lowest up: independent of how many groups there are.
    let mut nibbles = Vec::with_capacity(text.len());
    for group in text.rsplit(',') {
        if group.is_empty() || (group.len() > 8 && !single) {
            return Err(bad());
        }
        let before = nibbles.len();
        for c in group.chars().rev() {
            nibbles.push(c.to_digit(16).ok_or_else(bad)?);
        }
        if !single {
            nibbles.resize(before + 8, 0);
        }
    }
    if nibbles.len() > max_digits && nibbles.iter().skip(max_digits).any(|&n| n != 0) {
        return Err(bad());
    }
    let words = nibbles
        .chunks(16)
        .take(max_digits.div_ceil(16))
        .map(|c| c.iter().enumerate().fold(0u64, |w, (i, &n)| w | u64::from(n) << (4 * i)))
        .collect();
    Ok(CpuSet::from_words(words))
}

/// Writes a set as the kernel takes it: see [`CpuSet::to_hex_mask`].
pub fn format(set: &CpuSet) -> String {
    set.to_hex_mask()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::CpuId;
    use proptest::prelude::*;

    fn ids(text: &str) -> Vec<u32> {
        parse(text.as_bytes()).unwrap().iter().map(|c| c.0).collect()
    }

    #[test]
    fn groups_are_32_bits_and_the_comma_is_no_digit() {
        assert_eq!(ids("00000001,00000000\n"), [32]);
        assert_eq!(ids("1,00000000"), [32], "a short top group, as the kernel prints it");
        assert_eq!(ids("f"), [0, 1, 2, 3]);
        assert_eq!(ids("f\n\0"), [0, 1, 2, 3], "as kernels 5.15-rc end it");
        assert_eq!(ids("0"), [0u32; 0]);
        assert_eq!(ids("80000000,00000000,00000001"), [0, 95]);
        assert_eq!(ids("0000ffff,ffffffff").len(), 48, "the field case's banned CPUs 0-47");
        assert_eq!(ids("0x100000000"), [32], "a person's mask without commas");
    }

    #[test]
    fn refuses_what_is_no_mask() {
        for bad in ["", "\n", ",", "1,,0", "g", "0-3", "123456789,0", "-1", "1,"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?} was taken");
        }
    }

    proptest! {
        #[test]
        fn round_trips(ids in proptest::collection::btree_set(0u32..=1500, 0..300)) {
            let set: CpuSet = ids.into_iter().map(CpuId).collect();
            prop_assert_eq!(parse(format(&set).as_bytes()).unwrap(), set);
        }
    }
}
