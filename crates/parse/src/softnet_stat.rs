//! `/proc/net/softnet_stat`: a row per online CPU, columns of eight hex digits, no header.
//!
//! **Source**: `softnet_seq_show` in the kernel's `net/core/net-procfs.c`. Columns from 1:
//!
//! | column | what | since |
//! |---|---|---|
//! | 1 | packets processed | |
//! | 2 | dropped, the backlog was full | |
//! | 3 | `time_squeeze`: stopped with work left | |
//! | 4–8 | 0, once fastroute | |
//! | 9 | 0, once `cpu_collision` | |
//! | 10 | `received_rps`: woken by another CPU | 2.6.35 |
//! | 11 | `flow_limit_count` | 3.11 |
//! | 12 | packets in the backlog now | 5.10 |
//! | 13 | the CPU's id | 5.10 |
//! | 14, 15 | column 12 split: `input_pkt_queue`, `process_queue` | 6.4 |
//!
//! All counters are 32 bits and wrap.

use model::{CpuId, CpuSet, Reading, napi::SoftnetRow};

use crate::ParseError;

/// Parses the whole file. `online` has the CPUs for kernels before 5.10, where the n-th row is the
/// n-th online CPU. Later kernels print the CPU, and `online` may be empty.
///
/// # Errors
/// A row is not of eight-digit hex columns, has fewer than nine, or not as many as the row before.
/// Or CPUs must be deduced, and `online` is missing or has another length than the file (a CPU came
/// or went in between: read both again).
pub fn parse(bytes: &[u8], online: Option<&CpuSet>) -> Result<Vec<SoftnetRow>, ParseError> {
    let mut rows = Vec::new();
    let mut width = 0;
    let mut lines = 0;
    for (i, line) in bytes.split(|&b| b == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let columns = columns(line)
            .filter(|c| c.len() >= 9 && (width == 0 || c.len() == width))
            .ok_or_else(|| ParseError::new(i + 1, "nine or more columns of hex", line))?;
        width = columns.len();
        lines = i + 1;
        rows.push(columns);
    }
    let ids: Vec<CpuId> = if width >= CPU_COLUMN {
        rows.iter().filter_map(|c| c.get(CPU_COLUMN - 1)).map(|&id| CpuId(id)).collect()
    } else {
        let ids: Vec<CpuId> = online.into_iter().flat_map(CpuSet::iter).collect();
        if ids.len() != rows.len() {
            let found = format!("{} rows for {} online CPUs", rows.len(), ids.len());
            return Err(ParseError::new(lines, "a row for each online CPU", found.as_bytes()));
        }
        ids
    };
    let positional = width < CPU_COLUMN;
    let mut out: Vec<_> = ids.into_iter().zip(&rows).map(|(c, r)| row(c, positional, r)).collect();
    out.sort_by_key(|r| r.cpu);
    Ok(out)
}

const CPU_COLUMN: usize = 13;

fn columns(line: &[u8]) -> Option<Vec<u32>> {
    std::str::from_utf8(line)
        .ok()?
        .split_ascii_whitespace()
        .map(|w| {
            let fits = w.len() == 8 && w.bytes().all(|b| b.is_ascii_hexdigit());
            fits.then(|| u32::from_str_radix(w, 16).ok()).flatten()
        })
        .collect()
}

fn row(cpu: CpuId, cpu_from_position: bool, columns: &[u32]) -> SoftnetRow {
    let at = |n: usize| columns.get(n - 1).copied().map(u64::from);
    let since = |n: usize, kernel: &str| match at(n) {
        Some(v) => Reading::Known(v),
        None => Reading::Absent(format!("softnet_stat has no column {n} before Linux {kernel}")),
    };
    SoftnetRow {
        cpu,
        cpu_from_position,
        // `parse` has seen nine columns.
        processed: at(1).unwrap_or_default(),
        dropped: at(2).unwrap_or_default(),
        time_squeeze: at(3).unwrap_or_default(),
        received_rps: since(10, "2.6.35"),
        flow_limit_count: since(11, "3.11"),
        backlog_len: since(12, "5.10"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const V6_18: &[u8] = b"\
00000011 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
00000d5c 00000002 00000003 00000000 00000000 00000000 00000000 00000000 00000000 0000000a 0000000b 00000005 00000003 00000004 00000001
";

    #[test]
    fn a_modern_row_names_its_cpu() {
        let rows = parse(V6_18, None).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(
            rows[1],
            SoftnetRow {
                cpu: CpuId(3),
                cpu_from_position: false,
                processed: 0xd5c,
                dropped: 2,
                time_squeeze: 3,
                received_rps: Reading::Known(10),
                flow_limit_count: Reading::Known(11),
                backlog_len: Reading::Known(5),
            }
        );
    }

    #[test]
    fn an_old_row_is_the_nth_online_cpu() {
        let eleven = b"\
6dcad223 00000000 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000007 00000000
6f0e1565 00000000 00000002 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
";
        let online: CpuSet = "0,2".parse().unwrap();
        let rows = parse(eleven, Some(&online)).unwrap();
        assert_eq!((rows[1].cpu, rows[1].cpu_from_position), (CpuId(2), true));
        assert_eq!(rows[1].processed, 0x6f0e_1565);
        assert_eq!(rows[0].received_rps, Reading::Known(7));
        assert!(!rows[0].backlog_len.is_known());
        for wrong in [None, Some("0".parse().unwrap()), Some("0-2".parse().unwrap())] {
            assert!(parse(eleven, wrong.as_ref()).is_err(), "{wrong:?}");
        }
        let nine =
            b"00000001 00000002 00000003 00000000 00000000 00000000 00000000 00000000 00000000\n";
        let rows = parse(nine, Some(&"4".parse().unwrap())).unwrap();
        assert_eq!((rows[0].cpu, rows[0].dropped), (CpuId(4), 2));
        assert!(!rows[0].received_rps.is_known());
    }

    #[test]
    fn refuses_what_was_cut_or_is_something_else() {
        for end in 1..V6_18.len() - 1 {
            let cut = &V6_18[..end];
            let whole_rows = cut.len() == V6_18.len() / 2 || cut.len() == V6_18.len() / 2 - 1;
            // Cut between two columns the first row alone looks like an older kernel's.
            let older = end < V6_18.len() / 2 && end >= 9 * 9 - 1 && (end % 9 == 8 || end % 9 == 0);
            assert_eq!(parse(cut, None).is_ok(), whole_rows || older && end >= 13 * 9 - 1, "{end}");
        }
        assert!(parse(b"hello\n", None).is_err());
        assert_eq!(parse(b"", None), Ok(vec![]));
    }

    proptest! {
        #[test]
        fn reads_what_the_kernel_prints(values in proptest::collection::vec(any::<[u32; 15]>(), 0..40)) {
            let text: String = values.iter().enumerate().map(|(i, v)| {
                let mut v = *v;
                v[12] = i as u32 * 2;
                v.map(|n| format!("{n:08x}")).join(" ") + "\n"
            }).collect();
            let rows = parse(text.as_bytes(), None).unwrap();
            prop_assert_eq!(rows.len(), values.len());
            for (i, (row, v)) in rows.iter().zip(&values).enumerate() {
                prop_assert_eq!(row.cpu, CpuId(i as u32 * 2));
                prop_assert_eq!([row.processed, row.dropped, row.time_squeeze], [v[0], v[1], v[2]].map(u64::from));
                prop_assert_eq!(&row.flow_limit_count, &Reading::Known(v[10].into()));
            }
        }
    }
}
