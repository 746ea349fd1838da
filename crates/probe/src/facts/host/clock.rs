//! The clock that the kernel reads, and what a read of it costs.

use model::{Nanos, Reading};

use crate::{ReadError, Root, error::reading, samples::clock::monotonic_ns};

const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
/// Reads of one batch, and batches: the fastest batch is the one that nothing interrupted.
const READS: u64 = 32;
const BATCHES: usize = 8;

pub fn source(root: &Root) -> Reading<String> {
    root.word(&format!("{FOLDER}/current_clocksource"))
}

pub fn available(root: &Root) -> Reading<Vec<String>> {
    let words = |s: String| s.split_whitespace().map(str::to_owned).collect();
    root.word(&format!("{FOLDER}/available_clocksource")).map(words)
}

/// Live; in a snapshot as recorded.
pub fn read_ns(root: &Root) -> Reading<Nanos> {
    reading(root.ask("clock-read", measure)).map(Nanos)
}

fn measure() -> Result<u64, ReadError> {
    let batch = || {
        let start = monotonic_ns();
        let end = (0..READS).fold(start, |_, _| monotonic_ns());
        end.saturating_sub(start) / READS
    };
    Ok((0..BATCHES).map(|_| batch()).min().unwrap_or_default())
}
