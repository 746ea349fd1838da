//! Samples of a host over a window: counters read twice or more, as deltas.
//!
//! One reading is a [`raw::Raw`]; [`delta::samples`] makes [`Samples`] of several and is pure.

pub mod brief;
mod cgroups;
pub mod clock;
pub mod clock_changes;
pub mod delta;
pub mod host_cpu;
pub mod local_ports;
mod neighbours;
mod nics;
mod own_quota;
mod pressure;
mod printed_sockets;
pub mod raw;
pub mod since_boot;
pub mod sockets;
mod source;
mod threads;

pub use own_quota::own_quota;
pub use threads::{kernel_threads, ksoftirqd_by_cpu};

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use model::{IrqId, Nanos, Samples, snapshot::SampleTime};

use crate::{ReadError, Root, facts};
use raw::Raw;

/// Counters by name; the unit depends on the source.
pub type Counters = BTreeMap<String, u64>;

/// The most readings of one window; each is held in memory until the end.
pub const MAX_READINGS: u32 = 10_000;

/// What to read, and for how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// From the start of the first reading to the start of the last.
    pub window: Duration,
    /// How many readings, evenly spread over the window: from 2 to [`MAX_READINGS`]; a number
    /// outside is taken as the nearest of those.
    pub readings: u32,
    /// Processes with threads to follow, besides every ksoftirqd.
    pub pids: Vec<u32>,
    pub sockets: Sockets,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(1),
            readings: 2,
            pids: Vec::new(),
            sockets: Sockets::None,
        }
    }
}

/// Sockets to read one by one. More open connections than the most are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sockets {
    None,
    /// TCP connections. A thousand take some 2 ms of CPU time.
    Tcp {
        most: u64,
    },
    /// UDP sockets and TCP connections. Ten thousand take some 20 ms of CPU time.
    All,
}

/// Between two readings of the counters, unless that makes more than [`MOST_READINGS`].
const STEP: Nanos = Nanos(500_000_000);
/// Enough to see where threads run; each reading costs the host a little.
const MOST_READINGS: u64 = 60;

/// How often to read the counters within a window.
pub fn readings(window: Nanos) -> u32 {
    let steps = (window.0 / STEP.0).clamp(1, MOST_READINGS);
    u32::try_from(steps + 1).unwrap_or(2)
}

impl Options {
    /// All that a diagnosis needs of a window.
    pub fn over(window: Nanos) -> Self {
        Self {
            window: Duration::from_nanos(window.0),
            readings: readings(window),
            pids: Vec::new(),
            sockets: Sockets::All,
        }
    }
}

/// Reads the counters over a window, and returns their growth.
///
/// Live, it waits for `window`; `stop` ends it within 50 ms with a last reading and a shorter
/// window. A tree with one reading gives all counters since boot. A snapshot returns its recorded
/// readings at once, whatever `window` and `readings` are. `progress` gets the share of the window
/// that has passed: 0 when the first reading begins, 1 when the last one does.
///
/// # Errors
/// [`ReadError::Absent`] when a directory or snapshot holds fewer than two readings. An unreadable
/// counter is an absent value, not an error.
pub fn take(
    root: &Root,
    options: &Options,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<Samples, ReadError> {
    let readings =
        if root.is_live() { live(root, options, stop, progress) } else { recorded(root, options) };
    let since_boot = || if root.is_live() { None } else { since_boot::samples(root) };
    let samples = delta::samples(&readings).or_else(since_boot).ok_or_else(|| {
        ReadError::Absent { path: "recorded samples (take the snapshot with --window)".to_owned() }
    })?;
    Ok(sockets::named(root, samples))
}

/// Progress stays below 1 until the last reading begins.
const ALMOST: f64 = 0.999;

fn live(
    root: &Root,
    options: &Options,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Vec<Raw> {
    let last = options.readings.clamp(2, MAX_READINGS) - 1;
    let window = u64::try_from(options.window.as_nanos()).unwrap_or(u64::MAX);
    progress(0.0);
    let mut all = vec![one(root, 0, options)];
    let start = all.first().map_or_else(clock::monotonic_ns, |r| r.time.start_ns);
    for n in 1..=last {
        let share = u128::from(window) * u128::from(n) / u128::from(last);
        let deadline = start.saturating_add(u64::try_from(share).unwrap_or(u64::MAX));
        let mut passed = |now: u64| {
            progress((now.saturating_sub(start) as f64 / window.max(1) as f64).clamp(0.0, ALMOST));
        };
        clock::wait_until(deadline, stop, &mut passed);
        if n == last || stop.load(Ordering::Relaxed) {
            // The window ends here, with the start of the last reading.
            progress(1.0);
        }
        all.push(one(root, n, options));
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    progress(1.0);
    all
}

/// One reading now, or the snapshot's reading of this number.
pub fn one(root: &Root, n: u32, options: &Options) -> Raw {
    let start_ns = clock::monotonic_ns();
    let mut raw = Raw::read(&root.at_sample(n), SampleTime { start_ns, end_ns: start_ns }, options);
    raw.time.end_ns = clock::monotonic_ns();
    root.sample_taken(&raw.time);
    raw
}

/// What each numbered interrupt is called, where it has a name: `virtio1-input.0`. **Source**:
/// `/proc/interrupts`.
pub fn irq_names(root: &Root) -> BTreeMap<IrqId, String> {
    let table = facts::irq::interrupts(root).map_or(vec![], |t| t.irqs);
    let named = table.into_iter().filter(|row| !row.name.is_empty());
    named.map(|row| (row.irq, row.name)).collect()
}

fn recorded(root: &Root, options: &Options) -> Vec<Raw> {
    let times = root.manifest().map_or(&[][..], |m| &m.samples);
    (0..MAX_READINGS)
        .zip(times)
        .map(|(n, time)| Raw::read(&root.at_sample(n), time.clone(), options))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_window_has_its_real_length_and_this_hosts_cpus() {
        let options =
            Options { window: Duration::from_millis(60), readings: 3, ..Options::default() };
        let mut heard = Vec::new();
        let s = take(&Root::live(), &options, &AtomicBool::new(false), &mut |p| heard.push(p));
        let s = s.unwrap();
        assert!(s.window_ns.0 >= 60_000_000, "{:?}", s.window_ns);
        assert_eq!(s.readings, 3);
        assert!(!s.cpus.is_empty());
        assert!(s.nics.iter().any(|n| n.name == "lo"));
        assert!(heard.is_sorted() && heard.last() == Some(&1.0), "{heard:?}");
    }

    #[test]
    fn an_early_stop_still_takes_the_last_reading() {
        let options =
            Options { window: Duration::from_secs(3600), readings: 5, ..Options::default() };
        let s = take(&Root::live(), &options, &AtomicBool::new(true), &mut |_| {}).unwrap();
        assert_eq!(s.readings, 2);
        assert!(s.window_ns.0 < 60_000_000_000);
    }

    #[test]
    fn a_tree_without_samples_says_how_to_get_some() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let e = take(&root, &Options::default(), &AtomicBool::new(false), &mut |_| {}).unwrap_err();
        assert_eq!(e.to_string(), "recorded samples (take the snapshot with --window): not there");
    }
}
