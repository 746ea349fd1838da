//! `doctor` as text: verdict, findings, plan, what was fine, what could not be judged.

mod findings;
mod plan;
mod rest;

use model::{
    Goal, Severity,
    reading::{Absent, Denied, Known},
    samples::TRAFFIC_PER_S,
};

use crate::{
    document::{Diagnosed, SoftirqTime},
    inspect::dotted,
    text::{Ink, Line, Page, TextStyle},
    words::many,
};

/// The whole report.
pub fn text(d: &Diagnosed, look: TextStyle) -> String {
    let mut page = Page::new(look);
    head(d, &mut page);
    page.gap();
    verdict(d, &mut page);
    findings::show(d, &mut page);
    plan::show(d, &mut page);
    rest::fine(d, &mut page);
    rest::skipped(d, &mut page);
    rest::not_visible(d, &mut page);
    page.finish()
}

/// Which host, seen by whom, for how long.
fn head(d: &Diagnosed, page: &mut Page) {
    let kernel = [d.kernel.get().map(|k| format!("Linux {k}")), d.host.arch.get()];
    let guest = d.host.hypervisor.get().map(|h| match h.as_str() {
        "none" => "bare metal".to_owned(),
        other => format!("{other} guest"),
    });
    let cpus = d.host.cpus_online.known().map(|c| many(c.len(), "CPU"));
    page.line(
        dotted([
            Line::new()
                .ink(Ink::Strong, d.host.name.get().unwrap_or_else(|| "unnamed host".into())),
            Line::plain(kernel.into_iter().flatten().collect::<Vec<_>>().join(" ")),
            guest.map(Line::plain).unwrap_or_default(),
            cpus.map(Line::plain).unwrap_or_default(),
        ]),
        2,
    );
    page.line(seen(d), 2);
    if let Some(softirq) = d.window.known().and_then(|w| w.softirq.known()) {
        page.line(Line::plain(softirq_text(softirq)), 2);
    }
    if let Some(changes) = d.window.known().map(|w| &w.changes).filter(|c| !c.is_empty()) {
        let text = format!("Changed while watched: {}.", changes.join("; "));
        page.line(Line::new().ink(Ink::Warn, text), 2);
    }
}

fn seen(d: &Diagnosed) -> Line {
    let goal = match d.goal {
        Goal::Throughput => "for throughput",
        Goal::Latency => "for latency",
    };
    let by = match d.host.reader.euid.get() {
        Some(0) => "as root".to_owned(),
        Some(uid) => format!("as user {uid}, without root"),
        None => String::new(),
    };
    let mut line = match d.source.kind.as_str() {
        "live" => Line::new(),
        kind => Line::plain(format!("From the {kind} {}: ", d.source.path)),
    };
    line = match (&d.window, d.window_ns.get()) {
        (Known(w), Some(ns)) => {
            let cut = if w.interrupted { ", interrupted" } else { "" };
            line.text(format!("watched for {ns} in {}{cut}", many(w.readings as usize, "reading")))
        }
        (Absent(why) | Denied(why), _) => {
            line.ink(Ink::Warn, format!("judged by settings alone, no counters ({why})"))
        }
        _ => line,
    };
    let tail: Vec<&str> = [by.as_str(), goal].into_iter().filter(|t| !t.is_empty()).collect();
    let line = line.text(format!(", {}.", tail.join(", ")));
    line.capitalised()
}

/// Who paid for softirqs, and what /proc/stat makes of it.
fn softirq_text(t: &SoftirqTime) -> String {
    let share = |ns: u64| format!("{:.1}%", ns as f64 * 100.0 / t.cpu_time_ns.max(1) as f64);
    let m = &t.measured_ns;
    let parts = [
        (m.syscall.total(), "at the end of tasks' own system calls"),
        (m.interrupting_task.total(), "interrupting tasks"),
        (m.idle.total(), "while idle"),
        (m.ksoftirqd.total(), "in ksoftirqd"),
    ];
    let parts = parts.iter().filter(|(ns, _)| *ns as f64 >= t.cpu_time_ns as f64 * 0.0005);
    let parts: Vec<_> = parts.map(|(ns, what)| format!("{} {what}", share(*ns))).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let threads = match &m.threaded {
        Known(t) if t.total() > 0 => format!(", NAPI threads {}", share(t.total())),
        _ => String::new(),
    };
    let claimed = match t.proc_stat_ns.get() {
        Some(ns) => format!("; /proc/stat says {}", share(ns)),
        None => String::new(),
    };
    let all = share(m.softirq_ns());
    format!("Softirqs took {all} of the CPUs' time{parts}{threads}{claimed}.")
}

/// One line that says what the rest says.
fn verdict(d: &Diagnosed, page: &mut Page) {
    let count = |s: Severity| d.findings.iter().filter(|f| f.severity == s).count();
    let (critical, warning, info) =
        (count(Severity::Critical), count(Severity::Warning), count(Severity::Info));
    let mut parts = vec![];
    for (n, what) in [(critical, "critical"), (warning, "warning"), (info, "to know")] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    let first = d.findings.first().map(|f| f.title.as_str()).unwrap_or_default();
    let line = match (critical, warning, info) {
        (0, 0, 0) => {
            Line::new().ink(Ink::Good, "Nothing found that holds this host's network back.")
        }
        (0, 0, n) => Line::new()
            .ink(Ink::Good, "Nothing holds this host's network back now")
            .text(format!("; {} worth knowing.", many(n, "thing"))),
        (0, _, _) => Line::new()
            .ink(Ink::Warn, many(d.findings.len(), "finding"))
            .text(format!(" ({}). First: {first}.", parts.join(", "))),
        _ => Line::new()
            .ink(Ink::Bad, many(d.findings.len(), "finding"))
            .text(format!(" ({}). First: {first}.", parts.join(", "))),
    };
    page.line(line, 2);
    if let (0, 0, Some(quiet)) = (critical, warning, quiet(d)) {
        page.line(quiet, 2);
    }
    if d.findings.is_empty() && !d.skipped.is_empty() {
        let n = many(d.skipped.len(), "question");
        page.line(Line::plain(format!("{n} could not be judged; see the end.")), 2);
    }
}

/// A host without traffic passes most questions: that is no proof that it stands load.
fn quiet(d: &Diagnosed) -> Option<Line> {
    let packets = d.window.known()?.packets.get()?;
    let seconds = d.window_ns.get()?.0 as f64 / 1e9;
    (seconds > 0.0 && (packets as f64) < TRAFFIC_PER_S * seconds).then(|| {
        let text = format!(
            "Hardly any traffic: {} received meanwhile. What shows only under load cannot have \
             shown; run it again under load.",
            many(packets as usize, "packet")
        );
        Line::new().ink(Ink::Warn, text)
    })
}

#[cfg(test)]
mod tests;
