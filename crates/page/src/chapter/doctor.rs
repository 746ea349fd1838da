//! `doctor`: what limits the host, with the evidence and the changes.

use model::{Finding, Severity, finding::Confidence};
use report::DoctorDocument;

use super::{
    Part, Written,
    shared::{many, remarks},
};
use crate::{
    block::{Block, Cell, Chapter, Table, Text, Tone},
    chart::{Row, Rows},
    document::Document,
    unit::Unit,
};

pub fn write(d: &Document, typed: &DoctorDocument) -> Written {
    let host = typed.host.name.get().unwrap_or_else(|| "a host without a name".into());
    let mut w =
        Written { chapter: Chapter::new("", format!("Diagnosis of {host}")), ..Written::default() };
    story(typed, &host, &mut w);
    let chapter = &mut w.chapter;
    facts(d, typed, chapter);
    if !typed.findings.is_empty() {
        chapter.heading("Findings");
        typed.findings.iter().enumerate().for_each(|(n, f)| finding(n, f, chapter));
    }
    softirq(d, chapter);
    rest(typed, chapter);
    w
}

fn story(typed: &DoctorDocument, host: &str, w: &mut Written) {
    let strong = |f: &&Finding| f.severity > Severity::Info;
    let mut found: Vec<&Finding> = typed.findings.iter().filter(strong).collect();
    found.sort_by_key(|f| f.rank);
    for f in found.iter().take(5) {
        let text =
            Text::default().then(tone(f.severity), label(f.severity)).and(format!(": {}", f.title));
        w.tell(Part::Limits, text);
    }
    let text = match found.len() {
        0 => format!("Diagnosis of {host}: {}.", report::doctor::nothing_found_because(typed)),
        n if n > 5 => format!("{} more are in the diagnosis of {host}.", many(n - 5, "finding")),
        _ => return,
    };
    w.tell(Part::Limits, Text::plain(text));
}

fn facts(d: &Document, typed: &DoctorDocument, chapter: &mut Chapter) {
    let count = |severity| typed.findings.iter().filter(|f| f.severity == severity).count();
    let counts = [
        format!("{} critical", count(Severity::Critical)),
        format!("{} warning", count(Severity::Warning)),
        format!("{} info", count(Severity::Info)),
        format!("{} passed", typed.passed.len()),
        format!("{} skipped", typed.skipped.len()),
    ];
    chapter.say(Text::strong(counts.join(" · ")));
    let kernel = typed.kernel.get().map(|k| format!("Linux {k}"));
    let system = typed.host.distribution.get();
    let cpus = typed.host.cpus_online.known().map(|c| many(c.iter().count(), "CPU"));
    let window = match d.number("/window_ns") {
        Some(ns) => format!("counters over {}", Unit::Nanos.show(ns)),
        None => {
            format!("settings only, no counters: {}", typed.window_ns.why_not().unwrap_or_default())
        }
    };
    let goal = match typed.goal {
        model::Goal::Throughput => "goal: throughput",
        model::Goal::Latency => "goal: latency",
    };
    let parts = [kernel, system, cpus, Some(window), Some(goal.into())];
    chapter.say(Text::plain(parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")));
}

fn label(s: Severity) -> &'static str {
    match s {
        Severity::Critical => "Critical",
        Severity::Warning => "Warning",
        Severity::Info => "Info",
    }
}

fn tone(s: Severity) -> Tone {
    match s {
        Severity::Critical => Tone::Bad,
        Severity::Warning => Tone::Warn,
        Severity::Info => Tone::Plain,
    }
}

fn finding(n: usize, f: &Finding, chapter: &mut Chapter) {
    let confidence = match f.confidence {
        Confidence::High => "high: counters over the window show it",
        Confidence::Medium => "medium: counters are consistent with it, other causes are possible",
        Confidence::Low => "low: a setting only, no counter shows that it hurts",
    };
    let mut inside = vec![Block::Paragraph(Text::plain(&f.explanation))];
    let mut line = Text::strong("Confidence ").and(format!("{confidence}."));
    if !f.expected_benefit.is_empty() {
        line = line.then(Tone::Strong, " Expected benefit: ").and(&f.expected_benefit);
    }
    inside.push(Block::Paragraph(line));
    if !f.caused_by.is_empty() {
        let text =
            Text::strong("Explained by: ").and(f.caused_by.join(", ")).and("; remedy that first.");
        inside.push(Block::Paragraph(text));
    }
    let mut evidence = Table::new("Evidence").words("what").words("value").words("source");
    for e in &f.evidence {
        evidence.row([&e.what, &e.value, &e.source].map(Cell::text));
    }
    inside.push(Block::Table(evidence.without_empty_columns()));
    if !f.changes.is_empty() {
        let mut changes = Table::new("Changes that remedy it")
            .words("setting")
            .words("now")
            .words("new")
            .words("impact");
        for c in &f.changes {
            let knob = if c.knob.is_empty() { "by hand" } else { &c.knob };
            changes.row([
                Cell::text(knob),
                Cell::text(&c.old),
                Cell::text(&c.new),
                Cell::text(&c.risk),
            ]);
        }
        inside.push(Block::Table(changes.without_empty_columns()));
        let commands: Vec<String> =
            f.changes.iter().map(|c| c.command.clone()).filter(|c| !c.is_empty()).collect();
        if !commands.is_empty() {
            inside.push(Block::Commands(commands));
        }
    }
    chapter.blocks.push(Block::Card {
        tone: tone(f.severity),
        tag: label(f.severity).into(),
        title: format!("{} (finding {}, rule {})", f.title, n + 1, f.rule),
        inside,
    });
}

/// Where softirqs ran over the window.
fn softirq(d: &Document, chapter: &mut Chapter) {
    const AT: &str = "/window/softirq/measured_ns";
    let contexts = [
        ("syscall", "in syscall"),
        ("interrupting_task", "interrupting a task"),
        ("idle", "in idle"),
        ("ksoftirqd", "ksoftirqd"),
        ("threaded", "threaded NAPI"),
    ];
    if d.at(AT).is_none() {
        return;
    }
    let parts =
        [("net_rx", "NET_RX"), ("net_tx", "NET_TX"), ("pacing", "pacing"), ("other", "other")];
    let title = "Softirq time over the window, by context and kind";
    let mut table = parts.iter().fold(Table::new(title).words("context"), |t, p| t.figures(p.1));
    let mut rows = vec![];
    for (key, name) in contexts {
        let at = |part: &str| format!("{AT}/{key}/{part}");
        let sum: Option<f64> = parts.iter().map(|p| d.number(&at(p.0))).sum();
        if sum.is_none() && key == "threaded" {
            continue;
        }
        let cells = parts.iter().map(|p| d.cell(&at(p.0), Unit::Nanos));
        table.row([Cell::text(name)].into_iter().chain(cells));
        let text = sum.map_or_else(|| "not known".to_owned(), |s| Unit::Nanos.show(s));
        rows.push(Row { label: name.into(), value: sum, ends: None, text, tone: Tone::Plain });
    }
    chapter.heading("Softirq time");
    let chart = Rows {
        about: "Softirq time of all CPUs over the window, by the context that it ran in.".into(),
        unit: Unit::Nanos,
        changes: false,
        rows,
    };
    chapter.figure(chart, table);
}

fn rest(typed: &DoctorDocument, chapter: &mut Chapter) {
    if !typed.passed.is_empty() {
        chapter.heading("Rules that passed");
        let mut table = Table::new("What each rule checked").words("rule").words("because");
        typed.passed.iter().for_each(|p| table.row([Cell::text(&p.rule), Cell::text(&p.because)]));
        chapter.table(table);
    }
    if !typed.skipped.is_empty() {
        chapter.heading("Not checked");
        let mut table =
            Table::new("Checks without evidence").words("rule").words("of").words("why");
        for s in &typed.skipped {
            table.row([&s.rule, &s.subject, &s.why].map(Cell::text));
        }
        chapter.table(table.without_empty_columns());
    }
    let line = |n: &model::facts::NoAccess| match n.remedy.as_str() {
        "" => format!("{}: {}", n.what, n.why),
        remedy => format!("{}: {}; {remedy}", n.what, n.why),
    };
    remarks("Not read", typed.no_access.iter().map(line).collect(), chapter);
}
