//! The commands of all findings, in order.

use std::collections::BTreeSet;

use crate::{
    document::Diagnosed,
    text::{Ink, Line, Page},
};

/// More commands than this are cut in the plan unless all is asked for: 64 interrupts to move
/// are one idea.
const MANY: usize = 12;

pub fn show(d: &Diagnosed, page: &mut Page) {
    let mut seen = BTreeSet::new();
    let mut steps: Vec<(u32, &str)> = vec![];
    for f in &d.findings {
        for c in f.changes.iter().filter(|c| !c.command.is_empty()) {
            if seen.insert(c.command.as_str()) {
                steps.push((f.rank, &c.command));
            }
        }
    }
    if steps.is_empty() {
        return;
    }
    page.gap();
    page.line(
        Line::new()
            .ink(Ink::Strong, "PLAN")
            .text("  (in this order; measure after each step. Nothing was changed.)"),
        6,
    );
    let shown = if page.look().verbose { steps.len() } else { MANY.min(steps.len()) };
    for (i, (rank, command)) in steps.iter().take(shown).enumerate() {
        page.raw(
            &Line::plain(format!("{:>4}. ", i + 1))
                .text(command)
                .ink(Ink::Faint, format!("   # finding {rank}")),
        );
    }
    if steps.len() > shown {
        let more = steps.len() - shown;
        page.line(Line::plain(format!("      and {more} more; -v shows them all")), 6);
    }
}
