//! `tune` as text: plans, results and states of changes.

mod plan;
mod standing;

use model::tune::{
    FileAct, KeptValue, LeftOut, Outcome, Persisted, Profile, ProfileValue, Profiles,
};

pub use plan::plan;
pub(crate) use standing::utc;
pub use standing::{log, status};

use crate::text::{Ink, Line, Page, Table, TextStyle};

/// The result of applying, confirming or rolling back.
pub fn outcome(outcome: &Outcome, look: TextStyle) -> String {
    let mut page = Page::new(look);
    let ink = if outcome.done { Ink::Plain } else { Ink::Bad };
    for note in &outcome.notes {
        page.line(Line::new().ink(ink, note.to_string()), 2);
    }
    page.finish()
}

/// What is kept over a reboot, and what is not.
pub fn persisted(doc: &Persisted, look: TextStyle) -> String {
    let mut page = Page::new(look);
    if doc.files.is_empty() && doc.not_kept.is_empty() {
        page.line(Line::plain("Nothing is kept over a reboot; nothing was written."), 2);
    }
    for file in &doc.files {
        let (ink, act) = match (file.act, doc.dry_run) {
            (FileAct::Written, false) => (Ink::Good, "written"),
            (FileAct::Written, true) => (Ink::Good, "would be written"),
            (FileAct::Unchanged, _) => (Ink::Faint, "unchanged"),
            (FileAct::Removed, false) => (Ink::Good, "removed"),
            (FileAct::Removed, true) => (Ink::Good, "would be removed"),
            (FileAct::Missing, _) => (Ink::Faint, "was removed before"),
            (FileAct::Left, _) => (Ink::Bad, "left in place: changed since it was written"),
        };
        page.line(Line::new().ink(Ink::Strong, &file.path).text("  ").ink(ink, act), 4);
        let keeps = |k: &&KeptValue| k.by == file.path && file.act != FileAct::Removed;
        for k in doc.kept.iter().filter(keeps) {
            page.line(Line::plain(format!("    {} = {}  (change {})", k.knob, k.value, k.id)), 8);
        }
        if doc.dry_run || look.verbose {
            for line in file.content.lines() {
                page.raw(&Line::plain("    | ").ink(Ink::Faint, line));
            }
        }
    }
    if !doc.not_kept.is_empty() {
        page.heading("NOT KEPT");
        for n in &doc.not_kept {
            let line = Line::plain("  ").ink(Ink::Bad, format!("{}={}", n.knob, n.value));
            page.line(line.text(format!(": {} (change {})", n.why, n.id)), 6);
        }
    }
    if !doc.notes.is_empty() {
        page.gap();
        for note in &doc.notes {
            page.line(Line::new().ink(Ink::Warn, format!("Note: {note}.")), 6);
        }
    }
    page.finish()
}

/// Profiles: a line each, or with their settings and reasons (verbose).
pub fn profiles(all: &Profiles, look: TextStyle) -> String {
    let mut page = Page::new(look);
    if look.verbose {
        for (i, one) in all.profiles.iter().enumerate() {
            if i > 0 {
                page.gap();
            }
            profile(one, &mut page);
        }
        return page.finish();
    }
    let mut table = Table::new().left("profile").right("lines").wrapping("for");
    for p in &all.profiles {
        let name = Line::new().ink(Ink::Strong, &p.name);
        table.row([name, Line::plain(p.lines.len()), Line::plain(&p.description)]);
    }
    page.table(&table, 0);
    page.finish()
}

fn profile(p: &Profile, page: &mut Page) {
    page.line(Line::new().ink(Ink::Strong, &p.name).text(format!(": {}", p.description)), 2);
    if !p.inherits.is_empty() {
        page.line(Line::plain(format!("inherits {}", p.inherits.join(", "))), 2);
    }
    for line in &p.lines {
        let (how, value) = match &line.wanted {
            ProfileValue::Exactly(v) => (" = ", v),
            ProfileValue::AtLeast(v) => (" at least ", v),
        };
        page.gap();
        let head = Line::plain("  ").ink(Ink::Strong, &line.knob).text(how).ink(Ink::Good, value);
        page.line(head.text("  ").ink(Ink::Faint, format!("({})", line.at)), 6);
        page.line(Line::plain(format!("      {}", line.why)), 6);
        if let Some(refuted) = &line.refuted {
            page.line(Line::plain("      ").ink(Ink::Bad, format!("refused: {refuted}")), 6);
        }
    }
    if !p.left_out.is_empty() {
        page.heading("LEFT OUT ON PURPOSE");
        for LeftOut { what, why } in &p.left_out {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            page.line(Line::plain(format!("  {what}{why}")), 4);
        }
    }
}

#[cfg(test)]
mod tests;
