//! Formats numbers for findings: shares, rates, counts, CPUs and IRQs.

use model::{CpuSet, IrqId};

pub(crate) use model::units::grouped as count;

/// A share as per cent: two digits below 10%, whole above, so that 0.9% never reads as 1%.
pub(crate) fn percent(share: f64) -> String {
    let p = share * 100.0;
    if p == 0.0 {
        "0%".into()
    } else if p < 10.0 {
        format!("{p:.2}%")
    } else {
        format!("{p:.1}%")
    }
}

/// A rate: whole above 10.
pub(crate) fn per_s(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.1}/s") } else { format!("{}/s", count(rate.round() as u64)) }
}

/// `CPU 3` or `CPUs 0-3`.
pub(crate) fn cpus(set: &CpuSet) -> String {
    if set.len() == 1 { format!("CPU {set}") } else { format!("CPUs {set}") }
}

/// `IRQ 38` or `IRQs 38, 40`.
pub(crate) fn irqs(list: &[IrqId]) -> String {
    let numbers: Vec<String> = list.iter().map(ToString::to_string).collect();
    format!("IRQ{} {}", if list.len() == 1 { "" } else { "s" }, numbers.join(", "))
}

/// A count of events: `once`, `3 times`.
pub(crate) fn times(n: u64) -> String {
    if n == 1 { "once".into() } else { format!("{} times", count(n)) }
}

/// `1 queue`, `2 queues`.
pub(crate) fn plural(n: usize, noun: &str) -> String {
    format!("{} {noun}{}", count(n as u64), if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(percent(0.00999), "1.00%");
        assert_eq!(percent(0.93), "93.0%");
        assert_eq!(per_s(0.25), "0.2/s");
        assert_eq!(per_s(12_345.6), "12,346/s");
        assert_eq!(plural(1, "queue"), "1 queue");
    }
}
