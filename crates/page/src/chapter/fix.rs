//! `fix`: which remedies were tried, what was kept, and what it gave.

use model::fix::{Candidate, CandidateStatus, FixChange, FixDocument};

use super::{
    Part, Written,
    prove::{change_row, changes, spoken, unit, verdict_cells, verdict_heads},
    shared::{many, remarks, tone},
};
use crate::{
    block::{Cell, Chapter, Table, Text, Tone},
    document::Document,
};

pub fn write(d: &Document, typed: &FixDocument) -> Written {
    let mut w = Written { chapter: Chapter::new("", "Remedies tried"), ..Written::default() };
    story(typed, &mut w);
    let chapter = &mut w.chapter;
    let tried = typed.candidates.iter().filter(|c| c.verdict.is_some()).count();
    let how = format!(
        "{} of {} tried in {:.0} s; {}. Goal: {}. Workload: ",
        tried,
        many(typed.candidates.len(), "candidate"),
        typed.took_s,
        typed.ended,
        typed.goal
    );
    chapter.say(Text::plain(how).then(Tone::Code, &typed.workload));
    candidates(d, typed, chapter);
    kept(typed, chapter);
    remarks("Remarks", typed.notes.iter().map(ToString::to_string).collect(), chapter);
    w
}

fn story(typed: &FixDocument, w: &mut Written) {
    if typed.dry_run {
        let text = "Nothing: a dry run only listed the remedies.";
        w.tell(Part::Changed, Text::plain(text));
        return w.chapter.say(Text::plain(text));
    }
    if typed.changes.is_empty() {
        let text =
            "Nothing: no remedy that was tried is shown to help, and every value was restored.";
        w.tell(Part::Changed, Text::plain(text));
        w.chapter.say(Text::plain(text));
    }
    for c in &typed.changes {
        w.tell(Part::Changed, change(c));
    }
    let (said, verdict) = match &typed.total {
        Some(v) => ("all kept changes together", Some(v)),
        None => {
            let one = typed.candidates.iter().find(|c| c.status == CandidateStatus::Kept);
            ("the kept change", one.and_then(|c| c.verdict.as_ref()))
        }
    };
    if let Some(v) = verdict {
        let text = Text::default().then(tone(v.outcome), report::prove::says(v)).and(format!(
            ": {} {} with {said}.",
            spoken(&typed.goal),
            report::prove::effect(v)
        ));
        w.tell(Part::Gained, text.clone());
        w.chapter.say(text);
    }
}

fn change(c: &FixChange) -> Text {
    let host = if c.host.is_empty() { String::new() } else { format!(" on {}", c.host) };
    let old = if c.old.is_empty() { "not read" } else { &c.old };
    let unit = if c.unit.is_empty() { String::new() } else { format!(" {}", c.unit) };
    Text::default().then(Tone::Code, &c.knob).and(format!("{host}: {old} → {}{unit}.", c.new))
}

fn status(c: &Candidate, dry_run: bool) -> (&'static str, Tone) {
    match c.status {
        CandidateStatus::Kept => ("kept", Tone::Good),
        CandidateStatus::Undone => ("undone", Tone::Plain),
        CandidateStatus::Refused => ("refused", Tone::Warn),
        CandidateStatus::Declined => ("declined", Tone::Plain),
        CandidateStatus::NotTried if dry_run => ("would be tried", Tone::Plain),
        CandidateStatus::NotTried => ("not tried", Tone::Plain),
    }
}

fn candidates(d: &Document, typed: &FixDocument, chapter: &mut Chapter) {
    chapter.heading("Candidates");
    let table = Table::new("Each candidate, with it against without it")
        .words("candidate")
        .words("outcome")
        .words("why");
    let mut table = verdict_heads(table);
    let mut rows = vec![];
    for (n, c) in typed.candidates.iter().enumerate() {
        let each = |c: &FixChange| format!("{}={}", c.knob, c.new);
        let knobs: Vec<String> = c.changes.iter().map(each).collect();
        let name = if knobs.is_empty() { c.asked_by.clone() } else { knobs.join(", ") };
        let (status, tone) = status(c, typed.dry_run);
        // A verdict says why in its own column.
        let why = if c.verdict.is_some() { "" } else { c.why.as_str() };
        let mut row = vec![Cell::text(&name), Cell::toned(tone, status), Cell::text(why)];
        match &c.verdict {
            Some(v) => row.extend(verdict_cells(d, &format!("/candidates/{n}/verdict"), v)),
            None => row.extend([(); 5].map(|()| Cell::none())),
        }
        table.row(row);
        rows.extend(c.verdict.as_ref().and_then(|v| change_row(&name, v)));
    }
    if let Some(v) = &typed.total {
        let mut row =
            vec![Cell::text("all kept together"), Cell::toned(Tone::Good, "kept"), Cell::text("")];
        row.extend(verdict_cells(d, "/total", v));
        table.row(row);
        rows.extend(change_row("all kept together", v));
    }
    let drawn = |r: &crate::chart::Row| r.value.is_some();
    rows.retain(drawn);
    let shares = typed
        .candidates
        .iter()
        .filter_map(|c| c.verdict.as_ref())
        .all(|v| unit(v) == crate::unit::Unit::Change);
    let about = format!("Change of {} by each candidate, with 95% intervals.", spoken(&typed.goal));
    changes(about, if shares { rows } else { vec![] }, table.without_empty_columns(), chapter);
}

fn kept(typed: &FixDocument, chapter: &mut Chapter) {
    let mut table = Table::new("Settings that now differ from before")
        .words("setting")
        .words("host")
        .words("before")
        .words("now");
    for c in &typed.changes {
        let host = if c.host.is_empty() { "this host" } else { &c.host };
        table.row([&c.knob, host, c.old.as_str(), c.new.as_str()].map(Cell::text));
    }
    if !table.rows.is_empty() {
        chapter.heading("In force");
        chapter.table(table);
    }
    if let Some(id) = typed.kept {
        let text = format!("Change {id} is in force until the next boot. To undo it: ");
        chapter.say(Text::plain(text).then(Tone::Code, format!("netwright tune rollback {id}")));
    }
    if let (Some(id), Some(peer)) = (typed.kept_peer, &typed.responder) {
        let text = format!("Change {id} of the responder's host is in force. To undo it: ");
        let command = format!("netwright tune rollback {id} --responder {peer}");
        chapter.say(Text::plain(text).then(Tone::Code, command));
    }
}
