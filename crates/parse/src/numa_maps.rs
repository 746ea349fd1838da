//! `/proc/PID/numa_maps`: memory of a process by node. **Source**: numa(7), `show_numa_map`
//! in the kernel's `fs/proc/task_mmu.c`.

use std::collections::BTreeMap;

use model::{Bytes, NumaNode};

/// Resident memory by node: pages of every mapping times that mapping's page size. A line
/// without `kernelpagesize_kB` (before 3.11) cannot be weighed and is passed over.
pub fn memory_by_node(bytes: &[u8]) -> BTreeMap<NumaNode, Bytes> {
    let mut sums: BTreeMap<NumaNode, Bytes> = BTreeMap::new();
    for line in bytes.split(|&b| b == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else { continue };
        let words = || line.split_ascii_whitespace();
        let size = words()
            .rev()
            .find_map(|w| w.strip_prefix("kernelpagesize_kB=")?.parse::<u64>().ok())
            .map(|kb| kb.saturating_mul(1024));
        let Some(size) = size else { continue };
        // The address and the policy come first; a file name cannot pass for `N0=`.
        for w in words().skip(2) {
            let Some((node, pages)) = w.strip_prefix('N').and_then(|w| w.split_once('=')) else {
                continue;
            };
            if let (Ok(node), Ok(pages)) = (node.parse(), pages.parse::<u64>()) {
                let sum = sums.entry(NumaNode(node)).or_default();
                sum.0 = sum.0.saturating_add(pages.saturating_mul(size));
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weighs_pages_by_their_size() {
        let text = b"7f00 default file=/lib/N9=5 mapped=2 N0=2 kernelpagesize_kB=4\n\
            7f01 bind:1 anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4\n\
            7f02 default huge anon=1 N1=1 kernelpagesize_kB=2048\n\
            7f03 default\nN0=7\n";
        let m = memory_by_node(text);
        assert_eq!(m.len(), 2);
        assert_eq!(m[&NumaNode(0)], Bytes(3 * 4096));
        assert_eq!(m[&NumaNode(1)], Bytes(2 * 4096 + (2 << 20)));
    }
}
