//! `/proc/PID/stat` and `/proc/PID/task/TID/stat`. **Source**: `fs/proc/array.c`
//! (`do_task_stat`), `proc_pid_stat(5)`.

use model::CpuId;

use crate::{ParseError, text};

/// What of the file is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PidStat {
    /// Process or thread id (field 1).
    pub pid: u32,
    /// Short name (field 2); may hold blanks, parentheses and line ends.
    pub comm: String,
    /// `R`, `S`, `D`, … (field 3).
    pub state: char,
    /// Parent (field 4).
    pub parent: u32,
    /// Ticks in user mode (field 14).
    pub user_ticks: u64,
    /// Ticks in kernel mode (field 15).
    pub system_ticks: u64,
    /// When it started, ticks after boot (field 22): tells a reused id.
    pub start_ticks: u64,
    /// CPU it last ran on (field 39).
    pub last_cpu: Option<CpuId>,
}

/// Reads the file. The name stands between the first `(` and the *last* `)`: a program may
/// call itself `a) R 1 (b`.
///
/// # Errors
/// When a field up to the start time is missing or of another kind.
pub fn parse(bytes: &[u8]) -> Result<PidStat, ParseError> {
    let bad = |what| ParseError::new(1, what, bytes);
    let open = bytes.iter().position(|&b| b == b'(').ok_or_else(|| bad("PID (name) …"))?;
    let close = bytes.iter().rposition(|&b| b == b')').ok_or_else(|| bad("PID (name) …"))?;
    let comm = bytes.get(open + 1..close).ok_or_else(|| bad("PID (name) …"))?;
    let head = bytes.get(..open).unwrap_or_default();
    let tail = bytes.get(close + 1..).unwrap_or_default();
    let tail = std::str::from_utf8(tail).map_err(|_| bad("numbers after the name"))?;
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    // proc_pid_stat(5) counts from 1 and the name is field 2.
    let field = |n: usize| fields.get(n - 3).copied();
    let number = |n: usize| field(n).and_then(|f| f.parse().ok());
    Ok(PidStat {
        pid: text::number(head)?,
        comm: String::from_utf8_lossy(comm).into_owned(),
        state: field(3).and_then(|f| f.chars().next()).ok_or_else(|| bad("a state"))?,
        parent: field(4).and_then(|f| f.parse().ok()).ok_or_else(|| bad("a parent's id"))?,
        user_ticks: number(14).ok_or_else(|| bad("user ticks in field 14"))?,
        system_ticks: number(15).ok_or_else(|| bad("system ticks in field 15"))?,
        start_ticks: number(22).ok_or_else(|| bad("a start time in field 22"))?,
        last_cpu: field(39).and_then(text::id).map(CpuId),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TAIL: &str = " R 12360 12360 5597 0 -1 4194304 100 0 0 0 31 7 0 0 20 0 1 0 127271 3133440 380 18446744073709551615 94098613891072 94098613910953 140732715715680 0 0 0 0 0 0 0 0 0 17 5 0 0 0 0 0 94098613926960 94098613928576 94098897940480 140732715719159 140732715719179 140732715719179 140732715720683 0\n";

    #[test]
    fn reads_the_fields() {
        let s = parse(format!("12395 (cat){TAIL}").as_bytes()).unwrap();
        assert_eq!(
            s,
            PidStat {
                pid: 12395,
                comm: "cat".into(),
                state: 'R',
                parent: 12360,
                user_ticks: 31,
                system_ticks: 7,
                start_ticks: 127_271,
                last_cpu: Some(CpuId(5)),
            }
        );
    }

    #[test]
    fn refuses_what_is_cut_off() {
        for bad in ["", "1 (a", "1 (a) R", "1 )a( R 1", "x (a) R 1", "1 (a) R 1 2 3 4 5 6 7 8 9"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_name_leaves_the_fields_alone(name in "[ -~\n]{0,15}") {
            let s = parse(format!("7 ({name}){TAIL}").as_bytes()).unwrap();
            prop_assert_eq!(s.comm, name);
            prop_assert_eq!((s.user_ticks, s.system_ticks, s.last_cpu), (31, 7, Some(CpuId(5))));
        }
    }
}
