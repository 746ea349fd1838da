//! What limits which of many hosts: `netwright doctor --fleet --json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::Severity;

/// Whether a host's exporter answers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// Prometheus cannot scrape it.
    Down,
    /// Prometheus scraped it within the last hour, and has no such target any more.
    Gone,
    /// It answers, and has judged nothing for five minutes.
    Stalled,
    /// It answers, and its first interval is not over.
    Starting,
    /// Its exporter reports invalid counts of findings: NaN, infinite or negative.
    Unclear,
    /// It answers with findings of its last interval.
    Judged,
}

/// A finding as the exporter has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct FleetFinding {
    pub severity: Severity,
    pub rule: String,
    /// The object that it is about, such as an interface.
    pub subject: String,
}

/// A host by what its exporter last said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetHost {
    /// The label `instance` of its series: mostly `HOST:PORT`.
    pub name: String,
    pub state: HostState,
    /// Version of the exporter; `null` while it does not answer.
    pub version: Option<String>,
    /// Critical findings, whatever the least severity that was asked for.
    pub critical: u64,
    /// Findings that are warnings, likewise.
    pub warning: u64,
    /// Findings that are information, likewise.
    pub info: u64,
    /// The findings at or above the least severity, the most severe first.
    pub findings: Vec<FleetFinding>,
    /// Knobs of applied changes whose value is another one now.
    pub drifted: Vec<String>,
}

/// A rule that has findings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetCause {
    pub rule: String,
    /// The most severe of its findings.
    pub severity: Severity,
    /// The hosts that have one, worst first.
    pub hosts: Vec<String>,
    /// Number of findings on all hosts.
    pub findings: usize,
}

/// A change that would remedy findings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetChange {
    pub knob: String,
    /// The new value; empty where the exporters do not tell it.
    pub value: String,
    /// The hosts that it would help, worst first.
    pub hosts: Vec<String>,
    /// The rules whose findings it would remedy.
    pub rules: Vec<String>,
    /// A command that rolls it out; empty where a name or the value cannot safely stand in one.
    pub command: String,
}

/// The diagnosis of many hosts by what a Prometheus knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetDocument {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The Prometheus that was asked.
    pub target: String,
    /// When it answered, seconds since 1970 by its clock.
    pub at_unix_s: f64,
    /// The least severity of findings that are listed and counted as causes.
    pub min_severity: Severity,
    /// All hosts, worst first.
    pub hosts: Vec<FleetHost>,
    /// The rules with findings, those on most hosts first.
    pub causes: Vec<FleetCause>,
    /// The changes, those that help most hosts first.
    pub changes: Vec<FleetChange>,
    /// What Prometheus says that makes its answer incomplete, each once.
    pub warnings: Vec<String>,
}
