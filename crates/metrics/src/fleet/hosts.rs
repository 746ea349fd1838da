//! The hosts, their states and their findings.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use model::{
    Severity,
    fleet::{FleetFinding, FleetHost, HostState},
};

use super::{
    host, label,
    queries::{Answers, Part},
};

/// All hosts, worst first: by the numbers of findings at or above `least`, the most severe first; of
/// equal ones those without an answer first, then by name.
pub(super) fn hosts(answers: &Answers, least: Severity) -> Vec<FleetHost> {
    let names = |part| answers.of(part).filter_map(host).collect::<BTreeSet<&str>>();
    let (builds, stalled) = (names(Part::Builds), names(Part::Stalled));
    let up: BTreeMap<&str, bool> = targets(answers);
    let down = up.iter().filter(|(_, answers)| !**answers).map(|(name, _)| *name);
    let mut all: BTreeMap<&str, FleetHost> =
        builds.iter().copied().chain(names(Part::Known)).chain(down).map(|n| (n, new(n))).collect();
    let judged = names(Part::Counts);
    let unclear: BTreeSet<&str> =
        answers.of(Part::Counts).filter(|s| !is_number(s.value)).filter_map(host).collect();
    for (name, host) in &mut all {
        host.state = match up.get(name) {
            Some(false) => HostState::Down,
            // It answered within the last hour, and now it is no target, or one of something else.
            _ if !builds.contains(name) => HostState::Gone,
            _ if stalled.contains(name) => HostState::Stalled,
            _ if !judged.contains(name) => HostState::Starting,
            _ if unclear.contains(name) => HostState::Unclear,
            _ => HostState::Judged,
        };
    }
    fill(&mut all, answers, least);
    let mut hosts: Vec<FleetHost> = all.into_values().collect();
    hosts.sort_by_cached_key(|h| {
        let counts = [
            (Severity::Critical, h.critical),
            (Severity::Warning, h.warning),
            (Severity::Info, h.info),
        ];
        let counts = counts.map(|(severity, n)| if severity >= least { n } else { 0 });
        (Reverse(counts), h.state, h.name.clone())
    });
    hosts
}

/// Whether each target answers; a target of several jobs answers where one of them does.
fn targets(answers: &Answers) -> BTreeMap<&str, bool> {
    let mut up = BTreeMap::new();
    for series in answers.of(Part::Up) {
        if let Some(name) = host(series) {
            *up.entry(name).or_default() |= series.value == 1.0;
        }
    }
    up
}

fn new(name: &str) -> FleetHost {
    FleetHost {
        name: name.to_owned(),
        state: HostState::Gone,
        version: None,
        critical: 0,
        warning: 0,
        info: 0,
        findings: vec![],
        drifted: vec![],
    }
}

fn fill(all: &mut BTreeMap<&str, FleetHost>, answers: &Answers, least: Severity) {
    for series in answers.of(Part::Builds) {
        if let Some(host) = host(series).and_then(|n| all.get_mut(n)) {
            host.version = Some(label(series, "version").to_owned());
        }
    }
    for series in answers.of(Part::Counts) {
        let Some(host) = host(series).and_then(|n| all.get_mut(n)) else { continue };
        // Without a number the host is unclear.
        let n = if is_number(series.value) { series.value as u64 } else { 0 };
        match severity(label(series, "severity")) {
            Some(Severity::Critical) => host.critical = n,
            Some(Severity::Warning) => host.warning = n,
            Some(Severity::Info) => host.info = n,
            None => {}
        }
    }
    for series in answers.of(Part::Findings) {
        let Some(host) = host(series).and_then(|n| all.get_mut(n)) else { continue };
        let found = severity(label(series, "severity")).filter(|s| *s >= least);
        if let Some(severity) = found {
            let (rule, subject) = (label(series, "rule"), label(series, "subject"));
            let (rule, subject) = (rule.to_owned(), subject.to_owned());
            host.findings.push(FleetFinding { severity, rule, subject });
        }
    }
    for series in answers.of(Part::Drift) {
        if let Some(host) = host(series).and_then(|n| all.get_mut(n)) {
            host.drifted.push(label(series, "knob").to_owned());
        }
    }
    for host in all.values_mut() {
        host.findings.sort_by(|a, b| {
            b.severity
                .cmp(&a.severity)
                .then_with(|| (&a.rule, &a.subject).cmp(&(&b.rule, &b.subject)))
        });
        host.findings.dedup();
        host.drifted.sort();
        host.drifted.dedup();
        // The numbers and the findings are of two moments where a scrape lies between two answers.
        let of = |severity| host.findings.iter().filter(|f| f.severity == severity).count() as u64;
        host.critical = host.critical.max(of(Severity::Critical));
        host.warning = host.warning.max(of(Severity::Warning));
        host.info = host.info.max(of(Severity::Info));
    }
}

/// Whether it can be a number of findings.
fn is_number(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

fn severity(word: &str) -> Option<Severity> {
    [Severity::Critical, Severity::Warning, Severity::Info]
        .into_iter()
        .find(|s| s.to_string() == word)
}
