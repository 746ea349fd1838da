//! Short texts: readings, counts, plurals, lists of numbers.

use std::fmt::Display;

use model::{
    CpuId, CpuSet, QueueId, Reading,
    ids::Direction,
    reading::{Absent, Denied, Known},
};

use crate::text::{Ink, Line};

/// Joins the lines of a command.
pub fn one_line(command: &str) -> String {
    let lines = command.lines().map(str::trim).filter(|l| !l.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}

/// A value, a faint `-` where absent, `denied` where not permitted.
pub fn reading<T: Display>(r: &Reading<T>) -> Line {
    reading_as(r, ToString::to_string)
}

/// As [`reading`], the value through `show`.
pub fn reading_as<T>(r: &Reading<T>, show: impl FnOnce(&T) -> String) -> Line {
    match r {
        Known(v) => Line::plain(show(v)),
        Absent(_) => Line::new().ink(Ink::Faint, "-"),
        Denied(_) => Line::new().ink(Ink::Warn, "denied"),
    }
}

/// An interval's ends, a common unit once: `52.7–53.5 µs`, `-4 to 1 µs`.
pub fn interval(low: &str, high: &str) -> String {
    let short = match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => number,
        _ => low,
    };
    let signed = low.starts_with(['-', '+']) || high.starts_with(['-', '+']);
    format!("{short}{}{high}", if signed { " to " } else { "–" })
}

/// `yes`, `no`, `-` or `denied`.
pub fn yes_no(r: &Reading<bool>) -> Line {
    reading_as(r, |v| if *v { "yes" } else { "no" }.into())
}

pub use model::units::grouped;

/// `1 node`, `2 nodes`, `3 processes`.
pub fn many(n: usize, one: &str) -> String {
    let plural = if one.ends_with('s') { "es" } else { "s" };
    if n == 1 { format!("1 {one}") } else { format!("{} {one}{plural}", grouped(n as u64)) }
}

/// `CPU 3` or `CPUs 0-3`.
pub fn cpus(set: &CpuSet) -> String {
    if set.len() == 1 { format!("CPU {set}") } else { format!("CPUs {set}") }
}

/// Numbers as a cpulist writes them: `40-47,50`.
pub fn ranges(numbers: impl IntoIterator<Item = u32>) -> String {
    numbers.into_iter().map(CpuId).collect::<CpuSet>().to_string()
}

/// `rx 0-3, tx 0-3`, or `rx+tx 0-3` where both have the same numbers.
pub fn queues(ids: &[QueueId]) -> String {
    let of = |way| ranges(ids.iter().filter(|q| q.direction == way).map(|q| q.index));
    let (rx, tx) = (of(Direction::Rx), of(Direction::Tx));
    match (rx.is_empty(), tx.is_empty()) {
        (true, true) => String::new(),
        (false, true) => format!("rx {rx}"),
        (true, false) => format!("tx {tx}"),
        _ if rx == tx => format!("rx+tx {rx}"),
        _ => format!("rx {rx}, tx {tx}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_counted_and_joined() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(many(1, "node"), "1 node");
        assert_eq!(many(0, "node"), "0 nodes");
        assert_eq!(many(2, "process"), "2 processes");
        assert_eq!(
            queues(&[QueueId::rx(0), QueueId::tx(0), QueueId::rx(1), QueueId::tx(1)]),
            "rx+tx 0-1"
        );
        assert_eq!(queues(&[QueueId::rx(3), QueueId::tx(0)]), "rx 3, tx 0");
        assert_eq!(reading(&Reading::<u32>::denied("x")).bare(), "denied");
        assert_eq!(reading(&Reading::<u32>::absent("x")).bare(), "-");
        assert_eq!(reading(&Known(0)).bare(), "0");
    }
}
