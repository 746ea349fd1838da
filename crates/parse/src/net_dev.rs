//! `/proc/net/dev`: a line of counters for each interface of one network namespace.
//! **Source**: `dev_seq_printf_stats` in the kernel's `net/core/net-procfs.c`. It is written
//! without the lock that everything which configures interfaces holds.

use std::collections::BTreeMap;

use crate::{ParseError, text};

/// The columns, left to right, by the names that `/sys/class/net/X/statistics` has for them.
/// `rx_dropped` is here the sum of that folder's `rx_dropped` and `rx_missed_errors`, and
/// `rx_frame_errors` and `tx_carrier_errors` are sums of several, too.
const COLUMNS: [&str; 16] = [
    "rx_bytes",
    "rx_packets",
    "rx_errors",
    "rx_dropped",
    "rx_fifo_errors",
    "rx_frame_errors",
    "rx_compressed",
    "multicast",
    "tx_bytes",
    "tx_packets",
    "tx_errors",
    "tx_dropped",
    "tx_fifo_errors",
    "collisions",
    "tx_carrier_errors",
    "tx_compressed",
];

/// Values by `INTERFACE.counter` (`eth0.rx_dropped`). A line of another width is left out: which
/// counter each column is would be a guess.
///
/// # Errors
/// When the two lines of the heading are not there.
pub fn parse(bytes: &[u8]) -> Result<BTreeMap<String, u64>, ParseError> {
    let mut lines = text::lines(bytes);
    if !lines.next().is_some_and(|(_, l)| l.starts_with("Inter-|")) {
        return Err(ParseError::new(1, "Inter-|   Receive … |  Transmit", bytes));
    }
    if !lines.next().is_some_and(|(_, l)| l.contains("|bytes")) {
        return Err(ParseError::new(2, " face |bytes packets …", bytes));
    }
    let mut values = BTreeMap::new();
    for (_, line) in lines {
        // An old-style alias (`eth0:1`) has no counters of its own; the last colon ends the name.
        let Some((name, counts)) = line.rsplit_once(':') else { continue };
        let counts: Vec<Option<u64>> =
            counts.split_ascii_whitespace().map(|c| c.parse().ok()).collect();
        if counts.len() != COLUMNS.len() {
            continue;
        }
        for (column, count) in COLUMNS.iter().zip(counts) {
            if let Some(count) = count {
                values.insert(format!("{}.{column}", name.trim()), count);
            }
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: &[u8] = b"Inter-|   Receive                                                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
        lo: 1180    12    0    3    0     0          0         0     1180      12    0    0    0     0       0          0\n\
        eth0.7: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";

    #[test]
    fn reads_every_column_by_its_name() {
        let v = parse(REAL).unwrap();
        assert_eq!(v.len(), 32);
        assert_eq!((v["lo.rx_bytes"], v["lo.rx_dropped"]), (1180, 3));
        assert_eq!((v["eth0.7.tx_dropped"], v["eth0.7.tx_compressed"]), (12, 16));
        assert_eq!((v["eth0.7.collisions"], v["eth0.7.rx_fifo_errors"]), (14, 5));
    }

    #[test]
    fn no_interface_is_none_and_no_heading_is_an_error() {
        let heading = b"Inter-|   Receive\n face |bytes\n";
        assert_eq!(parse(heading), Ok(BTreeMap::new()));
        for bad in ["", "lo: 1 2 3\n", "Inter-|\n", "Inter-|\nlo: 1\n"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_line_of_another_width_and_a_strange_value_are_left_out() {
        let mut text = REAL.to_vec();
        text.extend_from_slice(b"odd: 1 2 3\nneg: -1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
        let v = parse(&text).unwrap();
        assert!(!v.keys().any(|k| k.starts_with("odd.")));
        assert_eq!((v.get("neg.rx_bytes"), v.get("neg.rx_packets")), (None, Some(&2)));
    }
}
