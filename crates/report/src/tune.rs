//! `tune` as text: what is planned, what came of it, how it stands.

use model::{
    Reading,
    tune::{
        ChangeSet, ChangeState, Disruption, Drift, FileAct, Impact, KeptValue, Log, Outcome,
        Persisted, Plan, Planned, Profile, Profiles, Status, Wanted,
    },
};

use crate::{
    text::{Ink, Line, Page, Table, TextStyle},
    words::many,
};

/// A plan: what would be done, what is refused, what needs no doing.
pub fn plan(plan: &Plan, look: TextStyle) -> String {
    let mut page = Page::new(look);
    let host = plan.host.name.get().unwrap_or_else(|| "unnamed host".into());
    let head = Line::new().ink(Ink::Strong, host).text("  plan: ");
    page.line(
        head.text(format!("{}. Nothing was changed.", many(plan.changes.len(), "change"))),
        2,
    );
    for (i, change) in plan.changes.iter().enumerate() {
        page.gap();
        one(i, change, &mut page);
    }
    if !plan.refused.is_empty() {
        page.heading("REFUSED");
        for r in &plan.refused {
            let what = if r.knob.is_empty() { "-".into() } else { format!("{}={}", r.knob, r.new) };
            let line = Line::plain("  ").ink(Ink::Bad, what).text(format!(": {} ", r.why));
            page.line(line.ink(Ink::Faint, format!("({})", r.asked_by)), 6);
            if page.look().verbose && !r.source.is_empty() {
                let source = Line::plain("      ").ink(Ink::Faint, format!("source: {}", r.source));
                page.line(source, 8);
            }
        }
    }
    if !plan.unchanged.is_empty() {
        page.heading("NO CHANGE NEEDED");
        for u in &plan.unchanged {
            page.line(Line::plain(format!("  {} is {}", u.knob, u.value)), 6);
        }
    }
    if !plan.notes.is_empty() {
        page.gap();
        for note in &plan.notes {
            page.line(Line::new().ink(Ink::Warn, format!("Note: {note}.")), 6);
        }
    }
    page.finish()
}

fn one(i: usize, c: &Planned, page: &mut Page) {
    let unit = if c.unit.is_empty() { String::new() } else { format!(" {}", c.unit) };
    let value = |v: &str| if v.is_empty() { "(empty)".to_owned() } else { v.to_owned() };
    let line = Line::plain(format!("{:>3}. ", i + 1))
        .ink(Ink::Strong, &c.knob)
        .text("  ")
        .ink(Ink::Bad, value(&c.old))
        .text(" -> ")
        .ink(Ink::Good, value(&c.new))
        .text(unit);
    page.line(line, 7);
    let detail = |label: &str, text: Line, page: &mut Page| {
        page.labelled(Line::plain("     ").ink(Ink::Faint, format!("{label:<9}")), &text);
    };
    if let Some(mask) = mask(c) {
        detail("mask", Line::plain(mask), page);
    }
    if !c.why.is_empty() {
        detail("because", Line::plain(&c.why), page);
    }
    detail("impact", disturbs(&c.impact), page);
    if !c.owner.is_empty() {
        detail("owner", Line::plain(&c.owner), page);
    }
    if page.look().verbose {
        detail("undo", Line::plain(&c.undo), page);
        detail("asked by", Line::plain(&c.asked_by), page);
    }
    detail("same as", Line::plain(&c.command), page);
}

/// The new value as a hex mask, where it is a list of CPUs.
fn mask(c: &Planned) -> Option<String> {
    let lists = [".affinity", ".cpuset", "irqbalance.banned_cpus"];
    let is_list = lists.iter().any(|end| c.knob.ends_with(end));
    let list = c.new.split_whitespace().next().filter(|_| is_list)?;
    list.parse::<model::CpuSet>().ok().map(|cpus| cpus.to_hex_mask())
}

fn disturbs(r: &Impact) -> Line {
    let ink = if r.disruption >= Disruption::LinkReset || r.own_connection {
        Ink::Bad
    } else {
        Ink::Warn
    };
    let mut line = match r.disruption {
        Disruption::None => Line::plain("nothing"),
        disruption => Line::new().ink(ink, disruption).text(format!(": {}", r.why)),
    };
    for also in &r.also {
        line = line.text(format!("; {also}"));
    }
    if r.own_connection {
        line = line.text("; ").ink(Ink::Bad, "may cut your own connection");
    }
    line
}

/// What came of applying, confirming or undoing.
pub fn outcome(outcome: &Outcome, look: TextStyle) -> String {
    let mut page = Page::new(look);
    let ink = if outcome.done { Ink::Plain } else { Ink::Bad };
    for line in &outcome.lines {
        page.line(Line::new().ink(ink, line), 2);
    }
    page.finish()
}

fn head(s: &ChangeSet, page: &mut Page) {
    let ink = match s.state {
        ChangeState::InForce | ChangeState::RolledBack => Ink::Good,
        ChangeState::GoneWithBoot => Ink::Faint,
        _ => Ink::Bad,
    };
    let line =
        Line::new().ink(Ink::Strong, format!("change {}", s.id)).text("  ").ink(ink, s.state).text(
            format!(
                "  {}  {} of {}, by {}",
                utc(s.begun_unix_ms),
                s.made,
                many(s.changes.len(), "write"),
                s.by
            ),
        );
    page.line(line, 4);
    if !s.namespace.is_empty() {
        page.line(Line::plain(format!("    in network namespace {}", s.namespace)), 6);
    }
    let remedy = |i: usize| s.remedies.get(i).map_or("", String::as_str);
    if let Reading::Known(left) = s.confirm_within_ms {
        page.line(Line::new().ink(Ink::Warn, format!("    {}", waiting(s, left))), 6);
    } else if s.state == ChangeState::Unfinished && !s.remedies.is_empty() {
        let mut text = match (&s.watchdog_running, &s.undone_within_ms) {
            (Reading::Known(true), Reading::Known(left)) => {
                format!(
                    "    its watchdog undoes it in {} s; before that `{}` does",
                    left / 1000,
                    remedy(0)
                )
            }
            (Reading::Known(false), _) => {
                format!("    its watchdog is gone: `{}` undoes it", remedy(0))
            }
            _ => format!("    `{}` undoes it", remedy(0)),
        };
        if s.remedies.len() > 1 {
            text += &format!(", `{}` completes it", remedy(1));
        }
        page.line(Line::new().ink(Ink::Warn, text), 6);
    } else if s.state == ChangeState::PartlyRolledBack && !s.remedies.is_empty() {
        let text = format!("    `{}` tries again to put back what is left", remedy(0));
        page.line(Line::new().ink(Ink::Warn, text), 6);
    }
    for trouble in &s.trouble {
        page.line(Line::plain("    ").ink(Ink::Bad, trouble), 6);
    }
}

/// What becomes of a change that waits for its confirmation.
fn waiting(s: &ChangeSet, left_ms: u64) -> String {
    let remedy = |i: usize| s.remedies.get(i).map_or("", String::as_str);
    let gone = s.watchdog_running == Reading::Known(false);
    match (gone, left_ms) {
        (true, left) => {
            let what =
                if left == 0 { "not confirmed in time, and not undone" } else { "not confirmed" };
            format!(
                "{what}: its watchdog is gone; `{}` keeps it, `{}` undoes it",
                remedy(0),
                remedy(1)
            )
        }
        (false, 0) => "not confirmed in time: its watchdog undoes it now".to_owned(),
        (false, left) => format!("undone in {} s unless `{}`", left / 1000, remedy(0)),
    }
}

/// What is in force, and what of it no longer holds.
pub fn status(status: &Status, look: TextStyle) -> String {
    let mut page = Page::new(look);
    for file in &status.damaged {
        page.line(
            Line::new().ink(Ink::Bad, format!("{file}; what it tells of may be in force")),
            4,
        );
    }
    if status.sets.is_empty() && !status.damaged.is_empty() {
        return page.finish();
    }
    if status.sets.is_empty() {
        page.line(Line::plain(format!("No active changes ({}).", status.journal)), 2);
        return page.finish();
    }
    for set in &status.sets {
        head(set, &mut page);
    }
    page.gap();
    let mut table =
        Table::new().right("#").left("knob").wrapping("before").wrapping("written").wrapping("now");
    for v in &status.values {
        let now = match (&v.drift, &v.now) {
            (Drift::None, Reading::Known(now)) => Line::new().ink(Ink::Good, now),
            (Drift::NotWritten, Reading::Known(now)) => {
                Line::new().ink(Ink::Warn, now).text(" (interrupted before it was written)")
            }
            (Drift::NotPutBack { why }, Reading::Known(now)) => {
                Line::new().ink(Ink::Bad, now).text(format!(" (not put back: {why})"))
            }
            (Drift::Changed { suspects }, Reading::Known(now)) => {
                let by = if suspects.is_empty() {
                    "changed since, not known by whom".to_owned()
                } else {
                    format!("changed since; {} may have", suspects.join(", "))
                };
                Line::new().ink(Ink::Bad, now).text(format!(" ({by})"))
            }
            (_, now) => Line::new().ink(Ink::Bad, now.why_not().unwrap_or("gone")),
        };
        let text = |t: &String| Line::plain(if t.is_empty() { "(empty)" } else { t });
        // What a write had swept along was not written itself.
        let along = matches!(v.drift, Drift::NotPutBack { .. }) && v.written.is_empty();
        let written = if along { Line::plain("-") } else { text(&v.written) };
        let mut knob = v.knob.clone();
        if !v.called.is_empty() {
            knob += &format!(" ({} now)", v.called);
        }
        if !v.beside.is_empty() {
            knob += &format!(" (beside {})", v.beside);
        }
        table.row([Line::plain(v.id), Line::plain(knob), text(&v.before), written, now]);
    }
    page.table(&table, 2);
    page.finish()
}

/// Every change set there ever was.
pub fn log(log: &Log, look: TextStyle) -> String {
    let mut page = Page::new(look);
    if log.sets.is_empty() && log.damaged.is_empty() {
        page.line(Line::plain(format!("Nothing was ever changed ({}).", log.journal)), 2);
    }
    for set in &log.sets {
        head(set, &mut page);
        for c in &set.changes {
            let unit = if c.unit.is_empty() { String::new() } else { format!(" {}", c.unit) };
            page.line(Line::plain(format!("    {}  {} -> {}{unit}", c.knob, c.old, c.new)), 8);
        }
    }
    for damaged in &log.damaged {
        page.line(Line::new().ink(Ink::Bad, damaged), 2);
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
            (FileAct::Unchanged, _) => (Ink::Faint, "is there already"),
            (FileAct::Removed, false) => (Ink::Good, "removed"),
            (FileAct::Removed, true) => (Ink::Good, "would be removed"),
            (FileAct::Missing, _) => (Ink::Faint, "was not there: somebody removed it before"),
            (FileAct::Left, _) => (Ink::Bad, "left where it is: somebody changed it"),
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
            Wanted::Exactly(v) => (" = ", v),
            Wanted::AtLeast(v) => (" at least ", v),
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
        for line in &p.left_out {
            page.line(Line::plain(format!("  {line}")), 4);
        }
    }
}

/// `2026-11-21 12:05:00 UTC`: days to a date by Howard Hinnant's `civil_from_days`
/// (chrono-compatible low-level date algorithms).
fn utc(unix_ms: u64) -> String {
    let s = unix_ms / 1000;
    let z = (s / 86_400) as i64 + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (h, m, s) = (s / 3600 % 24, s / 60 % 60, s % 60);
    format!("{year}-{month:02}-{day:02} {h:02}:{m:02}:{s:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_795_262_700_000), "2026-11-21 12:05:00 UTC");
    }
}
