//! Findings by rank: the problem, its evidence, the remedy, and the remedy's impact.

use model::{Change, Evidence, Finding, Severity};

use super::plan::Plan;
use crate::{
    doctor::document::DoctorDocument,
    text::{Ink, Line, Page},
    words::many,
};

/// Columns of the labels under a finding.
const LABEL: usize = 16;
/// The most lines of one finding without `-v`.
const MOST: usize = 8;

pub fn show(d: &DoctorDocument, plan: &Plan<'_>, page: &mut Page) {
    for f in &d.findings {
        page.gap();
        let (label, text) = titled(f);
        page.labelled(label, &text);
        if page.look().verbose {
            full(f, &d.findings, page);
        } else {
            short(f, &d.findings, plan, page);
        }
    }
}

fn titled(f: &Finding) -> (Line, Line) {
    let ink = match f.severity {
        Severity::Critical => Ink::Bad,
        Severity::Warning => Ink::Warn,
        Severity::Info => Ink::Faint,
    };
    (
        Line::new().ink(Ink::Strong, format!("{:>2}", f.rank)).text("  "),
        Line::new()
            .ink(ink, f.severity.to_string().to_uppercase())
            .text("  ")
            .ink(Ink::Strong, &f.title)
            .ink(Ink::Faint, format!("  [{} {}]", f.rule, f.number)),
    )
}

/// One label and its text.
struct Part {
    label: &'static str,
    text: Line,
}

/// The finding in [`MOST`] lines. The remedy and its risk are always there; the evidence fills the
/// rest, in the rule's order (the most telling first).
fn short(f: &Finding, all: &[Finding], plan: &Plan<'_>, page: &mut Page) {
    let columns = page.beside(LABEL);
    let (label, text) = titled(f);
    let mut room = MOST.saturating_sub(text.height(page.beside(label.width())));
    let causes = causes(f, all);
    let mut after = vec![];
    let fix = match fix(f, plan, columns) {
        Some(fix) => {
            if !causes.is_empty() {
                after.push(Part { label: "because of", text: Line::plain(causes).cut(columns, 1) });
            }
            Some(fix)
        }
        None if causes.is_empty() => None,
        None => Some(Line::plain(format!("{causes} first")).cut(columns, 2)),
    };
    if let Some(text) = fix {
        after.push(Part { label: "fix", text });
    }
    if let Some(risk) = f.changes.iter().find(|c| !c.risk.is_empty()) {
        after.push(Part { label: "risk", text: Line::plain(&risk.risk).cut(columns, 2) });
    }
    room = room.saturating_sub(after.iter().map(|p| p.text.height(columns)).sum());
    let mut before = vec![];
    let why = Line::plain(&f.explanation);
    let no_remedy = after.is_empty();
    if no_remedy && !f.explanation.is_empty() {
        room = room.saturating_sub(why.height(columns));
    }
    for (i, e) in f.evidence.iter().enumerate() {
        let text = evidence(e, columns);
        let height = text.height(columns);
        if height > room && i > 0 {
            break;
        }
        room = room.saturating_sub(height);
        before.push(Part { label: if i == 0 { "evidence" } else { "" }, text });
    }
    if !f.explanation.is_empty() && (no_remedy || why.height(columns) <= room) {
        before.push(Part { label: "why", text: why });
    }
    for part in before.into_iter().chain(after) {
        page.labelled(self::label(part.label), &part.text);
    }
}

/// The evidence, with its source where that needs no further line.
fn evidence(e: &Evidence, columns: usize) -> Line {
    let text = Line::plain(format!("{}: ", e.what)).ink(Ink::Strong, &e.value);
    let sourced = text.clone().ink(Ink::Faint, format!("  [{}]", e.source));
    if sourced.height(columns) == text.height(columns) { sourced } else { text }
}

/// The command of the first change, whole, or the plan's steps with it.
fn fix(f: &Finding, plan: &Plan<'_>, columns: usize) -> Option<Line> {
    let first = f.changes.first()?;
    let steps = plan.steps_of(f.rank);
    let more = f.changes.len() - 1;
    let mut text = Line::new();
    let advice = first.knob.is_empty() && first.old.is_empty() && !first.new.is_empty();
    if advice {
        text.push(Ink::Plain, &first.new);
        if !first.command.is_empty() {
            text.push(Ink::Plain, ": ");
        }
    }
    text.push(Ink::Strong, &first.command);
    if more > 0 && !steps.is_empty() {
        text.push(Ink::Plain, format!("   # and {more} more: PLAN"));
    }
    // A command to copy must not be broken: the plan has it on one line.
    let fits = text.height(columns) == 1 || advice && text.height(columns) == 2;
    if fits || steps.is_empty() {
        return Some(text);
    }
    let what = match (first.knob.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!(": {} {} → {}", first.knob, first.old, first.new),
        (false, _) => format!(": {}", many(f.changes.len(), "change")),
    };
    Some(Line::new().ink(Ink::Strong, format!("PLAN {steps}")).text(what).cut(columns, 2))
}

/// Everything that is known of the finding.
fn full(f: &Finding, all: &[Finding], page: &mut Page) {
    for (i, e) in f.evidence.iter().enumerate() {
        let value = Line::plain(format!("{}: ", e.what))
            .ink(Ink::Strong, &e.value)
            .ink(Ink::Faint, format!("  [{}]", e.source));
        page.labelled(label(if i == 0 { "evidence" } else { "" }), &value);
    }
    if !f.explanation.is_empty() {
        page.labelled(label("why"), &Line::plain(&f.explanation));
    }
    let causes = causes(f, all);
    if !causes.is_empty() {
        page.labelled(label("because of"), &Line::plain(causes));
    }
    let mut labelled = true;
    for (i, c) in f.changes.iter().enumerate() {
        // An equal risk appears once, after the last change that has it. The next change then has a
        // label, as it does not share the risk.
        let with_risk = f.changes.get(i + 1).is_none_or(|n| n.risk != c.risk);
        change(c, labelled, with_risk, page);
        labelled = with_risk;
    }
    if !f.expected_benefit.is_empty() {
        page.labelled(label("benefit"), &Line::plain(&f.expected_benefit));
    }
    page.labelled(
        label("confidence"),
        &Line::plain(f.confidence).ink(Ink::Faint, confidence_means(f)),
    );
}

fn confidence_means(f: &Finding) -> &'static str {
    match f.confidence {
        model::Confidence::Low => "  (from a setting; no counter shows an effect)",
        model::Confidence::Medium => "  (counters fit; other causes are possible)",
        model::Confidence::High => "  (counters over the window show it)",
    }
}

/// The finding to deal with first: `finding 2 (few_channels)`.
fn causes(f: &Finding, all: &[Finding]) -> String {
    let named = f.caused_by.iter().map(|rule| match all.iter().find(|f| f.rule == *rule) {
        Some(cause) => format!("finding {} ({rule})", cause.rank),
        None => rule.clone(),
    });
    named.collect::<Vec<_>>().join(", ")
}

fn change(c: &Change, labelled: bool, with_risk: bool, page: &mut Page) {
    let name = if labelled { "fix" } else { "" };
    let from_to = match (c.old.is_empty(), c.new.is_empty()) {
        (false, false) => format!("{} → {}", c.old, c.new),
        (true, _) => c.new.clone(),
        (false, true) => c.old.clone(),
    };
    let what = if c.knob.is_empty() { from_to } else { format!("{}: {from_to}", c.knob) };
    page.labelled(label(name), &Line::plain(what));
    if !c.command.is_empty() {
        // Never wrapped: it is to be copied.
        page.raw(&label("").ink(Ink::Strong, &c.command));
    }
    if with_risk && !c.risk.is_empty() {
        page.labelled(label("risk"), &Line::plain(&c.risk));
    }
}

fn label(name: &str) -> Line {
    Line::plain("    ").ink(Ink::Faint, format!("{name:<width$}", width = LABEL - 4))
}
