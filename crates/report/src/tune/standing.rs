//! States of changes: those in force, and the history.

use model::{
    Reading,
    tune::{ChangeSet, ChangeState, Drift, Log, Status},
};

use super::plan::with_unit;
use crate::{
    text::{Ink, Line, Page, Table, TextStyle},
    words::many,
};

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
        let text = match (&s.watchdog_running, &s.undone_within_ms) {
            (Reading::Known(true), Reading::Known(left)) => {
                format!(
                    "    its watchdog undoes it in {} s; `{}` undoes it at once",
                    left / 1000,
                    remedy(0)
                )
            }
            (Reading::Known(false), _) => {
                format!("    its watchdog is gone: `{}` undoes it", remedy(0))
            }
            _ => format!("    `{}` undoes it", remedy(0)),
        };
        page.line(Line::new().ink(Ink::Warn, text), 6);
        if s.remedies.len() > 1 {
            let text = format!("    `{}` completes it", remedy(1));
            page.line(Line::new().ink(Ink::Warn, text), 6);
        }
    } else if s.state == ChangeState::InForce && !s.remedies.is_empty() {
        page.line(Line::plain(format!("    `{}` undoes it", remedy(0))), 6);
    } else if s.state == ChangeState::PartlyRolledBack && !s.remedies.is_empty() {
        let text = format!("    `{}` tries again to restore the rest", remedy(0));
        page.line(Line::new().ink(Ink::Warn, text), 6);
    }
    for trouble in &s.trouble {
        page.line(Line::plain("    ").ink(Ink::Bad, trouble), 6);
    }
}

/// What will happen to a change that awaits confirmation.
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

/// The changes in force, and values that drifted.
pub fn status(status: &Status, look: TextStyle) -> String {
    let mut page = Page::new(look);
    for file in &status.damaged {
        page.line(Line::new().ink(Ink::Bad, format!("{file}; its changes may be in force")), 4);
    }
    if status.sets.is_empty() && !status.damaged.is_empty() {
        return page.finish();
    }
    if status.sets.is_empty() {
        page.line(Line::plain(format!("No active changes ({}).", status.journal)), 2);
        return page.finish();
    }
    page.line(verdict(status), 2);
    page.gap();
    for set in &status.sets {
        head(set, &mut page);
    }
    let mut table = Table::new()
        .right("#")
        .wrapping("KNOB")
        .wrapping("BEFORE")
        .wrapping("WRITTEN")
        .wrapping("NOW");
    for v in &status.values {
        let now = match (&v.drift, &v.now) {
            (Drift::None, Reading::Known(now)) => Line::new().ink(Ink::Good, now),
            (Drift::NotWritten, Reading::Known(now)) => {
                Line::new().ink(Ink::Warn, now).text(" (interrupted before it was written)")
            }
            // The reason is in the lines of its change, above the table.
            (Drift::NotPutBack { .. }, Reading::Known(now)) => {
                Line::new().ink(Ink::Bad, now).text(" (not put back)")
            }
            (Drift::Changed { suspects }, Reading::Known(now)) => {
                let by = if suspects.is_empty() {
                    "changed since, not known by what".to_owned()
                } else {
                    format!("changed since, perhaps by {}", suspects.join(", "))
                };
                Line::new().ink(Ink::Bad, now).text(format!(" ({by})"))
            }
            (_, now) => Line::new().ink(Ink::Bad, now.why_not().unwrap_or("gone")),
        };
        let text = |t: &String| Line::plain(if t.is_empty() { "(empty)" } else { t });
        // A side effect was not written itself.
        let along = matches!(v.drift, Drift::NotPutBack { .. }) && v.written.is_empty();
        let written = match (along, v.written.as_str()) {
            (true, _) => Line::plain("-"),
            (false, "") => text(&v.written),
            (false, written) => Line::plain(with_unit(written, &v.unit)),
        };
        let mut knob = v.knob.clone();
        if !v.called.is_empty() {
            knob += &format!(" (now {})", v.called);
        }
        if !v.beside.is_empty() {
            knob += &format!(" (side effect of {})", v.beside);
        }
        table.row([Line::plain(v.id), Line::plain(knob), text(&v.before), written, now]);
    }
    if !table.is_empty() {
        page.gap();
        page.table(&table, 0);
    }
    page.finish()
}

/// `2 changes: 1 in force, 1 awaiting confirmation`.
fn counted(sets: &[ChangeSet]) -> String {
    let mut by: Vec<(ChangeState, usize)> = vec![];
    for s in sets {
        match by.iter_mut().find(|(state, _)| *state == s.state) {
            Some((_, n)) => *n += 1,
            None => by.push((s.state, 1)),
        }
    }
    match by.as_slice() {
        [(state, n)] => format!("{} {state}", many(*n, "change")),
        many_states => {
            let parts = many_states.iter().map(|(state, n)| format!("{n} {state}"));
            format!("{}: {}", many(sets.len(), "change"), parts.collect::<Vec<_>>().join(", "))
        }
    }
}

/// The number of changes, and whether their values still are what was written.
fn verdict(status: &Status) -> Line {
    let of = |is: fn(&Drift) -> bool| status.values.iter().filter(|v| is(&v.drift)).count();
    let changed = of(|d| matches!(d, Drift::Changed { .. }));
    let other = of(|d| !matches!(d, Drift::Changed { .. } | Drift::None));
    let mut line = Line::new().ink(Ink::Strong, counted(&status.sets));
    if changed > 0 {
        let all = many(status.values.len(), "value");
        line = line.text("; ").ink(Ink::Bad, format!("{changed} of {all} changed since"));
    }
    if other > 0 {
        line =
            line.text("; ").ink(Ink::Bad, format!("{} not as written (NOW)", many(other, "value")));
    }
    if changed + other == 0 && !status.values.is_empty() {
        line = line.text("; every value is as written");
    }
    line
}

/// Every change set in the journal.
pub fn log(log: &Log, look: TextStyle) -> String {
    let mut page = Page::new(look);
    if log.sets.is_empty() && log.damaged.is_empty() {
        page.line(Line::plain(format!("Nothing was ever changed ({}).", log.journal)), 2);
    }
    if !log.sets.is_empty() {
        page.line(Line::new().ink(Ink::Strong, counted(&log.sets)), 2);
    }
    for set in &log.sets {
        page.gap();
        head(set, &mut page);
        for c in &set.changes {
            let new = with_unit(&c.new, &c.unit);
            page.line(Line::plain(format!("    {}  {} → {new}", c.knob, c.old)), 8);
        }
    }
    for damaged in &log.damaged {
        page.line(Line::new().ink(Ink::Bad, damaged.to_string()), 2);
    }
    page.finish()
}

/// `2026-11-21 12:05:00 UTC`: days to a date by Howard Hinnant's `civil_from_days`
/// (chrono-compatible low-level date algorithms).
pub(crate) fn utc(unix_ms: u64) -> String {
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
