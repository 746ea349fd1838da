//! What the view of this host shows besides intervals: facts and findings.

use std::thread;

use diagnose::{Case, diagnose};
use model::{
    Facts, Finding, Goal,
    watch::{WatchInterval, WatchRecord},
};
use probe::{
    Root,
    facts::{Request, Selector},
};

use crate::error::{Result, ViewError};

/// Reads the facts in a thread, while programs are attached: both take long on a large host.
///
/// # Errors
/// The kernel refused to start a thread.
pub fn read_facts(pids: &[u32]) -> Result<thread::JoinHandle<Facts>> {
    let processes = pids.iter().copied().map(Selector::Pid).collect();
    let read = move || probe::facts::collect(&Root::live(), &Request { processes });
    thread::Builder::new().spawn(read).map_err(ViewError::Thread)
}

/// Adds the rules' findings to an interval.
pub fn judged(facts: Option<&Facts>, interval: WatchInterval) -> WatchRecord {
    let findings = facts.map(|f| findings(f, &interval)).unwrap_or_default();
    WatchRecord { interval, findings }
}

/// The findings in this interval, for the host's facts at the beginning.
fn findings(facts: &Facts, interval: &WatchInterval) -> Vec<Finding> {
    diagnose(&Case { facts, samples: &interval.samples, goal: Goal::Throughput }).findings
}
