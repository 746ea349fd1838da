//! What `conntrack -S` printed, as support archives keep it.
//!
//! **Source**: `nfct_stats_cb` of `src/conntrack.c` of conntrack-tools 1.4: a line for each CPU.

use std::collections::BTreeMap;

/// The counters by their kernel names (`drop`, `insert_failed`), summed over CPUs. Each addend is a
/// 32-bit counter that wraps.
///
/// A counter that a line lacks, or whose value is no number, is left out whole: its sum is unknown.
/// Empty where no line is of a CPU.
pub fn parse(bytes: &[u8]) -> BTreeMap<String, u64> {
    let text = String::from_utf8_lossy(bytes);
    let mut cpus = 0u64;
    // With the number of lines that have it.
    let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let cpu = words.next().and_then(|word| word.strip_prefix("cpu="));
        if cpu.and_then(|cpu| cpu.parse::<u32>().ok()).is_none() {
            continue;
        }
        cpus += 1;
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            let Ok(value) = value.parse::<u32>() else { continue };
            let (sum, lines) = sums.entry(name).or_default();
            *sum = sum.saturating_add(value.into());
            *lines += 1;
        }
    }
    let complete = sums.into_iter().filter(|(_, (_, lines))| *lines == cpus);
    complete.map(|(name, (sum, _))| (name.to_owned(), sum)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_sums_over_the_cpus() {
        let text = "cpu=0   \tfound=3 invalid=131 insert=0 insert_failed=2 drop=40 early_drop=1 error=0 \n\
                    cpu=7   \tfound=1 invalid=224 insert=0 insert_failed=0 drop=2 early_drop=6 error=9 \n";
        let all = parse(text.as_bytes());
        let of = |name: &str| all.get(name).copied();
        assert_eq!(
            ["found", "invalid", "insert_failed", "drop", "early_drop", "error", "cpu"].map(of),
            [Some(4), Some(355), Some(2), Some(42), Some(7), Some(9), None]
        );
    }

    #[test]
    fn a_sum_that_lacks_a_cpu_is_unknown() {
        let all = parse(b"cpu=0 drop=1 found=2 error=x\ncpu=1 found=2 error=1\ncpu=2 drop");
        assert!(all.is_empty(), "{all:?}");
        let all = parse(b"cpu=0 drop=1 found=2\ncpu=1 found=4294967296 drop=5\n");
        assert_eq!(all, BTreeMap::from([("drop".to_owned(), 6)]));
        for none in ["", "conntrack v1.4.8 (conntrack-tools): drop=1", "cpu= drop=1", "drop=1"] {
            assert!(parse(none.as_bytes()).is_empty(), "{none:?}");
        }
    }
}
