//! Findings by rank, each with what it rests on.

use model::{Change, Finding, Severity};

use crate::{
    document::Diagnosed,
    text::{Ink, Line, Page},
};

/// Columns of the labels under a finding.
const LABEL: usize = 12;
/// Lines of evidence shown of one finding, and half as many changes, unless all is asked for.
const MOST: usize = 8;

pub fn show(d: &Diagnosed, page: &mut Page) {
    for f in &d.findings {
        page.gap();
        finding(f, &d.findings, page);
    }
}

fn finding(f: &Finding, all: &[Finding], page: &mut Page) {
    let ink = match f.severity {
        Severity::Critical => Ink::Bad,
        Severity::Warning => Ink::Warn,
        Severity::Info => Ink::Faint,
    };
    page.labelled(
        Line::new().ink(Ink::Strong, format!("{:>2}", f.rank)).text("  "),
        &Line::new()
            .ink(ink, f.severity.to_string().to_uppercase())
            .text("  ")
            .ink(Ink::Strong, &f.title)
            .ink(Ink::Faint, format!("  [{} {}]", f.rule, f.number)),
    );
    if !f.explanation.is_empty() {
        page.labelled(Line::plain("    "), &Line::plain(&f.explanation));
    }
    let some = |n: usize, most: usize| if page.look().verbose { n } else { n.min(most) };
    let (evidence, changes) = (some(f.evidence.len(), MOST), some(f.changes.len(), MOST / 2));
    for (i, e) in f.evidence.iter().take(evidence).enumerate() {
        let value = Line::plain(format!("{}: ", e.what))
            .ink(Ink::Strong, &e.value)
            .ink(Ink::Faint, format!("  [{}]", e.source));
        page.labelled(label(if i == 0 { "evidence" } else { "" }), &value);
    }
    more(f.evidence.len() - evidence, page);
    let mut sure = Line::plain(f.confidence);
    let causes: Vec<String> = f.caused_by.iter().map(|c| cause(c, all)).collect();
    if !causes.is_empty() {
        page.labelled(label("because of"), &Line::plain(causes.join(", ")));
    }
    let mut labelled = true;
    for (i, c) in f.changes.iter().take(changes).enumerate() {
        // The same risk is told once, after the last change that has it; the next change is then
        // named as one, not to be read as the risk's.
        let next = f.changes.get(i + 1).filter(|_| i + 1 < changes);
        let with_risk = next.is_none_or(|n| n.risk != c.risk);
        change(c, labelled, with_risk, page);
        labelled = with_risk;
    }
    more(f.changes.len() - changes, page);
    if !f.expected_benefit.is_empty() {
        page.labelled(label("benefit"), &Line::plain(&f.expected_benefit));
    }
    sure.push(Ink::Faint, confidence_means(f));
    page.labelled(label("confidence"), &sure);
}

fn confidence_means(f: &Finding) -> &'static str {
    match f.confidence {
        model::Confidence::Low => "  (a setting only; no counter shows that it hurts)",
        model::Confidence::Medium => "  (counters fit, other causes are possible)",
        model::Confidence::High => "  (counters over the window show it)",
    }
}

/// `2 few_channels`: the rank to look at.
fn cause(rule: &str, all: &[Finding]) -> String {
    let rank = all.iter().find(|f| f.rule == rule).map(|f| format!("{} ", f.rank));
    format!("{}{rule}", rank.unwrap_or_default())
}

fn change(c: &Change, labelled: bool, with_risk: bool, page: &mut Page) {
    let name = if labelled { "change" } else { "" };
    let from_to = match (c.old.is_empty(), c.new.is_empty()) {
        (false, false) => format!("{} → {}", c.old, c.new),
        (true, _) => c.new.clone(),
        (false, true) => c.old.clone(),
    };
    let what = if c.knob.is_empty() { from_to } else { format!("{}: {from_to}", c.knob) };
    page.labelled(label(name), &Line::plain(what));
    if !c.command.is_empty() {
        // Never wrapped: it is there to be copied.
        page.raw(&label("").ink(Ink::Strong, &c.command));
    }
    if with_risk && !c.risk.is_empty() {
        page.labelled(label("risk"), &Line::plain(&c.risk));
    }
}

fn more(n: usize, page: &mut Page) {
    if n > 0 {
        page.labelled(
            label(""),
            &Line::new().ink(Ink::Faint, format!("and {n} more; -v shows them")),
        );
    }
}

fn label(name: &str) -> Line {
    Line::plain("    ").ink(Ink::Faint, format!("{name:<LABEL$}"))
}
