//! `/proc/softirqs`: softirqs handled since boot, by vector and CPU.
//! **Source**: `fs/proc/softirqs.c`. Columns are all *possible* CPUs, online or not.

use model::CpuId;

use crate::{ParseError, text};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Softirqs {
    /// CPU of each column.
    pub cpus: Vec<CpuId>,
    /// Vector name (`NET_RX`) and its counts, as many as there are columns.
    pub vectors: Vec<(String, Vec<u64>)>,
    /// Lines that have another number of counts than there are columns: left out, because
    /// which CPU each belongs to is not known.
    pub skipped: Vec<String>,
}

impl Softirqs {
    /// One count; `None` where the table has no such vector or CPU.
    pub fn count(&self, vector: &str, cpu: CpuId) -> Option<u64> {
        let column = self.cpus.iter().position(|&c| c == cpu)?;
        self.vectors.iter().find(|v| v.0 == vector)?.1.get(column).copied()
    }
}

/// Reads the table.
///
/// # Errors
/// When the header names no CPU.
pub fn parse(bytes: &[u8]) -> Result<Softirqs, ParseError> {
    let mut table = Softirqs::default();
    let mut lines = text::lines(bytes);
    let header = lines.next().map_or("", |l| l.1);
    for word in header.split_ascii_whitespace() {
        let id = word.strip_prefix("CPU").and_then(text::id);
        let id = id.ok_or_else(|| ParseError::new(1, "CPU0 CPU1 …", word.as_bytes()))?;
        table.cpus.push(CpuId(id));
    }
    if table.cpus.is_empty() {
        return Err(ParseError::new(1, "CPU0 CPU1 …", bytes));
    }
    for (_, line) in lines {
        let Some((name, counts)) = line.split_once(':') else { continue };
        let name = name.trim().to_owned();
        let counts: Option<Vec<u64>> =
            counts.split_ascii_whitespace().map(|c| c.parse().ok()).collect();
        match counts {
            Some(c) if c.len() == table.cpus.len() => table.vectors.push((name, c)),
            _ => table.skipped.push(name),
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: &[u8] = b"                    CPU0       CPU1       \n\
        \x20         HI:          0          0\n       TIMER:      11072      11351\n\
        \x20     NET_TX:          2          1\n      NET_RX:       1017       3420\n";

    #[test]
    fn reads_counts_by_vector_and_cpu() {
        let t = parse(REAL).unwrap();
        assert_eq!(t.cpus, [CpuId(0), CpuId(1)]);
        assert_eq!(t.count("NET_RX", CpuId(1)), Some(3420));
        assert_eq!(t.count("HI", CpuId(0)), Some(0));
        assert_eq!(t.count("NET_RX", CpuId(2)), None);
        assert_eq!(t.count("NOPE", CpuId(0)), None);
    }

    #[test]
    fn a_line_of_another_width_is_left_out_and_named() {
        let t = parse(b"CPU0 CPU7\nHI: 1\nNET_RX: 5 6\nRCU: 1 2 3\nX: 1 y\n").unwrap();
        assert_eq!(t.vectors, [("NET_RX".to_owned(), vec![5, 6])]);
        assert_eq!(t.count("NET_RX", CpuId(7)), Some(6));
        assert_eq!(t.skipped, ["HI", "RCU", "X"]);
    }

    #[test]
    fn nothing_of_it_is_an_error() {
        for bad in ["", "\n", "HI: 1 2\n", "CPUx\n"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
