//! `doctor`: its document, and the document as text: header, verdict, findings, plan, passed rules, skipped rules.

pub mod cpu_time;
pub mod document;
mod findings;
pub mod fleet;
pub mod peer;
mod plan;
mod rest;
mod sender_lines;

use model::{
    Goal, Severity,
    reading::{Absent, Denied, Known},
    samples::{HostChange, TRAFFIC_PER_S},
    units::grouped,
};

use crate::{
    doctor::document::DoctorDocument,
    inspect::dotted,
    text::{Ink, Line, Page, TextStyle},
    words::many,
};

pub fn text(d: &DoctorDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    head(d, &mut page);
    verdict(d, &mut page);
    warnings(d, &mut page);
    let plan = plan::Plan::new(d);
    findings::show(d, &plan, &mut page);
    plan.show(&mut page);
    sender_lines::show(d, &mut page);
    if let Some(cpu) = cpu_of(d) {
        cpu_time::show(cpu, &mut page);
    }
    rest::softirqs(d, &mut page);
    rest::passed(d, &mut page);
    rest::not_checked(d, &mut page);
    page.finish()
}

/// One line of at most 80 columns: what the settings alone show, before the counters were sampled.
pub fn first_look(d: &DoctorDocument) -> String {
    const WIDTH: usize = 80;
    let text = match (d.findings.len(), d.findings.first()) {
        (0, _) | (_, None) => "First look: nothing wrong in the settings; now the counters".into(),
        (n, Some(first)) => {
            format!("First look: {} by settings: {}", many(n, "finding"), first.title)
        }
    };
    match text.chars().count() <= WIDTH {
        true => text,
        false => text.chars().take(WIDTH - 1).chain(['…']).collect(),
    }
}

/// How far it can be relied on that nothing was found, as a clause: the number of rules that judged,
/// the load and the window; and whether CPU time was short.
pub fn nothing_found_because(d: &DoctorDocument) -> String {
    let verdict = nothing_found(d).bare();
    match cpu_of(d).is_some_and(|cpu| cpu.all_busy() && cpu.is_short()) {
        true => format!("{verdict}; {}", cpu_time::SHORT),
        false => verdict,
    }
}

/// The header on one line: host, window, user, goal. Parts without room are left out.
fn head(d: &DoctorDocument, page: &mut Page) {
    let guest = d.host.hypervisor.get().map(|h| match h.as_str() {
        "none" => "bare metal".to_owned(),
        other => format!("{other} guest"),
    });
    let goal = match d.goal {
        Goal::Throughput => "goal: throughput",
        Goal::Latency => "goal: latency",
    };
    let by = d.host.reader.euid.get().map(|uid| match uid {
        0 => "root".to_owned(),
        uid => format!("user {uid}"),
    });
    let from = (d.source.kind != "live").then(|| format!("{} {}", d.source.kind, d.source.path));
    let name = d.host.name.get().unwrap_or_else(|| "unnamed host".into());
    let or_none = |text: Option<String>| text.map(Line::plain).unwrap_or_default();
    let mut parts = [
        Line::new().ink(Ink::Strong, name),
        or_none(d.kernel.get().map(|k| format!("Linux {k}"))),
        or_none(d.host.arch.get()),
        or_none(guest),
        or_none(d.host.cpus_online.known().map(|c| many(c.len(), "CPU"))),
        or_none(watched(d)),
        or_none(from),
        or_none(by),
        Line::plain(goal),
    ];
    let fits = |parts: &[Line]| dotted(parts.to_vec()).width() <= page.look().width;
    for least in [ARCH, GUEST] {
        if !fits(&parts)
            && let Some(part) = parts.get_mut(least)
        {
            *part = Line::new();
        }
    }
    page.line(dotted(parts), 2);
}

/// The parts of the header that are left out first.
const ARCH: usize = 2;
const GUEST: usize = 3;

/// How long the counters were sampled.
fn watched(d: &DoctorDocument) -> Option<String> {
    match (&d.window, d.window_ns.get()) {
        (Known(w), Some(ns)) if w.since_boot => Some(format!("{} since boot", days(ns))),
        (Known(w), Some(ns)) if w.interrupted => Some(format!("{ns}, interrupted")),
        (Known(_), Some(ns)) => Some(ns.to_string()),
        _ => None,
    }
}

/// A time since boot needs no seconds.
fn days(time: model::Nanos) -> String {
    let hours = time.0 / 3_600_000_000_000;
    match hours {
        0 => format!("{} min", time.0 / 60_000_000_000),
        1..48 => format!("{hours} h"),
        _ => format!("{} days", hours / 24),
    }
}

/// What weakens the verdict: a line each.
fn warnings(d: &DoctorDocument, page: &mut Page) {
    let warn = |text: String, page: &mut Page| page.line(Line::new().ink(Ink::Warn, text), 2);
    if let Absent(why) | Denied(why) = &d.window {
        warn(format!("WARNING: settings only, no counters: {why}"), page);
    }
    if d.window.known().is_some_and(|w| w.since_boot) {
        warn("WARNING: counters since boot: averages, not what happens now".into(), page);
    } else if quiet(d).is_some() {
        warn("WARNING: hardly any traffic: run again under load".into(), page);
    }
    if let Some(changes) = d.window.known().map(|w| &w.changes).filter(|c| !c.is_empty()) {
        let changes: Vec<String> = changes.iter().map(HostChange::to_string).collect();
        warn(format!("WARNING: the host changed during the window: {}", changes.join("; ")), page);
    }
}

/// The summary, on one line.
fn verdict(d: &DoctorDocument, page: &mut Page) {
    let count = |s: Severity| d.findings.iter().filter(|f| f.severity == s).count();
    let (critical, warning, info) =
        (count(Severity::Critical), count(Severity::Warning), count(Severity::Info));
    let mut parts = vec![];
    for (n, what) in [(critical, "critical"), (warning, "warning"), (info, "info")] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    let first = d.findings.first().map(|f| f.title.as_str()).unwrap_or_default();
    let counts = format!("{} ({})", many(d.findings.len(), "finding"), parts.join(", "));
    let line = match (critical, warning) {
        (0, 0) => nothing_found(d),
        (0, _) => Line::new().ink(Ink::Warn, counts).ink(Ink::Strong, format!(": {first}")),
        _ => Line::new().ink(Ink::Bad, counts).ink(Ink::Strong, format!(": {first}")),
    };
    let line = match (critical, warning, info) {
        (0, 0, 1..) => line.text(format!("; {info} info")),
        _ => line,
    };
    page.line(line, 2);
}

/// The CPU time of the window, where it was observed.
fn cpu_of(d: &DoctorDocument) -> Option<&cpu_time::CpuTime> {
    d.window.known()?.cpu.known()
}

/// The share of rules that must have judged for "no finding" to mean something. Our proposal.
const ENOUGH: f64 = 0.75;

/// How far "no finding" can be relied on: the number of rules that judged, the load and the window.
fn nothing_found(d: &DoctorDocument) -> Line {
    let rules = rest::Rules::of(d);
    let checked = format!("{} of {} checked", rules.judged, many(rules.all, "rule"));
    let warn = |text: String| Line::new().ink(Ink::Warn, text);
    if rules.judged == 0 {
        return warn("Inconclusive: no rule could be checked".into());
    }
    let Known(window) = &d.window else {
        return warn(format!("Inconclusive: {checked}, by settings alone"));
    };
    let time = match d.window_ns.get() {
        Some(ns) if window.since_boot => format!(" in {} since boot", days(ns)),
        Some(ns) => format!(" in {ns}"),
        None => String::new(),
    };
    if let Some(packets) = quiet(d) {
        let seen = format!("{}{time}", many(packets as usize, "packet"));
        return warn(format!("Inconclusive: {seen}, {checked}"));
    }
    let seconds = d.window_ns.get().map_or(0.0, |ns| ns.0 as f64 / 1e9);
    let load = match window.packets.get().filter(|_| seconds > 0.0) {
        Some(packets) => format!(" at {} packets/s", grouped((packets as f64 / seconds) as u64)),
        None => String::new(),
    };
    // What runs there cannot be faster, whatever the network does.
    let cpus = match cpu_of(d) {
        Some(cpu) if cpu.all_busy() => " with all CPUs busy",
        _ => "",
    };
    let load = format!("{load}{cpus}");
    match rules.judged as f64 >= rules.all as f64 * ENOUGH {
        true => Line::new().ink(Ink::Good, format!("Nothing found{time}{load}; {checked}")),
        false => warn(format!("Nothing found{time}{load}, but only {checked}")),
    }
}

/// The packets of a nearly idle host, unless a finding shows otherwise. Such a host passes most
/// rules, which does not prove that it can bear load.
fn quiet(d: &DoctorDocument) -> Option<u64> {
    if d.findings.iter().any(|f| f.severity > Severity::Info) {
        return None;
    }
    let packets = d.window.known()?.packets.get()?;
    let seconds = d.window_ns.get()?.0 as f64 / 1e9;
    (seconds > 0.0 && (packets as f64) < TRAFFIC_PER_S * seconds).then_some(packets)
}

#[cfg(test)]
mod tests;
