//! What `lscpu` printed, as support archives keep it where `/sys/devices/system` is missing.
//!
//! **Source**: `print_summary` in `sys-utils/lscpu.c` of util-linux 2.38; older ones lack the blanks
//! before a name that belongs to another.

use std::collections::BTreeMap;

/// What it says of CPUs, as lists (`0-3,8`). What is not there was not printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    pub online: Option<String>,
    /// CPUs by NUMA node; a node without CPUs has an empty list.
    pub nodes: BTreeMap<u32, String>,
}

/// The lists; a mask, which it prints with `-x`, is none.
pub fn parse(bytes: &[u8]) -> Cpus {
    let mut cpus = Cpus::default();
    for line in String::from_utf8_lossy(bytes).lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let list = || value.trim().to_owned();
        if name.trim() == "On-line CPU(s) list" {
            cpus.online.get_or_insert_with(list);
        }
        let node = || name.trim().strip_prefix("NUMA node")?.strip_suffix(" CPU(s)")?.parse().ok();
        if let Some(node) = node() {
            cpus.nodes.entry(node).or_insert_with(list);
        }
    }
    cpus.nodes.retain(|_, list| !list.contains('x'));
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn online_cpus_and_those_of_nodes() {
        let text = b"Architecture:            x86_64\nCPU(s):                  8\n  On-line CPU(s) list:   0-3,6\n\
            NUMA:                    \n  NUMA node(s):          2\n  NUMA node0 CPU(s):     0-3\n\
            NUMA node8 CPU(s):\nNUMA node1 CPU(s): 0xf0\n";
        let cpus = parse(text);
        assert_eq!(cpus.online.as_deref(), Some("0-3,6"));
        assert_eq!(cpus.nodes, [(0, "0-3".to_owned()), (8, String::new())].into());
        assert_eq!(parse(b"lscpu: failed\n"), Cpus::default());
    }
}
