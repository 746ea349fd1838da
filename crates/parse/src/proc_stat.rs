//! `/proc/stat`: CPU time by state since boot. **Source**: `fs/proc/stat.c`, `proc_stat(5)`.

use std::collections::BTreeMap;

use model::CpuId;

use crate::{ParseError, text};

/// Ticks of one online CPU since boot (`USER_HZ`, `sysconf(_SC_CLK_TCK)`); `None` where this
/// kernel has no such column or it is no number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// User mode, guests included.
    pub user: Option<u64>,
    /// User mode at low priority.
    pub nice: Option<u64>,
    pub system: Option<u64>,
    pub idle: Option<u64>,
    /// Idle with I/O pending; the kernel itself says that it may go backwards.
    pub iowait: Option<u64>,
    pub irq: Option<u64>,
    pub softirq: Option<u64>,
    /// Taken by the hypervisor.
    pub steal: Option<u64>,
}

/// The `cpuN` lines by CPU. **Shape**: only online CPUs have a line; ids may have holes.
///
/// # Errors
/// When there is no `cpuN` line at all.
pub fn parse(bytes: &[u8]) -> Result<BTreeMap<CpuId, CpuTicks>, ParseError> {
    let mut cpus = BTreeMap::new();
    for (_, line) in text::lines(bytes) {
        let Some(rest) = line.strip_prefix("cpu") else { continue };
        let Some((id, columns)) = rest.split_once(' ') else { continue };
        let Some(id) = text::id(id) else { continue }; // the sum over all CPUs has no number
        let mut columns = columns.split_ascii_whitespace().map(|c| c.parse().ok());
        let mut next = || columns.next().flatten();
        let ticks = CpuTicks {
            user: next(),
            nice: next(),
            system: next(),
            idle: next(),
            iowait: next(),
            irq: next(),
            softirq: next(),
            steal: next(),
        };
        cpus.insert(CpuId(id), ticks);
    }
    if cpus.is_empty() { Err(ParseError::new(1, "a line cpu0 …", bytes)) } else { Ok(cpus) }
}

/// When the host booted, seconds since 1970. **Source**: its line `btime`.
pub fn booted_s(bytes: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().find_map(|l| l.strip_prefix("btime ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_online_cpus_with_holes_and_not_the_sum() {
        let text = b"cpu  10865 0 4021 238610 469 0 35 8 0 0\n\
            cpu0 4968 0 1712 120266 58 0 7 1 0 0\ncpu3 5897 1 2308 118344 410 2 27 7 0 0\n\
            intr 12 0 0\nctxt 5\nbtime 1\nsoftirq 1 2 3\n";
        let cpus = parse(text).unwrap();
        assert_eq!(cpus.keys().map(|c| c.0).collect::<Vec<_>>(), [0, 3]);
        let three = cpus[&CpuId(3)];
        assert_eq!(
            (three.user, three.nice, three.system, three.idle),
            (Some(5897), Some(1), Some(2308), Some(118_344))
        );
        assert_eq!(
            (three.iowait, three.irq, three.softirq, three.steal),
            (Some(410), Some(2), Some(27), Some(7))
        );
    }

    #[test]
    fn an_old_kernels_missing_columns_are_not_zero() {
        let cpus = parse(b"cpu0 1 2 3 4\n").unwrap();
        assert_eq!(cpus[&CpuId(0)].idle, Some(4));
        assert_eq!(cpus[&CpuId(0)].steal, None);
    }

    #[test]
    fn a_strange_column_costs_only_itself() {
        let cpus = parse(b"cpu0 1 x 3 -4 5\n").unwrap();
        assert_eq!(
            cpus[&CpuId(0)],
            CpuTicks { user: Some(1), system: Some(3), iowait: Some(5), ..Default::default() }
        );
    }

    #[test]
    fn nothing_of_it_is_an_error() {
        for bad in ["", "cpu 1 2 3\n", "cpux 1\n", "cpu99999999 1 2\n"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
