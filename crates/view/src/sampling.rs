//! What a view of this host is made of beside its intervals: the facts, and what the rules find.

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

/// Reads what the host is, beside attaching: both take their time on a large host.
///
/// # Errors
/// A thread that the kernel does not start.
pub fn read_facts(pids: &[u32]) -> Result<thread::JoinHandle<Facts>> {
    let processes = pids.iter().copied().map(Selector::Pid).collect();
    let read = move || probe::facts::collect(&Root::live(), &Request { processes });
    thread::Builder::new().spawn(read).map_err(ViewError::Thread)
}

/// With what the rules find in it.
pub fn judged(facts: Option<&Facts>, interval: WatchInterval) -> WatchRecord {
    let findings = facts.map(|f| findings(f, &interval)).unwrap_or_default();
    WatchRecord { interval, findings }
}

/// What the rules find, by what the host was at the beginning and did in this interval.
fn findings(facts: &Facts, interval: &WatchInterval) -> Vec<Finding> {
    diagnose(&Case { facts, samples: &interval.samples, goal: Goal::Throughput }).findings
}
