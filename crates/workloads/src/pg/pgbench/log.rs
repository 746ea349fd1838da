//! pgbench's log: a line for each transaction.
//!
//! `CLIENT NUMBER TIME SCRIPT SECONDS MICROSECONDS [LAG] [RETRIES]`. TIME is the latency in
//! microseconds, from the start or with a rate from the scheduled time, or a word for a failure.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::PathBuf,
};

use model::measure::PgSpec;
use traffic::{Error, Result, engine::failed::Failed};

use crate::pg::recorder::{Logged, PgRecorder};

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The latency, or the failure.
    pub outcome: std::result::Result<u64, String>,
    pub script: usize,
    /// End time, in nanoseconds since 1970.
    pub end_ns: u64,
    /// With a rate: how late it began (schedule lag).
    pub lag_ns: Option<u64>,
    /// Tries beyond the first one.
    pub retries: u32,
}

/// Optional columns at the end.
#[derive(Debug, Clone, Copy)]
pub struct Columns {
    pub lag: bool,
    pub retries: bool,
}

impl Columns {
    /// The columns that pgbench writes for this request.
    pub fn of(spec: &PgSpec) -> Self {
        Self { lag: spec.rate_per_s.is_some(), retries: spec.max_tries != 1 }
    }
}

/// Parses a line; `None` if it is invalid, like the last line of a truncated log.
pub fn line(text: &str, columns: Columns) -> Option<Entry> {
    let mut words = text.split_ascii_whitespace();
    let (_client, _number) = (words.next()?, words.next()?);
    let time = words.next()?;
    let script = words.next()?.parse().ok()?;
    let (s, us) = (words.next()?.parse::<u64>().ok()?, words.next()?.parse::<u64>().ok()?);
    let us_as_ns = |us: &str| Some(us.parse::<u64>().ok()?.saturating_mul(1000));
    let outcome = match time.bytes().all(|b| b.is_ascii_digit()) {
        true => Ok(us_as_ns(time)?),
        false => Err(time.to_owned()),
    };
    let lag_ns = if columns.lag { Some(us_as_ns(words.next()?)?) } else { None };
    let retries = if columns.retries { words.next()?.parse().ok()? } else { 0 };
    let end_ns = s.checked_mul(1_000_000_000)?.checked_add(us.checked_mul(1000)?)?;
    words.next().is_none().then_some(Entry { outcome, script, end_ns, lag_ns, retries })
}

/// Content of the logs.
#[derive(Debug)]
pub struct Read {
    /// One record for each thread.
    pub recorders: Vec<PgRecorder>,
    /// Time from the first start to the last end.
    pub spans_ns: u64,
}

/// Reads all logs; the recorders' times follow `start_ns`.
///
/// # Errors
/// A log cannot be read.
pub fn read(
    logs: &[PathBuf],
    columns: Columns,
    start_ns: u64,
    recorder: impl Fn() -> PgRecorder,
) -> Result<Read> {
    let open = |path: &PathBuf| {
        File::open(path).map(BufReader::new).map_err(|e| Error::io(path.display().to_string(), &e))
    };
    let mut first_ns = u64::MAX;
    for path in logs {
        let mut text = String::new();
        let _ = open(path)?.read_line(&mut text);
        if let Some(entry) = line(&text, columns) {
            let took = *entry.outcome.as_ref().unwrap_or(&0);
            first_ns = first_ns.min(entry.end_ns.saturating_sub(took));
        }
    }
    let mut all = Read { recorders: vec![], spans_ns: 0 };
    for path in logs {
        let (mut reader, mut one, mut text) = (open(path)?, recorder(), String::new());
        loop {
            text.clear();
            match reader.read_line(&mut text) {
                Ok(0) => break,
                // A truncated last line is ignored.
                Ok(_) if !text.ends_with('\n') => break,
                Ok(_) => {}
                Err(e) => return Err(Error::io(path.display().to_string(), &e)),
            }
            let Some(entry) = line(&text, columns) else { continue };
            let since = entry.end_ns.saturating_sub(first_ns);
            all.spans_ns = all.spans_ns.max(since);
            add(&mut one, &entry, start_ns, since);
        }
        all.recorders.push(one);
    }
    if all.recorders.is_empty() {
        all.recorders.push(recorder());
    }
    Ok(all)
}

fn add(to: &mut PgRecorder, entry: &Entry, start_ns: u64, since_ns: u64) {
    let done = Logged {
        start_ns,
        now_ns: start_ns.saturating_add(since_ns),
        script: entry.script,
        lag_ns: entry.lag_ns,
        retries: entry.retries,
    };
    match &entry.outcome {
        Ok(latency) => to.logged(&done, *latency),
        Err(why) if why == "skipped" => to.requests.connections.left.not_started += 1,
        Err(why) => {
            let why = named(why, to);
            to.logged_failure(&done, why);
        }
    }
}

/// The failure under the name that the server's error would have.
fn named(why: &str, to: &mut PgRecorder) -> Failed {
    let (code, message) = match why {
        "serialization" => ("40001", "could not serialize access"),
        "deadlock" => ("40P01", "deadlock detected"),
        _ => return Failed::Bad("failed, and pgbench does not say by what"),
    };
    to.requests.named(code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Columns = Columns { lag: false, retries: false };

    #[test]
    fn lines_are_read_with_the_columns_that_were_asked_for() {
        let entry = line("3 17 1234 1 1700000000 000250\n", PLAIN).expect("a line");
        assert_eq!((entry.outcome, entry.script), (Ok(1_234_000), 1));
        assert_eq!((entry.end_ns, entry.lag_ns), (1_700_000_000_000_250_000, None));
        let both = Columns { lag: true, retries: true };
        let entry = line("0 1 900 0 1 2 300 4\n", both).expect("a line");
        assert_eq!((entry.lag_ns, entry.retries), (Some(300_000), 4));
        let entry = line("0 1 deadlock 0 1 2\n", PLAIN).expect("a line");
        assert_eq!(entry.outcome, Err("deadlock".into()));
        for none in ["", "0 1 9", "0 1 9 0 1", "0 1 9 0 1 2 3", "a b c d e f", "0 1 9 0 1 -2"] {
            assert_eq!(line(none, PLAIN), None, "{none}");
        }
        assert_eq!(line("0 1 9 0 99999999999999999999 2", PLAIN), None);
        assert_eq!(line("0 1 9 0 99999999999 2", PLAIN), None, "beyond what nanoseconds hold");
    }
}
