//! `/proc/net/stat/nf_conntrack`, `arp_cache`, `ndisc_cache`: counters of a table, a hex row per possible
//! CPU. **Source**: `net/netfilter/nf_conntrack_standalone.c` (`ct_cpu_seq_show`),
//! `net/core/neighbour.c` (`neigh_stat_seq_show`).

use std::collections::BTreeMap;

use crate::{ParseError, text};

/// The table summed over CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableStat {
    /// Entries now; the same in every row, so not summed.
    pub entries: Option<u64>,
    /// Counters by column name (`drop`, `insert_failed`), summed over CPUs. Each addend is a
    /// 32-bit counter that wraps.
    pub counters: BTreeMap<String, u64>,
}

/// Reads and sums the table. Rows shorter or longer than the header give the columns that
/// both have; a column that is no number anywhere is left out whole, for its sum is unknown.
///
/// # Errors
/// When there is no header or no row.
pub fn parse(bytes: &[u8]) -> Result<TableStat, ParseError> {
    let mut lines = text::lines(bytes);
    let names: Vec<&str> = lines.next().map_or("", |l| l.1).split_ascii_whitespace().collect();
    if names.first() != Some(&"entries") {
        return Err(ParseError::new(1, "entries … drop …", bytes));
    }
    let mut sums: Vec<Option<u64>> = vec![Some(0); names.len()];
    let mut entries = None;
    let mut rows = 0;
    for (_, line) in lines.filter(|l| !l.1.trim().is_empty()) {
        let mut cells = line.split_ascii_whitespace();
        for (column, sum) in sums.iter_mut().enumerate() {
            let cell = cells.next().and_then(|c| u64::from_str_radix(c, 16).ok());
            if column == 0 {
                entries = entries.or(cell);
            }
            *sum = sum.zip(cell).map(|(a, b)| a.saturating_add(b));
        }
        rows += 1;
    }
    if rows == 0 {
        return Err(ParseError::new(2, "a row of hex numbers", b""));
    }
    let counters = names
        .iter()
        .zip(sums)
        .skip(1)
        .filter_map(|(name, sum)| Some(((*name).to_owned(), sum?)))
        .collect();
    Ok(TableStat { entries, counters })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_hex_rows_but_not_the_entries() {
        let t = parse(
            b"entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart\n\
              0000001f  00000000 00000003 00000000 00000000 00000000 00000000 00000000 00000000 00000001 0000000a 00000000 00000000  00000000 00000000 00000000 00000000\n\
              0000001f  00000000 00000004 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000010 00000000 00000000  00000000 00000000 00000000 00000000\n",
        )
        .unwrap();
        assert_eq!(t.entries, Some(31));
        assert_eq!(t.counters.get("drop"), Some(&26));
        assert_eq!(t.counters.get("insert_failed"), Some(&1));
        assert_eq!(t.counters.get("found"), Some(&7));
        assert_eq!(t.counters.len(), 16);
        assert!(!t.counters.contains_key("entries"));
    }

    #[test]
    fn a_column_broken_in_any_row_is_not_known() {
        let t = parse(b"entries drop found\n1 2 3\n1 x 4\n1 5\n").unwrap();
        assert_eq!(t.counters.into_iter().collect::<Vec<_>>(), []);
        let t = parse(b"entries drop found\n1 2 3\n1 x 4\n").unwrap();
        assert_eq!(t.counters.into_iter().collect::<Vec<_>>(), [("found".to_owned(), 7)]);
    }

    #[test]
    fn nothing_of_it_is_an_error() {
        for bad in ["", "entries drop\n", "0 0 0\n"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
