//! `/proc/PID/task/TID/sched`: the scheduler's own figures of a thread.
//! **Source**: `kernel/sched/debug.c` (`proc_sched_show_task`), needs `CONFIG_SCHED_DEBUG`.

use crate::{ParseError, text};

/// What of the file is used; `None` where this kernel has no such line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PidSched {
    /// Moves between CPUs since the thread's start.
    pub migrations: Option<u64>,
    /// Context switches since the thread's start.
    pub switches: Option<u64>,
}

/// Reads the file.
///
/// # Errors
/// When it has neither figure.
pub fn parse(bytes: &[u8]) -> Result<PidSched, ParseError> {
    let mut sched = PidSched::default();
    for (_, line) in text::lines(bytes) {
        let Some((key, value)) = line.split_once(':') else { continue };
        let field = match key.trim() {
            "se.nr_migrations" => &mut sched.migrations,
            "nr_switches" => &mut sched.switches,
            _ => continue,
        };
        *field = value.trim().parse().ok();
    }
    if sched == PidSched::default() {
        return Err(ParseError::new(1, "se.nr_migrations : 0", bytes));
    }
    Ok(sched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_lines() {
        let s = parse(
            b"cat (12396, #threads: 1)\n-------------------\n\
              se.exec_start                                :       1272699.260370\n\
              se.nr_migrations                             :                   12\n\
              nr_switches                                  :                   34\n",
        );
        assert_eq!(s, Ok(PidSched { migrations: Some(12), switches: Some(34) }));
        assert!(parse(b"a (1, #threads: 1)\n").is_err());
        assert!(parse(b"se.nr_migrations : -1\n").is_err());
    }
}
