//! The commands of all findings, in order.

use std::collections::BTreeSet;

use crate::{
    doctor::document::DoctorDocument,
    text::{Ink, Line, Page},
};

/// The most commands in the plan without `-v`: 64 interrupts to move are one idea.
const MANY: usize = 12;

/// The commands in the findings' order, each once.
pub struct Plan<'a> {
    /// The finding's rank and the command.
    steps: Vec<(u32, &'a str)>,
}

impl<'a> Plan<'a> {
    /// The plan of a diagnosis.
    pub fn new(d: &'a DoctorDocument) -> Self {
        let mut seen = BTreeSet::new();
        let mut steps = vec![];
        for f in &d.findings {
            for c in f.changes.iter().filter(|c| !c.command.is_empty()) {
                if seen.insert(c.command.as_str()) {
                    steps.push((f.rank, c.command.as_str()));
                }
            }
        }
        Self { steps }
    }

    /// The finding's steps, `1` or `1-3`; empty where other findings have all its commands.
    pub fn steps_of(&self, rank: u32) -> String {
        let numbers = self.steps.iter().zip(1..).filter(|((of, _), _)| *of == rank);
        crate::words::ranges(numbers.map(|(_, number)| number))
    }

    pub fn show(&self, page: &mut Page) {
        if self.steps.is_empty() {
            return;
        }
        page.gap();
        page.line(
            Line::new()
                .ink(Ink::Strong, "PLAN")
                .text("  in this order; measure after each step. doctor changed nothing."),
            6,
        );
        let all = page.look().verbose;
        let shown = if all { self.steps.len() } else { MANY.min(self.steps.len()) };
        for (i, (rank, command)) in self.steps.iter().take(shown).enumerate() {
            let line = Line::plain(format!("{:>4}. ", i + 1)).text(command);
            let of = format!("   # finding {rank}");
            // A command is never broken: it is to be copied.
            let fits = line.width() + of.len() <= page.look().width;
            page.raw(&if fits { line.ink(Ink::Faint, of) } else { line });
        }
        if self.steps.len() > shown {
            let more = self.steps.len() - shown;
            page.line(Line::plain(format!("      and {more} more; -v shows them all")), 6);
        }
    }
}
