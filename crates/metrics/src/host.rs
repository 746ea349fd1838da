//! Families of the whole host: findings, applied changes, and the exporter itself.

use std::collections::BTreeMap;

use model::{
    Finding, Reading,
    finding::Severity,
    tune::{Drift, Now, Status},
};

use crate::{
    Family, Kind,
    family::Value,
    limits::{CHANGES, FINDINGS, VALUE},
    totals::Totals,
};

/// The exporter's own process.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// CPU time so far, all threads, seconds.
    pub cpu_s: Option<f64>,
    pub resident_bytes: Option<u64>,
    /// When it started, seconds since 1970.
    pub start_unix_s: f64,
}

/// Findings of the last interval: one series each, and the number of all by severity.
pub fn findings(findings: &Reading<&[Finding]>) -> Vec<Family> {
    let Some(all) = findings.known() else { return vec![] };
    let mut counts = Family::gauge(
        "netwright_findings",
        "Number of findings in the last interval, by severity.",
    );
    for severity in [Severity::Critical, Severity::Warning, Severity::Info] {
        let n = all.iter().filter(|f| f.severity == severity).count();
        counts.count(&[("severity", &severity.to_string())], Some(n as u64));
    }
    let mut one = Family::gauge(
        "netwright_finding",
        "1 for each finding of the last interval; the rule names a page of the documentation.",
    );
    let mut change = Family::gauge(
        "netwright_finding_change",
        "1 for each setting that would remedy a finding of the last interval, with its new value; \
         `netwright doctor` has the reasons.",
    );
    let mut ranked: Vec<&Finding> = all.iter().collect();
    ranked.sort_by_key(|f| f.rank);
    // A rule may name an object twice; a series must be there once.
    let (mut seen, mut knobs) = (BTreeMap::new(), BTreeMap::new());
    for f in ranked.into_iter().take(FINDINGS) {
        let severity = f.severity.to_string();
        let key = (f.rule.as_str(), f.subject.as_str());
        if seen.insert(key, ()).is_none() {
            let labels = [("rule", key.0), ("subject", key.1), ("severity", &severity)];
            one.count(&labels, Some(1));
        }
        let first = f.changes.iter().find(|c| !c.knob.is_empty());
        if let Some(first) = first
            && knobs.insert((key, first.knob.as_str()), ()).is_none()
        {
            let value = if first.new.len() <= VALUE { first.new.as_str() } else { "" };
            let knob = first.knob.as_str();
            let labels = [("rule", key.0), ("subject", key.1), ("knob", knob), ("value", value)];
            change.count(&labels, Some(1));
        }
    }
    vec![counts, one, change]
}

/// Applied changes: whether each value is still the written one.
pub fn changes(status: &Reading<&Status>) -> Vec<Family> {
    let Some(status) = status.known() else { return vec![] };
    let mut sets = Family::gauge(
        "netwright_change_sets",
        "Number of change sets that are not rolled back and not gone with a reboot, by state.",
    );
    let mut by_state: BTreeMap<String, u64> = BTreeMap::new();
    for set in &status.sets {
        *by_state.entry(set.state.to_string().replace(' ', "_")).or_default() += 1;
    }
    for (state, n) in by_state {
        sets.count(&[("state", &state)], Some(n));
    }
    let mut drifted = Family::gauge(
        "netwright_change_drifted",
        "Whether a value that `netwright tune` wrote is another one now: 1, otherwise 0.",
    );
    let mut seen: BTreeMap<(String, &str), bool> = BTreeMap::new();
    for value in status.values.iter().take(CHANGES) {
        let drifted = seen.entry((value.id.to_string(), knob(value))).or_default();
        *drifted |= value.drift != Drift::None;
    }
    for ((id, knob), is) in seen {
        drifted.count(&[("change", &id), ("knob", knob)], Some(u64::from(is)));
    }
    vec![sets, drifted]
}

/// The knob's present name.
fn knob(value: &Now) -> &str {
    if value.called.is_empty() { &value.knob } else { &value.called }
}

/// The exporter itself: its version, its cost, and when the last interval ended.
pub fn exporter(version: &str, process: &Process, totals: &Totals) -> Vec<Family> {
    let ended = Family::gauge(
        "netwright_last_interval_timestamp_seconds",
        "When the last interval ended, in seconds since 1970.",
    );
    let overhead = Family::gauge(
        "netwright_observer_overhead_ratio",
        "What the exporter and its eBPF programs cost in the last interval, as a share of the host's \
         CPU time.",
    );
    let mut all = own("export", version, process);
    all.extend([ended.with(&[], totals.ended_unix_s), overhead.with(&[], totals.overhead)]);
    all
}

/// What is on every page: the program's version and which of its commands serves the page, CPU time,
/// memory and start.
pub fn own(command: &str, version: &str, process: &Process) -> Vec<Family> {
    let help = "The version of the exporter, and the command that serves: export or mesh.";
    let mut build = Family::new(Kind::Info, "netwright_build", help);
    build.add(&[("command", command), ("version", version)], Value::Count(1));
    let cpu = Family::counter("process_cpu_seconds", "CPU time of the exporter.");
    let memory = Family::gauge("process_resident_memory_bytes", "Resident memory of the exporter.");
    let start = Family::gauge(
        "process_start_time_seconds",
        "When the exporter started, in seconds since 1970; its own sums began then.",
    );
    vec![
        build,
        cpu.with(&[], process.cpu_s),
        memory.with(&[], process.resident_bytes.map(|b| b as f64)),
        start.with(&[], Some(process.start_unix_s)),
    ]
}
