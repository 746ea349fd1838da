//! `/proc/PID/stat` and `/proc/PID/task/TID/stat`. **Source**: proc_pid_stat(5).

use model::CpuId;

use crate::ParseError;

/// The fields of a thread that placement needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStat {
    /// Process or thread id.
    pub id: u32,
    /// Short name; may hold blanks and parentheses.
    pub name: String,
    /// `R`, `S`, `D`, `Z`, …
    pub state: char,
    /// User time in clock ticks (field 14).
    pub user_ticks: u64,
    /// System time in clock ticks (field 15).
    pub system_ticks: u64,
    /// Start after boot in clock ticks (field 22).
    pub start_ticks: u64,
    /// CPU it last ran on (field 39).
    pub last_cpu: CpuId,
}

/// Parses the one line of the file.
///
/// # Errors
/// When the name is not in parentheses or a field is missing or no number.
pub fn parse(bytes: &[u8]) -> Result<TaskStat, ParseError> {
    let bad = || ParseError::new(1, "a thread's stat line with 39 fields", bytes);
    let open = bytes.iter().position(|&b| b == b'(').ok_or_else(bad)?;
    // The last one closes the name: the name itself may hold any.
    let close = bytes.iter().rposition(|&b| b == b')').filter(|&c| c > open).ok_or_else(bad)?;
    let id = bytes.get(..open).and_then(|b| crate::text::number(b).ok()).ok_or_else(bad)?;
    let name = String::from_utf8_lossy(bytes.get(open + 1..close).unwrap_or_default()).into_owned();
    let rest = bytes.get(close + 1..).and_then(|b| std::str::from_utf8(b).ok()).ok_or_else(bad)?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Field 3 of the manual is the first after the name.
    let field = |n: usize| fields.get(n - 3).copied().ok_or_else(bad);
    let number = |n: usize| field(n)?.parse::<u64>().map_err(|_| bad());
    Ok(TaskStat {
        id,
        name,
        state: field(3)?.chars().next().ok_or_else(bad)?,
        user_ticks: number(14)?,
        system_ticks: number(15)?,
        start_ticks: number(22)?,
        last_cpu: CpuId(u32::try_from(number(39)?).map_err(|_| bad())?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "4242 (tricky ) (name) S 1 4242 4242 0 -1 4194560 1217 0 3 0 17 5 0 0 20 0 4 0 123456 12345344 512 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 63 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn takes_a_name_with_parentheses() {
        let s = parse(LINE.as_bytes()).unwrap();
        assert_eq!((s.id, s.name.as_str(), s.state), (4242, "tricky ) (name", 'S'));
        assert_eq!((s.user_ticks, s.system_ticks, s.start_ticks), (17, 5, 123_456));
        assert_eq!(s.last_cpu, CpuId(63));
    }

    #[test]
    fn refuses_a_cut_line() {
        for end in [0, 4, 10, 30, 100] {
            assert!(parse(&LINE.as_bytes()[..end]).is_err(), "{end}");
        }
    }
}
