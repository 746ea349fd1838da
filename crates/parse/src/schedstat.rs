//! `/proc/PID/task/TID/schedstat`: a thread's time on and waiting for CPUs, in nanoseconds.
//! **Source**: `fs/proc/base.c` (`proc_pid_schedstat`), needs `CONFIG_SCHED_INFO`; where
//! accounting is switched off the kernel prints zeros.

use crate::ParseError;

/// The three numbers of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Schedstat {
    /// Time on a CPU, ns.
    pub cpu_ns: u64,
    /// Time runnable, waiting for a CPU, ns.
    pub run_queue_ns: u64,
    /// Times it was put on a CPU.
    pub timeslices: u64,
}

/// Reads the file.
///
/// # Errors
/// When it is not three numbers.
pub fn parse(bytes: &[u8]) -> Result<Schedstat, ParseError> {
    let bad = || ParseError::new(1, "three numbers", bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| bad())?;
    let mut numbers = text.split_ascii_whitespace().map(|w| w.parse().map_err(|_| bad()));
    let mut next = || numbers.next().unwrap_or_else(|| Err(bad()));
    Ok(Schedstat { cpu_ns: next()?, run_queue_ns: next()?, timeslices: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_three_numbers_and_no_less() {
        assert_eq!(
            parse(b"1522334 51857 17\n"),
            Ok(Schedstat { cpu_ns: 1_522_334, run_queue_ns: 51_857, timeslices: 17 })
        );
        for bad in ["", "1 2\n", "1 2 x\n", "-1 2 3\n"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
