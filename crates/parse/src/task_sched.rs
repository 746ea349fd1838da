//! `/proc/PID/task/TID/sched` (with `CONFIG_SCHED_DEBUG`): `se.nr_migrations   :   12`.
//! **Source**: `proc_sched_show_task` in the kernel's `kernel/sched/debug.c`.

use crate::ParseError;

/// How often the thread moved to another CPU since its start.
///
/// # Errors
/// When the file has no such line, or its value is no number.
pub fn migrations(bytes: &[u8]) -> Result<u64, ParseError> {
    let text = String::from_utf8_lossy(bytes);
    let (n, value) = text
        .lines()
        .enumerate()
        .find_map(|(n, l)| {
            let (key, value) = l.split_once(':')?;
            (key.trim() == "se.nr_migrations").then(|| (n + 1, value.trim()))
        })
        .ok_or_else(|| ParseError::new(1, "a line se.nr_migrations", bytes))?;
    value.parse().map_err(|_| ParseError::new(n, "a number of migrations", value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_one_line() {
        let text = b"cat (9815, #threads: 1)\n------\nse.exec_start  :  1179633.461153\nse.nr_migrations                             :                   12\nnr_switches : 3\n";
        assert_eq!(migrations(text), Ok(12));
        assert!(migrations(b"").is_err());
        assert!(migrations(b"se.nr_migrations : x\n").is_err());
    }
}
