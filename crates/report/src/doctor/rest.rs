//! Passed rules, softirq contexts, and what could not be checked.

use std::collections::{BTreeMap, BTreeSet};

use model::{facts::NoAccess, reading::Known};

use crate::{
    doctor::document::{DoctorDocument, SoftirqTime},
    inspect::{caveat, no_access_line},
    text::{Ink, Line, Page, width},
    words::many,
};

/// This many rules with the same reason share a line.
const ALIKE: usize = 3;

/// The contexts that softirqs ran in, and what `/proc/stat` says; empty where softirqs took next to
/// no time.
pub fn softirqs(d: &DoctorDocument, page: &mut Page) {
    let Some(t) = d.window.known().and_then(|w| w.softirq.known()) else { return };
    let least = t.cpu_time_ns as f64 * 0.0005;
    let all = t.measured_ns.softirq_ns();
    if (all as f64) < least && !page.look().verbose {
        return;
    }
    page.gap();
    page.labelled(Line::new().ink(Ink::Strong, "SOFTIRQS").text("  "), &softirq_text(t, least));
}

fn softirq_text(t: &SoftirqTime, least: f64) -> Line {
    let share = |ns: u64| format!("{:.1}%", ns as f64 * 100.0 / t.cpu_time_ns.max(1) as f64);
    let m = &t.measured_ns;
    let parts = [
        (m.syscall.total(), "in syscalls"),
        (m.interrupting_task.total(), "interrupting tasks"),
        (m.idle.total(), "in idle"),
        (m.ksoftirqd.total(), "in ksoftirqd"),
        (m.threaded.known().map_or(0, |t| t.total()), "in NAPI threads"),
    ];
    let parts = parts.iter().filter(|(ns, _)| *ns > 0 && *ns as f64 >= least);
    let parts: Vec<_> = parts.map(|(ns, what)| format!("{} {what}", share(*ns))).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let claimed = t.proc_stat_ns.get().map(|ns| format!(" (/proc/stat:\u{a0}{})", share(ns)));
    let all = share(m.softirq_ns());
    Line::plain(format!("{all} of CPU time{parts}{}", claimed.unwrap_or_default()))
}

/// How many rules there are, and how many of them judged.
pub struct Rules {
    pub judged: usize,
    pub all: usize,
}

impl Rules {
    pub fn of(d: &DoctorDocument) -> Self {
        let judged = judged(d);
        let all = judged.iter().copied().chain(d.skipped.iter().map(|s| s.rule.as_str()));
        Self { all: all.collect::<BTreeSet<_>>().len(), judged: judged.len() }
    }
}

/// Rules that passed or found something, for some subject at least.
fn judged(d: &DoctorDocument) -> BTreeSet<&str> {
    let passed = d.passed.iter().map(|c| c.rule.as_str());
    passed.chain(d.findings.iter().map(|f| f.rule.as_str())).collect()
}

/// Rules that found nothing: their number, or with `-v` a line each.
pub fn passed(d: &DoctorDocument, page: &mut Page) {
    let rules: BTreeSet<&str> = d.passed.iter().map(|c| c.rule.as_str()).collect();
    let Rules { all, .. } = Rules::of(d);
    if rules.is_empty() {
        return;
    }
    if !page.look().verbose {
        page.gap();
        let how_many = format!("{} of {} passed", rules.len(), many(all, "rule"));
        page.line(Line::new().ink(Ink::Good, how_many).text(": -v lists them"), 2);
        return;
    }
    page.heading("PASSED");
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for c in &d.passed {
        by_reason.entry(&c.because).or_default().push(&c.rule);
    }
    by_reason.retain(|_, rules| rules.len() >= ALIKE);
    let alone = || d.passed.iter().filter(|c| !by_reason.contains_key(c.because.as_str()));
    let longest = alone().map(|c| width(&c.rule)).max().unwrap_or(0).min(28);
    for c in alone() {
        let label = Line::plain("  ").ink(Ink::Good, format!("{:<longest$}", c.rule)).text("  ");
        page.labelled(label, &Line::plain(&c.because));
    }
    for (why, rules) in by_reason {
        page.line(Line::plain("  ").ink(Ink::Good, rules.join(", ")).text(format!(": {why}")), 4);
    }
}

/// Rules without a needed value, those that judged a part only, and unreadable values, each with what
/// would make it readable; grouped by reason.
pub fn not_checked(d: &DoctorDocument, page: &mut Page) {
    let mut no_access: Vec<&NoAccess> = d.no_access.iter().collect();
    let softirq = softirq_time(d);
    no_access.extend(&softirq);
    let judged = judged(d);
    for (title, part) in [("NOT CHECKED", false), ("CHECKED IN PART", true)] {
        let reasons = skipped(d, |rule| judged.contains(rule) == part);
        if !reasons.is_empty() {
            page.heading(title);
        }
        for (why, rules) in reasons {
            let names: Vec<String> = rules.into_iter().map(named).collect();
            caveat(&names.join(", "), why, page);
        }
    }
    if !no_access.is_empty() {
        page.heading("NOT READ");
    }
    for n in no_access {
        no_access_line(n, page);
    }
}

/// `rule`, `rule (eth0, eth1)` or `rule (5 subjects)`.
fn named((rule, subjects): (&str, Vec<&str>)) -> String {
    match subjects.len() {
        0 => rule.to_owned(),
        1..=4 => format!("{rule} ({})", subjects.join(", ")),
        n => format!("{rule} ({})", many(n, "subject")),
    }
}

/// The chosen rules by reason, in the order of the rules: each rule with its subjects.
fn skipped(
    d: &DoctorDocument,
    chosen: impl Fn(&str) -> bool,
) -> Vec<(&str, BTreeMap<&str, Vec<&str>>)> {
    let mut by_reason: Vec<(&str, BTreeMap<&str, Vec<&str>>)> = vec![];
    for n in d.skipped.iter().filter(|n| chosen(&n.rule)) {
        let at = match by_reason.iter().position(|(why, _)| *why == n.why) {
            Some(at) => at,
            None => {
                by_reason.push((&n.why, BTreeMap::new()));
                by_reason.len() - 1
            }
        };
        if let Some((_, rules)) = by_reason.get_mut(at) {
            let subjects = rules.entry(&n.rule).or_default();
            if !n.subject.is_empty() {
                subjects.push(&n.subject);
            }
        }
    }
    by_reason
}

/// Why softirq time is from the ticks of `/proc/stat`; for a running host only.
fn softirq_time(d: &DoctorDocument) -> Option<NoAccess> {
    let Known(window) = &d.window else { return None };
    let why = window.softirq.why_not().filter(|_| d.source.kind == "live")?;
    Some(NoAccess {
        what: "softirq time by eBPF".into(),
        why: format!("{why}; softirq shares come from /proc/stat, tick-sampled"),
        remedy: String::new(),
    })
}
