//! Many hosts, by what a Prometheus has scraped of their exporters: [`queries()`] to ask, and
//! [`fleet`] to judge the answers.

mod changes;
mod hosts;
pub mod queries;
#[cfg(test)]
mod tests;

use std::{cmp::Reverse, collections::BTreeMap};

use model::{
    SCHEMA_VERSION, Severity,
    fleet::{FleetCause, FleetDocument, FleetHost},
};
use parse::prometheus_json::InstantSeries;

pub use queries::{Answers, Part, queries};

/// The diagnosis of all hosts in the answers, at or above this severity.
pub fn fleet(target: &str, at_unix_s: f64, least: Severity, answers: &Answers) -> FleetDocument {
    let hosts = hosts::hosts(answers, least);
    let causes = causes(&hosts);
    let changes = changes::changes(answers, &hosts);
    let mut warnings = answers.warnings.clone();
    warnings.sort();
    warnings.dedup();
    FleetDocument {
        schema_version: SCHEMA_VERSION,
        target: target.to_owned(),
        at_unix_s,
        min_severity: least,
        hosts,
        causes,
        changes,
        warnings,
    }
}

/// The rules with the hosts that have findings of them; those on most hosts first.
fn causes(hosts: &[FleetHost]) -> Vec<FleetCause> {
    let mut by_rule: BTreeMap<&str, FleetCause> = BTreeMap::new();
    for host in hosts {
        for finding in &host.findings {
            let cause = by_rule.entry(&finding.rule).or_insert_with(|| FleetCause {
                rule: finding.rule.clone(),
                severity: finding.severity,
                hosts: vec![],
                findings: 0,
            });
            cause.severity = cause.severity.max(finding.severity);
            cause.findings += 1;
            if cause.hosts.last() != Some(&host.name) {
                cause.hosts.push(host.name.clone());
            }
        }
    }
    let mut causes: Vec<FleetCause> = by_rule.into_values().collect();
    causes.sort_by_key(|c| Reverse((c.hosts.len(), c.severity)));
    causes
}

/// The label of a series; empty where it has none.
fn label<'s>(series: &'s InstantSeries, name: &str) -> &'s str {
    series.labels.get(name).map_or("", String::as_str)
}

/// The host that a series is about; `None` without the label `instance`.
fn host(series: &InstantSeries) -> Option<&str> {
    Some(label(series, "instance")).filter(|name| !name.is_empty())
}
