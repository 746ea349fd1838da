//! The rules on one interval.

use diagnose::{Case, diagnose};
use model::{Facts, Finding, Goal, watch::WatchInterval};

/// What the rules find, by what the host was at the beginning and did in this interval.
pub fn findings(facts: &Facts, interval: &WatchInterval) -> Vec<Finding> {
    diagnose(&Case { facts, samples: &interval.samples, goal: Goal::Throughput }).findings
}
